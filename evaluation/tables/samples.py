"""A dataset's samples as a table of scores needs them: ids, clusters, subsets."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.visible import counted, shortened, visible
from eqforge.schemas.dataset.reader import Dataset
from eqforge.sources.errata import by_reason, read_errata, unknown, unmatched

EVERYTHING = "all"
MACRO = "macro average"
_LABELS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_boolean)


LONG_CHARS = 256


def text_array(texts: Sequence[str]) -> NDArray[Any]:
    """Return texts as an array [n], of Python objects if one is long, to save memory."""
    longest = max(map(len, texts), default=0)
    return np.array(texts, dtype=object if longest > LONG_CHARS else str)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Samples:
    """The samples of a dataset, in order.

    Attributes:
      keys: ids [n], unique.
      clusters: number of each sample's cluster, such as its video [n].
      subsets: membership mask of each subset [n]; the first is all samples.
    """

    keys: NDArray[Any]
    clusters: NDArray[Any]
    subsets: dict[str, NDArray[np.bool_]]

    def only(self, chosen: NDArray[np.bool_]) -> "Samples":
        return Samples(
            keys=self.keys[chosen],
            clusters=self.clusters[chosen],
            subsets={name: members[chosen] for name, members in self.subsets.items()},
        )

    def without(self, ids: Collection[str]) -> "Samples":
        left = self.only(~np.isin(self.keys, np.array(sorted(ids), dtype=object)))
        subsets = {name: members for name, members in left.subsets.items() if members.any()}
        return replace(left, subsets=subsets)


def read_columns(dataset: Dataset, table: str, columns: Sequence[str]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {name: [] for name in columns}
    for batch in dataset.batches(table, list(columns), 50_000):
        for name in columns:
            found[name] += batch.column(name).to_pylist()
    return found


def sorted_columns(dataset: Dataset, table: str, columns: Sequence[str]) -> dict[str, NDArray[Any]]:
    found = {
        name: np.array(values, dtype=object)
        for name, values in read_columns(dataset, table, columns).items()
    }
    order = np.argsort(found[columns[0]])
    return {name: values[order] for name, values in found.items()}


def read_samples(
    dataset: Dataset, cluster: str, by: str | None, parts: Mapping[str, str] | None = None
) -> Samples:
    schema = dataset.schema("samples")
    if not schema.names:
        raise InputError(f"{dataset.folder} has no samples to measure")
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
    if column not in schema.names:
        raise InputError(
            f"{where}: its samples have no column {column!r}; the columns are "
            f"{', '.join(schema.names)}"
        )
    kind = schema.field(column).type
    if not any(test(kind) for test in _LABELS):
        raise InputError(
            f"{where}: the column {column!r} has the type {shortened(str(kind), 60)}; expected "
            "text or whole numbers"
        )


def make_samples(
    keys: Sequence[str], clusters: Sequence[object], groups: Sequence[object] | None
) -> Samples:
    """Return samples with a subset for each group; clusters of None or "" hold one sample."""
    subsets = {EVERYTHING: np.ones(len(keys), dtype=bool)}
    named = text_array(["(none)" if name is None else str(name) for name in groups or []])
    if len(set(named)) > 1:
        if EVERYTHING in named:
            raise InputError(
                f"the subset name {EVERYTHING!r} is reserved for all samples; rename the subset"
            )
        subsets |= {str(name): named == name for name in np.unique(named)}
    numbers: dict[object, int] = {}
    names = ((row,) if name in (None, "") else name for row, name in enumerate(clusters))
    numbered = [numbers.setdefault(name, len(numbers)) for name in names]
    return Samples(
        keys=text_array(keys), clusters=np.array(numbered, dtype=np.int64), subsets=subsets
    )


def wrong_samples(
    ids: Collection[str], path: Path | None
) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the samples that errata drop or correct, whose scores are void, and notes on them."""
    if path is None:
        return frozenset(), ()
    errata = read_errata(path)
    if lost := unknown(errata, set(ids)):
        raise InputError(f"--errata {path}: {unmatched(lost)}; list only ids of measured samples")
    wrong = [erratum for erratum in errata if erratum.action != "note"]
    wrong_ids = frozenset(erratum.id for erratum in wrong)
    if wrong_ids.issuperset(ids):
        raise InputError(f"--errata {path} leaves no samples to measure")
    notes = [
        visible(f"errata: {counted(count, 'samples')} left out ({action}): {reason}")
        for (action, reason), count in by_reason(wrong).items()
    ]
    return wrong_ids, tuple(notes)
