"""The table of rendered pairs that share something: ladders, cubes and twins.

Of ladders, each model's threshold of size, lightness, place and number; of cubes, how many have all
edges right; of twins, how often a model answers a pair alike when camera, light or floor differ.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from eqforge.core.visible import counted
from eqforge.evaluation.metrics.ties import all_above
from eqforge.evaluation.tables.curves import HOW_FITTED, FittedCurves
from eqforge.evaluation.tables.report import Judged, Measure, Report, Rules, measure
from eqforge.evaluation.tables.sample_judges import SampleTask, Verdict, judge_as_pairs
from eqforge.evaluation.tables.sample_tasks import SampleRules, samples_report
from eqforge.evaluation.tables.samples import EVERYTHING, column_names, read_samples, text_array
from eqforge.schemas.records.scenes import STEP_SIZE, STEP_SIZES, STEP_UNITS
from eqforge.schemas.tables.combined import PAIRS_NAME

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eqforge.schemas.dataset.reader import Dataset

LADDERS: Final = "graded"
"""The kind of pairs that are steps of a ladder."""

EDGES: Final = 12
"""Of a whole cube."""

CUBES: Final = "cube"
"""The kind of pairs that are edges of a cube."""

CHOICE: Final = "choice"
"""How often a picture prefers its own caption: one of two, where text asks both pictures."""

_WHOLE: Final = ("text", "image", "group")
_SHOWN: Final = ("choice", "text", "image", "group")
_DIGITS: Final = 2
"""Of sizes that are told apart; a spec rounds its numbers."""


def judge_as_steps(
    values: NDArray[np.floating[Any]], quantity: str | None, rules: Rules
) -> Verdict:
    """Judges pairs, and how often a picture prefers its own caption."""
    found = judge_as_pairs(values, quantity, rules)
    scores = values.reshape(-1, 2, 2)
    own = [
        all_above(scores[:, [i], [i]], scores[:, [i], [1 - i]], rules.ties).astype(np.float64)
        for i in (0, 1)
    ]
    credits = {CHOICE: (own[0] + own[1]) / 2, **found.credits}
    return replace(found, credits=credits, chance={**found.chance, CHOICE: 1 / 2})


STEPS_TASK: Final = SampleTask(
    title="scores of pairs, and of what they share",
    images=("image_0_id", "image_1_id"),
    captions=("caption_0", "caption_1"),
    cluster="source_id",
    by=("change",),
    judge=judge_as_steps,
)


def _nominal(change: str, size: float | None) -> int | None:
    """Returns the step of a ladder that a size is nearest to: a twin's camera changes degrees."""
    if size is None or change not in STEP_SIZES:
        return None
    places = np.log(np.array(STEP_SIZES[next(each for each in STEP_SIZES if each == change)]))
    return int(np.abs(places - np.log(size)).argmin())


def shares_scenes(dataset: Dataset) -> bool:
    """Tells whether some of a dataset's pairs are steps of ladders, edges of cubes or twins.

    Raises:
      InputError: a file is missing or damaged.
    """
    names = set(column_names(dataset, "samples"))
    if not _is_combined(dataset) and not {*_SHARED, *_OWN, *STEPS_TASK.images} <= names:
        return False
    return any(each.kind in (LADDERS, CUBES) or each.twin for each in _read_members(dataset))


def shared_report(dataset: Dataset, paths: Sequence[Path], settings: SampleRules) -> Report:
    """Returns the table of some models' scores of rendered pairs that share something.

    Args:
      dataset: what was scored: rendered pairs, or a combined dataset with some.
      paths: a folder or file of scores for each model.
      settings: how they are judged.

    Raises:
      InputError: see samples_report.
    """
    members = _read_members(dataset)
    ladders, groups = _Ladders(members), _Groups(members)

    def more(model: str, subset: str, judged: Judged, rules: Rules) -> Iterator[Measure]:
        yield from ladders.of(model, subset, judged, rules)
        if subset == EVERYTHING:
            yield from groups.of(model, judged, rules)

    samples = None
    if _is_combined(dataset) and settings.by in (None, "kind"):
        changes = {each.key: each.change for each in members if each.kind == LADDERS}
        samples = read_samples(dataset, settings.cluster or STEPS_TASK.cluster, "kind", changes)
    report = samples_report(dataset, STEPS_TASK, paths, settings, samples, more)
    return replace(report, notes=(*report.notes, *ladders.notes(), *groups.notes()))


