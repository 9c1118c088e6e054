"""Runs builds on Flink: job options, and exclusive access to an output.

`--runner=FlinkRunner` runs Flink inside Beam's job server, a local Java process. With
`--flink_master HOST:PORT`, Beam packs the job into one jar and uploads it to the cluster by REST,
so no Java runs here. `default_options` chooses between the two; `run.run` submits the job when its
`beam.Pipeline` ends, inside `alone`; `failure_report` asks the cluster why it failed. Workers are
processes that `eqforge-beam-boot` starts on each TaskManager's machine (`placement.py`).

A cluster's jobs outlive a killed driver. So the output holds a note with the cluster's address and
the job's name from before submission until the job ends. Every later run into that output, on any
runner, first cancels the job of a note that a killed run left.
"""

import contextlib
import http.client
import json
import re
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PipelineOptions,
    StandardOptions,
)

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.ranges import usable_cores
from eqforge.schemas.dataset.manifest import WORK
from eqforge.transforms.engines.listening import LOOPBACK
from eqforge.transforms.engines.placement import YEAR_S, Options, plain_name, worker_options

TIMEOUT_S = 20
# Errors of a query if nothing answers, or something other than Flink.
NO_ANSWER = (OSError, http.client.HTTPException, ValueError, KeyError, TypeError)
_ADDRESS = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")
# Flink and Beam reflect on Java's internal classes, which Java 17 closes by default.
_OPEN = tuple(
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.lang", "java.nio", "java.util", "java.time")
)
# Repeatable options: these precede the user's.
REPEATED = (
    *(f"--job_server_jvm_properties={option}" for option in ("-Xmx1g", *_OPEN)),
    # Workers check their environment when they start, so hosts need no file.
    "--experiments=disable_logging_submission_environment",
)


