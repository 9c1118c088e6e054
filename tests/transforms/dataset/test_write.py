from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from eqforge.schemas.records.stages import Reject
from eqforge.schemas.tables.pairs import IMAGES_TABLE
from eqforge.transforms.dataset import write
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.dataset.tables import rejects_table, table_of
from tests.builds import write_shard
from tests.samples import IMAGE


def rejects(number: int) -> list[Reject]:
    return [
        Reject(candidate_id=f"d/{i:05d}", stage="frames", reason="face_found")
        for i in range(number)
    ]


def test_a_shard_that_is_done_is_not_written_again(tmp_path: Path) -> None:
    first = write_shard(rejects_table(1), 0, rejects(3), str(tmp_path))
    written_at = (tmp_path / first.file.path).stat().st_mtime_ns

    second = write_shard(rejects_table(1), 0, rejects(3), str(tmp_path))

    assert (first.skipped, second.skipped) == (False, True)
    assert first.file == second.file
    assert (tmp_path / first.file.path).stat().st_mtime_ns == written_at


def test_an_image_met_twice_is_written_once(tmp_path: Path) -> None:
    store = MediaStore(str(tmp_path / "media"))
    image = replace(IMAGE, image_id=store.put(b"picture", ".jpg"))

    written = write_shard(table_of(IMAGES_TABLE, 1, store), 0, [image, image], str(tmp_path))

    (row,) = pq.read_table(tmp_path / written.file.path).to_pylist()
    assert row["image"] == {"bytes": b"picture", "path": f"{image.image_id}.jpg"}


def test_a_failure_leaves_no_file_behind(tmp_path: Path) -> None:
    missing = table_of(IMAGES_TABLE, 1, MediaStore(str(tmp_path / "media")))

    with pytest.raises(FileNotFoundError):
        write_shard(missing, 0, [IMAGE], str(tmp_path / "out"))

    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


def test_row_groups_stay_near_their_size(tmp_path: Path) -> None:
    size = write.ROW_GROUP_BYTES // 4
    store = MediaStore(str(tmp_path / "media"))
    ids = [store.put(bytes([i]) * size, ".png") for i in range(6)]
    images = [replace(IMAGE, image_id=each, suffix=".png") for each in ids]

    written = write_shard(table_of(IMAGES_TABLE, 1, store), 0, images, str(tmp_path))

    groups = pq.read_metadata(tmp_path / written.file.path)
    assert [groups.row_group(i).num_rows for i in range(groups.num_row_groups)] == [4, 2]
