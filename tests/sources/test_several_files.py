"""Annotations in several files: no video twice, whatever the order."""

import json
from itertools import permutations
from pathlib import Path

import pytest

from eqforge.core.errors import InputError
from eqforge.sources.captioned_videos import read_files, read_youcook2

VIDEO = {"duration": 9.0, "subset": "training", "recipe_type": "1", "annotations": []}


def write(path: Path, *videos: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"database": dict.fromkeys(videos, VIDEO)}))
    return path


def test_videos_come_in_the_order_of_their_ids_with_their_file(tmp_path: Path) -> None:
    files = [write(tmp_path / "a", "v3", "v1"), write(tmp_path / "b", "v2"), write(tmp_path / "c")]
    for order in permutations(files):
        found = [(path.name, video.video_id) for path, video in read_files(order, read_youcook2)]
        assert found == [("a", "v1"), ("b", "v2"), ("a", "v3")]


def test_a_video_in_two_files_is_named(tmp_path: Path) -> None:
    files = [write(tmp_path / "x" / "val", "v1", "v2"), write(tmp_path / "y" / "val", "v2", "v3")]
    for order in (files, files[::-1]):
        with pytest.raises(
            InputError, match=r"the video v2 is in both .*/x/val and .*/y/val; remove"
        ):
            read_files(order, read_youcook2)


def test_a_file_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a", "v1")
    (tmp_path / "link").symlink_to(file)
    for again in (file, Path(str(file)), tmp_path / "link"):
        with pytest.raises(InputError, match=r"--annotations: .* was passed twice"):
            read_files([file, again], read_youcook2)


def test_no_file_is_refused() -> None:
    with pytest.raises(InputError, match="--annotations: pass one or more files"):
        read_files([], read_youcook2)
