"""The job server of a runner outside this process: started for one build, and ended with it."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    JobServerOptions,
    PipelineOptions,
    PortableOptions,
    PrismRunnerOptions,
    StandardOptions,
)
from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc
from apache_beam.runners.portability.job_server import ExternalJobServer
from apache_beam.runners.worker.channel_factory import GRPCChannelFactory

from eqforge.core.errors import BuildError, InputError
from eqforge.core.sandbox.die_with_parent import start_program

START_TIMEOUT_S = 180.0
ANSWER_TIMEOUT_S = 20.0
LOG = "EQFORGE_WORKER_LOG"  # known to eqforge-beam-boot
_LOGGING = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.log.org.apache.flink=error",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss",
)
# Flink settings for the embedded cluster; a failed job is retried, as on a real one.
_EMBEDDED = """
restart-strategy: {type: fixed-delay, fixed-delay: {attempts: 2, delay: 2 s}}
jobmanager: {bind-host: localhost}
rest: {bind-address: localhost}
taskmanager: {host: localhost, bind-host: localhost, memory: {network: {min: 128m, max: 128m}}}
"""


@contextlib.contextmanager
def served(options: PipelineOptions, log: str) -> Iterator[None]:
    """Runs a job server for the block if the runner needs one, and sets it in the options.

    Args:
      options: Beam's options; see pipeline_options.
      log: a file for the server's messages.

    Raises:
      BuildError: the server does not start.
      InputError: an argument is neither Beam's nor the runner's.
    """
    portable = options.view_as(PortableOptions)
    portable.environment_config = _with_log(portable.environment_config, log)
    with contextlib.ExitStack() as held:
        scratch = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="eqforge-jobs-")))
        port = _free_port()
        command = None if portable.job_endpoint else _command(options, port, scratch)
        if command is not None:
            held.enter_context(_running(command, port, scratch, log))
            portable.job_endpoint = f"localhost:{port}"
            _check_options(options, portable.job_endpoint)
        yield


def check_endpoint(options: PipelineOptions, timeout_s: float = ANSWER_TIMEOUT_S) -> None:
    """Checks that a job server named in the options answers; Beam would wait for it forever.

    Raises:
      InputError: it does not answer.
    """
    endpoint = options.view_as(PortableOptions).job_endpoint
    if not endpoint or endpoint == "embed":
        return
    with GRPCChannelFactory.insecure_channel(endpoint) as channel:
        service = beam_job_api_pb2_grpc.JobServiceStub(channel)
        request = beam_job_api_pb2.DescribePipelineOptionsRequest()
        try:
            service.DescribePipelineOptions(request, timeout=timeout_s)
        except Exception as error:
            why = error.details() if hasattr(error, "details") else error
            raise InputError(
                f"--job_endpoint {endpoint}: no job server answers there: {why}"
            ) from error


def _check_options(options: PipelineOptions, endpoint: str) -> None:
    """Refuses arguments that the runner would silently drop; the server lists those it knows."""
    every = options.get_all_options(drop_default=True, retain_unknown_options=True)
    unknown = every.keys() - options.get_all_options(drop_default=True).keys()
    if unknown and _is_flink(options):
        service = ExternalJobServer(endpoint, START_TIMEOUT_S).start()
        request = beam_job_api_pb2.DescribePipelineOptionsRequest()
        known = {option.name for option in service.DescribePipelineOptions(request).options}
        for name in sorted(unknown - known):
            raise InputError(f"--{name}: no option of Beam or of its Flink runner")


def _with_log(config: str | None, log: str) -> str | None:
    """Returns the settings of worker processes, with their log file added."""
    try:
        settings = json.loads(config or "")
        return json.dumps(settings | {"env": {LOG: os.path.abspath(log)} | settings["env"]})
    except (ValueError, TypeError, KeyError):
        return config  # the user's own, of another kind


def _is_flink(options: PipelineOptions) -> bool:
    runner: str = options.view_as(StandardOptions).runner or ""
    return runner.endswith("FlinkRunner")


def _command(options: PipelineOptions, port: int, scratch: Path) -> list[str] | None:
    """Returns the command of the runner's job server; None for a runner without one."""
    runner = options.view_as(StandardOptions).runner or ""
    if runner.endswith("PrismRunner"):
        location = options.view_as(PrismRunnerOptions).prism_location
        if location is None or not os.path.isfile(location):
            return None
        return [location, f"--job_port={port}", "--serve_http=false", "--log_kind=text"]
    flink = options.view_as(FlinkRunnerOptions)
    jar = flink.flink_job_server_jar
    if not _is_flink(options) or flink.flink_submit_uber_jar or not os.path.isfile(jar or ""):
        return None  # Beam starts one itself
    server = options.view_as(JobServerOptions)
    return [
        *(server.job_server_java_launcher, *_LOGGING, f"-Djava.io.tmpdir={scratch}"),
        *server.job_server_jvm_properties,
        *("-jar", jar, "--flink-master", flink.flink_master),
        *("--artifacts-dir", server.artifacts_dir or str(scratch / "artifacts")),
        *("--job-host", "localhost", "--job-port", str(port)),
        *("--artifact-port", str(server.artifact_port), "--expansion-port", "-1"),
    ]


@contextlib.contextmanager
def _running(command: list[str], port: int, scratch: Path, log: str) -> Iterator[None]:
    (scratch / "config.yaml").write_text(_EMBEDDED, encoding="utf-8")
    environment = {"FLINK_CONF_DIR": str(scratch)} | os.environ
    with open(log, "ab") as output:
        server = start_program(
            command,
            signal.SIGTERM,  # lets it clean up
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            process_group=0,  # Ctrl-C is this process's to handle
        )
    try:
        _wait_for(server, port, log)
        yield
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait_for(server: "subprocess.Popen[bytes]", port: int, log: str) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise BuildError(
                f"the job server ended with exit status {server.returncode} before it was ready; "
                f"its last words are in {log}"
            )
        with contextlib.suppress(OSError), socket.create_connection(("localhost", port), 1):
            return
        time.sleep(0.1)
    raise BuildError(f"the job server was not ready after {START_TIMEOUT_S:g} s (more in {log})")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        number: int = probe.getsockname()[1]
        return number
