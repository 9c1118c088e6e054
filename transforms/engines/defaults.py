"""Default options for runners outside this process."""

import contextlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import requires
from pathlib import Path

from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    PipelineOptions,
    PortableOptions,
)
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc
from apache_beam.runners.worker.channel_factory import GRPCChannelFactory

from eqforge.core.errors import InputError
from eqforge.core.identity import versions_of
from eqforge.transforms.engines.flink import is_embedded, overview

BOOT = "eqforge-beam-boot"
LOG = "EQFORGE_WORKER_LOG"  # known to eqforge-beam-boot
ANSWER_TIMEOUT_S = 20.0
_PROCESS = ("PROCESS", common_urns.environments.PROCESS.urn)
# On every job server but Flink's, Beam's timeout for a response also limits the whole run.
_YEAR_S = 365 * 24 * 3600
# Flink and Beam reflect on Java's internal classes, which Java 17 closes by default.
_OPEN = tuple(
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.lang", "java.nio", "java.util", "java.time")
)


def with_defaults(runner: str, beam_args: Sequence[str]) -> list[str]:
    """Return Beam's arguments with defaults for those that the user did not give."""
    kind = runner.rpartition(".")[2].lower().removesuffix("runner")
    if kind not in _DEFAULTS:
        return list(beam_args)
    given = {arg.lstrip("-").partition("=")[0] for arg in beam_args if arg.startswith("--")}
    found = _DEFAULTS[kind](beam_args, given)
    added = [
        f"--{name}" if value is None else f"--{name}={value}"
        for name, value in found.items()
        if name not in given
    ]
    return [*_REPEATED.get(kind, ()), *beam_args, *added]


Options = dict[str, str | None]  # None for a flag


def _portable(beam_args: Sequence[str], given: set[str]) -> Options:
    return {"job_server_timeout": str(_YEAR_S), **_workers(beam_args)}


def _workers(beam_args: Sequence[str], default: str | None = None) -> Options:
    """Return the options for starting workers that the user did not give."""
    asked = PipelineOptions(list(beam_args)).view_as(PortableOptions)
    if asked.environment_options:
        return {}
    kind = asked.environment_type or default
    found: Options = {} if kind is None else {"environment_type": kind}
    if kind in _PROCESS and asked.environment_config is None:
        found["environment_config"] = worker_process()
    return found


def _flink(beam_args: Sequence[str], given: set[str]) -> Options:
    """Settings that use every core of this machine, or every slot of a cluster.

    A cluster gets one jar with the job in it, by its REST interface: no Java runs here.
    """
    found: Options = {
        "job_server_timeout": str(_YEAR_S),
        # Without it workers restart, and reload their models, for every stage. They also stay
        # alive this long after the job.
        "environment_cache_millis": "60000",
        "default_sdk_harness_log_level": "ERROR",
        **_workers(beam_args, default="PROCESS"),
    }
    master = PipelineOptions(list(beam_args)).view_as(FlinkRunnerOptions).flink_master
    if is_embedded(master):
        cores = str(len(os.sched_getaffinity(0)))
        return found | {"parallelism": cores, "sdk_worker_parallelism": cores}
    cluster = overview(master)
    if "job_endpoint" not in given:
        found["flink_submit_uber_jar"] = None
    return found | {
        "parallelism": str(cluster.slots),
        "sdk_worker_parallelism": str(-(-cluster.slots // cluster.task_managers)),
    }


def _dataflow(beam_args: Sequence[str], given: set[str]) -> Options:
    if not given & {"sdk_container_image", "setup_file", "extra_packages", "extra_package"}:
        raise InputError(
            "--sdk_container_image is missing: the image with eqforge that the workers run; "
            "docs/guides/dataflow.md says how to make it"
        )
    # Steps are CPU-bound, and a process uses one core: more threads would only use more memory.
    found: Options = {"number_of_worker_harness_threads": "1"}
    if "sdk_container_image" in given:
        found["sdk_location"] = "container"
    return found


_DEFAULTS: dict[str, Callable[[Sequence[str], set[str]], Options]] = {
    "flink": _flink,
    "dataflow": _dataflow,
    "prism": _portable,
    "portable": _portable,
}
# Options that may be repeated: ours come first, then the user's.
_REPEATED = {
    "flink": (
        *(f"--job_server_jvm_properties={option}" for option in ("-Xmx1g", *_OPEN)),
        # Workers check their environment when they start, so no file has to reach all hosts.
        "--experiments=disable_logging_submission_environment",
    ),
}


def worker_process() -> str:
    """Return the `--environment_config` of workers that `eqforge-beam-boot` starts."""
    beside = Path(sys.executable).with_name(BOOT)
    program = str(beside) if beside.is_file() else shutil.which(BOOT)
    if program is None:
        raise InputError(f"{BOOT} is not installed beside {sys.executable}: install eqforge again")
    variables = {name: value for name, value in os.environ.items() if name.startswith("EQFORGE_")}
    named = [re.split(r"[^\w.-]", need, maxsplit=1)[0] for need in requires("eqforge") or ()]
    python = ".".join(map(str, sys.version_info[:3]))
    versions = {"python": python, **versions_of("eqforge", *named)}
    variables |= {"EQFORGE_FOLDER": os.getcwd(), "EQFORGE_VERSIONS": json.dumps(versions)}
    return json.dumps({"command": program, "env": variables})


def log_workers_to(log: str, options: PipelineOptions) -> None:
    """Name the log file of worker processes, where `eqforge-beam-boot` starts them."""
    portable = options.view_as(PortableOptions)
    # The user's own settings, of another kind, stay as they are.
    with contextlib.suppress(ValueError, TypeError, KeyError):
        settings = json.loads(portable.environment_config or "")
        settings["env"] = {LOG: os.path.abspath(log)} | settings["env"]
        portable.environment_config = json.dumps(settings)


def check_endpoint(options: PipelineOptions, timeout_s: float = ANSWER_TIMEOUT_S) -> None:
    """Check that a job server named in the options answers; Beam would wait for it forever."""
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
