import hashlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from eqforge.transforms.dataset.media import MediaStore

DATA = b"an encoded picture"
DIGEST = hashlib.sha256(DATA).hexdigest()


@pytest.fixture(params=["local", "file", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "memory":
        yield "memory://media/store"
        fsspec.filesystem("memory").store.clear()
    else:
        prefix = "file://" if request.param == "file" else ""
        yield f"{prefix}{tmp_path}/media/store"


def files_of(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_bytes_come_back_by_their_digest(root: str) -> None:
    store = MediaStore(root)
    assert not store.exists(DIGEST, ".jpg")
    assert store.put(DATA, ".jpg") == DIGEST
    assert store.exists(DIGEST, ".jpg")
    assert not store.exists(DIGEST, ".png")
    assert store.get(DIGEST, ".jpg") == DATA


def test_a_write_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        MediaStore(str(tmp_path)).put(DATA, ".jpg")
    assert files_of(tmp_path) == []


def test_processes_that_store_the_same_images_at_once_do_not_meet(tmp_path: Path) -> None:
    program = (
        "import sys; from eqforge.transforms.dataset.media import MediaStore\n"
        "store = MediaStore(sys.argv[1])\n"
        "for n in range(200): store.put(b'%d' % n * 5000, '.png')\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path)]) for _ in range(3)]
    assert [process.wait(300) for process in processes] == [0, 0, 0]
    files = files_of(tmp_path)
    assert len(files) == 200
    for file in files:
        assert hashlib.sha256(file.read_bytes()).hexdigest() == file.stem


def test_a_store_can_be_sent_to_a_worker(tmp_path: Path) -> None:
    store = MediaStore(str(tmp_path))
    store.put(DATA, ".jpg")
    copy = pickle.loads(pickle.dumps(store))
    assert copy == store
    assert copy.get(DIGEST, ".jpg") == DATA


def test_bytes_that_a_power_cut_falsified_are_stored_again(tmp_path: Path) -> None:
    """The file has its final name and its right length, and holds zeros."""
    store = MediaStore(str(tmp_path))
    image_id = store.put(b"data", ".png")
    Path(store.path(image_id, ".png")).write_bytes(bytes(4))

    assert store.put(b"data", ".png") == image_id
    assert store.get(image_id, ".png") == b"data"
    store.sync([(image_id, ".png")])
