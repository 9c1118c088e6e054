"""Shows how far a task is: a line that is redrawn on a terminal, else one every ten seconds."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
EVERY_S = 10.0


def in_words(done: int, total: int | None, unit: str, seconds: float) -> str:
    """Return the progress of a task, its rate and the time that is left; `total` may be unknown."""
    said = f"{done:,} {unit}" if total is None else f"{done:,} of {total:,} {unit}"
    if not done or seconds <= 0 or done == total:
        return said
    rate = done / seconds
    said += f", {rate:,.1f} a second" if rate >= 0.1 else f", {60 * rate:,.1f} a minute"
    return said if total is None else f"{said}, {duration((total - done) / rate)} left"


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


class Ticker:
    """A line about a task.

    Args:
      total: number of units; None if that is not known.
      before: units done by an earlier run.
      task: begins the line.
    """

    def __init__(self, total: int | None, unit: str, *, before: int = 0, task: str = "") -> None:
        self._total, self._before, self._unit = total, before, unit
        self._task, self._is_open = f"{task}: " if task else "", False
        self._start = self._shown = time.monotonic()
        if before:
            print(f"going on behind {before:,} of {total:,} {unit}", file=sys.stderr)

    def show(self, done: int) -> None:
        now, is_redrawn = time.monotonic(), sys.stderr.isatty()
        if now - self._shown < (0.2 if is_redrawn else EVERY_S):
            return
        self._shown = now
        left = None if self._total is None else self._total - self._before
        line = self._task + in_words(done - self._before, left, self._unit, now - self._start)
        print(
            f"\r{line}\x1b[K" if is_redrawn else line,
            end="" if is_redrawn else "\n",
            file=sys.stderr,
            flush=True,
        )
        self._is_open = is_redrawn

    def close(self) -> None:
        if self._is_open:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def ticked(things: Iterable[T], total: int | None, unit: str, task: str = "") -> Iterator[T]:
    """Yield things, and show how many have been used."""
    ticker = Ticker(total, unit, task=task)
    try:
        for number, thing in enumerate(things):
            ticker.show(number)
            yield thing
    finally:
        ticker.close()
