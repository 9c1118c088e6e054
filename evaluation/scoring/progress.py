"""Shows progress: a line that is redrawn on a terminal, else one every ten seconds."""

import sys
import time


class Progress:
    """A progress line over units of work.

    Args:
      total: number of units.
      before: units done by an earlier run.
      unit: what a unit is called.
    """

    EVERY_S = 10.0

    def __init__(self, total: int, before: int, unit: str) -> None:
        """Starts the clock."""
        self._total, self._before, self._unit = total, before, unit
        self._start = self._shown = time.monotonic()
        if before:
            print(f"going on behind {before:,} of {total:,} {unit}", file=sys.stderr)

    def show(self, done: int) -> None:
        """Shows how many are done."""
        now = time.monotonic()
        redrawn = sys.stderr.isatty()
        if now - self._shown < (0.2 if redrawn else self.EVERY_S):
            return
        self._shown = now
        made = done - self._before
        left = (self._total - done) * (now - self._start) / made if made else float("nan")
        line = f"{done:,} of {self._total:,} {self._unit}, {left:,.0f} s left"
        print(f"\r{line}" if redrawn else line, end="" if redrawn else "\n", file=sys.stderr)

    def close(self) -> None:
        """Ends the line."""
        if sys.stderr.isatty():
            print(file=sys.stderr)
