"""One process per device, each with its own model and its own share of the units."""

import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from eqforge.core.errors import BuildError, EqforgeError
from eqforge.evaluation.scoring.pictures import process_context
from eqforge.evaluation.scoring.work import Job, done, run_job
from eqforge.models.spec import load_model

_POLL_S = 0.2


def share(job: Job, devices: Sequence[str]) -> list[Job]:
    """Distributes the units of a job over devices, one process each."""
    units = sorted({batch.unit for batch in job.batches})
    of_unit = {unit: place % len(devices) for place, unit in enumerate(units)}
    return [
        dataclasses.replace(
            job,
            device=device,
            batches=[batch for batch in job.batches if of_unit[batch.unit] == place],
            caption_units=job.caption_units[place :: len(devices)],
        )
        for place, device in enumerate(devices)
    ]


def run_processes(model: str, jobs: Sequence[Job], show: Callable[[Iterable[str]], None]) -> None:
    """Runs jobs in parallel and waits for all; when one fails the others are stopped.

    Args:
      model: as on the command line; every process loads it.
      jobs: one per process.
      show: called with the names of the finished units' notes, earlier runs included.

    Raises:
      InputError: a model or a file cannot be read.
      OSError: a system error, such as a full disk.
      BuildError: a process ended before its work was done.
    """
    context = process_context()
    problems: Any = context.SimpleQueue()
    # Not daemons: they start workers of their own.
    processes = [
        context.Process(target=_run, args=(model, job, problems), daemon=False) for job in jobs
    ]
    for process in processes:
        process.start()
    try:
        while any(process.exitcode is None for process in processes):
            if any(process.exitcode not in (None, 0) for process in processes):
                break
            show(done(jobs[0].folder))
            time.sleep(_POLL_S)
    finally:
        for process in processes:
            if process.exitcode is None:
                process.terminate()
            process.join()
    if not problems.empty():
        raise problems.get()
    if ended := [process.exitcode for process in processes if process.exitcode != 0]:
        raise BuildError(
            f"a process that scores ended with {ended[0]} before its work was done; run the same "
            "command again to go on"
        )


def _run(model: str, job: Job, problems: Any) -> None:
    try:
        for _ in run_job(job, load_model(model, job.device)):
            pass
    except (EqforgeError, OSError) as error:
        problems.put(error)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # the parent reports it
