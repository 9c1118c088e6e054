"""Read one Parquet file of unknown origin, in a process with a memory limit set by the file's size.

A few kilobytes of Parquet can expand to gigabytes: pages that unpack to a thousand times their
length, one long text that every row refers to, or a row count without pages. A crafted footer may
crash its reader. The footer is checked before anything is decoded; `untrusted` limits the rest.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eqforge.core.errors import InputError
from eqforge.core.files import storage, untrusted
from eqforge.core.files.checked import MAX_NAME_CHARS, clipped, names_of
from eqforge.core.files.untrusted import Unreadable, check_expansion

ADVICE: Final = "run eqforge verify to check for other damage"
MAX_DEPTH: Final = 8
"""Maximum nesting of structs and lists."""

_MAX_ELEMENTS: Final = 2_000
"""Maximum length of any list in the footer: columns, including nested ones, and row groups."""

_PIECE_BYTES: Final = 64 << 20
_HEADER_BYTES: Final = 1 << 16
_LENGTH_BYTES: Final = 4
"""Bytes of the length before each value of a plain page."""

# Thrift's numbers of types; fields of PageHeader and DataPageHeader; Parquet's number of PLAIN.
_FLAGS, _NUMBERS, _BINARY, _STRUCT = (1, 2), (4, 5, 6), 8, 12
_STORED, _DATA_PAGE, _VALUES, _ENCODING, _PLAIN = 3, 5, 1, 2, 0

_TYPES: Final = (
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_null,
)


class TableFile:
    """An open Parquet file whose footer was read within limits.

    Attributes:
        num_rows: rows that the footer declares; at most one per byte, as every row has an id.
    """

    def __init__(self, stream: IO[bytes], is_foreign: bool = False) -> None:
        """Read the footer; `is_foreign` files may have columns that no dataset has.

        Raises:
          Unreadable, OSError, pa.ArrowException: the file is damaged or beyond the limits.
        """
        self._stream = stream
        self.num_bytes = stream.seek(0, os.SEEK_END)
        rows, schema = self._read("_footer")
        self.group_rows = tuple(rows)
        self.schema = pa.ipc.read_schema(pa.py_buffer(schema))
        if len(set(self.schema.names)) < len(self.schema.names):
            raise Unreadable("two columns have the same name")
        for field in () if is_foreign else self.schema:
            _check_type(field.type)
        self.num_rows = sum(self.group_rows)
        if self.num_rows > self.num_bytes:
            raise Unreadable(
                f"its metadata lists {self.num_rows:,} rows, but the file has only "
                f"{self.num_bytes:,} bytes"
            )
        self._taken = 0

    @property
    def num_groups(self) -> int:
        return len(self.group_rows)

    def places(
        self, column: str, lengths: Sequence[npt.NDArray[np.int64]]
    ) -> npt.NDArray[np.int64]:
        """Return the offset in the file of each value of a bytes column without nulls, int64 [all].

        Callers must compare digests.

        Args:
            column: a leaf column, such as `image.bytes`.
            lengths: bytes of each value, per row group, int64 [n].
        """
        starts = [np.zeros(0, np.int64)]
        for (start, stop, is_plain), row_lengths in zip(
            self._read("_stored", column=column), lengths, strict=True
        ):
            if not is_plain:
                raise Unreadable("its values are compressed or encoded")
            try:
                starts += _value_starts(self._stream, start, stop, row_lengths)
            except (LookupError, TypeError, ArithmeticError, RecursionError) as error:
                raise Unreadable("its pages are damaged") from error
        return np.concatenate(starts)

    def group(self, number: int, columns: Sequence[str] | None) -> pa.Table:
        batches = list(self.batches(number, columns, max(self.num_rows, 1)))
        if batches:
            return pa.Table.from_batches(batches)
        tops = self.schema.names if columns is None else {name.split(".")[0] for name in columns}
        return pa.schema([field for field in self.schema if field.name in tops]).empty_table()

    def batches(
        self, number: int | None, columns: Sequence[str] | None, rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield columns of one row group in pieces, or of all groups in order."""
        groups = list(range(self.num_groups)) if number is None else [number]
        named = None if columns is None else list(columns)
        for data in self._read("_batches", groups=groups, columns=named, rows=rows):
            self._taken += len(data)
            check_expansion(self.num_bytes, self._taken)
            batch = pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()
            batch.validate(full=True)  # that texts are UTF-8
            yield batch

    def _read(self, function: str, **arguments: Any) -> Iterator[Any]:
        return untrusted.read(f"{__name__}:{function}", self._stream, **arguments)


