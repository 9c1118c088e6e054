"""Compares the tables of two datasets: records by their keys, and their columns.

The order of rows and the number of files never count. Each table is read twice at most: once for a
digest of every row, and then the files that hold rows which differ.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.schemas.dataset.differences import ChangedRecord, TableDifference
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.row_index import Digests, RowIndex, TableRows, column_digests
from eqforge.schemas.tables.columns import holds_pictures
from eqforge.schemas.tables.datasets import table_type

CHANGED_AT_ONCE: Final = 1 << 20
"""The columns of so many changed records are compared at a time, with 8 bytes for each."""


def compare_tables(
    a: Dataset, b: Dataset, table: str, only: Collection[str] = (), examples: int = 0
) -> TableDifference:
    """Compares a table of two datasets.

    Files that both have, by the SHA-256 in the manifests, are not read: their records are equal.

    Args:
      a: the first dataset.
      b: the second dataset.
      table: name of the table.
      only: the columns that are compared; all that both have if empty.
      examples: how many records are named of each kind at most.

    Raises:
      InputError: a file is missing or damaged, or the table has another key in each.
    """
    schemas = [dataset.schema(table) for dataset in (a, b)]
    key = _key(a, b, table)
    has_rows = all(schema.names for schema in schemas)
    names = [name for name in schemas[0].names if not only or name in only]
    others = [name for name in schemas[1].names if not only or name in only]
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
    kinds = [(name, *(str(schema.field(name).type) for schema in schemas)) for name in common]
    return _compare(
        both,
        examples,
        only_in_a=tuple(name for name in names if has_rows and name not in common),
        only_in_b=tuple(name for name in others if has_rows and name not in common),
        types={name: (left, right) for name, left, right in kinds if left != right},
    )


def _key(a: Dataset, b: Dataset, table: str) -> tuple[str, ...]:
    """Returns the key of a table; that of the dataset that has it if one lacks it."""
    found = {
        dataset.folder: kind.key
        for dataset in (a, b)
        if dataset.files(table) and (kind := table_type(dataset.manifest.dataset, table))
    }
    keys = set(found.values())
    if len(keys) == 1:
        return keys.pop()
    said = "; ".join(f"{folder}: {', '.join(names)}" for folder, names in found.items())
    raise InputError(
        f"{table}: its records have no common key ({said or 'it is no table of these datasets'}); "
        "name other tables with --table"
    )


def _compare(both: Sequence[TableRows], examples: int, **columns: Any) -> TableDifference:
    same = _same_files(*both)
    a, b = (rows.index(skipped) for rows, skipped in zip(both, same, strict=True))
    _, of_a, of_b = np.intersect1d(a.keys, b.keys, assume_unique=True, return_indices=True)
    differs = a.rows[of_a] != b.rows[of_b]
    changed = a.keys[of_a[differs]]
    removed, added = np.delete(a.keys, of_a), np.delete(b.keys, of_b)
    counts, shown = _changes(both, (a, b), changed, examples)
    unread = sum(f.rows for f in both[0].dataset.files(both[0].table) if f.path in same[0])
    return TableDifference(
        added=len(added),
        removed=len(removed),
        changed=len(changed),
        equal=unread + len(of_a) - len(changed),
        columns=counts,
        added_examples=_names(both[1], b, added[:examples]),
        removed_examples=_names(both[0], a, removed[:examples]),
        changed_examples=shown,
        **columns,
    )


def _same_files(a: TableRows, b: TableRows) -> list[set[str]]:
    """Returns the paths of the files that both tables have, checked to be there, in each."""
    files = [
        {f.path: f.sha256 for f in rows.dataset.files(rows.table) if f.rows} for rows in (a, b)
    ]
    shared = set(files[0].values()) & set(files[1].values())
    same = [{path for path, sha256 in of.items() if sha256 in shared} for of in files]
    for rows, paths in zip((a, b), same, strict=True):
        for path in paths:
            with rows.dataset.open_file(path):
                pass  # as long as the manifest says
    return same


def _changes(
    both: Sequence[TableRows], indexes: Sequence[RowIndex], changed: Digests, examples: int
) -> tuple[dict[str, int], tuple[ChangedRecord, ...]]:
    """Returns how many changed records differ in each column, and the first of them."""
    names = both[0].columns
    counts = np.zeros(len(names), dtype=np.int64)
    shown: list[dict[str, tuple[Any, ...]]] = [{}, {}]
    for start in range(0, len(changed), CHANGED_AT_ONCE):
        part = changed[start : start + CHANGED_AT_ONCE]
        first = examples if start == 0 else 0
        sides = [
            _columns(rows, index, part, first, kept)
            for rows, index, kept in zip(both, indexes, shown, strict=True)
        ]
        counts += (sides[0] != sides[1]).sum(axis=0)
    records = (_changed(key, names, shown[0][key], shown[1][key]) for key in sorted(shown[0]))
    found = {name: int(count) for name, count in zip(names, counts, strict=True) if count}
    return dict(sorted(found.items(), key=lambda entry: -entry[1])), tuple(records)


def _columns(
    rows: TableRows, index: RowIndex, keys: Digests, first: int, kept: dict[str, tuple[Any, ...]]
) -> NDArray[np.uint64]:
    """Returns digests of the columns of the records with some keys; keeps the `first` of them."""
    found = np.zeros((len(keys), len(rows.columns)), dtype=np.uint64)
    for places, names, values in rows.chosen(keys, _files(index, keys)):
        found[places] = column_digests(values, len(rows.columns))
        for place, name, value in zip(places, names, values, strict=True):
            if place < first:
                kept[" ".join(name)] = value
    return found


def _changed(
    key: str, names: Sequence[str], left: tuple[Any, ...], right: tuple[Any, ...]
) -> ChangedRecord:
    differ = (column_digests([left], len(names)) != column_digests([right], len(names)))[0]
    values = zip(names, left, right, differ, strict=True)
    return ChangedRecord(key=key, columns={name: (a, b) for name, a, b, is_so in values if is_so})


def _names(rows: TableRows, index: RowIndex, keys: Digests) -> tuple[str, ...]:
    """Returns the keys with some digests, sorted."""
    found = rows.chosen(keys, _files(index, keys))
    return tuple(sorted(" ".join(name) for _, names, _ in found for name in names))


def _files(index: RowIndex, keys: Digests) -> list[int]:
    """Returns the numbers of the files in which the rows with some keys stand."""
    return sorted(set(index.files[np.searchsorted(index.keys, keys)].tolist()))
