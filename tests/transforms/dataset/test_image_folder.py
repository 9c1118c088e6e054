from pathlib import Path

import pytest
from PIL import Image

from eqforge.core.files.source_folder import SourceFolder
from eqforge.core.identity import sha256_hex
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.tables.pairs import ImageRow
from eqforge.transforms.dataset.image_folder import ImageFolder
from eqforge.transforms.dataset.media import MediaStore


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A folder with one picture of 40x30 pixels and one file that is none."""
    folder = tmp_path / "images"
    folder.mkdir()
    Image.new("RGB", (40, 30), "red").save(folder / "red.png")
    (folder / "text.jpg").write_text("no picture")
    return folder


def test_a_picture_is_stored_as_it_is(images: Path, tmp_path: Path) -> None:
    found = ImageFolder(SourceFolder(str(images)), str(tmp_path / "media")).find("red.png")

    assert isinstance(found, ImageRow)
    data = (images / "red.png").read_bytes()
    assert (found.image_id, found.num_bytes) == (sha256_hex(data), len(data))
    assert (found.width_px, found.height_px, found.suffix) == (40, 30, ".png")
    assert MediaStore(str(tmp_path / "media")).get(found.image_id, ".png") == data


def test_a_pointer_of_git_lfs_says_what_to_run(images: Path, tmp_path: Path) -> None:
    (images / "p.png").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n")
    found = ImageFolder(SourceFolder(str(images)), str(tmp_path / "media")).find("p.png")

    assert isinstance(found, Rejection)
    assert (found.reason, found.detail) == (
        "undecodable_image",
        "it is a Git LFS pointer; run `git lfs pull`",
    )


@pytest.mark.skipif(not Path("/proc/self/mem").is_file(), reason="no file that gives EIO")
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """Reading the memory of a process from address 0 on is an error of the device."""
    found = ImageFolder(SourceFolder("/proc/self"), str(tmp_path / "media")).find("mem")

    assert isinstance(found, Rejection)
    assert found.reason == "undecodable_image"
    assert found.detail == "cannot be read: Input/output error"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_store_that_cannot_be_written_ends_the_run(images: Path) -> None:
    """No folder can be made below a device: the error is of the store and no image's."""
    with pytest.raises(NotADirectoryError):
        ImageFolder(SourceFolder(str(images)), "/dev/full/media").find("red.png")
