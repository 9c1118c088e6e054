"""Digests of the rows of a table: some dozen bytes a row, however long the rows are."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.schemas.dataset.reader import Dataset

BATCH_ROWS: Final = 1_000
_BYTES: Final = 16
_COLUMN_BYTES: Final = 8
# MessagePack tells NaN from null and bytes from text, which JSON does not.
_encode = msgspec.msgpack.Encoder(order="deterministic").encode

Digests = NDArray[np.bytes_]
"""Digests of 16 bytes [n]; NumPy compares and sorts them."""


def digest_of(value: Any) -> bytes:
    """Returns 16 bytes for a value of a column, a row or a key; equal values have equal ones."""
    return hashlib.blake2b(_encode(value), digest_size=_BYTES).digest()


def digests(values: Iterable[Any]) -> Digests:
    """Returns the digests of values [n]."""
    return np.array([digest_of(value) for value in values], dtype=f"S{_BYTES}")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RowIndex:
    """The rows of a table in the order of their keys' digests.

    Attributes:
      keys: digests of the keys [n], in ascending order, unique.
      rows: digests of the columns that are compared [n].
      files: the number of the file that each row stands in [n].
    """

    keys: Digests
    rows: Digests
    files: NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, slots=True)
class TableRows:
    """The rows of a dataset's table, read piece by piece.

    Attributes:
      dataset: the dataset.
      table: name of the table.
      key: the columns that tell a row from all others.
      columns: the columns that are compared.
      is_of_pictures: whether `image` holds pictures, whose bytes are not read: their key is the
        SHA-256 of these.
    """

    dataset: Dataset
    table: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    is_of_pictures: bool = False

    @property
    def paths(self) -> list[str]:
        """The files of the table that have rows."""
        return [file.path for file in self.dataset.files(self.table) if file.rows]

    def batches(self, path: str) -> Iterator[pa.RecordBatch]:
        """Yields the keys and the compared columns of a file.

        Raises:
          InputError: the file is missing or damaged, or lacks a column.
        """
        names = dict.fromkeys((*self.key, *self.columns))
        wanted = [_without_bytes(name) if self.is_of_pictures else name for name in names]
        yield from self.dataset.file_batches(path, wanted, BATCH_ROWS)

    def keys_of(self, batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
        """Returns the key of each row."""
        return _rows_of(batch, self.key)

    def index(self, skipped: Collection[str] = ()) -> RowIndex:
        """Reads the table, but for the files whose paths are skipped, into an index.

        Raises:
          InputError: a file is missing or damaged, or two rows have the same key.
        """
        keys, rows, files = [digests(())], [digests(())], [np.zeros(0, dtype=np.int32)]
        for number, path in enumerate(self.paths):
            for batch in () if path in skipped else self.batches(path):
                keys.append(digests(self.keys_of(batch)))
                rows.append(digests(_rows_of(batch, self.columns)))
                files.append(np.full(batch.num_rows, number, dtype=np.int32))
        found = np.concatenate(keys)
        order = np.argsort(found, kind="stable")
        self._check_unique(found[order])
        return RowIndex(
            keys=found[order],
            rows=np.concatenate(rows)[order],
            files=np.concatenate(files)[order],
        )

    def _check_unique(self, keys: Digests) -> None:
        if (keys[1:] == keys[:-1]).any():
            raise InputError(
                f"{self.dataset.folder}: two rows of {self.table} have the same "
                f"{' and '.join(self.key)}; eqforge verify says which"
            )

    def chosen(
        self, keys: Digests, numbers: Iterable[int]
    ) -> Iterator[tuple[NDArray[np.int64], list[tuple[Any, ...]], list[tuple[Any, ...]]]]:
        """Yields the rows of some files whose keys have one of some digests, piece by piece.

        Args:
          keys: digests in ascending order [n].
          numbers: of the files.

        Yields:
          The places of the rows' digests in `keys`, their keys, and their compared columns.
        """
        paths = self.paths
        for number in numbers:
            for batch in self.batches(paths[number]):
                found = digests(self.keys_of(batch))
                places = np.searchsorted(keys, found).clip(max=max(0, len(keys) - 1))
                (rows,) = np.nonzero(keys[places] == found if len(keys) else np.zeros(0))
                part = batch.take(pa.array(rows))
                yield places[rows], self.keys_of(part), _rows_of(part, self.columns)


def column_digests(rows: Sequence[tuple[Any, ...]], columns: int) -> NDArray[np.uint64]:
    """Returns a digest of 8 bytes for every column of some rows [rows, columns]."""
    found = b"".join(
        hashlib.blake2b(_encode(value), digest_size=_COLUMN_BYTES).digest()
        for row in rows
        for value in row
    )
    return np.frombuffer(found, dtype=np.uint64).reshape(len(rows), columns)


def _rows_of(batch: pa.RecordBatch, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    if not columns:
        return [()] * batch.num_rows
    return list(zip(*(batch.column(name).to_pylist() for name in columns), strict=True))


def _without_bytes(name: str) -> str:
    return "image.path" if name == "image" else name
