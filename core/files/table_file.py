"""One Parquet file of an untrusted dataset: its size in memory is known before it is read.

A few kilobytes of Parquet can expand to gigabytes: pages that unpack to a thousand times their
length, one long text that every row refers to, a number of values that fills no page. Before a row
group is decoded its page headers are added up and, where rows share dictionary entries, the lengths
of these; past the limits nothing is decoded.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import IO, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import MAX_NAME_CHARS, clipped, name_of
from eqforge.core.files.parquet_footer import Footer
from eqforge.core.files.parquet_layout import ANY_WRITERS, ENCODINGS, BadPages

FREE_BYTES: Final = 128 << 20
MAX_EXPANSION: Final = 100
"""A decoded file may take at most MAX_EXPANSION times its length plus FREE_BYTES."""

MAX_DEPTH: Final = 8
"""The deepest nesting of structs and lists."""

ADVICE: Final = "eqforge verify looks for all damage"
_COUNTED_BYTES: Final = 16 << 20
"""Texts that may take more than this are counted before they are decoded."""

_LENGTH_BYTES: Final = 4
"""Before each value of a plain page stands its length."""

_TYPES: Final = (
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_null,
)
_WIDTHS: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}


class TableFile:
    """An open Parquet file whose footer was read within limits.

    Attributes:
      schema: its columns.
      num_rows: how many rows its footer declares; never more than it has bytes, as every row has an
        id of its own.
      group_rows: the same of each row group.
      num_bytes: its length.
    """

    def __init__(self, stream: IO[bytes], is_foreign: bool = False) -> None:
        """Reads the footer.

        Args:
          stream: the file.
          is_foreign: whether it may have columns and encodings that no dataset has.

        Raises:
          BadPages, OSError, pa.ArrowException: it is damaged or beyond the limits.
        """
        self._footer = Footer(stream, ANY_WRITERS if is_foreign else ENCODINGS)
        self.num_bytes = self._footer.num_bytes
        self._file = self._footer.open()
        self._metadata = self._footer.metadata
        self.schema = self._footer.schema
        if len(set(self.schema.names)) < len(self.schema.names):
            raise BadPages("two columns of one name")
        for field in () if is_foreign else self.schema:
            _check_type(field.type)
        numbers = range(self.num_groups)
        self.group_rows = tuple(self._metadata.row_group(n).num_rows for n in numbers)
        self.num_rows: int = self._metadata.num_rows
        if self.num_rows != sum(self.group_rows) or min([*self.group_rows, self.num_rows]) < 0:
            raise BadPages("its row groups have other rows than it says")
        if self.num_rows > self.num_bytes:
            raise BadPages(f"{self.num_rows} rows in {self.num_bytes} bytes")
        self._decoded = 0

    @property
    def num_groups(self) -> int:
        """How many row groups it has."""
        return int(self._metadata.num_row_groups)

    def is_full(self, number: int, column: str) -> bool:
        """Tells whether the file says that a column has no null in a row group."""
        (leaf,) = self._footer.leaves([column])
        statistics = self._metadata.row_group(number).column(leaf).statistics
        return statistics is not None and statistics.null_count == 0

    def group(self, number: int, columns: Sequence[str] | None) -> pa.Table:
        """Reads columns of a row group.

        Raises:
          BadPages, OSError, pa.ArrowException: it is damaged or beyond the limits.
        """
        self._check(number, columns)
        table = self._file.read_row_group(number, columns)
        table.validate(full=True)
        return table

    def batches(
        self, number: int, columns: Sequence[str] | None, rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yields columns of a row group in pieces; see group."""
        self._check(number, columns)
        for batch in self._file.iter_batches(rows, row_groups=[number], columns=columns):
            batch.validate(full=True)  # that texts are UTF-8
            yield batch

    def places(
        self, number: int, column: str, lengths: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Returns where the values of a column of bytes without nulls begin in the file.

        Args:
          number: of the row group.
          column: the path of the leaf column, such as `image.bytes`.
          lengths: of the values in bytes, int64 [n].

        Returns:
          The first byte of each value, int64 [n].

        Raises:
          BadPages, OSError: they are compressed, encoded or damaged, or of other lengths.
        """
        (leaf,) = self._footer.leaves([column])
        starts, row = [np.zeros(0, np.int64)], 0
        for page in self._footer.plain_pages(number, leaf):
            own = lengths[row : row + page.values]
            # Behind the levels, to the end of the page: each value, its length before it.
            begins = page.start + page.num_bytes - np.cumsum((own + _LENGTH_BYTES)[::-1])[::-1]
            is_short = len(own) < page.values or (len(own) and own.min() < 0)
            if is_short or (len(own) and not page.start <= begins[0]):
                raise BadPages("values of other lengths")
            starts.append(begins + _LENGTH_BYTES)
            row += page.values
        if row < len(lengths):
            raise BadPages("fewer values than rows")
        return np.concatenate(starts)

    def _check(self, number: int, columns: Sequence[str] | None) -> None:
        """Adds up the memory for decoding columns of a row group.

        Raises:
          BadPages: it is too much.
        """
        self._decoded += sum(self._leaf_bytes(number, n) for n in self._footer.leaves(columns))
        self._check_total(self._decoded)

    def _check_total(self, decoded: int) -> None:
        if decoded > FREE_BYTES + MAX_EXPANSION * self.num_bytes:
            raise BadPages(
                f"its {self.num_bytes:,} bytes would take {decoded:,} and more in memory, "
                f"{MAX_EXPANSION} times as much and {FREE_BYTES:,} at the most"
            )

    def _leaf_bytes(self, group: int, number: int) -> int:
        leaf = self._metadata.schema.column(number)
        pages = self._footer.pages(group, number)
        levels = 4 if leaf.max_repetition_level else 0
        if leaf.physical_type != "BYTE_ARRAY":
            width = _WIDTHS.get(leaf.physical_type, leaf.length)
            return pages.num_bytes + pages.values * (width + levels)
        fixed = pages.num_bytes + pages.values * (4 + levels)
        if pages.values * pages.dictionary_bytes <= _COUNTED_BYTES:
            return fixed + pages.values * pages.dictionary_bytes
        self._check_total(fixed + pages.dictionary_bytes)
        return fixed + self._referred_bytes(group, leaf.path)

    def _referred_bytes(self, group: int, path: str) -> int:
        """Returns the total length of a column's texts; each distinct one is loaded once."""
        table = self._footer.open([path]).read_row_group(group, [path])
        return sum(_text_bytes(chunk) for column in table.columns for chunk in column.chunks)


def _check_type(kind: pa.DataType, depth: int = 0) -> None:
    """Refuses types that no dataset has, such as run-end encoded ones.

    Raises:
      BadPages: the type is such a one.
    """
    if depth < MAX_DEPTH and pa.types.is_struct(kind):
        for field in kind:
            _check_type(field.type, depth + 1)
    elif depth < MAX_DEPTH and (pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind)):
        _check_type(kind.value_type, depth + 1)
    elif pa.types.is_dictionary(kind):
        _check_type(kind.value_type, MAX_DEPTH)
    elif not any(test(kind) for test in _TYPES):
        raise BadPages(f"a column of {str(kind)[:MAX_NAME_CHARS]}, which no dataset has")