def _is_combined(dataset: Dataset) -> bool:
    return dataset.manifest.dataset == PAIRS_NAME


@dataclass(frozen=True, kw_only=True, slots=True)
class _Member:
    """A pair that shares something.

    Attributes:
      key: id of the sample.
      source: what it shares with others.
      kind, change: what differs within it.
      said: its captions, and the size of its step: a pair and its twin have the same.
      size: of its step; None where it is none.
      twin: what differs from the pair that it is a twin of; None where it is none.
    """

    key: str
    source: str
    kind: str
    change: str
    said: tuple[object, ...]
    size: float | None
    twin: str | None


class _Parameters(msgspec.Struct, frozen=True):
    twin: str | None = None


class _Score(msgspec.Struct, frozen=True):
    name: str
    value: float | None


class _Generation(msgspec.Struct, frozen=True):
    parameters: str | None


class _Own(msgspec.Struct, frozen=True):
    """What a combined pair keeps of a rendered one as JSON."""

    change: str
    scores: list[_Score] | None
    generation: _Generation | None


_SHARED: Final = ("sample_id", "source_id", "kind", "caption_0", "caption_1")
"""Columns that combined pairs have, too."""
_OWN: Final = tuple(field.name for field in msgspec.structs.fields(_Own))


def _read_members(dataset: Dataset) -> list[_Member]:
    """Returns all rendered pairs, by id."""
    return sorted(map(_member, _rows(dataset)), key=lambda each: each.key)


def _rows(dataset: Dataset) -> Iterator[Mapping[str, Any]]:
    """Yields rendered pairs as their own dataset has them."""
    if not _is_combined(dataset):
        yield from dataset.rows("samples", [*_SHARED, *_OWN])
        return
    for row in dataset.rows("samples", [*_SHARED, "annotation"]):
        # Other pairs have other annotations, which may be any text.
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            own = msgspec.json.decode(row["annotation"], type=_Own)
            yield {**row, **msgspec.to_builtins(own), "kind": row["kind"].rpartition("/")[2]}


def _member(row: Mapping[str, Any]) -> _Member:
    sizes = [score["value"] for score in row["scores"] or () if score["name"] == STEP_SIZE]
    size = round(sizes[0], _DIGITS) if sizes and sizes[0] else None
    return _Member(
        key=row["sample_id"],
        source=row["source_id"],
        kind=row["kind"],
        change=row["change"],
        said=(row["caption_0"], row["caption_1"], _nominal(row["change"], size)),
        size=size,
        twin=_twin((row["generation"] or {}).get("parameters")),
    )


def _twin(parameters: str | None) -> str | None:
    """Returns what differs from the pair that one is a twin of, by the settings of its renderer."""
    try:
        return msgspec.json.decode(parameters or "{}", type=_Parameters).twin
    except (msgspec.DecodeError, RecursionError):  # of another program
        return None


class _Ladders:
    """Adds a curve to each change, and the rows of every size.

    Args:
      members: all pairs, by id.
    """

    def __init__(self, members: Sequence[_Member]) -> None:
        steps = [
            each for each in members if each.kind == LADDERS and each.size and each.twin is None
        ]
        self._curves = FittedCurves()
        self._units = {each.change for each in steps}
        self._keys = text_array([each.key for each in steps])
        self._changes = text_array([each.change for each in steps])
        self._sizes = np.array([each.size for each in steps], dtype=float)

    def of(self, model: str, subset: str, judged: Judged, rules: Rules) -> Iterator[Measure]:
        """Yields the curve of one change, and what is measured at each of its sizes."""
        if judged.groups is not None or judged.keys is None or not len(self._keys):
            return
        place = np.searchsorted(self._keys, judged.keys).clip(max=len(self._keys) - 1)
        is_step = self._keys[place] == judged.keys
        changes = set(self._changes[place[is_step]].tolist())
        if (subset == EVERYTHING and len(self._units) > 1) or len(changes) != 1:
            return
        if subset == EVERYTHING and not is_step.all():
            return
        sizes = np.where(is_step, self._sizes[place], np.nan)
        there = np.unique(sizes[is_step])
        at = sizes[:, None] == there
        if len(there) > 1:
            yield from self._curves.of(model, subset, CHOICE, judged, at, there, rules)
        for number, size in enumerate(there.tolist()):
            part = _part(judged, at[:, number])
            yield from measure(model, f"{changes.copy().pop()} {size:g}", part, rules)[1]

    def notes(self) -> Iterator[str]:
        """Yields what a reader has to know of the fits."""
        if not len(self._keys):
            return
        units = ", ".join(
            f"{change} in {unit}" for change, unit in STEP_UNITS.items() if change in self._units
        )
        yield f"Sizes: {units}. Choice: a picture prefers its own caption."
        yield from HOW_FITTED
        yield f"{counted(len(self._keys), 'steps')} of ladders are in curves."
        yield from self._curves.said


