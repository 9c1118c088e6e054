"""Keeps an output to one job at a time, as a Flink cluster's jobs outlive a killed driver.

Before a job is submitted, the cluster's address and the job's name are noted in the output. The
note is deleted when the job has ended. Every later run into that output, on any runner, first
cancels the job of a note that a killed run left behind.
"""

import contextlib
import json
import socket
from collections.abc import Callable, Iterator

from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PipelineOptions,
    StandardOptions,
)

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.schemas.dataset.manifest import WORK
from eqforge.transforms.engines.flink_cluster import (
    NO_ANSWER,
    address_of,
    cancel_jobs,
    is_address,
    is_embedded,
    overview,
)
from eqforge.transforms.engines.open_ports import LOOPBACK
from eqforge.transforms.engines.placement import plain_name


def cluster_of(options: PipelineOptions) -> str | None:
    """Returns the address of the Flink cluster that a job goes to; None for any other runner."""
    master: str = options.view_as(FlinkRunnerOptions).flink_master
    runner = options.view_as(StandardOptions).runner or ""
    return master if plain_name(runner) == "flink" and not is_embedded(master) else None


@contextlib.contextmanager
def alone(options: PipelineOptions, output: str) -> Iterator[None]:
    """Ensures that only the block's own job writes into an output from a Flink cluster.

    Args:
      options: Beam's, with the name of the job.
      output: the path or URL being built.

    Raises:
      InputError: a killed run left a job on a cluster that does not answer.
    """
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
    """Cancels the job that a killed run into an output left on a Flink cluster, if any.

    Raises:
      InputError: the cluster does not end the job, or the note is damaged.
    """
    note = _note(output)
    try:
        content = storage.read_bytes(note)
    except FileNotFoundError:
        return
    try:
        found = json.loads(content)
        master, name, host = found["flink_master"], found["job_name"], found["host"]
        if not (is_address(master) and name.isprintable() and host.isprintable()):
            raise ValueError("expected a host and port, and names")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"--output {output}: a killed run left a job on a Flink cluster, and the note of it "
            f"is damaged; make sure that no such job runs, and delete {note}"
        ) from error
    try:
        if _is_loopback(master) and host != socket.gethostname():
            raise OSError(f"the cluster answers on {host} alone")
        cancel_jobs(master, name)
    except NO_ANSWER as error:
        raise InputError(
            f"--output {output}: a killed run left the job {name} on the Flink cluster at "
            f"{master}, where it may still write, and it could not be ended ({error}); start that "
            f"cluster, or make sure that the job is gone and delete {note}"
        ) from error
    storage.delete(note)


def _note(output: str) -> str:
    return storage.join(output, WORK, "flink-job.json")


def _is_loopback(master: str) -> bool:
    return master.rpartition(":")[0].strip("[]") in LOOPBACK


def capacity(options: PipelineOptions) -> Callable[[], str | None]:
    """Returns a function that tells what the Flink cluster of a job has lost since this call.

    The function returns None if nothing was lost, and on every other runner.
    """
    master = cluster_of(options)
    slots = 0 if master is None else overview(master).slots

    def lost() -> str | None:
        try:
            left = 0 if master is None else overview(master).slots
        except InputError as error:
            return str(error)
        if left >= slots:
            return None
        return (
            f"the cluster at {master} has {left} slots left of {slots}: a TaskManager is gone; "
            "start it and build again"
        )

    return lost
