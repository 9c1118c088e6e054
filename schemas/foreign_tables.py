"""Reads tables that any program wrote, Parquet and CSV; memory is bounded by the size of the file.

Parquet holds a text once where many rows have it, and a number that repeats in a few bytes, so a
small file can stand for any amount of memory. Texts stay codes here, and the file says how many
values it has before any is read.
"""

import csv
import io
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from eqforge.schemas.checked import shown
from eqforge.schemas.errors import InputError
from eqforge.schemas.sources import open_plain
from eqforge.schemas.visible import shortened

PER_BYTE: Final = 100
"""Most values, and bytes without compression, that a byte of a Parquet file may stand for. Scores
that are all alike, beside ids that count up, are some ten."""
MIN_VALUES: Final = 1_000_000
MIN_BYTES: Final = 100_000_000
"""So many are always read."""
MAX_REASON_CHARS: Final = 300
_TEXT = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """A column of texts.

    Attributes:
      known: the different texts, in the order of the file.
      codes: for each row the place of its text in `known`, -1 for none [n].
    """

    known: list[str]
    codes: NDArray[np.int32]

    def to_list(self) -> list[str | None]:
        """Returns the text of every row; rows of one text share it."""
        texts: list[str | None] = [*self.known, None]
        return [texts[code] for code in self.codes.tolist()]


def read_parquet(path: Path, columns: Mapping[str, pa.DataType], expected: str) -> dict[str, Any]:
    """Reads columns of a Parquet file.

    Args:
      path: of the file.
      columns: the type of each; `pa.string()` gives Texts, other types an array of them.
      expected: what the file has to have, for messages.

    Raises:
      InputError: the file cannot be read, has not these columns, or more values than a file of its
        size should have.
    """
    texts = [name for name, kind in columns.items() if pa.types.is_string(kind)]
    try:
        with pq.ParquetFile(path, read_dictionary=texts) as parquet:
            _check_size(path, parquet)
            table = parquet.read(list(columns), use_threads=False)
            found = {name: _cast(table.column(name), kind) for name, kind in columns.items()}
    except InputError:
        raise
    except Exception as error:  # readers raise whatever a damaged file brings about
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
        return list(pq.read_schema(path).names)
    except Exception as error:  # as above
        raise InputError(f"{path}: cannot be read as Parquet: {shown(str(error))}") from error


def _check_size(path: Path, parquet: pq.ParquetFile) -> None:
    meta = parquet.metadata
    chunks = (
        meta.row_group(group).column(place)
        for group in range(meta.num_row_groups)
        for place in range(meta.num_columns)
    )
    counts = [(chunk.num_values, chunk.total_uncompressed_size) for chunk in chunks]
    values, unpacked = (sum(part) for part in zip(*counts, strict=True)) if counts else (0, 0)
    size = os.path.getsize(path)
    if values > max(MIN_VALUES, PER_BYTE * size) or unpacked > max(MIN_BYTES, PER_BYTE * size):
        raise InputError(
            f"{path}: announces {values:,} values and {unpacked:,} bytes in {size:,}: more than "
            "any scores have"
        )


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> Texts | pa.Array:
    if not pa.types.is_string(kind):
        return column.cast(kind).combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = column.cast(kind).dictionary_encode()
    whole = column.cast(_TEXT).unify_dictionaries().combine_chunks()
    places: dict[str, int] = {}  # a crafted dictionary may have a text twice, or none
    code_of = [
        -1 if text is None else places.setdefault(text, len(places))
        for text in whole.dictionary.to_pylist()
    ]
    codes = whole.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Texts(list(places), np.array([*code_of, -1], dtype=np.int32)[codes])


def csv_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the rows of a CSV file with a heading.

    Raises:
      InputError: it is no UTF-8, or no CSV; a field has at most 131,072 characters.
    """
    try:
        with io.TextIOWrapper(
            io.BufferedReader(open_plain(path)), encoding="utf-8-sig", newline=""
        ) as stream:
            reader = csv.DictReader(stream)
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
