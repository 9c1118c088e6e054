"""What a command prints where: words for people, a JSON document for programs, or next to nothing.

A session begins quietly: `take` redirects the streams once the command line is parsed, so that its
errors are shown, and the end of the session puts them back before an error of the command is.
"""

import contextlib
import io
import logging
import os
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import msgspec

from eqforge.core.errors import TRACEBACK, EqforgeError
from eqforge.core.visible import escaped_json


@dataclass(frozen=True, kw_only=True)
class ConsoleOptions:
    """What is printed, and where settings come from; every command has these options."""

    quiet: bool = False
    """Print errors and the last line only; a table or report that was asked for stays whole."""

    verbose: bool = False
    """Print what the libraries log, and the traceback of an error."""

    config: Path | None = None
    """TOML file of settings, named as the options are. A variable such as EQFORGE_SEED=3 sets an
    option, too. Options of the command line come first, then the file, then variables."""


@dataclass(frozen=True, kw_only=True)
class DocumentOptions(ConsoleOptions):
    """What is printed, and where settings come from; every command has all but --json."""

    json: bool = False
    """Print one JSON document, docs/reference/json.md describes it, and everything else to standard
    error."""


class _LastLine(io.TextIOBase):
    """Keeps the last line that is written to it."""

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
    """Undo what `take` did when the block ends.

    Args:
      keeps_output: whether standard output is the command's product, and stays whole if quiet.
    """
    global _session
    with contextlib.ExitStack() as streams:
        before, _session = _session, _Session(streams=streams, keeps_output=keeps_output)
        try:
            yield
        finally:
            _session = before


def take(options: ConsoleOptions) -> None:
    """Redirect the streams and sets up the log for the rest of the session."""
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
    """Log from a level on in the block; from INFO on, errors are printed with their traceback."""
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


def give(document: Any) -> None:
    """Print a result as JSON, if requested, with its hidden characters escaped."""
    if _session is not None and _session.document is not None:
        text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
        print(escaped_json(text), file=_session.document)
