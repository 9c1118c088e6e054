"""Checks of the numbers of settings."""

import dataclasses
import math
import os
import sys
from typing import Any

from eqforge.core.errors import InputError


def expect(settings: Any, name: str, is_right: bool, rule: str) -> None:
    if not is_right:
        flag = name.replace("_", "-")
        raise InputError(f"--{flag} {getattr(settings, name)}: expected {rule}")


def check_range(name: str, value: float | None, low: float, high: float) -> None:
    if value is None or low <= value <= high:
        return
    is_percentage = high == 1 and 2 <= value <= 100
    hint = f"; write {value / 100:g} for {value:g}%" if is_percentage else ""
    flag = name.replace("_", "-")
    raise InputError(f"--{flag} {value}: expected {low:g} to {high:g}{hint}")


def check_numbers(settings: Any) -> None:
    """Check that numbers are finite, and that no `min_` limit is above its `max_` limit."""
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            check_numbers(value)
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, float) and not math.isfinite(number):
                flag = field.name.replace("_", "-")
                raise InputError(f"--{flag} {number}: expected a finite number")
        if field.name.startswith("min_") and value is not None:
            stem = field.name.removeprefix("min_")
            most, flag = getattr(settings, f"max_{stem}", None), stem.replace("_", "-")
            if most is not None and value > most:
                raise InputError(
                    f"--min-{flag} {value} is above --max-{flag} {most}, so nothing would be kept; "
                    "lower the minimum or raise the maximum"
                )


WORKERS_A_CORE = 8


def usable_cores() -> int:
    """Return the number of CPU cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_workers(workers: int, least: int = 1) -> None:
    """Check a number of processes; too many stall a machine."""
    if workers < least:
        raise InputError(f"--workers {workers}: expected {least} or more")
    cores = os.cpu_count() or 1
    if workers > WORKERS_A_CORE * cores:
        raise InputError(
            f"--workers {workers}: expected at most {WORKERS_A_CORE * cores} "
            f"({WORKERS_A_CORE} for each of this machine's {cores} cores)"
        )