def default_options(beam_args: Sequence[str], option_names: set[str]) -> Options:
    found: Options = {
        "job_server_timeout": str(YEAR_S),
        # Without it workers restart, and reload their models, for every stage. They also stay
        # alive this long after the job.
        "environment_cache_millis": "60000",
        "default_sdk_harness_log_level": "ERROR",
        **worker_options(beam_args, default="PROCESS"),
    }
    master = PipelineOptions(list(beam_args)).view_as(FlinkRunnerOptions).flink_master
    if is_embedded(master):
        cores = str(usable_cores())
        return found | {"parallelism": cores, "sdk_worker_parallelism": cores}
    cluster = overview(master)
    if "job_endpoint" not in option_names:
        found["flink_submit_uber_jar"] = None
    return found | {
        "parallelism": str(cluster.slots),
        "sdk_worker_parallelism": str(-(-cluster.slots // cluster.task_managers)),
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class Overview:
    """The capacity of a cluster: its TaskManagers, at least 1, and their total slots."""

    task_managers: int
    slots: int


def is_address(master: object) -> bool:
    return isinstance(master, str) and _ADDRESS.fullmatch(master) is not None


def address_of(master: str) -> str:
    """Return the host and port of a cluster, from either `HOST:PORT` or its URL."""
    found = re.sub("^https?://", "", master).removesuffix("/")
    if not is_address(found):
        raise InputError(f"--flink_master {master}: expected a host and a port, such as HOST:8081")
    return found


def is_embedded(master: str) -> bool:
    return master.strip() in ("[local]", "[auto]")


def overview(master: str) -> Overview:
    """Return the capacity of a cluster, which must answer and have a TaskManager."""
    address_of(master)
    try:
        found = _ask(master, "overview")
        known = Overview(task_managers=found["taskmanagers"], slots=found["slots-total"])
    except NO_ANSWER as error:
        raise InputError(
            f"--flink_master {master}: no Flink cluster answers there ({error}); to start one, run "
            "`deploy/flink/cluster up`"
        ) from error
    if not known.slots:
        raise InputError(f"--flink_master {master}: the cluster has no TaskManager; start one")
    return known


def cancel_jobs(master: str, name: str, timeout_s: float = 60.0) -> int:
    """Cancel the unfinished jobs of a name, wait until they end, and count them.

    Raises:
      TimeoutError: a job did not end in time.
      NO_ANSWER: the cluster does not answer.
    """
    jobs = list(_unended(master, name))
    for job in jobs:
        with contextlib.suppress(urllib.error.HTTPError):  # it has ended in the meantime
            _ask(master, f"jobs/{urllib.parse.quote(job, safe='')}?mode=cancel", method="PATCH")
    deadline = time.monotonic() + timeout_s
    while any(_unended(master, name)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{master}: the job {name} did not stop")
        time.sleep(0.2)
    return len(jobs)


def _unended(master: str, name: str) -> Iterator[str]:
    for job in _ask(master, "jobs/overview")["jobs"]:
        if job["name"] == name and job["state"] not in ("FINISHED", "CANCELED", "FAILED"):
            yield job["jid"]


def _ask(master: str, path: str, method: str = "GET") -> Any:
    root = master if "://" in master else f"http://{master}"
    request = urllib.request.Request(f"{root.rstrip('/')}/v1/{path}", method=method)
    with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_S) as answer:
        return json.loads(answer.read() or "{}")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirects: a cluster must answer itself."""

    def redirect_request(self, *_: Any) -> None:
        return None


def cluster_of(options: PipelineOptions) -> str | None:
    master: str = options.view_as(FlinkRunnerOptions).flink_master
    runner = options.view_as(StandardOptions).runner or ""
    return master if plain_name(runner) == "flink" and not is_embedded(master) else None


@contextlib.contextmanager
def alone(options: PipelineOptions, output: str) -> Iterator[None]:
    """Let only the block's own job write into an output from a Flink cluster."""
    end_left_job(output)
    master = cluster_of(options)
    if master is None:
        yield
        return
    name = options.view_as(GoogleCloudOptions).job_name
    cancel_jobs(master, name)  # jobs whose note was deleted with its folder
    note = {"flink_master": address_of(master), "job_name": name, "host": socket.gethostname()}
    storage.write_bytes(_note(output), json.dumps(note).encode())
    try:
        yield
    except BaseException:
        with contextlib.suppress(*NO_ANSWER):
            cancel_jobs(master, name)
            storage.delete(_note(output))
        raise
    storage.delete(_note(output))


def end_left_job(output: str) -> None:
    """Cancel the job that a killed run into an output left on a Flink cluster, if any."""
    note = _note(output)
    try:
        content = storage.read_bytes(note)
    except FileNotFoundError:
        return
    try:
        found = json.loads(content)
        master, name, host = found["flink_master"], found["job_name"], found["host"]
        if not (is_address(master) and name.isprintable() and host.isprintable()):
            raise ValueError("expected HOST:PORT and printable names")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"--output {output}: a killed run left a job on a Flink cluster, but {note}, which "
            "names the job, is damaged. Check that the job has stopped, then delete this file."
        ) from error
    try:
        is_loopback = master.rpartition(":")[0].strip("[]") in LOOPBACK
        if is_loopback and host != socket.gethostname():
            raise OSError(f"only {host} can reach the cluster")
        cancel_jobs(master, name)
    except NO_ANSWER as error:
        raise InputError(
            f"--output {output}: the job {name} of a killed run may still write there. eqforge "
            f"could not cancel it on the Flink cluster at {master} ({error}). Start that cluster. "
            f"If you cannot, check that the job has stopped, then delete {note}."
        ) from error
    storage.delete(note)


def _note(output: str) -> str:
    return storage.join(output, WORK, "flink-job.json")


def failure_report(options: PipelineOptions) -> Callable[[], tuple[str, str | None]]:
    """Return a function that asks a Flink cluster about a failed job.

    It returns the job's exception, for which Beam's own polling often comes too late, and a
    sentence on slots that the cluster has lost since this call. Both are empty elsewhere.
    """
    master = cluster_of(options)  # Beam changes it when it submits the job
    slots = 0 if master is None else overview(master).slots

    def report() -> tuple[str, str | None]:
        if master is None:
            return "", None
        try:
            left = overview(master).slots
            exception = _exception(master, options.view_as(GoogleCloudOptions).job_name)
        except InputError as error:
            return "", str(error)
        if left >= slots:
            return exception, None
        return exception, (
            f"the cluster at {master} has {left} of {slots} slots left, because a TaskManager "
            "stopped; restart the TaskManager, and run the same build again"
        )

    return report


def _exception(master: str, name: str) -> str:
    with contextlib.suppress(*NO_ANSWER):
        jobs = [job for job in _ask(master, "jobs/overview")["jobs"] if job["name"] == name]
        newest = max(jobs, key=lambda job: job["start-time"])
        return _ask(master, f"jobs/{newest['jid']}/exceptions")["root-exception"] or ""
    return ""
