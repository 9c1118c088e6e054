"""Reads Parquet, CSV and Excel tables of any origin, in memory bounded by the size of the file.

Parquet stores a text shared by many rows once, and a repeated number in a few bytes, so a small
file can expand to any amount of memory. Texts stay dictionary-encoded here, and the page headers
tell the size of the rest before any of it is read. What an Excel file unpacks to is measured first.
"""

import csv
import io
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final
from xml.parsers import expat

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.files.parquet_footer import Footer
from eqforge.core.files.parquet_layout import ANY_WRITERS
from eqforge.core.files.source_file import open_plain
from eqforge.core.visible import shortened

PER_BYTE: Final = 100
"""The most bytes that a byte of a Parquet file may expand to. A file of equal scores and
consecutive ids has about forty."""
MIN_BYTES: Final = 100_000_000
"""Expanded bytes that are always read."""
MIN_CELLS: Final = 1_000_000
"""Cells of a sheet that are always read, empty ones included."""
BATCH_ROWS: Final = 100_000
MAX_REASON_CHARS: Final = 300
_CHUNK_BYTES: Final = 1 << 20
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
        """Returns the text of every row; equal texts are one object."""
        texts: list[str | None] = [*self.known, None]
        return [texts[code] for code in self.codes.tolist()]


def read_parquet(path: Path, columns: Mapping[str, pa.DataType], expected: str) -> dict[str, Any]:
    """Reads columns of a Parquet file.

    Args:
      path: of the file.
      columns: the type of each; `pa.string()` gives Texts, other types an array of them.
      expected: a description of what the file has to have, for messages.

    Raises:
      InputError: the file cannot be read, lacks a column, or expands to far more than its size.
    """
    texts = [name for name, kind in columns.items() if pa.types.is_string(kind)]
    known: dict[str, dict[str, int]] = {name: {} for name in texts}
    parts: dict[str, list[Any]] = {name: [] for name in columns}
    try:
        with open_plain(path) as stream:
            footer = Footer(stream, ANY_WRITERS)
            if lacking := [name for name in columns if name not in footer.schema.names]:
                raise InputError(f"{path}: expected {expected}; there is no {', '.join(lacking)}")
            _check_size(path, footer, list(columns))
            parquet = footer.open(texts)
            for batch in parquet.iter_batches(BATCH_ROWS, columns=list(columns), use_threads=False):
                for name, kind in columns.items():
                    column = batch.column(name)
                    is_text = name in known
                    part = _codes(column, known[name]) if is_text else column.cast(kind)
                    parts[name].append(part)
            found = {
                name: Texts(list(known[name]), np.concatenate([*parts[name], _NO_CODES]))
                if name in known
                else pa.chunked_array(parts[name], kind).combine_chunks()
                for name, kind in columns.items()
            }
    except InputError:
        raise
    except Exception as error:  # a damaged file can make readers raise anything
        said = shortened(" ".join(str(error).split()), MAX_REASON_CHARS)
        raise InputError(
            f"{path}: cannot be read as Parquet with {expected}: {type(error).__name__}: {said}"
        ) from error
    return found


def column_names(path: Path) -> list[str]:
    """Returns the names of a Parquet file's columns.

    Raises:
      InputError: the file cannot be read.
    """
    try:
        with open_plain(path) as stream:
            return list(Footer(stream).schema.names)
    except Exception as error:  # as above
        raise InputError(f"{path}: cannot be read as Parquet: {shown(str(error))}") from error


def _check_size(path: Path, footer: Footer, columns: list[str]) -> None:
    unpacked = taken = 0
    for number in footer.leaves(columns):
        is_text = footer.metadata.schema.column(number).physical_type == "BYTE_ARRAY"
        for group in range(footer.metadata.num_row_groups):
            pages = footer.pages(group, number)
            unpacked += pages.num_bytes + pages.dictionary_bytes
            taken += pages.values * (4 if is_text else 8)
    if max(unpacked, taken) > max(MIN_BYTES, PER_BYTE * footer.num_bytes):
        raise InputError(
            f"{path}: more than {PER_BYTE} bytes come of each of its bytes; no scores have so many "
            "that are alike"
        )


def _codes(column: pa.Array, known: dict[str, int]) -> NDArray[np.int32]:
    """Returns the index of each row's text in `known`, adding new texts to it."""
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    code_of = [
        -1 if text is None else known.setdefault(text, len(known))
        for text in column.dictionary.cast(pa.string()).to_pylist()
    ]
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return np.array([*code_of, -1], dtype=np.int32)[codes]


