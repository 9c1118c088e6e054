"""Read Parquet, CSV and Excel tables of any origin, in memory bounded by the file's size."""

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
import numpy as np
import pyarrow as pa
from more_itertools import batched
from numpy.typing import NDArray

from eqforge.core.errors import InputError, readable
from eqforge.core.files import untrusted
from eqforge.core.files.checked import clipped
from eqforge.core.files.source_file import open_plain
from eqforge.core.files.table_file import TableFile
from eqforge.core.files.untrusted import Unreadable
from eqforge.core.visible import series, shortened

BATCH_ROWS: Final = 100_000
MAX_REASON_CHARS: Final = 300
_SHEET, _SHEET_ROWS, _CELLS = f"{__name__}:sheet", 1_000, (str, float, int, bool)
_NO_CODES = np.empty(0, dtype=np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """A column of texts.

    Attributes:
      known: the distinct texts, in the order of the file.
      codes: the index in `known` of each row's text, -1 for null, [rows].
    """

    known: list[str]
    codes: NDArray[np.int32]

    def to_list(self) -> list[str | None]:
        texts: list[str | None] = [*self.known, None]
        return [texts[code] for code in self.codes.tolist()]


def read_parquet(path: Path, columns: Mapping[str, pa.DataType], expected: str) -> dict[str, Any]:
    """Read columns of a Parquet file; `pa.string()` gives Texts, other types an array.

    Args:
        expected: what the file must have, for messages.
    """
    known: dict[str, dict[str, int]] = {n: {} for n in columns if pa.types.is_string(columns[n])}
    parts: dict[str, list[Any]] = {name: [] for name in columns}
    try:
        with open_plain(path) as stream:
            table = TableFile(stream, is_foreign=True)
            if lacking := [name for name in columns if name not in table.schema.names]:
                names = series(map(repr, lacking), "or")
                raise InputError(f"{path} has no column {names}; expected {expected}")
            for batch in table.batches(None, list(columns), BATCH_ROWS):
                for name, kind in columns.items():
                    column = batch.column(name)
                    is_text = name in known
                    part = _codes(column, known[name]) if is_text else column.cast(kind)
                    parts[name].append(part)
            return {
                name: Texts(list(known[name]), np.concatenate([*parts[name], _NO_CODES]))
                if name in known
                else pa.chunked_array(parts[name], kind).combine_chunks()
                for name, kind in columns.items()
            }
    except InputError:
        raise
    except Exception as error:  # a damaged file can make readers raise anything
        reason = shortened(" ".join(str(error).split()), MAX_REASON_CHARS).rstrip(".")
        raise InputError(
            f"{path}: cannot be read: {reason}. Expected a Parquet file with {expected}."
        ) from error


def column_types(path: Path) -> dict[str, pa.DataType]:
    try:
        with open_plain(path) as stream:
            schema = TableFile(stream, is_foreign=True).schema
            return dict(zip(schema.names, schema.types, strict=True))
    except Exception as error:  # as above
        reason = clipped(" ".join(str(error).split()))
        raise InputError(f"{path}: cannot be read as Parquet: {reason}") from error


def _codes(column: pa.Array, known: dict[str, int]) -> NDArray[np.int32]:
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    code_of = [
        -1 if text is None else known.setdefault(text, len(known))
        for text in column.dictionary.cast(pa.string()).to_pylist()
    ]
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return np.array([*code_of, -1], dtype=np.int32)[codes]


def csv_rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with (
            readable(path),
            io.TextIOWrapper(
                io.BufferedReader(open_plain(path)), encoding="utf-8-sig", newline=""
            ) as stream,
        ):
            reader = csv.DictReader(stream, delimiter="\t" if path.suffix == ".tsv" else ",")
            names = list(reader.fieldnames or ())
            if len(set(names)) < len(names):
                raise InputError(f"{path}: line 1: two columns have the same name")
            yield from reader
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8: {error}") from error
    except csv.Error as error:
        raise InputError(f"{path} is not valid CSV: {error}") from error


def xlsx_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of the first sheet of an Excel file, whose first row names the columns.

    Formulas are not computed; the value stored in the file is used.
    """
    try:
        with readable(path), open_plain(path) as stream:
            parts = list(untrusted.read(_SHEET, stream))
    except Unreadable as error:
        raise InputError(f"{path}: cannot be read as Excel: {clipped(str(error))}") from error
    rows: Iterator[list[Any]] = (row for part in parts for row in msgspec.json.decode(part))
    names = [str(name) for name in next(rows, [])]
    if not names or len(set(names)) < len(names):
        raise InputError(f"{path}: expected a header row with distinct column names")
    for row in rows:
        yield dict(zip(names, row, strict=True))


def sheet(stream: BinaryIO) -> Iterator[memoryview]:
    """Yield the rows of the first sheet of an Excel file in pieces; runs in the child."""
    from python_calamine import CalamineWorkbook

    try:
        rows = CalamineWorkbook.from_filelike(stream).get_sheet_by_index(0).to_python()
        for batch in batched(rows, _SHEET_ROWS):
            plain = [[c if type(c) in _CELLS else str(c) for c in row] for row in batch]
            yield memoryview(msgspec.json.encode(plain))
    except BaseException as error:  # a panic of calamine, which is written in Rust
        if type(error).__name__ != "PanicException":
            raise
        raise Unreadable(str(error)) from error
