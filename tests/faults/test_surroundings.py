"""What surrounds a command: streams, encodings, limits, URLs, and errors that are eqforge's own."""

import errno
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from eqforge.core import errors
from eqforge.core.errors import InputError, is_want_of_memory, reported_errors
from eqforge.core.files import storage
from tests.builds import ENTRY, dataset_bytes, environment
from tests.faults.conftest import Whole
from tests.faults.test_commands import run


def shell(command: str, **changes: str) -> "subprocess.CompletedProcess[str]":
    script = f'eqforge() {{ "{sys.executable}" -m eqforge.cli "$@"; }}; {command}'
    return subprocess.run(
        ["bash", "-c", script],
        env=environment(**changes), capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_streams_that_are_closed_are_no_error(whole: Whole) -> None:
    done = shell(f"eqforge inspect '{whole.output}' <&- >&- 2>&-")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


_PRINTS = """
import sys, types
from eqforge import cli
part = types.SimpleNamespace(main=lambda _: print("\\u732b \\udcff"))
name = "eqforge.commands.verify"
cli.importlib.import_module, load = lambda asked: part if asked == name else load(asked), \
    cli.importlib.import_module
sys.argv = ["eqforge", "verify"]
cli.main()
"""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_text_that_the_output_has_no_signs_for_is_escaped(encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PRINTS],
        env=environment(PYTHONIOENCODING=encoding), capture_output=True, check=False,
    )  # fmt: skip
    assert done.stderr == b""
    cat = "\u732b" if encoding == "utf-8" else "\\u732b"
    assert done.stdout.decode(encoding) == f"{cat} \\udcff\n"


def test_too_few_addresses_are_one_sentence() -> None:
    done = shell("ulimit -v 2000000; eqforge verify nothing")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("eqforge: ulimit -v allows 2.0 GB, but eqforge needs")


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
def test_want_of_memory_is_one_sentence(
    capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    with pytest.raises(SystemExit) as left, reported_errors():
        raise error
    assert left.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("eqforge: out of memory, or too many processes are running")


def test_python_s_want_of_threads_is_known_by_its_words() -> None:
    before = threading.stack_size(1 << 50)  # more than there are addresses
    try:
        with pytest.raises(RuntimeError) as refused:
            threading.Thread(target=print).start()
    finally:
        threading.stack_size(before)
    assert is_want_of_memory(refused.value)


def test_arrow_s_want_of_memory_is_python_s() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    assert issubclass(pyarrow.ArrowMemoryError, MemoryError)


def test_python_without_assertions_builds_the_same_bytes(whole: Whole, tmp_path: Path) -> None:
    arguments = ["build", "eq-video", *whole.inputs.arguments(tmp_path / "out")]
    command = [ENTRY[0], "-O", *ENTRY[1:], *arguments]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert dataset_bytes(tmp_path / "out") == whole.files


# --- URLs


@pytest.mark.parametrize(
    "arguments",
    [
        ["metrics", "gs://bucket/scores"],
        ["score", "out", "--model", "clip:m", "--output", "s3://bucket/scores"],
        ["finetune", "out", "--model", "clip:m", "--output", "gs://bucket/model"],
        ["efficiency", "out", "--model", "clip:m", "--output", "simplecache::memory://m"],
        ["inspect", "out", "--sheet", "https://host/sheet.png"],
        ["build", "eq-video", "--captions", "data:text/plain,x", "--videos", "v", "--output", "o"],
    ],
)
def test_a_url_where_a_path_is_wanted_is_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert run(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "is a URL; expected a local file or folder" in line
    assert any(argument in line for argument in arguments if ":" in argument)  # not one slash less


@pytest.mark.parametrize(
    "url",
    ["github://a:b@main/x", "data:,x", "simplecache::http://h/x", "zip://x::memory://y", "ftp://h/x"],
)  # fmt: skip
def test_a_url_that_is_no_store_is_one_sentence_and_nothing_is_fetched(url: str) -> None:
    with pytest.raises(InputError, match="is not a supported store"):
        storage.locate(url)


# --- errors of the system, and of eqforge


def test_an_error_for_want_of_room_names_the_file_and_its_disk() -> None:
    with (
        pytest.raises(OSError, match=r"on the disk mounted at /dev.*: '/dev/full'") as caught,
        errors.room_named("/dev/full"),
        open("/dev/full", "wb", buffering=0) as full,
    ):
        full.write(b"x")
    assert caught.value.errno == errno.ENOSPC


def test_an_error_that_shows_a_mistake_of_eqforge_keeps_its_traceback() -> None:
    with pytest.raises(OSError, match="Bad file descriptor"), reported_errors():
        raise OSError(errno.EBADF, "Bad file descriptor")


def test_a_traceback_is_shown_where_it_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(errors.TRACEBACK, "1")
    with pytest.raises(SystemExit), reported_errors():
        raise InputError("odd")
    said = capsys.readouterr().err
    assert said.startswith("Traceback")
    assert said.endswith("eqforge: odd\n")
