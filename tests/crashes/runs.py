"""Runs small builds in processes in which one chosen call to the system goes wrong.

`calls.c` is preloaded into them and counts every call that changes a file below the run's folder:
open for writing, write, rename, fsync, unlink, mkdir and the like, in all of a run's processes. A
server that has imported eqforge once forks a process for each run.
"""

import contextlib
import ctypes
import errno
import importlib
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from eqforge.core.files.storage import TEMPORARY
from tests.builds import dataset_bytes
from tests.clips import Clip, write_clip
from tests.evaluation.review.reviews import decided, planned
from tests.exported import files, small
from tests.warm import BUILDING

HERE = Path(__file__).parent
STATE = struct.Struct("6q4096s4096s4096s")
KILL_ALL, KILL_SELF, KILL_HALF_WAY, FAIL = range(1, 5)
SMALL_FILES = ["--samples-per-file", "2", "--images-per-file", "2", "--max-error-rate", "1"]
SMALLER_FILES = ("--samples-per-file", "1", "--images-per-file", "1")
OUTPUT = "{out}"
"""In arguments of a command: the folder of a run."""


@dataclass(frozen=True, kw_only=True)
class Harm:
    """What happens to a call.

    Attributes:
      name: of it, for a report.
      how: what `calls.c` does.
      error: the errno of a call that fails.
    """

    name: str
    how: int
    error: int = 0


HARMS = {
    harm.name: harm
    for harm in (
        Harm(name="kill", how=KILL_ALL),  # all processes of the run, before the call
        Harm(name="kill-half-way", how=KILL_HALF_WAY),  # as before, when half is written
        Harm(name="kill-one", how=KILL_SELF),  # the calling process alone
        Harm(name="EIO", how=FAIL, error=errno.EIO),
        Harm(name="ENOSPC", how=FAIL, error=errno.ENOSPC),
    )
}


# --- what is built