def _check_type(kind: pa.DataType, depth: int = 0) -> None:
    """Reject types that no dataset has, such as run-end encoded ones."""
    if depth < MAX_DEPTH and pa.types.is_struct(kind):
        for field in kind:
            _check_type(field.type, depth + 1)
    elif depth < MAX_DEPTH and (pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind)):
        _check_type(kind.value_type, depth + 1)
    elif pa.types.is_dictionary(kind):
        _check_type(kind.value_type, MAX_DEPTH)
    elif not any(test(kind) for test in _TYPES):
        raise Unreadable(
            f"a column has the type {str(kind)[:MAX_NAME_CHARS]}, which no dataset uses"
        )


def _value_starts(
    stream: IO[bytes], place: int, stop: int, lengths: npt.NDArray[np.int64]
) -> Iterator[npt.NDArray[np.int64]]:
    """Yield where the values of each page of a leaf column begin; see TableFile.places.

    Source: apache/parquet-format, `parquet.thrift` (PageHeader).
    """
    row = 0
    while place < stop:
        stream.seek(place)
        header, length = _thrift(stream.read(min(_HEADER_BYTES, stop - place)), 0)
        page, stored, begin = header[_DATA_PAGE], header[_STORED], place + length
        place = begin + stored
        sizes = lengths[row : row + page[_VALUES]]
        # Behind the levels, to the end of the page: each value, its length before it.
        begins = place - np.cumsum((sizes + _LENGTH_BYTES)[::-1])[::-1]
        if page[_ENCODING] != _PLAIN or min([stored, page[_VALUES], *sizes[:1]]) < 0:
            raise Unreadable("its values are compressed or encoded")
        if len(sizes) < page[_VALUES] or (len(sizes) and (begins[0] < begin or sizes.min() < 0)):
            raise Unreadable("its values do not have the stated lengths")
        row += len(sizes)
        yield begins + _LENGTH_BYTES
    if row < len(lengths):
        raise Unreadable("it has fewer values than rows")


def _thrift(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """Return numbers and structs in a struct of Thrift's compact protocol, and where it ends."""
    fields: dict[int, Any] = {}
    number = 0
    while head := data[at]:
        number, at, kind = number + (head >> 4), at + 1, head & 15
        if kind in _NUMBERS:
            value, at = _varint(data, at)
            fields[number] = (value >> 1) ^ -(value & 1)
        elif kind == _STRUCT:
            fields[number], at = _thrift(data, at)
        elif kind == _BINARY:  # in statistics
            value, at = _varint(data, at)
            at += value
        elif kind not in _FLAGS:
            raise LookupError(f"unknown field kind {kind}")
    return fields, at + 1


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] > 127 and shift < 63:
        value, at, shift = value | (data[at] & 127) << shift, at + 1, shift + 7
    return value | data[at] << shift, at + 1


# The functions below run in the child.


def open_parquet(stream: IO[bytes]) -> Any:
    import pyarrow.parquet as pq

    pa.set_memory_pool(pa.system_memory_pool())  # others reserve address space for nothing
    return pq.ParquetFile(stream, thrift_container_size_limit=_MAX_ELEMENTS)


def _footer(stream: IO[bytes]) -> Iterator[Any]:
    opened = open_parquet(stream)
    metadata = opened.metadata
    rows = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
    if metadata.num_rows != sum(rows) or min([*rows, 0]) < 0:
        raise Unreadable("the row counts of its row groups do not add up to its total")
    yield rows
    yield memoryview(opened.schema_arrow.serialize())


