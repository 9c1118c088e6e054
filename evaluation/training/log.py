"""Training logs: one line per step in a file, and progress on a terminal."""

import json
import sys
import time
from collections.abc import Callable, Mapping

from eqforge.evaluation.training.folder import RunFolder

REPORT_S = 10.0


class Log:
    """Writes one line of JSON per step.

    Args:
      folder: the run's folder; None writes nothing.
      start: number of finished steps; log entries of later ones are dropped.
    """

    def __init__(self, folder: RunFolder | None, start: int) -> None:
        self._stream = None if folder is None else folder.open_log(start)

    def __enter__(self) -> Callable[[Mapping[str, float]], None]:
        """Returns a function that writes an entry."""
        return self._write

    def _write(self, entry: Mapping[str, float]) -> None:
        if self._stream is not None:
            self._stream.write(json.dumps(entry) + "\n")
            self._stream.flush()

    def __exit__(self, *_: object) -> None:
        """Closes the file."""
        if self._stream is not None:
            self._stream.close()


class Progress:
    """Prints the progress of training to standard error every ten seconds.

    Args:
      steps: number of steps of the run.
      enabled: whether this process prints.
    """

    def __init__(self, steps: int, enabled: bool) -> None:
        self._steps, self._enabled = steps, enabled
        self._begun = self._said = time.monotonic()
        self._matches = 0

    def report(self, done: int, loss: float, matches: int) -> None:
        """Records a step, and prints if it is time to."""
        self._matches += matches
        now = time.monotonic()
        if self._enabled and now - self._said >= REPORT_S:
            self._said = now
            rate = self._matches / (now - self._begun)
            print(
                f"step {done:,} of {self._steps:,}: loss {loss:.4f}, {rate:,.0f} images a second",
                file=sys.stderr,
            )
