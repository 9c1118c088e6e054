"""What a run needs for a while is gone after it, or after the next one where it was killed."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from eqforge.transforms.engines.run_folder import PREFIX, outside, private_folder, run_folder

LIVES = """
import sys, time
from eqforge.transforms.engines.run_folder import run_folder
import tempfile
with run_folder():
    open(tempfile.mkdtemp(prefix="beam-pipeline-temp") + "/file", "w").close()
    print(tempfile.gettempdir(), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def begin() -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", LIVES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def folder_of(run: "subprocess.Popen[str]") -> Path:
    assert run.stdout is not None
    return Path(run.stdout.readline().strip())


def test_everything_temporary_is_in_one_folder_which_goes_with_the_run(parent: Path) -> None:
    with run_folder():
        (folder,) = parent.iterdir()
        assert tempfile.gettempdir() == os.environ["TMPDIR"] == str(folder)
        assert folder.stat().st_mode & 0o777 == 0o700
        assert outside() == str(parent)
        tempfile.mkdtemp()
    assert tempfile.gettempdir() == os.environ["TMPDIR"] == outside() == str(parent)
    assert list(parent.iterdir()) == []


def test_what_a_killed_run_left_goes_with_the_next_and_a_living_one_is_not_touched(
    parent: Path,
) -> None:
    with begin() as living, begin() as killed:
        kept, left = folder_of(living), folder_of(killed)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert len(list(left.glob("beam-pipeline-temp*/file"))) == 1
        with run_folder():
            assert not left.exists()
            assert len(list(kept.glob("beam-pipeline-temp*/file"))) == 1
        living.communicate("")
    assert list(parent.iterdir()) == []


def test_what_somebody_planted_is_neither_followed_nor_deleted(parent: Path) -> None:
    elsewhere = parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "lock").touch()
    (parent / f"{PREFIX}link").symlink_to(elsewhere)
    for name in ("empty", "pipe", "links"):
        (parent / f"{PREFIX}{name}").mkdir()
    os.mkfifo(parent / f"{PREFIX}pipe" / "new")
    (parent / f"{PREFIX}links" / "lock").symlink_to(elsewhere / "lock")
    (parent / f"{PREFIX}file").touch()
    before = sorted(parent.rglob("*"))
    with private_folder(str(parent)):
        pass
    assert sorted(parent.rglob("*")) == before


def test_what_a_left_folder_links_to_stays(parent: Path) -> None:
    with begin() as killed:
        left = folder_of(killed)
        (parent / "other").mkdir()
        (parent / "other" / "file").touch()
        (left / "link").symlink_to(parent / "other")
        killed.kill()
    with private_folder(str(parent)):
        assert not left.exists()
    assert (parent / "other" / "file").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_another_user_s_folder_is_left_to_them(parent: Path) -> None:
    theirs = parent / f"{PREFIX}theirs"
    theirs.mkdir()
    (theirs / "lock").touch()
    os.chown(theirs, 65534, 65534)
    with private_folder(str(parent)):
        assert theirs.exists()
    os.chown(theirs, 0, 0)
    with private_folder(str(parent)):
        assert not theirs.exists()
