"""What a dataset says of its samples that a table of scores needs: ids, clusters, subsets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.schemas.dataset.reader import Dataset

EVERYTHING = "all"
_LABELS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_boolean)


LONG_CHARS = 256


def text_array(texts: Sequence[str]) -> NDArray[Any]:
    """Returns texts as an array [n], of Python objects if one is long.

    With a fixed width, all would take as much memory as the longest.
    """
    longest = max(map(len, texts), default=0)
    return np.array(texts, dtype=object if longest > LONG_CHARS else str)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Samples:
    """The samples of a dataset, in order.

    Attributes:
      keys: their ids [n], unique.
      clusters: number of each sample's cluster, such as its video [n].
      subsets: membership mask of each subset [n]; the first is all samples.
    """

    keys: NDArray[Any]
    clusters: NDArray[Any]
    subsets: dict[str, NDArray[np.bool_]]


def read_columns(dataset: Dataset, table: str, columns: Sequence[str]) -> dict[str, list[Any]]:
    """Reads columns of a table into memory, with None for null.

    Raises:
      InputError: a file is missing or damaged.
    """
    found: dict[str, list[Any]] = {name: [] for name in columns}
    for batch in dataset.batches(table, list(columns), 50_000):
        for name in columns:
            found[name] += batch.column(name).to_pylist()
    return found


def column_names(dataset: Dataset, table: str) -> list[str]:
    """Returns the names of a table's columns; none where the dataset has no such table or no rows.

    Raises:
      InputError: a file is missing or damaged.
    """
    return dataset.columns(table)


def read_samples(
    dataset: Dataset, cluster: str, by: str | None, parts: Mapping[str, str] | None = None
) -> Samples:
    """Reads ids, clusters and subsets of all samples.

    Args:
      dataset: the dataset.
      cluster: the column that names clusters.
      by: the column that names a sample's subset; None for no subsets.
      parts: what part of its subset a sample is of, by ids; the others are of no part.

    Raises:
      InputError: there is no sample, or no such column of texts or whole numbers.
    """
    schema = dataset.schema("samples")
    if not schema.names:
        raise InputError(f"{dataset.folder}: has no samples to measure")
    for name in (cluster, by):
        if name is not None:
            check_label_column(schema, name, dataset.folder)
    wanted = dict.fromkeys(["sample_id", cluster, *([] if by is None else [by])])
    found = read_columns(dataset, "samples", list(wanted))
    groups = None if by is None else list(found[by])
    if groups is not None and parts:
        of = map(parts.get, found["sample_id"])
        groups = [f"{g}/{part}" if part else g for g, part in zip(groups, of, strict=True)]
    return make_samples(found["sample_id"], found[cluster], groups)


def check_label_column(schema: pa.Schema, column: str, where: str) -> None:
    """Checks that a column can name clusters or subsets.

    Raises:
      InputError: there is none of that name, or it holds neither texts nor whole numbers.
    """
    if column not in schema.names:
        raise InputError(
            f"{where}: its samples have no column {column!r}; there are {', '.join(schema.names)}"
        )
    kind = schema.field(column).type
    if not any(test(kind) for test in _LABELS):
        raise InputError(
            f"{where}: the column {column!r} is of {kind}; expected texts or whole numbers, which "
            "name something"
        )


def make_samples(
    keys: Sequence[str], clusters: Sequence[object], groups: Sequence[object] | None
) -> Samples:
    """Returns samples with a subset for each group, where there are several.

    Args:
      keys: ids of the samples.
      clusters: for each its cluster; None for one of its own.
      groups: for each the name of its subset; None for no subsets.

    Raises:
      InputError: a subset has the name of everything.
    """
    subsets = {EVERYTHING: np.ones(len(keys), dtype=bool)}
    named = text_array(["(none)" if name is None else str(name) for name in groups or []])
    if len(set(named)) > 1:
        if EVERYTHING in named:
            raise InputError(f"a subset is called {EVERYTHING!r}, which is what all samples are")
        subsets |= {str(name): named == name for name in np.unique(named)}
    return Samples(keys=text_array(keys), clusters=_numbered(clusters), subsets=subsets)


def _numbered(clusters: Sequence[object]) -> NDArray[np.int64]:
    """Returns a number for each cluster; every None or empty name gets its own."""
    numbers: dict[object, int] = {}
    names = ((row,) if name in (None, "") else name for row, name in enumerate(clusters))
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
