"""Rows of Arrow and Parquet files of any origin, in memory bounded by the size of the file.

Arrow files are streams of Arrow's IPC format, as Hugging Face's `datasets` saves them. Pictures,
videos and sound stand there as a structure of bytes and path; the path is what is read, or where
the bytes are. Columns of other bytes are left out.
"""

import contextlib
import functools
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa

from eqforge.core.errors import EqforgeError, InputError
from eqforge.core.files.cells import Cell
from eqforge.core.files.checked import clipped
from eqforge.core.files.foreign_columns import count_values, is_media, wanted, without_bytes
from eqforge.core.files.source_file import open_seekable
from eqforge.core.files.table_file import TableFile
from eqforge.core.files.untrusted import Unreadable
from eqforge.core.identity import sha256_hex

ROWS: Final = 1_000
"""So many rows are Python objects at a time."""
REMEMBERED: Final = 4
"""So many groups of pictures are in memory at a time."""
_END: Final = b"\xff\xff\xff\xff\0\0\0\0"


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the rows of an `.arrow` or `.parquet` file by column, without those that are null.

    Dates, times and decimals are text, as `str` writes them.

    Raises:
      InputError: the file is missing, damaged, incomplete, or expands to far more than its size.
    """
    for batch in _batches(path):
        for row in _rows(batch):
            # pandas writes NaN where there is nothing.
            yield {name: v for name, v in row.items() if v is not None and v == v}


def read_media_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yields rows as `read_rows`, with a `Cell` for each picture that stands in them.

    A picture without a name goes by the SHA-256 of its bytes, which are read for that.

    Raises:
      InputError: as `read_rows`.
    """
    media, number = _media(path), 0
    for batch in _batches(path):
        for row in _rows(batch):
            found = {name: v for name, v in row.items() if v is not None and v == v}
            cells = {column: _cell(path, column, number, row[column]) for column in media}
            yield found | {column: cell for column, cell in cells.items() if cell is not None}
            number += 1


def _media(path: Path) -> list[str]:
    """Returns the columns of a file that hold pictures."""
    with _opened(path) as (stream, is_parquet):
        if is_parquet:
            schema = TableFile(stream, is_foreign=True).schema
        else:
            schema, _ = _messages(stream)
        return sorted(field.name for field in schema if is_media(field.type))
    raise AssertionError("_opened swallows nothing")


def _cell(path: Path, column: str, row: int, name: str | None) -> Cell | None:
    """Returns where a picture is; None where there is but its name, or nothing."""
    if name is None or not _is_full(str(path), column, row):
        data = read_cell(path, column, row)
        if not data:
            return None
        name = name or sha256_hex(data)
    return Cell(name=name, file=str(path), column=column, row=row)


def read_cell(path: Path, column: str, row: int) -> bytes:
    """Returns the bytes in a row of a column of pictures; none where only a name stands there.

    Raises:
      InputError: as `read_rows`.
    """
    number, first = _group_of(str(path), row)
    return _group(str(path), column, number)[row - first] or b""


@functools.lru_cache(maxsize=REMEMBERED)
def _group(path: str, column: str, number: int) -> tuple[bytes | None, ...]:
    """Returns the bytes of a column in a row group of a Parquet file, or a batch of Arrow's."""
    batches = _batches(Path(path), (column, number))
    return tuple(cell for batch in batches for cell in batch.column(0).field("bytes").to_pylist())


@functools.lru_cache(maxsize=REMEMBERED)
def _is_full_group(path: str, column: str, number: int) -> bool:
    """Tells whether a column surely has a picture in each row of a group."""
    with _opened(Path(path)) as (stream, is_parquet):
        if not is_parquet:
            return False
        return TableFile(stream, is_foreign=True).is_full(number, f"{column}.bytes")
    raise AssertionError("_opened swallows nothing")


def _is_full(path: str, column: str, row: int) -> bool:
    return _is_full_group(path, column, _group_of(path, row)[0])


def _group_of(path: str, row: int) -> tuple[int, int]:
    """Returns the number of the group that a row is in, and the number of the group's first row."""
    first = 0
    for number, rows in enumerate(_group_rows(path)):
        if row < first + rows:
            return number, first
        first += rows
    raise InputError(f"{path}: has no row {row}: it changed while it was read")


@functools.lru_cache(maxsize=REMEMBERED)
def _group_rows(path: str) -> tuple[int, ...]:
    """Returns how many rows each row group of a Parquet file, or batch of an Arrow file, has."""
    with _opened(Path(path)) as (stream, is_parquet):
        if is_parquet:
            return TableFile(stream, is_foreign=True).group_rows
        return tuple(batch.num_rows for batch in _arrow(stream))
    raise AssertionError("_opened swallows nothing")


