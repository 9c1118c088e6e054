"""Tables of other programs: usual forms are read, and no file takes more than its size allows."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eqforge.schemas.errors import InputError
from eqforge.schemas.io.foreign_tables import MIN_BYTES, column_names, read_parquet
from tests.schemas.io.test_table_file import nested, number

COLUMNS = {"sample_id": pa.string(), "score": pa.float64()}


def read(path: Path) -> dict[str, Any]:
    return read_parquet(path, COLUMNS, "the columns sample_id and score")


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"use_dictionary": False, "data_page_version": "2.0", "compression": "gzip"},
        {
            "use_dictionary": False,
            "column_encoding": {
                "sample_id": "PLAIN",
                "score": "BYTE_STREAM_SPLIT",
                "rank": "DELTA_BYTE_ARRAY",
            },
        },
        {"row_group_size": 2, "store_schema": False, "compression": "none"},
    ],
    ids=str,
)
def test_what_other_programs_write_is_read(tmp_path: Path, how: dict[str, Any]) -> None:
    path = tmp_path / "a.parquet"
    table = {"sample_id": ["a", "b", "a"], "score": [0.5, -1.0, 2.0], "rank": ["1", "2", "3"]}
    pq.write_table(pa.table(table), path, **how)
    assert column_names(path) == [*table]
    found = read(path)
    assert found["sample_id"].to_list() == table["sample_id"]
    assert found["score"].to_pylist() == table["score"]


def test_a_footer_that_lies_of_sizes_is_not_believed(tmp_path: Path) -> None:
    path, size = tmp_path / "a.parquet", MIN_BYTES + 1
    texts = pa.array(["x" * size, "b"])
    pq.write_table(
        pa.table({"sample_id": texts, "score": [0.5, 1.0]}),
        path,
        compression="zstd",
        use_dictionary=False,
        write_statistics=False,
    )
    true = pq.read_metadata(path).row_group(0).column(0).total_uncompressed_size
    data = path.read_bytes()
    footer = data.rindex(number(true))
    lie = data[:footer] + b"\x82\x80\x80\x00" + data[footer + 4 :]
    path.write_bytes(lie)
    assert pq.read_metadata(path).row_group(0).column(0).total_uncompressed_size == 1
    with pytest.raises(InputError, match=r"more than 100 bytes come of each of its bytes"):
        read(path)


def test_columns_below_columns_without_end_are_one_error(tmp_path: Path) -> None:
    """Arrow would follow them until the process ends."""
    path = tmp_path / "a.parquet"
    path.write_bytes(nested(60_000))
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read(path)
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        column_names(path)
