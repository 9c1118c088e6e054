# ruff: noqa: SIM115
"""Runs commands on hostile files in this process, and tells what should not have happened.

Every command runs under a limit on address space and on time, with its output captured down to the
descriptors, and with Python's audit events watched: programs that are started, connections, and
files that are opened outside the folder of the attack are findings.
"""

import contextlib
import io
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eqforge import cli
from eqforge.core.visible import visible
from tests.fuzz.limits import address_space

MOST_S = 10.0
"""Of processor time."""

WAITING_S = 60.0
"""Until a command that waits for something is ended; machines are shared."""

MOST_KB = 1_500 * 1024
FREE_BYTES = 3 << 30
STARTED = frozenset(
    ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect")
)
SHOWN = re.compile(r"^(\.tex|\.csv|\.json|\.txt|\.md|\.svg)$")
CANARIES = ("/etc/", "/dev/zero", "/dev/random", "/dev/stdin", "/proc/1/", "eqforge-canary")


class Hang(BaseException):
    """A command took too long."""


@dataclass
class Watch:
    """What audit events showed while a command ran.

    Attributes:
      is_on: whether anything is noted.
      seen: one text an event that should not have been.
    """

    is_on: bool = False
    children: bool = False
    seen: list[str] = field(default_factory=list)

    def __call__(self, event: str, values: tuple[Any, ...]) -> None:
        if not self.is_on:
            return
        if event == "socket.connect" and isinstance(values[1], str | bytes):
            return  # torch's own processes speak through sockets of the file system
        if event == "subprocess.Popen" and "eqforge.core.sandbox.child_main" in values[1]:
            return  # the sandbox in which files of unknown origin are read
        if event in STARTED and not self.children:
            self.seen.append(f"{event} {str(values)[:200]}")
        elif event == "open" and any(canary in str(values[0]) for canary in CANARIES):
            self.seen.append(f"open {values[0][:200]}")


WATCH = Watch()
sys.addaudithook(WATCH)


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What came of a command.

    Attributes:
      status: what it left with; None where an exception came through.
      findings: (class, details).
    """

    status: int | None
    said: str
    printed: str
    findings: list[tuple[str, str]]


@contextlib.contextmanager
def captured() -> Iterator[list[str]]:
    """Catches what is written to the descriptors 1 and 2, by Python or by libraries in C."""
    found: list[str] = []
    files = [tempfile.TemporaryFile() for _ in range(2)]
    kept = [os.dup(number) for number in (1, 2)]
    streams = sys.stdout, sys.stderr
    for number, file in enumerate(files, start=1):
        os.dup2(file.fileno(), number)
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(
            open(number, "wb", closefd=False), encoding="utf-8", errors="backslashreplace",
            line_buffering=True,
        )
        for number in (1, 2)
    )  # fmt: skip
    try:
        yield found
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        sys.stdout, sys.stderr = streams
        for number, descriptor in enumerate(kept, start=1):
            os.dup2(descriptor, number)
            os.close(descriptor)
        for file in files:
            file.seek(0)
            found.append(file.read(5_000_000).decode("utf-8", "surrogateescape"))
            file.close()


def _alarm(*_: object) -> None:
    raise Hang


def attempt(words: Sequence[str], written: Path | None = None, *, children: bool = False) -> Result:
    """Runs a command.

    Args:
      words: its command line.
      written: folder or file whose text is looked at afterwards.
      children: whether the command may start programs.
    """
    findings: list[tuple[str, str]] = []
    status: int | None = None
    Path("/proc/self/clear_refs").write_text("5")
    started, before = time.process_time(), _peak_kb()
    WATCH.seen.clear()
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, _alarm)
    with captured() as output:
        signal.setitimer(signal.ITIMER_REAL, WAITING_S, 1.0)
        signal.setitimer(signal.ITIMER_PROF, MOST_S, 1.0)
        try:
            WATCH.is_on, WATCH.children = True, children
            with address_space(FREE_BYTES), warnings.catch_warnings():
                status = cli.main(list(words))
        except SystemExit as left:
            status = left.code if isinstance(left.code, int) else None
            if status is None:
                findings.append(("status", repr(left.code)))
        except Hang:
            findings.append(("hang", ""))
        except BaseException as error:
            findings.append(("traceback " + _place(error), traceback.format_exc()[-3_000:]))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.setitimer(signal.ITIMER_PROF, 0)
            WATCH.is_on = False
    printed, said = output
    taken, more = time.process_time() - started, _peak_kb() - before
    if more > MOST_KB:
        findings.append(("memory", f"{more // 1024} MB"))
    if taken > MOST_S:
        findings.append(("slow", f"{taken:.1f} s"))
    findings += [("outside", event) for event in WATCH.seen]
    findings += _about_text(status, said, printed)
    if written is not None:
        findings += _about_files(written)
    return Result(status=status, said=said, printed=printed, findings=findings)


def _about_text(status: int | None, said: str, printed: str) -> Iterator[tuple[str, str]]:
    for what, text in (("stderr", said), ("stdout", printed)):
        for line in text.split("\n"):
            if visible(line) != line:
                yield f"control in {what}", ascii(line)[:300]
                break
    if "Traceback (most recent call last)" in said + printed:
        yield "traceback printed", said[-2_000:] + printed[-500:]
    lines = [line for line in said.split("\n") if line]
    if status == 2 and len(lines) != 1:
        yield f"{min(len(lines), 2)} lines", said[:600]
    if status == 2 and lines and len(lines[-1]) > 4_100:
        yield "long", lines[-1][:300]
    if status == 2 and "too many processes" in said:
        yield "out of memory", said[:300]
    if status not in (0, 1, 2, 3, None):
        yield "status", str(status)


def _about_files(place: Path) -> Iterator[tuple[str, str]]:
    paths = [place] if place.is_file() else sorted(place.rglob("*")) if place.is_dir() else []
    for path in paths:
        if path.is_file() and SHOWN.match(path.suffix) and "_work" not in path.parts:
            for line in path.read_bytes().decode("utf-8", "surrogateescape").split("\n"):
                if visible(line) != line:
                    yield f"control in {path.suffix}", ascii(line)[:300]
                    break


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "eqforge" in f.filename] or list(frames[-1:])
    return f"{type(error).__name__} {Path(own[-1].filename).name}:{own[-1].lineno}"


def _peak_kb() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
