"""Parquet files that would take far more than they have bytes, and others no dataset has."""

import io
import struct
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eqforge.core.errors import InputError
from eqforge.core.files.table_file import open_table_file
from eqforge.core.files.untrusted import Unreadable
from eqforge.schemas.dataset.reader import read_file_batches
from tests.fuzz.limits import address_space, refuse_without_memory

LONG = "x" * 20_000_000
_BYTES = pa.dictionary(pa.int32(), pa.binary())


def written(table: pa.Table, **how: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table, stream, **{"compression": "zstd", "store_schema": False} | how)
    return stream.getvalue()


def repeated(text: str, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))


def number(value: int) -> bytes:
    """A number as the compact protocol writes it, zigzag."""
    value, found = value << 1, b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])


def footer_of(elements: bytes, count: int) -> bytes:
    """A file of nothing but a footer with this list in it as its schema."""
    listed = b"\xfc" + varint(count) + elements
    footer = b"\x15\x02\x19" + listed + b"\x16\x00\x19\x0c\x00"
    return b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"


def varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])


def nested(levels: int) -> bytes:
    """Columns below columns."""
    root = b"\x48\x01r\x15" + number(1) + b"\x00"
    group = b"\x35\x02\x18\x01a\x15" + number(1) + b"\x00"
    leaf = b"\x15" + number(2) + b"\x25" + number(1) + b"\x18\x01a\x00"
    return footer_of(root + group * levels + leaf, levels + 2)


def many_rows() -> bytes:
    """Two billion rows that a footer claims."""
    data = written(pa.table({"a": pa.array([1] * 1_000, pa.int64())}), write_statistics=False)
    return data.replace(number(1_000), number(3_000), 9)


def in_lists(kind: Callable[[pa.Array], pa.Array]) -> pa.Table:
    offsets = pa.array(np.arange(1_001, dtype=np.int32))
    texts = repeated(LONG, 1_000)
    return pa.table({"a": kind(pa.ListArray.from_arrays(offsets, texts))})


BOMBS: dict[str, Callable[[], bytes]] = {
    "one long text in all rows": lambda: written(pa.table({"a": repeated(LONG, 1_000)})),
    "the same, with Arrow's schema": lambda: written(
        pa.table({"a": repeated(LONG, 1_000)}), store_schema=True
    ),
    "one long text in lists": lambda: written(in_lists(lambda lists: lists)),
    "one long text in structs in lists": lambda: written(
        pa.table(
            {
                "a": pa.ListArray.from_arrays(
                    pa.array(np.arange(1_001, dtype=np.int32)),
                    pa.StructArray.from_arrays([repeated(LONG, 1_000)], ["t"]),
                )
            }
        )
    ),
    "bytes": lambda: written(pa.table({"a": repeated(LONG, 1_000).cast(_BYTES)})),
    "a page of zeros": lambda: written(
        pa.table({"a": pa.array([bytes(150_000_000)])}),
        use_dictionary=False,
        write_statistics=False,
    ),
    "many numbers": lambda: written(
        pa.table({"a": pa.array(np.zeros(20_000_000, np.int64))}), use_dictionary=True
    ),
    "a long list in a row": lambda: written(
        pa.table(
            {
                "a": pa.ListArray.from_arrays(
                    pa.array([0, 20_000_000], pa.int32()), pa.array(np.zeros(20_000_000, np.int64))
                )
            }
        )
    ),
    "columns below columns": lambda: nested(60_000),
    "some columns below columns": lambda: nested(1_500),
    "rows that are not there": many_rows,
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_small_file_that_takes_much_is_refused(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.parquet").write_bytes(BOMBS[kind]())
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    with address_space(), pytest.raises(InputError, match=r"cannot be read: ") as refused:
        list(read_file_batches(str(tmp_path / "a.parquet")))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    refuse_without_memory(refused.value)
    assert peak < 2e8
    assert pa.total_allocated_bytes() - before < 1e8


def test_what_is_below_the_limits_is_read(tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": repeated("a" * 10_000, 1_000),
            "list": pa.array([["a", None], None, []] + [["b"] * 9] * 997),
            "struct": pa.array([{"a": 1, "b": [{"c": "x"}]}] * 1_000),
            "bytes": pa.array([b"\x00\xff"] * 1_000),
        }
    )
    path = tmp_path / "a.parquet"
    for how in ({}, {"data_page_version": "2.0"}, {"use_dictionary": False}, {"row_group_size": 7}):
        path.write_bytes(written(table, **how))
        batches = list(read_file_batches(str(path), rows=100))
        assert pa.Table.from_batches(batches).to_pylist() == table.to_pylist()


def test_a_file_is_counted_as_a_whole(tmp_path: Path) -> None:
    """No row group alone is beyond the limits."""
    path = tmp_path / "a.parquet"
    path.write_bytes(written(pa.table({"a": repeated("x" * 5_000, 40_000)}), row_group_size=100))
    with pytest.raises(InputError, match="needs at least"):
        list(read_file_batches(str(path)))


def test_a_footer_with_any_byte_changed_is_read_or_refused(tmp_path: Path) -> None:
    """pyarrow ends the process over some of them where it is asked about a column."""
    stream = io.BytesIO()
    pq.write_table(pa.table({"a": [[1, 2], [3]]}), stream)
    good = stream.getvalue()
    start = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
    outcomes: Counter[str] = Counter()
    for place in range(start, len(good) - 8):
        bad = bytearray(good)
        bad[place] ^= 0x10
        (tmp_path / "a.parquet").write_bytes(bad)
        try:
            with open_table_file(str(tmp_path), "a.parquet") as opened:
                outcomes["read"] += sum(
                    opened.group(n, None).num_rows for n in range(opened.num_groups)
                )
        except InputError:
            outcomes["refused"] += 1

    assert outcomes["read"] > 0
    assert outcomes["refused"] > 0


@pytest.mark.parametrize("use_dictionary", [True, False])
def test_a_row_group_without_rows_is_read(tmp_path: Path, use_dictionary: bool) -> None:
    """It is what a writer leaves that is given a table without rows, with or without a page."""
    schema = pa.schema([("a", pa.string())])
    path = tmp_path / "t.parquet"
    with pq.ParquetWriter(path, schema, use_dictionary=use_dictionary) as writer:
        writer.write_table(schema.empty_table(), row_group_size=1)
        writer.write_table(pa.table({"a": ["x"]}))

    found = list(read_file_batches(str(path), ["a"]))

    assert pa.Table.from_batches(found).to_pylist() == [{"a": "x"}]


def test_a_file_without_rows_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())}), path)
    with open_table_file(str(tmp_path), path.name) as file:
        tables = [file.group(number, ["b"]) for number in range(file.num_groups)]
    assert all(table.schema.names == ["b"] and not table.num_rows for table in tables)


def test_places_are_those_of_values_with_such_lengths(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(
        pa.table({"a": [b"xyz", b"12345"]}), path, compression="none", use_dictionary=False
    )
    with open_table_file(str(tmp_path), "t.parquet") as opened:
        starts = opened.places("a", [np.asarray([3, 5])]).tolist()
        for wrong in ([-1, 9], [9, -1], [3], [3, 5, 1], [3, 1_000_000]):
            with pytest.raises(Unreadable):
                opened.places("a", [np.asarray(wrong)])
    data = path.read_bytes()
    assert [data[starts[0] :][:3], data[starts[1] :][:5]] == [b"xyz", b"12345"]
