"""A disk that is full, in the work store and in the output, is one sentence and loses nothing."""

import math
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.builds import dataset_bytes, finished_work
from tests.faults import runs
from tests.faults.conftest import Whole

PAGE = 4096


@dataclass(frozen=True)
class Disk:
    """A file system in memory, of a size that a test sets."""

    folder: Path

    def resize(self, num_bytes: int) -> None:
        """Sets how much fits."""
        size = f"remount,size={num_bytes}"
        subprocess.run(["mount", "-o", size, self.folder], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """An empty disk; needs the right to mount one."""
    (tmp_path / "disk").mkdir()
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(tmp_path / "disk")]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("only root may mount a small disk")
    yield Disk(tmp_path / "disk")
    subprocess.run(["umount", "--lazy", tmp_path / "disk"], check=True)


def taken(folder: Path) -> int:
    """The bytes that the files of a folder take on a disk in memory: whole pages."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return sum(math.ceil(size / PAGE) * PAGE for size in sizes)


def room_for_a_note(_whole: Path) -> int:
    return PAGE


def room_for_half_the_images(whole: Path) -> int:
    return taken(whole / "_work" / "plan") + taken(whole / "_work" / "media") // 2


def room_for_half_the_tables(whole: Path) -> int:
    return taken(whole / "_work") + taken(whole / "data") // 2


@pytest.mark.parametrize(
    "room", [room_for_a_note, room_for_half_the_images, room_for_half_the_tables]
)
def test_a_full_disk_ends_the_run_and_with_more_room_the_next_one_finishes(
    whole: Whole, disk: Disk, room: Callable[[Path], int]
) -> None:
    output = disk.folder
    disk.resize(room(whole.output))
    for _ in range(2):
        status, said = runs.build(whole.inputs, output)
        assert status == 1, said
        disk_named = f"No space left on device on the disk mounted at {output}"
        assert disk_named in runs.last_line(said)
        assert not (output / "dataset.json").exists()
    is_extracted = room is room_for_half_the_tables
    assert any((output / "data").glob("*.parquet")) == is_extracted
    finished = finished_work(output, "extract")

    disk.resize(taken(whole.output) * 3)
    status, said = runs.build(whole.inputs, output)

    assert status == 0, said
    assert dataset_bytes(output) == whole.files
    assert finished.items() <= finished_work(output, "extract").items()
    assert len(finished) == 3 or not is_extracted


def test_a_file_that_may_not_grow_ends_the_run_and_loses_nothing(
    whole: Whole, tmp_path: Path
) -> None:
    """A quota of the system; it needs no rights."""
    output = tmp_path / "out"

    status, said = runs.build(whole.inputs, output, runs.forbid_large_files)

    assert status == 1, said
    assert "[Errno 27] File too large" in runs.last_line(said)
    finished = finished_work(output, "measure")
    assert len(finished) == 3
    assert runs.build(whole.inputs, output)[0] == 0
    assert dataset_bytes(output) == whole.files
    assert finished_work(output, "measure") == finished
