"""Builds a small dataset in processes of their own, which meet with a fault at a chosen moment.

A moment is when a file gets its final name: Python tells its audit hooks of every renaming before
it happens, so nothing of eqforge is replaced and nothing depends on how fast a machine is.
"""

import ctypes
import itertools
import json
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Literal

from tests.clips import Clip, write_clip
from tests.warm import BUILDING

SETTINGS = ["--mode", "paper", "--face-policy", "off"]
LARGE_BYTES = 16 << 10
# What changes a folder; opening a file for writing does too, and is told apart by its mode.
CHANGES = ("os.link", "os.rename", "os.remove", "os.rmdir", "os.mkdir")
MOMENTS = 3
"""Of every video; they make three pairs."""

_server = multiprocessing.get_context("forkserver")


def start_server() -> None:
    """Lets a server that has imported eqforge once fork a process for every run.

    A process has one such server: one that earlier tests started, with other imports, ends.
    """
    forkserver._forkserver._stop()  # type: ignore[attr-defined]  # private
    _server.set_forkserver_preload(
        [*BUILDING, "eqforge.pipelines.eq_video", "eqforge.commands.verify", __name__]
    )
    forkserver.ensure_running()


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Captions, a folder of videos, how many rows of their dataset a file gets, and more flags."""

    captions: Path
    videos: Path
    rows: int = 1
    more: tuple[str, ...] = ()

    def arguments(self, output: Path) -> list[str]:
        inputs = ["--captions", str(self.captions), "--videos", str(self.videos)]
        files = ["--samples-per-file", str(self.rows), "--images-per-file", str(self.rows)]
        return [*inputs, *SETTINGS, *files, *self.more, "--output", str(output)]


def make_inputs(folder: Path, videos: int) -> Inputs:
    """Films clips of a second, each of another width, and captions three moments of each."""
    (folder / "videos").mkdir(parents=True)
    lines = []
    for number in range(videos):
        name = f"{number:02}.mp4"
        clip = Clip(size=(96 + 2 * number, 64), starts_ms=range(0, 1000, 40))
        write_clip(folder / "videos" / name, clip)
        for moment in range(MOMENTS):
            timestamp_s, caption = 0.1 + 0.3 * moment, f"The counter shows number {moment}."
            lines.append({"video": name, "timestamp_s": timestamp_s, "caption": caption})
    captions = folder / "captions.jsonl"
    captions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Inputs(captions=captions, videos=folder / "videos")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What happens to a run, and when.

    Attributes:
      at: how the file's final name begins, relative to the output.
      happen: gets the temporary file and its final name.
      when: just before the file has its name, or just after.
      nth: of the files with such names that this run writes; None means every one.
    """

    at: str
    happen: Callable[[Path, Path], None]
    when: Literal["before", "after"] = "before"
    nth: int | None = 1

    def install(self, output: Path) -> None:
        """Lets it happen in this process, from now on."""
        numbers = itertools.count(1)
        armed: list[tuple[int, Path, Path]] = []

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if armed and armed[0][0] == threading.get_ident():
                self.happen(*armed.pop()[1:])
            elif event == "os.rename":
                source, target = (Path(os.fspath(path)) for path in arguments[:2])
                begins_so = str(target).startswith(f"{output}/{self.at}")
                if not begins_so or self.nth not in (None, next(numbers)):
                    return
                if self.when == "before":
                    self.happen(source, target)
                else:
                    armed.append((threading.get_ident(), source, target))

        sys.addaudithook(hook)


def publish(output: Path, killed_at: int) -> int:
    """Lets the dataset below `_next` take its place; returns the exit status.

    Args:
      output: the folder.
      killed_at: of the changes of the folder, counted from 1, the one before which it is killed.
    """
    process = _server.Process(target=_publish, args=(output, killed_at))
    process.start()
    process.join(300)
    assert process.exitcode is not None
    return process.exitcode


def _publish(output: Path, killed_at: int) -> None:
    from eqforge.transforms.dataset import replace

    numbers = itertools.count(1)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        is_write = event == "open" and arguments[1] not in (None, "r", "rb")
        # A folder is cleared by the names in it, beside a descriptor of its own.
        is_below = str(output) in str(arguments[0]) if arguments else False
        is_cleared = event in ("os.remove", "os.rmdir") and arguments[1] != -1
        is_change = is_cleared or (is_below and (is_write or event in CHANGES))
        if is_change and next(numbers) == killed_at:
            kill(output, output)

    sys.addaudithook(hook)
    replace.publish(str(output))