def _text_bytes(array: pa.Array) -> int:
    """Returns the total length of the texts of a dictionary-encoded column."""
    while not pa.types.is_dictionary(array.type):
        (array,) = array.flatten() if pa.types.is_struct(array.type) else (array.flatten(),)
    lengths = pc.binary_length(array.dictionary).cast(pa.int64())
    return pc.sum(lengths.take(array.indices)).as_py() or 0


_FAULTS = (ValueError, OverflowError, OSError, pa.ArrowException, MemoryError)
# BadPages and UnicodeDecodeError, from names that are not UTF-8, are ValueErrors.


@contextlib.contextmanager
def open_table_file(folder: str, path: str, advice: str = ADVICE) -> Iterator[TableFile]:
    """Opens a Parquet file below a folder; defects are reported in one sentence.

    Args:
      folder: path or URL.
      path: of the file below it; see storage.open_below.
      advice: what to do where the file cannot be read.

    Raises:
      InputError: the file is missing, not a plain file, damaged, or beyond the limits, even if that
        shows only in the block.
    """
    try:
        with storage.open_below(folder, path) as stream:
            yield TableFile(stream)
    except InputError:
        raise
    except _FAULTS as error:
        raise _unreadable(storage.join(folder, path), error, advice) from error


def _unreadable(url: str, error: BaseException, advice: str) -> InputError:
    said = clipped(" ".join(str(error).split()) or type(error).__name__)
    return InputError(f"{url}: cannot be read: {said}; {advice}")


def check_columns(schema: pa.Schema, columns: Sequence[str], url: str) -> None:
    """Checks that a file has columns; pyarrow silently leaves out missing ones.

    Raises:
      InputError: one is missing.
    """
    for name in columns:
        if (first := name.split(".")[0]) not in schema.names:
            raise InputError(
                f"{url}: the column {first!r} is missing; there are "
                f"{', '.join(map(name_of, schema.names[:12])) or 'none'}"
            )
