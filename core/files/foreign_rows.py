"""Rows of Arrow and Parquet files of any origin, read in the sandboxed process of `untrusted`.

Arrow files are IPC streams, as Hugging Face's `datasets` saves them, or IPC files, as polars and
pandas write Feather. Images, videos and sound are structures of bytes and path, or lists of them;
only the path is read, or the position of the bytes. Other columns of bytes are skipped. Class
numbers of Hugging Face's features become class names.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from eqforge.core.errors import InputError
from eqforge.core.files import untrusted
from eqforge.core.files.checked import clipped
from eqforge.core.files.source_file import open_seekable
from eqforge.core.files.untrusted import Unreadable
from eqforge.core.identity import sha256_hex

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS: Final = 1_000
"""Parquet rows decoded at a time."""
_PART_CHARS: Final = 1 << 20
_REMEMBERED: Final = 4
"""Groups of images kept in memory."""
_END: Final = b"\xff\xff\xff\xff\0\0\0\0"
_FILE: Final = b"ARROW1"
_MEDIA: Final = frozenset(("bytes", "path"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """The place of an image in a table.

    Attributes:
        name: the name that the table gives the image, or the SHA-256 of its bytes.
        row: its number in the file, from 0.
        index: position in the row's list of images; None if the column has one image a row.
    """

    name: str
    file: str
    column: str
    row: int
    index: int | None = None

    def read(self) -> bytes:
        """Return the bytes of the image; its neighbours stay in memory for the next calls."""
        key = (self.file, self.column, self.index)
        for known, first, group in list(_groups):
            if known == key and 0 <= self.row - first < len(group):
                return group[self.row - first]
        where = {"column": self.column, "row": self.row, "index": self.index}
        first, *found = _answers(Path(self.file), "cells", **where)
        _groups.append((key, first, [bytes(data) for data in found]))
        return bytes(found[self.row - first])


_groups: deque[tuple[tuple[str, str, int | None], int, list[bytes]]] = deque(maxlen=_REMEMBERED)
"""For each group: file, column and index; its first row; its images."""


def with_names(row: Any) -> Any:
    """Return a row with the names of its images instead of their positions."""

    def named(value: Any) -> Any:
        return value.name if isinstance(value, Cell) else value

    if not isinstance(row, dict):
        return row
    return {
        column: [*map(named, value)] if isinstance(value, list) else named(value)
        for column, value in row.items()
    }


def read_rows(path: Path, *, has_cells: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the rows of an `.arrow` or `.parquet` file as dicts without null values.

    Dates, times and decimals become text, as `str` writes them.

    Args:
        has_cells: return embedded images as `Cell`; by default only their names are read.
    """
    number = 0
    for part in _answers(path, "rows", has_cells=has_cells):
        for row, pictures in json.loads(bytes(part)):
            for column, named in pictures.items():
                cell = partial(Cell, file=str(path), column=column, row=number)
                if isinstance(named, list):
                    row[column] = [cell(name=name, index=i) for i, name in enumerate(named)]
                else:
                    row[column] = cell(name=named)
            yield row
            number += 1


def _answers(path: Path, reader: str, **arguments: Any) -> Iterator[Any]:
    is_parquet = path.suffix.lower() == ".parquet"
    try:
        with open_seekable(path) as stream:
            yield from untrusted.read(
                f"{__name__}:{reader}", stream, is_parquet=is_parquet, **arguments
            )
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or clipped(str(error))}") from (
            error
        )
    except Unreadable as error:
        form = "Parquet" if is_parquet else "Arrow"
        raise InputError(f"{path}: cannot be read as {form}: {clipped(str(error))}") from error


# The functions below run in the child.


def rows(stream: IO[bytes], is_parquet: bool, has_cells: bool) -> Iterator[memoryview]:
    """Yield JSON arrays of pairs: a row, and the names of its images by column."""
    part, size = [], 0
    for schema, batch in _parquet(stream, has_cells) if is_parquet else _arrow(stream):
        classes = _classes(schema)
        media_columns = [f.name for f in schema if _is_media(f.type) and f.type.num_fields > 1]
        for row in _rows_of(batch, media_columns if has_cells else [], classes, has_cells):
            part.append(json.dumps(row))
            size += len(part[-1])
            if size > _PART_CHARS:
                yield memoryview(f"[{','.join(part)}]".encode())
                part, size = [], 0
    yield memoryview(f"[{','.join(part)}]".encode())


def cells(
    stream: IO[bytes], is_parquet: bool, column: str, row: int, index: int | None
) -> Iterator[Any]:
    """Yield the first row of the row group that holds `row`, then the image of each row in it.

    Args:
        index: image to take from a list; rows with shorter lists yield an empty value.
    """
    first = 0
    for count, batches in _groups_of(stream, is_parquet, column):
        if row < first + count:
            yield first
            for batch in batches:
                for value in batch.column(0):
                    found = value.as_py() or {}
                    if index is not None:
                        found = found[index] if index < len(found) else {}
                    yield memoryview((found or {}).get("bytes") or b"")
            return
        first += count
    raise Unreadable(f"row {row} is missing, because the file changed while it was read")


def _groups_of(
    stream: IO[bytes], is_parquet: bool, column: str
) -> Iterator[tuple[int, "Iterable[pa.RecordBatch]"]]:
    """Yield the number of rows of each Parquet row group or Arrow batch, and one column of them."""
    if not is_parquet:
        yield from ((batch.num_rows, [batch.select([column])]) for _, batch in _arrow(stream))
        return
    from eqforge.core.files.table_file import open_parquet

    opened = open_parquet(stream)
    for number in range(opened.num_row_groups):
        is_list = _is_media_list(opened.schema_arrow.field(column).type)
        columns = [column if is_list else f"{column}.bytes"]
        batches = opened.iter_batches(_ROWS, [number], columns, use_threads=False)
        yield opened.metadata.row_group(number).num_rows, batches


