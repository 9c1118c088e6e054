import io
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from PIL import Image

from eqforge.core.errors import BuildError
from eqforge.schemas.records.books import Reject
from eqforge.schemas.tables.description import TableType
from eqforge.schemas.tables.pairs import (
    IMAGES_TABLE,
    PAIRS_TABLE,
    REJECTS_TABLE,
    ImageRow,
    Origin,
    PairSample,
)
from eqforge.transforms.dataset import write
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.dataset.tables import rejects_table, table_of
from tests.builds import write_shard

ORIGIN = Origin(
    frame_id="d/v/000",
    source_path="v.mp4",
    source_sha256="0" * 64,
    licence=None,
    requested_timestamp_s=1.5,
    timestamp_s=1.48,
    pts=1480,
    time_base="1/1000",
    frame_index=37,
    rotation_deg=0,
    parameters="{}",
)
SAMPLE = PairSample(
    sample_id="d/v/000-001",
    dataset="d",
    split="train",
    source_id="v",
    caption_0="a",
    caption_1="b",
    captions_0=("a",),
    captions_1=("b",),
    image_0_id="1" * 64,
    image_1_id="2" * 64,
    origin_0=ORIGIN,
    origin_1=ORIGIN,
    annotation="{}",
    changed_area_fraction=0.5,
    ssim=0.5,
    background_ssim=None,
    luminance_shift=0.0,
    phash_distance=3,
    word_edit_distance=1,
    edited_spans_0=(),
    edited_spans_1=(),
    scores=(),
)
IMAGE = ImageRow(
    image_id="1" * 64,
    suffix=".jpg",
    width_px=2,
    height_px=3,
    num_bytes=4,
    phash="0" * 48,
    scores=(),
)
REJECT = Reject(candidate_id="d/v/000", stage="frames", reason="face_found")


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


def test_order_and_batches_of_the_input_leave_no_trace_in_the_bytes(tmp_path: Path) -> None:
    for folder, records in (("a", rejects(50)), ("b", rejects(50)[::-1])):
        write_shard(rejects_table(1), 0, iter(records), str(tmp_path / folder))

    name = rejects_table(1).file_name(0)
    assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


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


def test_a_shard_with_other_rows_or_cut_short_is_written_again(tmp_path: Path) -> None:
    table = rejects_table(1)
    path = tmp_path / table.file_name(0)
    write_shard(table, 0, rejects(3), str(tmp_path))
    whole = path.read_bytes()

    path.write_bytes(whole[: len(whole) // 2])
    assert not write_shard(table, 0, rejects(3), str(tmp_path)).skipped
    assert path.read_bytes() == whole
    assert not write_shard(table, 0, rejects(4), str(tmp_path)).skipped


def test_an_image_met_twice_is_written_once(tmp_path: Path) -> None:
    store = MediaStore(str(tmp_path / "media"))
    image = ImageRow(
        image_id=store.put(b"picture", ".jpg"),
        suffix=".jpg",
        width_px=1,
        height_px=1,
        num_bytes=7,
        phash="0" * 48,
        scores=(),
    )

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
    images = [
        ImageRow(
            image_id=store.put(bytes([i]) * size, ".png"),
            suffix=".png",
            width_px=1,
            height_px=1,
            num_bytes=size,
            phash="0" * 48,
            scores=(),
        )
        for i in range(6)
    ]

    written = write_shard(table_of(IMAGES_TABLE, 1, store), 0, images, str(tmp_path))

    groups = pq.read_metadata(tmp_path / written.file.path)
    assert [groups.row_group(i).num_rows for i in range(groups.num_row_groups)] == [4, 2]


def test_hugging_face_shows_pictures_and_reads_every_table(tmp_path: Path) -> None:
    """`load_dataset("parquet", ...)` decodes the pictures and keeps the other columns' types."""
    datasets = pytest.importorskip("datasets")
    store = MediaStore(str(tmp_path / "media"))
    buffer = io.BytesIO()
    Image.new("RGB", (4, 3), "red").save(buffer, "PNG")
    picture = buffer.getvalue()
    image = ImageRow(
        image_id=store.put(picture, ".png"),
        suffix=".png",
        width_px=4,
        height_px=3,
        num_bytes=len(picture),
        phash="0" * 48,
        scores=(),
    )
    write_shard(table_of(IMAGES_TABLE, 1, store), 0, [image], str(tmp_path))
    write_shard(table_of(PAIRS_TABLE, 1), 0, [SAMPLE], str(tmp_path))
    write_shard(rejects_table(1), 0, [REJECT], str(tmp_path))

    loaded = {
        name: datasets.load_dataset(
            "parquet",
            data_files=str(tmp_path / f"data/{name}-*.parquet"),
            split="train",
            cache_dir=str(tmp_path / "cache"),
        )
        for name in ("images", "samples", "rejects")
    }

    assert loaded["images"][0]["image"].size == (4, 3)
    assert loaded["samples"][0]["origin_0"]["frame_index"] == 37
    assert loaded["rejects"][0]["reason"] == "face_found"
