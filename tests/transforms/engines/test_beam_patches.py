"""A local worker that dies ends the run, which would wait for it forever, busy or idle."""

import os
import signal
import time
from pathlib import Path

import apache_beam as beam
import pytest

from eqforge.core.errors import BuildError
from eqforge.transforms.engines.options import pipeline_options
from eqforge.transforms.engines.run import run

pytestmark = pytest.mark.timeout(120)  # for a run that hangs


def die(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return number


def kill_the_others(number: int) -> int:
    """Kills the workers that have nothing to do while this one works."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid() and is_worker(folder):
            os.kill(int(folder.name), signal.SIGKILL)
    time.sleep(1.0)
    return number


def is_worker(folder: Path) -> bool:
    """Tells whether a process is a worker of the same run."""
    try:
        command = (folder / "cmdline").read_text()
        return "sdk_worker_main" in command and parent_of(int(folder.name)) == os.getppid()
    except (FileNotFoundError, ProcessLookupError):
        return False


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def keyed(number: int) -> tuple[int, int]:
    return number % 50, number


def run_with_two_workers(step: beam.PTransform, numbers: list[int], log: Path) -> None:
    with pytest.raises(BuildError, match=r"a worker process died \(SIGKILL\); its last messages"):
        run(
            lambda root: (
                root
                | beam.Create(numbers)
                | beam.Reshuffle()
                | "Step" >> step
                | "Key" >> beam.Map(keyed)
                | beam.GroupByKey()
                | "Values" >> beam.Values()
            ),
            pipeline_options([], workers=2),
            str(log),
        )


def test_a_worker_that_dies_at_work_ends_the_run(tmp_path: Path) -> None:
    run_with_two_workers(beam.Map(die), list(range(100)), tmp_path / "log")


def test_a_worker_that_dies_idle_ends_the_run(tmp_path: Path) -> None:
    """Its death breaks no request; the next one it gets has to be answered by the watchdog."""
    run_with_two_workers(beam.Map(kill_the_others), [0], tmp_path / "log")