def _batches(path: Path, cells: tuple[str, int] | None = None) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a file in pieces, without pictures, or those of one column and group."""
    with _opened(path) as (stream, is_parquet):
        yield from (_parquet if is_parquet else _arrow)(stream, cells)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, bool]]:
    """Opens a file, and tells whether it is Parquet.

    Raises:
      InputError: it cannot be read, even if that shows only in the block.
    """
    is_parquet = path.suffix.lower() == ".parquet"
    try:
        with open_seekable(path) as stream:
            yield stream, is_parquet
    except EqforgeError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or clipped(str(error))}") from (
            error
        )
    except Exception as error:  # a damaged file can make readers raise anything
        said = clipped(" ".join(str(error).split()) or type(error).__name__)
        form = "Parquet" if is_parquet else "Arrow"
        raise InputError(f"{path}: cannot be read as {form}: {said}") from error


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    for start in range(0, batch.num_rows, ROWS):
        for row in batch.slice(start, ROWS).to_pylist():
            yield {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    """Returns a value as JSON has it."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        if set(value) == {"path"}:
            return value["path"]
        return {name: _plain(part) for name, part in value.items()}
    return str(value)


def _parquet(stream: BinaryIO, cells: tuple[str, int] | None = None) -> Iterator[pa.RecordBatch]:
    table = TableFile(stream, is_foreign=True)
    if cells is not None:
        column, number = cells
        yield from table.batches(number, [f"{column}.bytes"], ROWS)
        return
    columns = [path for field in table.schema for path in wanted(field)]
    for group in range(table.num_groups):
        yield from table.batches(group, columns, ROWS)


def _messages(stream: BinaryIO) -> tuple[pa.Schema, pa.ipc.MessageReader]:
    """Returns the schema of a stream and what follows it.

    Raises:
      Unreadable: it is cut off, or does not begin with a schema.
    """
    stream.seek(-len(_END), 2)
    if stream.read() != _END:
        raise Unreadable("its end is missing")
    stream.seek(0)
    messages = pa.ipc.MessageReader.open_stream(stream)
    first = next(messages)
    if first.type != "schema":  # of which pyarrow makes a schema that crashes the process
        raise Unreadable("it does not begin with a schema")
    return pa.ipc.read_schema(first), messages


def _arrow(stream: BinaryIO, cells: tuple[str, int] | None = None) -> Iterator[pa.RecordBatch]:
    """Yields the batches of a stream whose last bytes say that it is whole.

    Args:
      stream: the file.
      cells: a column of pictures and the number of the batch to yield with these alone.

    Raises:
      Unreadable: it is cut off, or packed as `datasets` packs nothing.
    """
    schema, messages = _messages(stream)
    names = [field.name for field in schema if wanted(field)]
    if len(set(schema.names)) < len(schema):
        raise Unreadable("two columns of one name")
    for number, message in enumerate(messages):
        if cells is not None and number != cells[1]:
            continue
        if message.type != "record batch" or _is_compressed(message.metadata.to_pybytes()):
            raise Unreadable("it is compressed or has dictionaries; save it again with `datasets`")
        batch = pa.ipc.read_record_batch(message, schema).select(names)
        if batch.num_rows < 0:  # slicing it would end the process
            raise Unreadable("a number of rows below 0")
        batch.validate(full=True)
        if cells is not None:
            yield batch.select([cells[0]])
            return
        batch = pa.RecordBatch.from_arrays([without_bytes(each) for each in batch], names)
        if sum(map(count_values, batch.columns)) > 8 * message.body.size:
            raise Unreadable(f"{batch.num_rows:,} rows in {message.body.size:,} bytes")
        yield batch


def _is_compressed(message: bytes) -> bool:
    """Tells whether the header of a record batch says that its buffers are compressed.

    Source: apache/arrow, `format/Message.fbs`: Message.header is its third field,
    RecordBatch.compression its fourth.
    """
    (root,) = struct.unpack_from("<I", message)
    header = _field(message, root, 2)
    if not header:
        raise Unreadable("a message without a header")
    (offset,) = struct.unpack_from("<I", message, header)
    return bool(_field(message, header + offset, 3))


def _field(data: bytes, table: int, number: int) -> int:
    """Returns where a field of a FlatBuffers table stands; 0 if the table lacks it."""
    (back,) = struct.unpack_from("<i", data, table)
    (length,) = struct.unpack_from("<H", data, table - back)
    if 4 + 2 * number >= length:
        return 0
    (offset,) = struct.unpack_from("<H", data, table - back + 4 + 2 * number)
    return table + offset if offset else 0
