"""How samples and rejects of each kind of dataset are shown, and in which order."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from eqforge.core.errors import InputError
from eqforge.evaluation.report import of_rows
from eqforge.evaluation.report.items import Item, Pane, Why, plain
from eqforge.evaluation.report.pictures import Stored
from eqforge.schemas.dataset.profile import Profile
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.vlue import TASK_TABLES

Row = dict[str, Any]
ORDER: Final = ("stage", "reason", "candidate_id")


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A kind of datasets: what an item is called, and the columns it needs.

    Attributes:
      make: returns, for a dataset, a function that turns the rows of an item into the item.
      group: the column whose value the rows of an item share; None if each row is an item.
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
"""A dataset is of the first kind whose first column its samples have, else of the last."""


def kind_of(dataset: Dataset) -> Kind:
    columns = set(dataset.columns("samples"))
    kind = next((each for each in _KINDS if each.needs[0] in columns), _KINDS[-1])
    if lacking := [name for name in ("sample_id", *kind.needs) if columns and name not in columns]:
        raise InputError(f"{dataset.folder}: its samples have no column {lacking[0]!r}")
    return kind


def read_table(dataset: Dataset, table: str, *keys: str) -> pa.Table:
    batches = list(dataset.batches(table, rows=50_000))
    if not batches:
        return pa.table({})
    return pa.Table.from_batches(batches).sort_by([(key, "ascending") for key in keys])


def units_of(samples: pa.Table, group: str | None) -> Iterator[list[Row]]:
    for _, found in itertools.groupby(rows_of(samples), lambda row: row[group or "sample_id"]):
        yield list(found)


def rows_of(table: pa.Table) -> Iterator[Row]:
    for batch in table.to_batches(1_000):
        yield from batch.to_pylist()


def spread_places(total: int, rows: int) -> set[int]:
    """Return up to `rows` evenly spaced indices in `range(total)`, including 0."""
    shown = min(rows, total)
    return {place * total // shown for place in range(shown)}


def some_items(dataset: Dataset, most: int, only: str | None = None) -> list[Item]:
    if not dataset.manifest.num_rows("samples"):
        return []
    kind = kind_of(dataset)
    key = kind.group or "sample_id"
    names: set[str] = set()
    for batch in dataset.batches("samples", list(dict.fromkeys((key, "sample_id"))), 10_000):
        matches = batch if only is None else batch.filter(pc.equal(batch.column("sample_id"), only))
        names.update(matches.column(key).to_pylist())
    places = spread_places(len(names), most)
    chosen = [name for place, name in enumerate(sorted(names)) if place in places]
    found = [
        batch.filter(pc.is_in(batch.column(key), value_set=pa.array(chosen, pa.string())))
        for batch in dataset.batches("samples", rows=10_000)
    ]
    table = pa.Table.from_batches(found).sort_by([(key, "ascending"), ("sample_id", "ascending")])
    make = kind.make(dataset)
    return [make(rows) for rows in units_of(table, kind.group)]


def _frames_of(row: Row) -> tuple[str, ...]:
    if row["reason"] == "frame_rejected":
        return (row["detail"],)
    name = row["candidate_id"]
    return (f"{name}/0", f"{name}/1") if row["reason"] == "image_rejected" else ()


class Kept(Protocol):
    """A build's kept images of rejects, by id."""

    def panes(self, row: Mapping[str, Any]) -> Sequence[Pane]: ...

    def stored(self, rows: Iterable[Row]) -> Iterator[tuple[str, Stored]]: ...

    def pictures(self, rows: Iterable[Row]) -> Iterator[tuple[str, bytes]]: ...


class Whys:
    """Explain why candidates were rejected; for a pair, also why its frame or image was."""

    def __init__(self, dataset: Dataset, rejects: Iterable[Row]) -> None:
        named = {name for row in rejects for name in _frames_of(row)}
        found = dataset.rows("rejects") if named else ()
        self._others = {row["candidate_id"]: row for row in found if row["candidate_id"] in named}

    def words_of(self, row: Row) -> str:
        return f"{row['candidate_id']}  {self.why_of(row)}"

    def why_of(self, row: Row) -> str:
        return ": ".join(filter(None, (_why(row), self.cause_of(row))))

    def cause_of(self, row: Row) -> str:
        """Return why a pair's frame was rejected; empty if the pair itself was rejected."""
        frames = (self._others.get(name) for name in _frames_of(row))
        return "; ".join(_why(other) for other in frames if other is not None)


def _why(row: Row) -> str:
    reason = str(row["reason"])
    if row["value"] is None:
        return f"{reason}  {row['detail']}" if row["detail"] else reason
    limit = "" if row["threshold"] is None else f", limit {row['threshold']:g}"
    return f"{reason}  {row['detail']} {row['value']:g}{limit}"


def of_reject(row: Row, profile: Profile, kept: Kept, whys: Whys) -> Item:
    stage, reason = row["stage"], row["reason"]
    named = ("source_id", row["source_id"]), ("source_path", row["source_path"])
    why = Why(
        stage=stage,
        reason=reason,
        meaning=profile.meaning(stage, reason),
        detail=row["detail"],
        value=row["value"],
        threshold=row["threshold"],
    )
    panes = tuple(kept.panes(row))
    texts = plain(row["detail"]), plain(whys.cause_of(row), "why it was rejected")
    return Item(
        id=row["candidate_id"],
        facts=tuple((name, str(value)) for name, value in named if value),
        panes=panes,
        texts=tuple(text for text in texts if text.plain) if row["value"] is None else (),
        why=why,
        comparable=len(panes) == 2,
        rows=(("rejects", dict(row)),),
    )
