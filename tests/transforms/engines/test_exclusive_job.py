import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from eqforge.core.errors import BuildError, InputError
from eqforge.core.files import storage
from eqforge.core.signals import heard
from eqforge.pipelines import training_captions
from eqforge.transforms.engines import exclusive_job


class Shelf(DirFileSystem):  # type: ignore[misc]
    """A store that processes share: a folder of this disk, seen as an object store is."""

    protocol = "shelf"
    cachable = False

    def __init__(self, **_: Any) -> None:
        super().__init__(os.environ["SHELF"], LocalFileSystem(auto_mkdir=True))


class Exclusive(MemoryFileSystem):  # type: ignore[misc]
    """A store in memory that grants the creation of an object to one alone, as S3 and GCS do."""

    protocol = "exclusive"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    one_at_a_time = threading.Lock()

    def pipe_file(self, *args: Any, **kwargs: Any) -> None:
        with self.one_at_a_time:
            super().pipe_file(*args, **kwargs)


fsspec.register_implementation("shelf", Shelf, clobber=True)
fsspec.register_implementation("exclusive", Exclusive, clobber=True)


def locked(output: str) -> contextlib.AbstractContextManager[None]:
    """The lock with a short lease."""
    return exclusive_job.locked(output, lease_s=3.0)


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """Ctrl-C is heard where the tests run in the background, too; a lost lease leans on it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(params=["memory", "shelf"])
def output(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("SHELF", str(tmp_path))
    return f"{request.param}://{uuid.uuid4().hex}/out"


def leases(output: str) -> list[str]:
    return storage.list_files(storage.join(output, "_work", "lease"))


HOLD = """
import sys, time
from tests.transforms.engines.test_exclusive_job import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds shelf://held."""
    monkeypatch.setenv("SHELF", str(tmp_path))
    command = [sys.executable, "-c", HOLD, "shelf://held"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_lock_that_was_given_back_is_free_at_once(
    output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        with locked(output):
            assert len(leases(output)) == 1
        assert leases(output) == []
    with pytest.raises(ZeroDivisionError), locked(output):
        raise ZeroDivisionError
    assert leases(output) == []
    assert capsys.readouterr().err == ""


def test_a_second_run_is_refused_while_the_first_lives(output: str) -> None:
    with locked(output):
        time.sleep(0.3)
        with pytest.raises(InputError, match="another run is writing there"), locked(output):
            pytest.fail("two runs hold one folder")
        assert len(leases(output)) == 1


def test_a_run_in_another_process_is_respected_as_long_as_it_lives_and_then_replaced(
    holder: "subprocess.Popen[str]", capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="another run is writing there"), locked("shelf://held"):
        pytest.fail("two runs hold one folder")
    holder.send_signal(signal.SIGSTOP)
    holder.kill()

    with locked("shelf://held"):
        assert len(leases("shelf://held")) == 1

    assert f"process {holder.pid} on " in capsys.readouterr().err
    assert leases("shelf://held") == []


def test_a_lease_that_is_renewed_at_its_very_end_is_not_taken(output: str) -> None:
    url, waited_s = storage.join(output, "_work", "lease", "00000001"), [0.0]
    storage.write_bytes(url, b"a run; 1")

    def sleep(seconds: float) -> None:
        waited_s.append(seconds)
        if sum(waited_s) > 59.9:
            storage.write_bytes(url, b"a run; 2")

    with (
        pytest.raises(InputError, match="another run is writing there"),
        exclusive_job.locked(output, lease_s=60, sleep=sleep),
    ):
        pytest.fail("two runs hold one folder")
    assert sum(waited_s) == pytest.approx(60)


@pytest.mark.parametrize("left", [[], ["00000003"]])
def test_of_runs_that_start_at_once_one_alone_begins(left: list[str]) -> None:
    """On a new folder, and on one whose last run was killed."""
    output, number = f"exclusive://{uuid.uuid4().hex}", 6
    for name in left:
        storage.write_bytes(storage.join(output, "_work", "lease", name), b"a dead run; 1")
    start, end = (threading.Barrier(number, timeout=60) for _ in range(2))

    def run() -> bool:
        start.wait()
        try:
            with locked(output):
                end.wait()
                return True
        except InputError:
            end.wait()
            return False

    with ThreadPoolExecutor(number) as threads:
        began = [done.result() for done in [threads.submit(run) for _ in range(number)]]

    assert began.count(True) == 1


def test_clocks_that_are_set_back_change_nothing(
    output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(10**9, 0, -3600))
    monkeypatch.setattr(time, "time", lambda: float(next(clock)))
    storage.write_bytes(storage.join(output, "_work", "lease", "00000001"), b"a dead run; 1")

    with (
        locked(output),
        pytest.raises(InputError, match="another run is writing there"),
        locked(output),
    ):
        pytest.fail("two runs hold one folder")


def test_a_run_in_the_background_that_loses_its_lease_ends_too(output: str) -> None:
    def work() -> None:
        with locked(output):
            storage.write_bytes(storage.join(output, "_work", "lease", "00000002"), b"another; 1")
            time.sleep(30)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does for `command &`
    with heard() as listener:
        with pytest.raises(BuildError, match="another run took over the output folder"):
            work()
        listener.forget()


@pytest.mark.parametrize("name", ["00000001", "00000002"])
def test_a_run_that_finds_another_in_its_place_ends(output: str, name: str) -> None:
    """As after a long sleep of the machine, or where a store let two runs begin."""

    def work() -> None:
        with locked(output):
            storage.write_bytes(storage.join(output, "_work", "lease", name), b"another run; 1")
            time.sleep(30)

    with pytest.raises(BuildError, match="another run took over the output folder"):
        work()

    assert leases(output)[-1] == name


def test_a_store_may_be_out_of_reach_for_a_while_but_not_for_long(
    output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> bytes:
        raise OSError("no route to the store")

    def work() -> None:
        with locked(output):
            with monkeypatch.context() as cut_off:
                cut_off.setattr(storage, "read_bytes", fail)
                time.sleep(0.5)
            time.sleep(0.5)
            monkeypatch.setattr(storage, "read_bytes", fail)
            time.sleep(30)

    with pytest.raises(BuildError, match="no route to the store"):
        work()


def test_a_build_into_a_store_holds_a_lease_and_leaves_none(
    output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    captions = tmp_path / "captions.jsonl"
    captions.write_text('{"image": "a.jpg", "caption": "A red umbrella.", "id": "one"}\n')
    command = ["--captions", str(captions), "--output", output]

    with locked(output), pytest.raises(SystemExit) as left:
        training_captions.main(command)
    assert left.value.code == 2
    assert "another run is writing there" in capsys.readouterr().err
    assert training_captions.main(command) == 0

    assert storage.exists(storage.join(output, "dataset.json"))
    assert leases(output) == []
