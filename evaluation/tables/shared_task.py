"""The table of rendered ladders: each model's threshold of size, lightness, place and number."""

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
from eqforge.schemas.records.scenes import STEP_SIZE, STEP_UNITS
from eqforge.schemas.tables.combined import PAIRS_NAME

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eqforge.schemas.dataset.reader import Dataset

LADDERS: Final = "graded"
"""The kind of pairs that are steps of a ladder."""

CHOICE: Final = "choice"
"""How often a picture prefers its own caption: one of two, where text asks both pictures."""

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
    title="scores of pairs, and of ladders",
    images=("image_0_id", "image_1_id"),
    captions=("caption_0", "caption_1"),
    cluster="source_id",
    by=("change",),
    judge=judge_as_steps,
)


def shares_scenes(dataset: Dataset) -> bool:
    """Return True if some of a dataset's pairs are steps of ladders.

    Raises:
      InputError: a file is missing or damaged.
    """
    names = set(column_names(dataset, "samples"))
    if not _is_combined(dataset) and not {*_SHARED, *_OWN, *STEPS_TASK.images} <= names:
        return False
    return any(True for _ in _read_steps(dataset))


def shared_report(dataset: Dataset, paths: Sequence[Path], settings: SampleRules) -> Report:
    """Returns the table of some models' scores of rendered pairs, some of them steps of ladders.

    Args:
      dataset: what was scored: rendered pairs, or a combined dataset with some.
      paths: a folder or file of scores for each model.
      settings: how they are judged.

    Raises:
      InputError: see samples_report.
    """
    steps = sorted(_read_steps(dataset), key=lambda each: each.key)
    ladders = _Ladders(steps)
    samples = None
    if _is_combined(dataset) and settings.by in (None, "kind"):
        changes = {each.key: each.change for each in steps}
        samples = read_samples(dataset, settings.cluster or STEPS_TASK.cluster, "kind", changes)
    report = samples_report(dataset, STEPS_TASK, paths, settings, samples, ladders.of)
    return replace(report, notes=(*report.notes, *ladders.notes()))


def _is_combined(dataset: Dataset) -> bool:
    return dataset.manifest.dataset == PAIRS_NAME


@dataclass(frozen=True, kw_only=True, slots=True)
class _Step:
    """A pair of a ladder: the id of its sample, what differs in it, and by how much."""

    key: str
    change: str
    size: float | None


class _Score(msgspec.Struct, frozen=True):
    name: str
    value: float | None


class _Own(msgspec.Struct, frozen=True):
    """What a combined pair keeps of a rendered one as JSON."""

    change: str
    scores: list[_Score] | None


_SHARED: Final = ("sample_id", "kind")
"""Columns that combined pairs have, too."""
_OWN: Final = tuple(field.name for field in msgspec.structs.fields(_Own))


def _read_steps(dataset: Dataset) -> Iterator[_Step]:
    """Yields the pairs of ladders."""
    for row in _rows(dataset):
        if row["kind"] == LADDERS:
            sizes = [score["value"] for score in row["scores"] or () if score["name"] == STEP_SIZE]
            size = round(sizes[0], _DIGITS) if sizes and sizes[0] else None
            yield _Step(key=row["sample_id"], change=row["change"], size=size)


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


class _Ladders:
    """Adds a curve to each change, and the rows of every size.

    Args:
      steps: all pairs of ladders, by id.
    """

    def __init__(self, steps: Sequence[_Step]) -> None:
        steps = [each for each in steps if each.size]
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