def csv_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the rows of a CSV file with a header; `.tsv` has tabs.

    Raises:
      InputError: it is missing, not UTF-8 or not CSV, or a field exceeds 131,072 characters.
    """
    try:
        with io.TextIOWrapper(
            io.BufferedReader(open_plain(path)), encoding="utf-8-sig", newline=""
        ) as stream:
            reader = csv.DictReader(stream, delimiter="\t" if path.suffix == ".tsv" else ",")
            names = list(reader.fieldnames or ())
            if len(set(names)) < len(names):
                raise InputError(f"{path}: line 1: two columns of one name")
            yield from reader
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8: {error}") from error
    except csv.Error as error:
        raise InputError(f"{path}: is no CSV: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def xlsx_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the rows of the first sheet of an Excel file, whose first row names the columns.

    No formula is computed: a cell with one has the value that the file says.

    Raises:
      InputError: it is missing or damaged, has no header, or expands to far more than its size.
    """
    from python_calamine import CalamineWorkbook

    try:
        with io.BufferedReader(open_plain(path)) as stream:
            _check_archive(path, stream)
            stream.seek(0)
            rows = iter(CalamineWorkbook.from_filelike(stream).get_sheet_by_index(0).to_python())
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except BaseException as error:
        # A panic of calamine, which is written in Rust, is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise InputError(f"{path}: cannot be read as Excel: {shown(str(error))}") from error
    names = [str(name) for name in next(rows, [])]
    if not names or len(set(names)) < len(names):
        raise InputError(f"{path}: expected a first row with the names of its columns, each once")
    for row in rows:
        yield dict(zip(names, row, strict=True))


def _check_archive(path: Path, stream: BinaryIO) -> None:
    """Unpacks an archive without keeping it, so that nothing in it is larger than it says.

    Readers hold a sheet as a whole, from its first row to its last and as wide as its widest, so
    two cells that stand far apart take the memory of all between them.

    Raises:
      InputError: it is damaged, or expands to far more than its size.
    """
    try:
        with zipfile.ZipFile(stream) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
            if unpacked > max(MIN_BYTES, PER_BYTE * stream.seek(0, io.SEEK_END)):
                raise InputError(f"{path}: more than {PER_BYTE} bytes come of each of its bytes")
            damaged = archive.testzip()
            if damaged is None:
                cells = max((_cells(archive, entry) for entry in _sheets(archive)), default=0)
                if cells > max(MIN_CELLS, unpacked):
                    raise InputError(
                        f"{path}: a sheet is {cells:,} cells large, most of them empty; delete the "
                        "cells that stand far from the table"
                    )
    except InputError:
        raise
    except Exception as error:  # a damaged archive can make the reader raise anything
        raise InputError(f"{path}: is no Excel file: {shown(str(error))}") from error
    if damaged is not None:
        raise InputError(f"{path}: is damaged: {shown(damaged)}")


def _sheets(archive: zipfile.ZipFile) -> Iterator[zipfile.ZipInfo]:
    """Yields what may be a sheet: a workbook may have its sheets anywhere.

    Raises:
      ValueError: the workbook refers to a part that is no `.xml`.
    """
    for entry in archive.infolist():
        name = entry.filename.lower()
        if name.endswith(".xml"):
            yield entry
        elif name.endswith("workbook.xml.rels"):
            _parse(archive, entry, _check_relation)


def _check_relation(name: str, attributes: Mapping[str, str]) -> None:
    target = attributes.get("Target", "")
    if name == "Relationship" and not target.lower().endswith(".xml"):
        raise ValueError(f"its workbook refers to {target}")


def _cells(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> int:
    """Returns rows x columns of a sheet, counted from its first cell; 0 of other parts."""
    row = column = most_rows = most_columns = 0

    def count(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal row, column, most_rows, most_columns
        place = attributes.get("r", "")
        if name == "row":
            row, column = int(place) if place.isdecimal() else row + 1, 0
        elif name == "c":
            letters = place.rstrip("0123456789")
            column = column + 1 if not letters else 0
            for letter in letters.upper():
                column = 26 * column + ord(letter) - ord("A") + 1
            row = int(place[len(letters) :] or row)
        most_rows, most_columns = max(most_rows, row), max(most_columns, column)

    _parse(archive, entry, count)
    return most_rows * most_columns


def _parse(
    archive: zipfile.ZipFile,
    entry: zipfile.ZipInfo,
    start: Callable[[str, Mapping[str, str]], None],
) -> None:
    """Calls `start` with the name, without its prefix, and the attributes of each element."""
    # The encoding is set, as readers of Excel files do not look at the one that a part declares.
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = lambda name, found: start(name.rpartition(":")[2], found)
    parser.StartDoctypeDeclHandler = _no_doctype
    with archive.open(entry) as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            parser.Parse(chunk)
    parser.Parse(b"", True)


def _no_doctype(name: str, *others: object) -> None:
    raise ValueError(f"it declares a document type, {name}")
