import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eqforge.schemas.records.stages import Reject
from eqforge.schemas.records.values import SCHEMA_VERSION
from eqforge.schemas.tables.columns import with_metadata
from eqforge.schemas.tables.generated import MASKS_TABLE, RENDERED_TABLE
from eqforge.schemas.tables.pairs import IMAGES_TABLE, PAIRS_TABLE, REJECTS_TABLE
from tests.samples import IMAGE, MASK, REJECT, RENDERED, SAMPLE

ROWS = {
    "samples": (PAIRS_TABLE.row(SAMPLE), PAIRS_TABLE.schema),
    "images": (IMAGES_TABLE.row(IMAGE, b"data"), IMAGES_TABLE.schema),
    "rejects": (REJECTS_TABLE.row(REJECT), REJECTS_TABLE.schema),
    "rendered": (RENDERED_TABLE.row(RENDERED), RENDERED_TABLE.schema),
    "masks": (MASKS_TABLE.row(MASK, b"data"), MASKS_TABLE.schema),
}


@pytest.mark.parametrize("table", ROWS)
def test_a_row_comes_back_from_parquet_as_it_was(tmp_path: Path, table: str) -> None:
    row, schema = ROWS[table]
    assert set(row) == set(schema.names)
    written = pa.Table.from_pylist([row], schema=with_metadata(schema, {"k": "v"}))
    pq.write_table(written, tmp_path / "a.parquet")

    (read,) = pq.read_table(tmp_path / "a.parquet").to_pylist()

    assert as_json(read) == as_json(row)


def as_json(row: dict[str, Any]) -> str:
    """Tuples and lists, the order of columns, and bytes as text apart, what a row holds."""
    return json.dumps(row, default=repr, sort_keys=True)


@pytest.mark.parametrize("sample", [SAMPLE, RENDERED])
def test_a_sample_is_made_again_from_its_row(sample: Any) -> None:
    assert msgspec.convert(msgspec.to_builtins(asdict(sample)), type(sample)) == sample


@pytest.mark.parametrize("table", ROWS)
def test_a_null_where_none_may_be_is_refused(table: str) -> None:
    """Of plain columns; pyarrow writes a null list as an empty one."""
    row, schema = ROWS[table]
    for field in schema:
        if not field.nullable and not pa.types.is_nested(field.type):
            batch = pa.RecordBatch.from_pylist([row | {field.name: None}], schema=schema)
            with pytest.raises(pa.ArrowInvalid):
                pq.write_table(pa.Table.from_batches([batch]), pa.BufferOutputStream())


def test_optional_values_may_be_missing(tmp_path: Path) -> None:
    sample = replace(SAMPLE, background_ssim=None, edited_spans_0=(), scores=())
    table = pa.Table.from_pylist([PAIRS_TABLE.row(sample)], schema=PAIRS_TABLE.schema)
    pq.write_table(table, tmp_path / "a.parquet")

    (read,) = pq.read_table(tmp_path / "a.parquet").to_pylist()
    assert (read["background_ssim"], read["edited_spans_0"], read["scores"]) == (None, [], [])


def test_a_reject_is_what_its_columns_can_hold() -> None:
    """Whole numbers become floats; half of a surrogate pair is escaped."""
    reject = Reject(
        candidate_id="a", stage="s", reason="r", value=3, threshold=2, detail="half \ud83d of"
    )

    assert (type(reject.value), type(reject.threshold)) == (float, float)
    assert reject.detail == "half \\ud83d of"
    assert Reject(**asdict(reject)) == reject
    assert msgspec.json.decode(msgspec.json.encode(reject), type=Reject) == reject


def test_metadata_name_the_version_and_hugging_face_s_features() -> None:
    metadata = with_metadata(IMAGES_TABLE.schema, {"fingerprint": "f"}).metadata

    assert metadata[b"schema_version"] == SCHEMA_VERSION.encode()
    assert metadata[b"fingerprint"] == b"f"
    features = json.loads(metadata[b"huggingface"])["info"]["features"]
    assert features["image"] == {"_type": "Image"}
    assert features["width_px"] == {"dtype": "int32", "_type": "Value"}
    assert features["scores"]["feature"]["value"] == {"dtype": "float64", "_type": "Value"}


@pytest.mark.parametrize("table", ROWS)
def test_hugging_face_reads_the_features_of_every_table(table: str) -> None:
    datasets = pytest.importorskip("datasets")
    schema = ROWS[table][1]

    features = datasets.Features.from_arrow_schema(with_metadata(schema, {}))

    assert set(features) == set(schema.names)
    assert features.arrow_schema.names == schema.names
    if table == "images":
        assert isinstance(features["image"], datasets.Image)
