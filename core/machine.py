"""Limits of a machine."""

import os

from eqforge.core.errors import InputError

WORKERS_A_CORE = 8


def check_workers(workers: int, least: int = 1) -> None:
    """Checks a number of processes: far too many stall a machine.

    Args:
      workers: as in `--workers`.
      least: 0 if the main process may do the work itself, else 1.

    Raises:
      InputError: it is too small, or more than eight for each core of this machine.
    """
    if workers < least:
        raise InputError(f"--workers {workers}: expected {least} or more")
    cores = os.cpu_count() or 1
    if workers > WORKERS_A_CORE * cores:
        raise InputError(
            f"--workers {workers}: expected at most {WORKERS_A_CORE * cores}, {WORKERS_A_CORE} for "
            f"each of this machine's {cores} cores"
        )