def _leaves(metadata: Any, columns: Sequence[str] | None) -> list[int]:
    paths = [f"{metadata.schema.column(n).path}." for n in range(metadata.num_columns)]
    names = [""] if columns is None else [f"{name}." for name in columns]
    return [n for n, path in enumerate(paths) if path.startswith(tuple(names))]


def _stored(stream: IO[bytes], column: str) -> Iterator[tuple[int, int, bool]]:
    """Yield the first and last byte of a leaf column of each row group, and whether it is plain."""
    metadata = open_parquet(stream).metadata
    (leaf,) = _leaves(metadata, [column])
    for number in range(metadata.num_row_groups):
        found = metadata.row_group(number).column(leaf)
        start = found.data_page_offset
        is_plain = found.compression == "UNCOMPRESSED" and not found.has_dictionary_page
        yield start, start + found.total_compressed_size, is_plain


def has_no_null(opened: Any, number: int, column: str) -> bool:
    (leaf,) = _leaves(opened.metadata, [column])
    statistics = opened.metadata.row_group(number).column(leaf).statistics
    return statistics is not None and statistics.null_count == 0


def _batches(
    stream: IO[bytes], groups: list[int], columns: list[str] | None, rows: int
) -> Iterator[memoryview]:
    """Yield the rows in pieces, each from one row group, as streams of Arrow's IPC format."""
    opened = open_parquet(stream)
    metadata, num_bytes = opened.metadata, stream.seek(0, os.SEEK_END)
    # Not of each column: asked about one whose statistics are damaged, pyarrow ends the process.
    check_expansion(num_bytes, sum(metadata.row_group(number).total_byte_size for number in groups))
    memory_bytes = 0
    for number in groups:
        for batch in opened.iter_batches(
            rows, row_groups=[number], columns=columns, use_threads=False
        ):
            memory_bytes += sum(map(_num_bytes, batch.columns))
            check_expansion(num_bytes, memory_bytes)
            yield from _pieces(batch)


def _num_bytes(array: pa.Array) -> int:
    """Return the memory of a column; a repeated text counts once."""
    if pa.types.is_dictionary(array.type):
        return int(array.dictionary_decode().nbytes)
    if pa.types.is_struct(array.type) or pa.types.is_list(array.type):
        below = array.flatten()
        return array.nbytes + sum(map(_num_bytes, below if isinstance(below, list) else [below]))
    return int(array.nbytes)


def _pieces(batch: pa.RecordBatch) -> Iterator[memoryview]:
    if batch.nbytes > _PIECE_BYTES and batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from _pieces(batch.slice(0, half))
        yield from _pieces(batch.slice(half))
        return
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, batch.schema) as writer:
        writer.write_batch(batch)
    yield memoryview(stream.getvalue())


_FAULTS = (ValueError, TypeError, OverflowError, OSError, pa.ArrowException, MemoryError)
# Unreadable and UnicodeDecodeError, from names that are not UTF-8, are ValueErrors.


@contextlib.contextmanager
def open_table_file(folder: str, path: str, advice: str = ADVICE) -> Iterator[TableFile]:
    """Open a Parquet file below a folder; damage, even if found in the block, raises InputError."""
    try:
        with storage.open_below(folder, path) as stream:
            yield TableFile(stream)
    except InputError:
        raise
    except _FAULTS as error:
        why = getattr(error, "strerror", None) or str(error)
        reason = clipped(" ".join(why.split()) or type(error).__name__)
        raise InputError(f"{storage.join(folder, path)}: cannot be read: {reason}; {advice}") from (
            error
        )


def check_columns(schema: pa.Schema, columns: Sequence[str], url: str) -> None:
    """Check that a file has columns; pyarrow silently leaves out missing ones."""
    for name in columns:
        if (first := name.split(".")[0]) not in schema.names:
            raise InputError(
                f"{url}: the column {first!r} is missing; found "
                f"{f'only {names_of(schema.names)}' if schema.names else 'no columns'}"
            )
