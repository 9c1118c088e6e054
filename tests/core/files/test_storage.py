import hashlib
import os
import subprocess
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from eqforge.core.errors import InputError
from eqforge.core.files import storage

WRITE = """
import sys
from eqforge.core.files import storage
for number in range(200):
    storage.write_bytes(sys.argv[1], sys.argv[2].encode() * 100_000)
"""


@pytest.fixture(params=["disk", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder on the disk, and one of an object store that lives in memory."""
    return str(tmp_path) if request.param == "disk" else f"memory://{uuid.uuid4().hex}"


def test_what_is_written_is_read(root: str) -> None:
    url = storage.join(root, "deep", "er", "file.bin")
    assert not storage.exists(url)

    storage.write_bytes(url, b"data")
    storage.write_bytes(url, b"other data")

    assert storage.exists(url)
    assert storage.read_bytes(url) == b"other data"
    assert storage.digest(url) == (10, hashlib.sha256(b"other data").hexdigest())
    assert storage.list_files(storage.join(root, "deep", "er")) == ["file.bin"]
    assert storage.list_names(storage.join(root, "deep")) == ["er"]
    storage.delete(url)
    storage.delete(url)
    assert not storage.exists(url)


def test_nothing_appears_after_an_error(root: str) -> None:
    url = storage.join(root, "file.bin")
    storage.write_bytes(url, b"old")

    def fail_half_way() -> None:
        with storage.open_atomic(url) as stream:
            stream.write(b"half of the ne")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()

    assert storage.read_bytes(url) == b"old"
    assert storage.list_files(root) == ["file.bin"]


def test_nothing_is_seen_before_it_is_whole(tmp_path: Path) -> None:
    url = str(tmp_path / "file.bin")
    with storage.open_atomic(url) as stream:
        stream.write(b"x" * 100)
        stream.flush()
        assert not os.path.exists(url)
    assert storage.read_bytes(url) == b"x" * 100


def test_writers_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    url = str(tmp_path / "file.bin")
    writers = [subprocess.Popen([sys.executable, "-c", WRITE, url, text]) for text in "ab"]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        if storage.exists(url):
            data = storage.read_bytes(url)
            seen.add((len(data), len(set(data))))
    assert [writer.returncode for writer in writers] == [0, 0]
    assert seen == {(100_000, 1)}
    assert storage.list_files(str(tmp_path)) == ["file.bin"]


def test_a_stretch_of_a_file_is_read_alone(root: str) -> None:
    url = storage.join(root, "file.bin")
    storage.write_bytes(url, b"0123456789")

    assert storage.read_range(url, 3, 6) == b"345"
    assert storage.read_range(url, 8, 20) == b"89"
    with pytest.raises(FileNotFoundError):
        storage.read_range(storage.join(root, "nowhere"), 0, 1)


def test_a_folder_is_deleted_with_all_in_it(root: str) -> None:
    for name in ("parts/a", "parts/deep/b", "parted"):
        storage.write_bytes(storage.join(root, name), b"x")

    storage.delete_folder(storage.join(root, "parts"))
    storage.delete_folder(storage.join(root, "parts"))

    assert storage.list_names(root) == ["parted"]


def test_threads_that_write_into_a_store_at_once_lose_nothing(root: str) -> None:
    """Each begins while the others are half-way, and one of them fails."""
    names = [f"{number}.bin" for number in range(6)]
    all_open = threading.Barrier(len(names))

    def write(name: str) -> None:
        with storage.open_atomic(storage.join(root, name)) as stream:
            stream.write(name.encode() * 1_000)
            all_open.wait()
            if name == "3.bin":
                raise ZeroDivisionError
            stream.write(b"!")

    with ThreadPoolExecutor(len(names)) as threads:
        failures = [done.exception() for done in [threads.submit(write, name) for name in names]]

    assert [type(failure) for failure in failures] == [
        ZeroDivisionError if name == "3.bin" else type(None) for name in names
    ]
    assert storage.list_files(root) == [name for name in names if name != "3.bin"]
    for name in storage.list_files(root):
        assert storage.read_bytes(storage.join(root, name)) == name.encode() * 1_000 + b"!"


def test_a_folder_that_is_not_there_holds_nothing(root: str) -> None:
    assert storage.list_files(storage.join(root, "nowhere")) == []
    assert storage.list_names(storage.join(root, "nowhere")) == []


def test_a_disk_is_told_from_a_store() -> None:
    assert storage.is_local("out/data")
    assert storage.is_local("file:///out/data")
    assert not storage.is_local("memory://out/data")


def test_a_url_of_a_kind_that_is_not_installed_is_wrong_input() -> None:
    with pytest.raises(InputError, match="nothing://x: Protocol not known: nothing"):
        storage.exists("nothing://x")