def text(folder: Path) -> list[str]:
    """Three captions of two images; the image of the third is missing."""
    items = [{"image": f"{n}.jpg", "caption": ["A dog on a table."]} for n in range(3)]
    path = folder / "retrieval.json"
    path.write_text(json.dumps(items))
    (folder / "images").mkdir()
    for n in range(2):
        pixels = np.random.default_rng(n).integers(0, 256, (24, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "images" / f"{n}.jpg")
    return ["--retrieval", str(path), "--images", str(folder / "images"), *SMALL_FILES]


def video(folder: Path) -> list[str]:
    """Two clips with two captioned moments each: two pairs."""
    (folder / "videos").mkdir()
    lines = []
    for number in range(2):
        clip = Clip(size=(96 + 2 * number, 64), starts_ms=range(0, 400, 40))
        write_clip(folder / "videos" / f"{number}.mp4", clip)
        for moment in range(2):
            caption = f"The counter shows number {moment}."
            at = {"video": f"{number}.mp4", "timestamp_s": 0.1 + 0.2 * moment}
            lines.append({**at, "caption": caption})
    path = folder / "captions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    settings = ["--mode", "paper", "--face-policy", "off"]
    return ["--captions", str(path), "--videos", str(folder / "videos"), *settings, *SMALL_FILES]


def rendered(_: Path) -> list[str]:
    """A pair of scenes that Blender renders at 32 pixels."""
    return ["--pairs", "1", "--resolution", "32", "--samples", "1", "--mode", "paper", *SMALL_FILES]


def report(folder: Path) -> list[str]:
    """The pages of six pairs."""
    return [str(small(folder / "dataset", 6)), "--output", f"{OUTPUT}/report"]


def review(folder: Path) -> list[str]:
    """Decisions and single answers of two reviewers of six pairs."""
    dataset = small(folder / "dataset", 6)
    plan = planned(dataset, folder / "plan", "eq-gebc-screening", "ada ben")
    votes = [decided(plan, name, folder / f"{name}.json") for name in ("ada", "ben")]
    files = ["--output", f"{OUTPUT}/decisions.jsonl", "--answers", f"{OUTPUT}/answers.jsonl"]
    return ["import", str(dataset), *map(str, votes), "--overwrite", *files]


DATASETS: dict[str, tuple[str, Callable[[Path], list[str]]]] = {
    "text": ("pipelines.vlue", text),
    "video": ("pipelines.eq_video", video),
    "rendered": ("pipelines.eq_kubric", rendered),
    "report": ("commands.report", report),
    "review": ("commands.review", review),
}


# --- one run


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a run ended.

    Attributes:
      status: its exit status, negative for a signal.
      said: what it printed.
      calls: how many calls changed its files.
      hit: what went wrong, such as `rename /out/dataset.json`; empty where nothing did.
    """

    status: int
    said: str
    calls: int
    hit: str


class Server:
    """A process that has imported a pipeline, and forks another for each run of it.

    Args:
      dataset: a key of DATASETS.
      folder: where the library and the inputs are made.
    """

    def __init__(self, dataset: str, folder: Path) -> None:
        module, make = DATASETS[dataset]
        (folder / "in").mkdir(parents=True)
        self.folder, self.arguments = folder, make(folder / "in")
        self.is_build = module.startswith("pipelines.")
        if self.is_build:
            self.arguments += ["--output", OUTPUT]
        library = folder / "calls.so"
        flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
        subprocess.run(["cc", *flags, "-o", library, HERE / "calls.c", "-ldl"], check=True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crashes.runs", module, str(library)],
            env=os.environ | {"LD_PRELOAD": str(library), "PYTHONWARNINGS": ""},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(
        self, root: Path, harm: Harm | None = None, call: int = 0, *, log: Path | None = None,
        more: tuple[str, ...] = (),
    ) -> Ended:  # fmt: skip
        """Builds the dataset into `root/out`.

        Args:
          root: a folder, in which calls are counted.
          harm: what happens to one call; None for nothing.
          call: its number, from 1.
          log: where all calls are written down, for `replay`.
          more: further arguments.
        """
        (root / "tmp").mkdir(parents=True, exist_ok=True)
        how = (call, harm.how, harm.error) if harm is not None else (0, 0, 0)
        place, output = str(root).encode(), str(root / "out")
        state = root.with_name(f"{root.name}.state")
        written = str(log).encode() if log is not None else b""
        if log is not None:
            log.write_bytes(b"")
        state.write_bytes(STATE.pack(0, 0, *how, 0, b"", place, written))
        said_file = root.with_name(f"{root.name}.said")
        job = {
            "argv": [word.replace(OUTPUT, output) for word in (*self.arguments, *more)],
            "state": str(state),
            "log": str(said_file),
            "tmp": str(root / "tmp"),
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        calls, hit, *_, what, _, _ = STATE.unpack(state.read_bytes())
        said = said_file.read_text(errors="replace")
        shutil.rmtree(root / "tmp", ignore_errors=True)
        return Ended(
            status=status, said=said, calls=calls, hit=what.rstrip(b"\0").decode() if hit else ""
        )


@contextlib.contextmanager
def server_of(dataset: str) -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="eqforge-crashes-") as folder:
        server = Server(dataset, Path(folder).resolve())
        try:
            yield server
        finally:
            server.close()


def bytes_of(output: Path) -> dict[str, bytes]:
    """The files of a finished dataset, or all files of what another command wrote."""
    if (output / "dataset.json").exists():
        return dataset_bytes(output)
    return {name: data for name, data in files(output).items() if not TEMPORARY.search(name)}


def differences(output: Path, whole: dict[str, bytes]) -> str:
    """Returns which files of an output are not those of another; empty where all are."""
    try:
        found = bytes_of(output)
    except FileNotFoundError as error:
        return f"{error.filename} is not there"
    differ = [name for name in sorted(found | whole) if found.get(name) != whole.get(name)]
    return f"other bytes: {', '.join(differ)}" if differ else ""


# --- the server's side


def _serve(module: str, library: str) -> None:
    for name in (*BUILDING, "eqforge.commands.verify"):
        importlib.import_module(name)
    pipeline: Any = importlib.import_module(f"eqforge.{module}")
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(pipeline.main, job, library)
        status = _status_of(child, Path(job["state"]))
        _end_group(child)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _run(main: Callable[[list[str]], int], job: dict[str, Any], library: str) -> None:
    os.setsid()
    os.environ["TMPDIR"] = tempfile.tempdir = job["tmp"]
    os.environ["EQFORGE_CRASHES"] = job["state"]
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, place in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(descriptor, place)
    with open(job["state"], "r+b") as stream:
        stream.seek(5 * 8)
        stream.write(struct.pack("q", os.getpid()))
    ctypes.CDLL(library).crashes_begin()
    status: Any = 70
    try:
        status = main(job["argv"])
    except SystemExit as left:
        status = left.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status if isinstance(status, int) else 1)


def _status_of(run: int, state: Path) -> int:
    """Waits for a run, and ends it for its sandboxed processes, which may send no signal."""
    while True:
        found, status = os.waitpid(run, os.WNOHANG)
        if found:
            return status
        _, hit, _, how, *_ = STATE.unpack(state.read_bytes())
        if hit and how in (KILL_ALL, KILL_HALF_WAY):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run, signal.SIGKILL)
        time.sleep(0.005)


def _end_group(group: int) -> None:
    """Ends what a run left behind, and waits until it is gone."""
    for _ in range(1_000):
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            return
        time.sleep(0.002)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
