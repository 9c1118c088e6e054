"""Tables of other programs: usual forms are read, and no file takes more than its size allows."""

import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eqforge.core.errors import InputError
from eqforge.core.files.foreign_tables import column_types, read_parquet, xlsx_rows
from tests.core.files.test_table_file import nested, number
from tests.evaluation.harnesses.made import write_xlsx
from tests.fuzz.limits import address_space, refuse_without_memory

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
    assert [*column_types(path)] == [*table]
    found = read(path)
    assert found["sample_id"].to_list() == table["sample_id"]
    assert found["score"].to_pylist() == table["score"]


def test_a_footer_that_lies_of_sizes_is_not_believed(tmp_path: Path) -> None:
    path, size = tmp_path / "a.parquet", 70_000_000
    texts = pa.array(["x" * size, "y" * size])
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
    lie = data[:footer] + b"\x82\x80\x80\x80\x00" + data[footer + 5 :]
    path.write_bytes(lie)
    assert pq.read_metadata(path).row_group(0).column(0).total_uncompressed_size == 1
    with pytest.raises(InputError, match=r"needs at least .* bytes of memory"):
        read(path)


def test_columns_below_columns_without_end_are_one_error(tmp_path: Path) -> None:
    """Arrow would follow them until the process ends."""
    path = tmp_path / "a.parquet"
    path.write_bytes(nested(60_000))
    with pytest.raises(InputError, match="Expected a Parquet file"):
        read(path)
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        column_types(path)


@pytest.mark.parametrize(("row", "column"), [(5_000, "EWV"), (1_048_576, "XFD")])
def test_a_sheet_of_two_cells_far_apart_is_refused(tmp_path: Path, row: int, column: str) -> None:
    pytest.importorskip("python_calamine")
    path = tmp_path / "a.xlsx"
    write_xlsx(path, [["index", "prediction"], ["q0", "A"]])
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    parts["xl/worksheets/sheet1.xml"] = (
        '<worksheet><sheetData><row r="1"><c r="A1"><v>1</v></c></row>'
        f'<row r="{row}"><c r="{column}{row}"><v>1</v></c></row></sheetData></worksheet>'
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    with address_space(), pytest.raises(InputError) as refused:
        list(xlsx_rows(path))
    refuse_without_memory(refused.value)


def test_a_small_sheet_is_read(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    write_xlsx(tmp_path / "a.xlsx", [["index", "prediction"], ["q0", "кот"]])
    assert list(xlsx_rows(tmp_path / "a.xlsx")) == [{"index": "q0", "prediction": "кот"}]
