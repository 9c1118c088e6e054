"""Compare the tables of two datasets: records by their keys, and their columns.

The order of rows and the number of files do not matter. Each table is read at most twice: once for
a digest of every row (some dozen bytes), and once for the files with differing rows.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.schemas.dataset.differences import ChangedRecord, TableDifference
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.columns import holds_pictures
from eqforge.schemas.tables.datasets import table_type

CHANGED_AT_ONCE: Final = 1 << 20
"""Changed records whose columns are compared at a time, 8 bytes each."""

BATCH_ROWS: Final = 1_000
_BYTES: Final = 16
_COLUMN_BYTES: Final = 8
# MessagePack distinguishes NaN from null and bytes from text, which JSON does not.
_encode = msgspec.msgpack.Encoder(order="deterministic").encode

Digests = NDArray[np.bytes_]
"""Digests of 16 bytes [n]; NumPy compares and sorts them."""


def digest_of(value: Any, size: int = _BYTES) -> bytes:
    return hashlib.blake2b(_encode(value), digest_size=size).digest()


def digests(values: Iterable[Any]) -> Digests:
    return np.array([digest_of(value) for value in values], dtype=f"S{_BYTES}")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RowIndex:
    """The rows of a table in the order of their keys' digests.

    Attributes:
      keys: digests of the keys [n], in ascending order, unique.
      rows: digests of the compared columns [n].
      files: the file number of each row [n].
    """

    keys: Digests
    rows: Digests
    files: NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, slots=True)
class TableRows:
    """The rows of a dataset's table, read in pieces.

    Image bytes are not read: their key is their SHA-256.
    """

    dataset: Dataset
    table: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    is_of_pictures: bool = False

    @property
    def paths(self) -> list[str]:
        return [file.path for file in self.dataset.files(self.table) if file.rows]

    def batches(self, path: str) -> Iterator[pa.RecordBatch]:
        renamed = {"image": "image.path"} if self.is_of_pictures else {}
        names = dict.fromkeys((*self.key, *self.columns))
        wanted = [renamed.get(name, name) for name in names]
        yield from self.dataset.file_batches(path, wanted, BATCH_ROWS)

    def keys_of(self, batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
        return _rows_of(batch, self.key)

    def index(self, skipped: Collection[str]) -> RowIndex:
        """Index the table, without the files whose paths are skipped."""
        keys, rows, files = [digests(())], [digests(())], [np.zeros(0, dtype=np.int32)]
        for number, path in enumerate(self.paths):
            for batch in () if path in skipped else self.batches(path):
                keys.append(digests(self.keys_of(batch)))
                rows.append(digests(_rows_of(batch, self.columns)))
                files.append(np.full(batch.num_rows, number, dtype=np.int32))
        found = np.concatenate(keys)
        order = np.argsort(found, kind="stable")
        found = found[order]
        if (found[1:] == found[:-1]).any():
            raise InputError(
                f"{self.dataset.folder}: two rows of {self.table} have the same "
                f"{' and '.join(self.key)}; run eqforge verify for details"
            )
        return RowIndex(
            keys=found, rows=np.concatenate(rows)[order], files=np.concatenate(files)[order]
        )

    def chosen(
        self, keys: Digests, index: RowIndex
    ) -> Iterator[tuple[NDArray[np.int64], list[tuple[Any, ...]], list[tuple[Any, ...]]]]:
        """Yield the rows whose keys have given digests, in pieces.

        Args:
          keys: digests in ascending order [n].

        Yields:
          The positions of the rows' digests in `keys`, their keys, and their compared columns.
        """
        paths = self.paths
        for number in sorted(set(index.files[np.searchsorted(index.keys, keys)].tolist())):
            for batch in self.batches(paths[number]):
                found = digests(self.keys_of(batch))
                places = np.searchsorted(keys, found).clip(max=max(0, len(keys) - 1))
                (rows,) = np.nonzero(keys[places] == found if len(keys) else np.zeros(0))
                part = batch.take(pa.array(rows))
                yield places[rows], self.keys_of(part), _rows_of(part, self.columns)

    def names(self, keys: Digests, index: RowIndex) -> tuple[str, ...]:
        found = self.chosen(keys, index)
        return tuple(sorted(" ".join(name) for _, names, _ in found for name in names))


def _rows_of(batch: pa.RecordBatch, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    if not columns:
        return [()] * batch.num_rows
    return list(zip(*(batch.column(name).to_pylist() for name in columns), strict=True))


def compare_tables(
    a: Dataset, b: Dataset, table: str, only: Collection[str] = (), examples: int = 0
) -> TableDifference:
    """Compare a table of two datasets; files with equal SHA-256 in both manifests are not read.

    Args:
      only: the columns to compare; all common columns if empty.
      examples: maximum number of named records of each kind.
    """
    schemas = [dataset.schema(table) for dataset in (a, b)]
    key = _key(a, b, table)
    has_rows = all(schema.names for schema in schemas)
    names, others = ([n for n in schema.names if not only or n in only] for schema in schemas)
    common = tuple(name for name in names if name in others)
    both = [
        TableRows(
            dataset=dataset,
            table=table,
            key=key,
            columns=tuple(name for name in common if name not in key),
            is_of_pictures=holds_pictures(schema),
        )
        for dataset, schema in zip((a, b), schemas, strict=True)
    ]
    same = _same_files(*both)
    left, right = (rows.index(skipped) for rows, skipped in zip(both, same, strict=True))
    _, of_a, of_b = np.intersect1d(left.keys, right.keys, assume_unique=True, return_indices=True)
    changed = left.keys[of_a[left.rows[of_a] != right.rows[of_b]]]
    removed, added = np.delete(left.keys, of_a), np.delete(right.keys, of_b)
    counts, shown = _changes(both, (left, right), changed, examples)
    unread = sum(file.rows for file in a.files(table) if file.path in same[0])
    kinds = [(name, *(str(schema.field(name).type) for schema in schemas)) for name in common]
    return TableDifference(
        added=len(added),
        removed=len(removed),
        changed=len(changed),
        equal=unread + len(of_a) - len(changed),
        columns=counts,
        only_in_a=tuple(name for name in names if has_rows and name not in common),
        only_in_b=tuple(name for name in others if has_rows and name not in common),
        types={name: (here, there) for name, here, there in kinds if here != there},
        added_examples=both[1].names(added[:examples], right),
        removed_examples=both[0].names(removed[:examples], left),
        changed_examples=shown,
    )


def _key(a: Dataset, b: Dataset, table: str) -> tuple[str, ...]:
    found = {
        dataset.folder: kind.key
        for dataset in (a, b)
        if dataset.files(table) and (kind := table_type(dataset.manifest.dataset, table))
    }
    keys = set(found.values())
    if len(keys) == 1:
        return keys.pop()
    listing = "; ".join(f"{folder}: {', '.join(names)}" for folder, names in found.items())
    problem = f"the two datasets have different key columns ({listing})"
    raise InputError(
        f"{table}: {problem if found else 'neither dataset has this table'}; choose other tables "
        "with --table"
    )


def _same_files(a: TableRows, b: TableRows) -> list[set[str]]:
    files = [
        {f.path: f.sha256 for f in rows.dataset.files(rows.table) if f.rows} for rows in (a, b)
    ]
    shared = set(files[0].values()) & set(files[1].values())
    same = [{path for path, sha256 in of.items() if sha256 in shared} for of in files]
    for rows, paths in zip((a, b), same, strict=True):
        for path in paths:
            with rows.dataset.open_file(path):
                pass  # it is there, as long as the manifest says
    return same


def _changes(
    both: Sequence[TableRows], indexes: Sequence[RowIndex], changed: Digests, examples: int
) -> tuple[dict[str, int], tuple[ChangedRecord, ...]]:
    names = both[0].columns
    counts = np.zeros(len(names), dtype=np.int64)
    shown: list[dict[str, tuple[Any, ...]]] = [{}, {}]
    for start in range(0, len(changed), CHANGED_AT_ONCE):
        keys = changed[start : start + CHANGED_AT_ONCE]
        sides = []
        for rows, index, kept in zip(both, indexes, shown, strict=True):
            side = np.zeros((len(keys), len(names)), dtype=np.uint64)
            for places, records, values in rows.chosen(keys, index):
                found = b"".join(digest_of(v, _COLUMN_BYTES) for row in values for v in row)
                side[places] = np.frombuffer(found, np.uint64).reshape(len(values), len(names))
                for place, record, value in zip(places, records, values, strict=True):
                    if start + place < examples:
                        kept[" ".join(record)] = value
            sides.append(side)
        counts += (sides[0] != sides[1]).sum(axis=0)
    differing = {name: int(count) for name, count in zip(names, counts, strict=True) if count}
    records_shown = []
    for key in sorted(shown[0]):
        pairs = zip(names, shown[0][key], shown[1][key], strict=True)
        differ = {name: (a, b) for name, a, b in pairs if digest_of(a) != digest_of(b)}
        records_shown.append(ChangedRecord(key=key, columns=differ))
    return dict(sorted(differing.items(), key=lambda entry: -entry[1])), tuple(records_shown)
