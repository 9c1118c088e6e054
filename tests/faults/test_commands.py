"""Every command ends with one sentence where the system refuses, it is stopped, or nobody reads."""

import contextlib
import importlib
import logging
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import fsspec
import pytest

from eqforge import cli
from eqforge.core.errors import InputError
from eqforge.core.files import storage
from tests.builds import ENTRY, environment
from tests.evaluation.conversations.made import save_llava
from tests.made_datasets import pair_tables, write_pairs, write_squares
from tests.tiny_models import save_clip

LIMIT_BYTES = 2_000
needs_models = pytest.mark.skipif(find_spec("transformers") is None, reason="needs the models")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two datasets and two models; random weights."""
    folder = tmp_path_factory.mktemp("commands")
    write_pairs(folder / "scored", pair_tables(4, 3))
    write_squares(folder / "pairs")
    save_clip(folder / "clip")
    save_llava(folder / "llava", says="1;2")
    return folder


def score(inputs: Path, output: Path) -> list[str]:
    return ["score", str(inputs / "scored"), "--model", f"clip:{inputs / 'clip'}",
            "--workers", "0", "--output", str(output)]  # fmt: skip


def converse(inputs: Path, output: Path) -> list[str]:
    return ["converse", str(inputs / "scored"), "--model", str(inputs / "llava"),
            "--samples", "2", "--output", str(output)]  # fmt: skip


def finetune(inputs: Path, output: Path) -> list[str]:
    return ["finetune", str(inputs / "pairs"), "--model", f"clip:{inputs / 'clip'}", "--steps", "1",
            "--batch-size", "4", "--device", "cpu", "--workers", "0",
            "--output", str(output)]  # fmt: skip


@contextlib.contextmanager
def quota(num_bytes: int) -> Iterator[None]:
    """Lets no file of this process grow beyond some bytes; the system refuses, as a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def run(arguments: list[str]) -> int | str | None:
    try:
        return cli.main(arguments)
    except SystemExit as left:
        return left.code


@needs_models
@pytest.mark.parametrize("command", [score, converse, finetune])
@pytest.mark.parametrize("num_bytes", [0, LIMIT_BYTES])
def test_no_room_is_one_sentence_and_with_room_the_next_run_finishes(
    inputs: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: Callable[[Path, Path], list[str]],
    num_bytes: int,
) -> None:
    arguments = command(inputs, tmp_path / "out")
    with quota(num_bytes):
        status = run(arguments)
    said = capsys.readouterr().err.splitlines()
    assert status == 1
    assert said[-1].startswith(
        "eqforge: the operating system reported an error: [Errno 27] File too large on the disk"
    )
    assert str(tmp_path / "out") in said[-1]
    assert not [line for line in said if line.startswith("Traceback")]
    assert run(arguments) == 0


@needs_models
def test_ctrl_c_ends_scoring_and_its_workers_with_one_sentence_and_it_goes_on(
    inputs: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    arguments = [*score(inputs, output), "--workers", "2", "--image-batch", "1"]
    process = subprocess.Popen(
        [*ENTRY, *arguments],
        env=environment(), stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 300
    while not (output / "_work" / "plan.json").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to all processes
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130, said
    assert said.splitlines()[-1].startswith("eqforge: interrupted; run the same command again")
    assert "Traceback" not in said
    assert run(arguments) == 0


@pytest.mark.parametrize("name", cli.COMMANDS)
@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (KeyboardInterrupt(), 130, "eqforge: interrupted"),
        (
            OSError(28, "No space left on device"),
            1,
            "eqforge: the operating system reported an error: [Errno 28]",
        ),
        (
            OSError(28, "No space left on device", "/a/b/.tmp-1"),
            1,
            "eqforge: /a/b: cannot be written: No space left on device; free some space and run",
        ),
        (
            OSError(30, "Read-only file system", "b"),
            1,
            "eqforge: .: cannot be written: Read-only file system; choose a different folder",
        ),
        (InputError("odd"), 2, "eqforge: odd"),
    ],
)
def test_whatever_stops_a_command_is_one_sentence_and_a_status(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    error: BaseException,
    status: int,
    said: str,
) -> None:
    def stop(*_: object) -> int:
        raise error

    part = SimpleNamespace(main=stop, plan_command=stop, Main=stop)
    modules = {f"eqforge.{cli.module_of(command)}" for command in cli.COMMANDS}
    real = importlib.import_module
    monkeypatch.setattr(
        importlib, "import_module", lambda module: part if module in modules else real(module)
    )
    known = {"plan": "eq-video", "build": "eq-video", "import": "winoground", "assets": "fetch"}
    arguments = [name, known[name]] if name in known else [name]
    assert run(arguments) == status
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(said)
    is_said = line.endswith("; run the same command again to resume")
    assert is_said == (status == 130 and not cli.GO_ON.isdisjoint((name, " ".join(arguments))))


@pytest.mark.parametrize(
    "arguments", [["--help"], ["metrics", "--help"], ["build", "eq-video", "--help"]]
)
def test_nobody_who_reads_on_is_no_error(arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)  # as `head` leaves it
    done = subprocess.run(
        [*ENTRY, *arguments],
        env=environment(), stdout=write, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    os.close(write)
    assert done.stderr == ""
    assert done.returncode in (0, 1)


def test_output_that_a_full_disk_does_not_take_is_one_sentence() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*ENTRY, "--help"],
            env=environment(), stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert (
        done.stderr
        == "eqforge: the operating system reported an error: [Errno 28] No space left on device\n"
    )


# --- stores that do not answer


class Silent(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """A store that never answers."""

    protocol = "silent"

    def exists(self, path: str, **_: object) -> bool:
        time.sleep(60)
        return False


def test_a_store_that_does_not_answer_is_one_sentence_in_limited_time() -> None:
    fsspec.register_implementation("silent", Silent, clobber=True)
    with pytest.raises(
        InputError, match=r"silent://a/b: cannot be reached: no answer within 0\.2 s"
    ):
        storage.check_reachable("silent://a/b", timeout_s=0.2)


def test_what_a_store_logs_of_an_error_is_not_printed_beside_it() -> None:
    code = (
        "import eqforge.core.files.storage, logging; logging.getLogger('gcsfs').error('51 lines')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    code = (
        "import sys, types, logging; from eqforge import cli; "
        "part = types.SimpleNamespace(main=lambda _: logging.getLogger('gcsfs.retry').error('x')); "
        "cli._import = lambda name: part if 'verify' in name else __import__('importlib')"
        ".import_module(name); sys.argv = ['eqforge', 'verify']; logging.warning('seen'); "
        "cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stderr == "WARNING:root:seen\n"
    assert logging.getLogger("gcsfs").propagate, "whoever configures logging still sees it"


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_a_limit_that_is_no_number_is_refused(
    number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every comparison with NaN is false: a filter would be off, and say that it is on."""
    inputs = ["--captions", "c.jsonl", "--videos", "v", "--output", "o"]
    assert run(["build", "eq-video", *inputs, f"--min-luminance={number}"]) == 2
    assert f"--min-luminance {number}: expected a finite number" in capsys.readouterr().err