class _Groups:
    """Adds how many cubes are right as a whole, and how often twins are answered alike.

    Args:
      members: all pairs, by id.
    """

    def __init__(self, members: Sequence[_Member]) -> None:
        cubes: dict[str, list[str]] = {}
        for each in members:
            if each.kind == CUBES and each.twin is None:
                cubes.setdefault(each.source, []).append(each.key)
        self._cubes = {source: keys for source, keys in cubes.items() if len(keys) == EDGES}
        self._parts = len(cubes) - len(self._cubes)
        first = {(each.source, each.said): each.key for each in members if each.twin is None}
        self._twins: dict[str, list[tuple[str, str]]] = {}
        for each in members:
            known = first.get((each.source, each.said))
            if each.twin is not None and known is not None:
                self._twins.setdefault(each.twin, []).append((known, each.key))

    def of(self, model: str, judged: Judged, rules: Rules) -> Iterator[Measure]:
        """Yields the shares of whole cubes that are right, and of twins that are answered alike."""
        if judged.keys is None or judged.groups is not None or judged.clusters is None:
            return
        place = {str(key): number for number, key in enumerate(judged.keys)}
        cubes = [
            [place[key] for key in keys]
            for keys in self._cubes.values()
            if all(key in place for key in keys)
        ]
        if cubes:
            whole = {
                f"whole {name}": np.array([judged.credits[name][some].min() for some in cubes])
                for name in _WHOLE
            }
            firsts = np.array([some[0] for some in cubes])
            part = _of_groups(judged, whole, firsts, len(self._cubes))
            yield from measure(model, "cubes", part, rules)[1]
        for twin, pairs in sorted(self._twins.items()):
            both = np.array([(place[a], place[b]) for a, b in pairs if a in place and b in place])
            if len(both):
                alike = {name: _alike(judged, both, name) for name in _WHOLE}
                found = {f"{name} alike": shares for name, shares in alike.items()}
                part = _of_groups(judged, found, both[:, 0], len(pairs))
                yield from measure(model, f"twins, {twin}", part, rules)[1]

    def notes(self) -> Iterator[str]:
        """Yields what a reader has to know of the groups."""
        if self._cubes:
            yield f"{counted(len(self._cubes), 'cubes')}: whole where all their edges are right."
        if self._parts:
            yield f"{counted(self._parts, 'cubes')} without some of their edges: not counted."
        if self._twins:
            number = sum(map(len, self._twins.values()))
            yield f"{counted(number, 'twins')}: alike where pair and twin are both right, or both"
            yield "wrong, by text, image or group. A model that is always wrong answers alike."


def _alike(judged: Judged, both: NDArray[np.int64], name: str) -> NDArray[np.float64]:
    credits = judged.credits[name]
    return (credits[both[:, 0]] == credits[both[:, 1]]).astype(np.float64)


def _of_groups(
    judged: Judged,
    credits: Mapping[str, NDArray[np.float64]],
    firsts: NDArray[np.int64],
    expected: int,
) -> Judged:
    """Returns what is measured of groups, each in the cluster of one of its samples.

    Args:
      judged: the samples.
      credits: of the groups that have all their scores.
      firsts: a sample of each of these.
      expected: how many groups there are, with those whose scores are missing.
    """
    assert judged.clusters is not None
    return Judged(
        credits=credits,
        chance={},
        tied=None,
        clusters=judged.clusters[firsts],
        expected=expected,
    )


def _part(judged: Judged, members: NDArray[np.bool_]) -> Judged:
    """Returns the shares of some of the samples."""
    assert judged.clusters is not None
    return replace(
        judged,
        credits={name: judged.credits[name][members] for name in _SHOWN},
        tied=None if judged.tied is None else judged.tied[members],
        clusters=judged.clusters[members],
        expected=int(members.sum()),
        keys=None,
    )