def _parquet(stream: IO[bytes], has_cells: bool) -> "Iterator[tuple[pa.Schema, pa.RecordBatch]]":
    from eqforge.core.files.table_file import has_no_null, open_parquet

    opened = open_parquet(stream)
    schema = opened.schema_arrow
    _check_names(schema)
    _check_rows(opened.metadata.num_rows, stream)
    for number in range(opened.num_row_groups):
        columns = []
        for field in schema:
            if not _is_media(field.type):
                is_read = _is_media_list(field.type) or not _holds_bytes(field.type)
                columns += [field.name] if is_read else []
                continue
            path, data = f"{field.name}.path", f"{field.name}.bytes"
            columns.append(path)
            if field.type.num_fields == 1:  # a path alone, which names a file
                continue
            if has_cells and not all(has_no_null(opened, number, each) for each in (path, data)):
                columns.append(data)  # else each row has an image with a name
        for batch in opened.iter_batches(_ROWS, [number], columns, use_threads=False):
            yield schema, batch


def _arrow(stream: IO[bytes]) -> "Iterator[tuple[pa.Schema, pa.RecordBatch]]":
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())  # others reserve address space for nothing
    stream.seek(0)
    if stream.read(len(_FILE)) == _FILE:
        file = pa.ipc.open_file(stream)
        schema, batches = file.schema, map(file.get_batch, range(file.num_record_batches))
    else:
        stream.seek(-len(_END), 2)
        if stream.read() != _END:
            raise Unreadable("the file is truncated")
        stream.seek(0)
        batches = pa.ipc.open_stream(stream)
        schema = batches.schema
    _check_names(schema)
    read = (_is_media, _is_media_list, lambda kind: not _holds_bytes(kind))
    names = [f.name for f in schema if any(test(f.type) for test in read)]
    count = 0
    for batch in batches:
        count += batch.num_rows
        _check_rows(count, stream)
        batch.validate(full=True)
        yield schema, batch.select(names)


def _check_names(schema: "pa.Schema") -> None:
    if len(set(schema.names)) < len(schema.names):
        raise Unreadable("two columns have the same name")


def _check_rows(count: int, stream: IO[bytes]) -> None:
    place = stream.tell()
    size = stream.seek(0, 2)
    stream.seek(place)
    if not 0 <= count <= size:
        raise Unreadable(f"its metadata lists {count:,} rows, but the file has only {size:,} bytes")


def _is_media(kind: "pa.DataType") -> bool:
    """Return True if a column holds images, videos or sound, or only their paths."""
    import pyarrow as pa

    return pa.types.is_struct(kind) and {field.name for field in kind} in ({"path"}, _MEDIA)


def _is_media_list(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    types = pa.types
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return is_list and _is_media(kind.value_type)


def _holds_bytes(kind: "pa.DataType", depth: int = 0) -> bool:
    import pyarrow as pa

    if depth > 8:
        raise Unreadable("a column contains lists that are nested too deeply")
    types = pa.types
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return True
    return types.is_fixed_size_binary(kind) or any(
        _holds_bytes(kind.field(n).type, depth + 1) for n in range(kind.num_fields)
    )


def _classes(schema: "pa.Schema") -> dict[str, list[str]]:
    """Return the class names of each column that Hugging Face's features call a ClassLabel."""
    try:
        features = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
        return {
            name: list(map(str, feature["names"]))
            for name, feature in features.items()
            if isinstance(feature, dict) and feature.get("_type") == "ClassLabel"
        }
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return {}


def _rows_of(
    batch: "pa.RecordBatch",
    media_columns: Sequence[str],
    classes: Mapping[str, Sequence[str]],
    has_cells: bool,
) -> Iterator[tuple[Mapping[str, Any], dict[str, Any]]]:
    from pyarrow.compute import struct_field

    media = {field.name: field.type for field in batch.schema if _is_media(field.type)}
    values = {
        name: (struct_field(batch.column(name), "path") if name in media else batch.column(name))
        for name in batch.schema.names
    }
    several = [field.name for field in batch.schema if _is_media_list(field.type)]
    lists = {n: column.to_pylist() for n, column in values.items() if n not in several}
    data = {
        name: struct_field(batch.column(name), "bytes")
        for name, kind in media.items()
        if kind.num_fields > 1
    }
    for number in range(batch.num_rows):
        found = {name: _plain(column[number]) for name, column in lists.items()}
        # pandas writes NaN where there is nothing.
        row = {name: v for name, v in found.items() if v is not None and v == v}
        for name in classes.keys() & row.keys():
            if isinstance(row[name], int) and 0 <= row[name] < len(classes[name]):
                row[name] = classes[name][row[name]]
        pictures: dict[str, Any] = {}
        for name in several:
            parts = [part or {} for part in values[name][number].as_py() or []]
            contents = [part.get("bytes") or b"" for part in parts]
            row[name] = [
                part.get("path") or sha256_hex(content)
                for part, content in zip(parts, contents, strict=True)
            ]
            if any(contents) and has_cells:
                pictures[name] = row[name]
        for name in media_columns:
            content = data[name][number].as_py() if name in data else b""
            if content or name not in data:
                pictures[name] = row.get(name) or sha256_hex(content)
        yield row, pictures


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return str(value)
