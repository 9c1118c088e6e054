"""What the rows of a dataset are shown as, and in which order."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eqforge.core.errors import InputError
from eqforge.evaluation.report import of_rows
from eqforge.evaluation.report.items import Item
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.vlue import TASK_TABLES

Row = dict[str, Any]
_ROWS = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A kind of datasets: what an item is called, and the columns it needs.

    Attributes:
      make: returns, for a dataset, what shows the rows of an item.
      group: the column whose value the rows of an item share; None where each row is one.
    """

    thing: str
    needs: tuple[str, ...]
    make: Callable[[Dataset], Callable[[Sequence[Row]], Item]]
    group: str | None = None


def _single(make: Callable[[Row], Item]) -> Callable[[Sequence[Row]], Item]:
    return lambda rows: make(rows[0])


_KINDS: Final = (
    Kind(
        thing="pairs",
        needs=("caption_0", "caption_1", "image_0_id", "image_1_id"),
        make=lambda dataset: _single(of_rows.of_pair),
    ),
    Kind(
        thing="queries",
        needs=(
            *("target_triplet_id", "source_triplet_id", "region_id", "image_id"),
            *("source_word", "target_word"),
        ),
        make=lambda dataset: _single(
            of_rows.queries(dataset.rows("gallery"), dataset.rows("captions"))
        ),
    ),
    Kind(
        thing="items",
        needs=("task", "image", "image_id", "image_1", "image_1_id"),
        make=lambda dataset: _single(
            of_rows.tasks(
                {name: dataset.rows(name) for name in TASK_TABLES}, dataset.rows("findings")
            )
        ),
    ),
    Kind(
        thing="captions",
        needs=(
            *("perturbation", "caption_id", "caption", "perturbed_caption", "applied", "reason"),
            "perturbed_spans",
        ),
        make=lambda dataset: of_rows.of_perturbations,
        group="caption_id",
    ),
    Kind(
        thing="captions",
        needs=("role", "caption_id", "text", "kind"),
        make=lambda dataset: of_rows.of_training,
        group="caption_id",
    ),
    Kind(
        thing="groups",
        needs=("question", "group_id", "image", "image_id", "options", "answer"),
        make=lambda dataset: of_rows.of_questions,
        group="group_id",
    ),
    Kind(thing="captions", needs=("caption",), make=lambda dataset: _single(of_rows.of_texts)),
)
"""The kinds; a dataset is of the first whose first column its samples have."""

_ANY: Final = Kind(thing="rows", needs=(), make=lambda dataset: _single(of_rows.of_any))


def kind_of(dataset: Dataset) -> Kind:
    columns = set(dataset.columns("samples"))
    kind = next((each for each in _KINDS if each.needs[0] in columns), _ANY)
    if lacking := [name for name in ("sample_id", *kind.needs) if columns and name not in columns]:
        raise InputError(f"{dataset.folder}: its samples have no column {lacking[0]!r}")
    return kind


def read_table(dataset: Dataset, table: str, *keys: str) -> pa.Table:
    """Return the rows of a table in the order of some columns, held in memory."""
    batches = list(dataset.batches(table, rows=50_000))
    if not batches:
        return pa.table({})
    return pa.Table.from_batches(batches).sort_by([(key, "ascending") for key in keys])


def units_of(samples: pa.Table, group: str | None) -> Iterator[list[Row]]:
    """Yield the rows of each item, in the order of the table."""
    for _, found in itertools.groupby(rows_of(samples), lambda row: row[group or "sample_id"]):
        yield list(found)


def rows_of(table: pa.Table) -> Iterator[Row]:
    """Yield the rows of a table as dicts, a few of them made at a time."""
    for batch in table.to_batches(_ROWS):
        yield from batch.to_pylist()


def spread_places(total: int, rows: int) -> set[int]:
    """Return at most `rows` places in `range(total)`, at even distances, the first included."""
    shown = min(rows, total)
    return {place * total // shown for place in range(shown)}


def some_items(dataset: Dataset, most: int, only: str | None = None) -> list[Item]:
    """Return at most `most` items spread over a dataset in the order of their ids, or only one."""
    if not dataset.manifest.num_rows("samples"):
        return []
    kind = kind_of(dataset)
    key = kind.group or "sample_id"
    names: set[str] = set()
    for batch in dataset.batches("samples", list(dict.fromkeys((key, "sample_id"))), 10_000):
        some = batch if only is None else batch.filter(pc.equal(batch.column("sample_id"), only))
        names.update(some.column(key).to_pylist())
    places = spread_places(len(names), most)
    chosen = [name for place, name in enumerate(sorted(names)) if place in places]
    found = [
        batch.filter(pc.is_in(batch.column(key), value_set=pa.array(chosen, pa.string())))
        for batch in dataset.batches("samples", rows=10_000)
    ]
    table = pa.Table.from_batches(found).sort_by([(key, "ascending"), ("sample_id", "ascending")])
    make = kind.make(dataset)
    return [make(rows) for rows in units_of(table, kind.group)]
