"""The check of `eqforge verify` that every id is of one row, and refers to one that is there."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.combined import COMBINED
from eqforge.schemas.tables.datasets import TYPES, dataset_type
from eqforge.schemas.tables.description import TableType


def check_ids(dataset: Dataset) -> Iterator[str]:
    """Yields a line for every id that is not unique or refers to nothing."""
    kinds = kinds_of(dataset)
    ids = {kind.name: Counter(_keys(dataset, kind)) for kind in kinds}
    yield from _foreign_rows(dataset)
    details = {kind.name: ids[kind.name] for kind in kinds if "sample_id" in kind.references}
    yield from _lacking_details(dataset, details)
    for table, found in ids.items():
        yield from (f"{table}: {name}: {count} rows" for name, count in found.items() if count > 1)
    unused = {kind.name: set(ids[kind.name]) for kind in kinds if kind.holds_pictures}
    for key, other, referred in _references(dataset, kinds):
        unused.get(other.name, set()).discard(referred)
        if referred not in ids.get(other.name, ()):
            yield f"{key}: no {called(other, referred)}"
    for kind in kinds:
        for name in sorted(unused.get(kind.name, ())):
            yield f"{called(kind, name)}: nothing uses it"


def kinds_of(dataset: Dataset) -> list[TableType]:
    """Returns the descriptions of the tables that a dataset has."""
    tables = dataset_type(dataset.manifest.dataset).tables
    return [kind for kind in tables if kind.name in dataset.manifest.tables]


def _keys(dataset: Dataset, kind: TableType) -> Iterator[str]:
    return (_key(kind, row) for row in dataset.rows(kind.name, kind.key))


def _key(kind: TableType, row: Mapping[str, Any]) -> str:
    return " ".join(row[name] for name in kind.key)


def called(kind: TableType, key: str) -> str:
    """Returns what a row of a table is called, such as `image 9f86d081`."""
    singular = kind.name.removesuffix("s")
    return f"{singular} {key}" if kind.holds_pictures else f"row {key} of {kind.name}"


def _foreign_rows(dataset: Dataset) -> Iterator[str]:
    """Yields a line for every sample that names another dataset."""
    name = dataset.manifest.dataset
    own = TYPES if name in COMBINED else {name}
    if "dataset" in dataset.columns("samples"):
        for row in dataset.rows("samples", ["sample_id", "dataset"]):
            if row["dataset"] not in own:
                yield f"sample {row['sample_id']}: is of the dataset {row['dataset']}"


def _lacking_details(dataset: Dataset, details: Mapping[str, Counter[str]]) -> Iterator[str]:
    """Yields a line for every sample that names its task and has no row in the task's table."""
    if "task" in dataset.columns("samples"):
        for row in dataset.rows("samples", ["sample_id", "task"]):
            if row["sample_id"] not in details.get(row["task"], ()):
                yield f"sample {row['sample_id']}: no row of {row['task']}"


def _references(
    dataset: Dataset, kinds: Iterable[TableType]
) -> Iterator[tuple[str, TableType, str]]:
    """Yields (row, other table, key of a row in it) for every reference.

    References into a table that was deleted are yielded, too.
    """
    table = dataset_type(dataset.manifest.dataset).table
    for kind in kinds:
        others = {column: table(name) for column, name in kind.references.items()}
        columns = list(dict.fromkeys((*kind.key, *others)))
        for row in dataset.rows(kind.name, columns) if others else ():
            key = f"{kind.name}: {_key(kind, row)}"
            yield from ((key, other, row[c]) for c, other in others.items() if row[c] is not None)
