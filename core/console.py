"""Console output: text for people, a JSON document for programs, or almost nothing.

`apply_console_options` redirects the streams after the command line is parsed, so that parsing
errors are shown. The end of the session restores them before it prints an error of the command.
"""

import contextlib
import io
import logging
import os
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, TypeVar

import msgspec

from eqforge.core.errors import TRACEBACK, EqforgeError
from eqforge.core.visible import escaped_json


@dataclass(frozen=True, kw_only=True)
class ConsoleOptions:
    """Console output and configuration file."""

    quiet: bool = False
    """Print only errors and the last line of the output. Tables and reports that you request are
    still printed in full."""

    verbose: bool = False
    """Also print log messages from libraries, and tracebacks for errors."""

    config: Path | None = None
    """TOML file of option values, such as `max-side = 256`. The file overrides environment
    variables such as EQFORGE_SEED=3. The command line overrides both."""


@dataclass(frozen=True, kw_only=True)
class DocumentOptions(ConsoleOptions):
    """Console output and configuration file."""

    json: bool = False
    """Print one JSON document to stdout and other text to stderr. For the format, see
    docs/reference/python.md."""


class _LastLine(io.TextIOBase):
    """Stream that keeps the last line written to it."""

    def __init__(self) -> None:
        self.line, self._rest = "", ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        self.line = next((line for line in reversed(lines) if line.strip()), self.line)
        return len(text)

    @property
    def last(self) -> str:
        return self._rest if self._rest.strip() else self.line


@dataclass(kw_only=True, slots=True)
class _Session:
    streams: contextlib.ExitStack
    keeps_output: bool
    document: TextIO | None = None


_session: _Session | None = None


@contextlib.contextmanager
def session(*, keeps_output: bool = False) -> Iterator[None]:
    """Undo the effects of `apply_console_options` when the block ends.

    Args:
        keeps_output: standard output is the command's product, so print it even with `--quiet`.
    """
    global _session
    with contextlib.ExitStack() as streams:
        before, _session = _session, _Session(streams=streams, keeps_output=keeps_output)
        try:
            yield
        finally:
            _session = before


def apply_console_options(options: ConsoleOptions) -> None:
    """Redirect the streams and set up the log for the rest of the session."""
    if _session is None:
        return
    streams, is_json = _session.streams, isinstance(options, DocumentOptions) and options.json
    if options.verbose:
        streams.enter_context(_logged(logging.INFO))
    if is_json:
        _session.document = sys.stdout
        streams.enter_context(contextlib.redirect_stdout(sys.stderr))
    if options.quiet:
        streams.enter_context(_logged(logging.ERROR))
        if is_json or not _session.keeps_output:
            streams.enter_context(_last_line(None if is_json else sys.stdout))
        streams.enter_context(contextlib.redirect_stderr(_LastLine()))


@contextlib.contextmanager
def _last_line(stream: TextIO | None) -> Iterator[None]:
    kept = _LastLine()
    with contextlib.redirect_stdout(kept):
        yield
    if stream is not None and kept.last:
        print(kept.last, file=stream)


@contextlib.contextmanager
def _logged(level: int) -> Iterator[None]:
    loggers = logging.getLogger(), logging.getLogger("apache_beam")
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(level)
    try:
        yield
    except (EqforgeError, OSError, MemoryError):  # of any other error Python prints it
        if level == logging.INFO and not os.environ.get(TRACEBACK):
            traceback.print_exc()
        raise
    finally:
        for logger, kept in zip(loggers, before, strict=True):
            logger.setLevel(kept)


def print_document(document: Any) -> None:
    if _session is not None and _session.document is not None:
        text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
        print(escaped_json(text), file=_session.document)


T = TypeVar("T")
EVERY_S = 10.0


def in_words(done: int, total: int | None, unit: str, seconds: float) -> str:
    text = f"{done:,} {unit}" if total is None else f"{done:,} of {total:,} {unit}"
    if not done or seconds <= 0 or done == total:
        return text
    rate = done / seconds
    text += f", {rate:,.1f} a second" if rate >= 0.1 else f", {60 * rate:,.1f} a minute"
    return text if total is None else f"{text}, {duration((total - done) / rate)} left"


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


class Ticker:
    """A progress line for a task.

    Args:
        total: number of units; None if unknown.
        before: units done by an earlier run.
    """

    def __init__(self, total: int | None, unit: str, *, before: int = 0, task: str = "") -> None:
        self._total, self._before, self._unit = total, before, unit
        self._task, self._is_open = f"{task}: " if task else "", False
        self._start = self._shown = time.monotonic()
        if before:
            print(f"resuming after {before:,} of {total:,} {unit}", file=sys.stderr)

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
    ticker = Ticker(total, unit, task=task)
    try:
        for number, thing in enumerate(things):
            ticker.show(number)
            yield thing
    finally:
        ticker.close()
