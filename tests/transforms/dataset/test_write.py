from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from eqforge.core.errors import BuildError
from eqforge.schemas.records.books import Reject
from eqforge.schemas.tables.description import TableType
from eqforge.schemas.tables.pairs import IMAGES_TABLE, PAIRS_TABLE, REJECTS_TABLE
from eqforge.transforms.dataset import write
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.dataset.tables import rejects_table, table_of
from tests.builds import write_shard
from tests.samples import IMAGE, REJECT, SAMPLE


@pytest.mark.parametrize(
    ("table", "record"), [(PAIRS_TABLE, SAMPLE), (IMAGES_TABLE, IMAGE), (REJECTS_TABLE, REJECT)]
)
def test_a_row_names_exactly_the_columns(table: TableType, record: Any) -> None:
    assert sorted(table.row(record)) == sorted(table.schema.names)


def rejects(number: int) -> list[Reject]:
    return [
        Reject(candidate_id=f"d/{i:05d}", stage="frames", reason="face_found")
        for i in range(number)
    ]


def test_rows_are_sorted_by_id(tmp_path: Path) -> None:
    written = write_shard(rejects_table(1), 0, rejects(30)[::-1], str(tmp_path))

    ids = pq.read_table(tmp_path / written.file.path)["candidate_id"].to_pylist()
    assert ids == [f"d/{i:05d}" for i in range(30)]
    assert written.counts == (("frames", "face_found", 30),)


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


def test_two_different_records_with_one_id_end_the_run(tmp_path: Path) -> None:
    other = Reject(candidate_id="d/v/000", stage="frames", reason="black_image")

    with pytest.raises(BuildError, match="two different rejects have the id"):
        write_shard(rejects_table(1), 0, [REJECT, other], str(tmp_path))

    assert not list(tmp_path.rglob("*.parquet"))


def test_a_failure_leaves_no_file_behind(tmp_path: Path) -> None:
    missing = table_of(IMAGES_TABLE, 1, MediaStore(str(tmp_path / "media")))

    with pytest.raises(FileNotFoundError):
        write_shard(missing, 0, [IMAGE], str(tmp_path / "out"))

    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


def test_an_empty_shard_is_a_readable_file_with_all_columns(tmp_path: Path) -> None:
    written = write_shard(table_of(PAIRS_TABLE, 2), 1, [], str(tmp_path))

    table = pq.read_table(tmp_path / written.file.path)
    assert table.num_rows == 0
    assert table.schema.names == PAIRS_TABLE.schema.names


def test_row_groups_stay_near_their_size(tmp_path: Path) -> None:
    size = write.ROW_GROUP_BYTES // 4
    store = MediaStore(str(tmp_path / "media"))
    ids = [store.put(bytes([i]) * size, ".png") for i in range(6)]
    images = [replace(IMAGE, image_id=each, suffix=".png") for each in ids]

    written = write_shard(table_of(IMAGES_TABLE, 1, store), 0, images, str(tmp_path))

    groups = pq.read_metadata(tmp_path / written.file.path)
    assert [groups.row_group(i).num_rows for i in range(groups.num_row_groups)] == [4, 2]
