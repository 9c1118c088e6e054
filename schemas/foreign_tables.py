"""Reads tables that any program wrote, Parquet and CSV; memory is bounded by the size of the file.

Parquet holds a text once where many rows have it, and a number that repeats in a few bytes, so a
small file can stand for any amount of memory. Texts stay codes here, and the pages say how many
values they have before any is read.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eqforge.schemas.checked import shown
from eqforge.schemas.errors import InputError
from eqforge.schemas.page_headers import ANY_WRITERS
from eqforge.schemas.parquet_footer import Footer
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
        with open(path, "rb") as stream:
            footer = Footer(stream, ANY_WRITERS)
            _check_size(path, footer, list(columns))
            table = footer.open(texts).read(list(columns), use_threads=False)
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
        with open(path, "rb") as stream:
            return list(Footer(stream).schema.names)
    except Exception as error:  # as above
        raise InputError(f"{path}: cannot be read as Parquet: {shown(str(error))}") from error


def _check_size(path: Path, footer: Footer, columns: list[str]) -> None:
    groups, leaves = range(footer.metadata.num_row_groups), list(footer.leaves(columns))
    pages = [footer.pages(group, number) for group in groups for number in leaves]
    values = sum(each.values for each in pages)
    unpacked = sum(each.num_bytes + each.dictionary_bytes for each in pages)
    size = footer.num_bytes
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
        with open(path, encoding="utf-8-sig", newline="") as stream:
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