def kill(_source: Path, _target: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_in_the_middle(source: Path, target: Path) -> None:
    """Ends the process when half of the file's bytes are there."""
    os.truncate(source, source.stat().st_size // 2)
    kill(source, target)


def stop(_source: Path, _target: Path) -> None:
    """Halts the process until it is told to go on."""
    os.kill(os.getpid(), signal.SIGSTOP)


def set_mode(folder: Path, mode: int) -> None:
    for place, _, _ in os.walk(folder):
        os.chmod(place, mode)


def make_read_only(_source: Path, target: Path) -> None:
    """Takes away the right to change a dataset's folders, as an administrator may."""
    set_mode(target.parents[1], 0o555)


def move_away(_source: Path, target: Path) -> None:
    """Moves a dataset's folder to another name, as when a share comes off."""
    output = next(folder for folder in target.parents if folder.name == "out")
    output.rename(output.with_name("away"))


def set_clock_back(_source: Path, _target: Path) -> None:
    """Sets this process's clock to the start of the century."""
    start_s = datetime(2000, 1, 1, tzinfo=UTC).timestamp()
    time.time = lambda: start_s
    time.time_ns = lambda: int(start_s * 1e9)


@dataclass(frozen=True)
class Note:
    """Writes down the names that files get."""

    log: Path
    output: Path

    def __call__(self, _source: Path, target: Path) -> None:
        with open(self.log, "a", encoding="utf-8") as stream:
            stream.write(f"{target.relative_to(self.output)}\n")


@dataclass(frozen=True)
class Run:
    """A run of eqforge under way in a process group of its own."""

    process: ForkServerProcess
    log: Path

    @property
    def pid(self) -> int:
        """The process, its group and its session."""
        assert self.process.pid is not None
        return self.process.pid

    def end(self, timeout_s: float = 300.0) -> tuple[int, str]:
        """Waits for the end; returns the exit status, and what was said."""
        self.process.join(timeout_s)
        assert self.process.exitcode is not None, "the run hangs"
        return self.process.exitcode, self.log.read_text(errors="replace")


def start(inputs: Inputs, output: Path, *before: Callable[[], None]) -> Run:
    """Starts a build; its process calls the given functions before."""
    log = output.with_name(f"{uuid.uuid4().hex}.log")
    process = _server.Process(target=_build, args=(inputs.arguments(output), log, before))
    process.start()
    return Run(process, log)


def build(inputs: Inputs, output: Path, *before: Callable[[], None]) -> tuple[int, str]:
    """Builds a dataset; returns the exit status, and what was said."""
    return start(inputs, output, *before).end()


def build_with(fault: Fault, inputs: Inputs, output: Path) -> tuple[int, str]:
    """Builds a dataset and lets a fault happen; returns the exit status, and what was said."""
    return build(inputs, output, Installed(fault, output))


@dataclass(frozen=True)
class Installed:
    """A fault for a folder, to be called in the process that is to meet with it."""

    fault: Fault
    output: Path

    def __call__(self) -> None:
        self.fault.install(self.output)


def _build(argv: list[str], log: Path, before: Sequence[Callable[[], None]]) -> None:
    os.setsid()
    with open(log, "wb") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    from eqforge.pipelines import eq_video

    for call in before:
        call()
    sys.exit(eq_video.main(argv))


def drop_privileges() -> None:
    """Lets permissions bind this process even where it is root's: it keeps no capability."""
    header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None, use_errno=True).capset(header, none) == 0


def forbid_large_files() -> None:
    """Lets no file of this process grow beyond what plans and notes need."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGE_BYTES, LARGE_BYTES))


def last_line(said: str) -> str:
    """The sentence that a run ended with; there is no trace above it."""
    assert "Traceback" not in said, said
    return said.splitlines()[-1]


def wait_until_stopped(run: Run, timeout_s: float = 300.0) -> None:
    """Waits until a run halts itself."""
    deadline = time.monotonic() + timeout_s
    while Path(f"/proc/{run.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < deadline, run.log.read_text()
        time.sleep(0.01)
