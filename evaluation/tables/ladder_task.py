"""The table of rendered ladders: each model's threshold of size, lightness, place and number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from eqforge.evaluation.metrics.ties import all_above
from eqforge.evaluation.tables.curves import HOW_FITTED, FittedCurves
from eqforge.evaluation.tables.report import Judged, Measure, Report, Rules, measure
from eqforge.evaluation.tables.sample_judges import SampleTask, Verdict, judge_as_pairs
from eqforge.evaluation.tables.sample_tasks import SampleRules, samples_report
from eqforge.evaluation.tables.samples import EVERYTHING, column_names, read_columns, text_array
from eqforge.generators.scenes.steps import STEP_SIZE, UNITS
from eqforge.schemas.visible import counted

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
    title="scores of pairs, and thresholds of ladders",
    images=("image_0_id", "image_1_id"),
    captions=("caption_0", "caption_1"),
    cluster="source_id",
    by=("change",),
    judge=judge_as_steps,
)


def has_ladders(dataset: Dataset) -> bool:
    """Tells whether some of a dataset's pairs are steps of ladders.

    Raises:
      InputError: a file is missing or damaged.
    """
    if not {"kind", "change", "scores", *STEPS_TASK.images} <= set(
        column_names(dataset, "samples")
    ):
        return False
    return LADDERS in read_columns(dataset, "samples", ["kind"])["kind"]


def ladders_report(dataset: Dataset, paths: Sequence[Path], settings: SampleRules) -> Report:
    """Returns the table of some models' scores of rendered ladders.

    Args:
      dataset: what was scored.
      paths: a folder or file of scores for each model.
      settings: how they are judged.

    Raises:
      InputError: see samples_report.
    """
    ladders = _Ladders(_read_sizes(dataset))
    report = samples_report(dataset, STEPS_TASK, paths, settings, more=ladders.of)
    return replace(report, notes=(*report.notes, *ladders.notes()))


def _read_sizes(dataset: Dataset) -> Mapping[str, tuple[str, float]]:
    """Returns what the steps of ladders change, and by how much, by the ids of samples."""
    found = {}
    for row in dataset.rows("samples", ["sample_id", "change", "kind", "scores"]):
        sizes = [score["value"] for score in row["scores"] if score["name"] == STEP_SIZE]
        if row["kind"] == LADDERS and sizes and sizes[0] is not None and sizes[0] > 0:
            found[row["sample_id"]] = (row["change"], round(sizes[0], _DIGITS))
    return found


class _Ladders:
    """Adds a curve to each change, and the rows of every size.

    Args:
      sizes: what each step changes, and by how much.
    """

    def __init__(self, sizes: Mapping[str, tuple[str, float]]) -> None:
        self._curves = FittedCurves()
        self._units = {change for change, _ in sizes.values()}
        keys = sorted(sizes)
        self._keys = text_array(keys)
        self._changes = text_array([sizes[key][0] for key in keys])
        self._sizes = np.array([sizes[key][1] for key in keys])

    def of(self, model: str, subset: str, judged: Judged, rules: Rules) -> Iterator[Measure]:
        """Yields the curve of one change, and what is measured at each of its sizes."""
        if judged.groups is not None or judged.keys is None:
            return
        place = np.searchsorted(self._keys, judged.keys).clip(max=len(self._keys) - 1)
        is_step = self._keys[place] == judged.keys
        changes = set(self._changes[place[is_step]].tolist())
        if (subset == EVERYTHING and len(self._units) > 1) or len(changes) != 1:
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
        units = ", ".join(
            f"{change} in {unit}" for change, unit in UNITS.items() if change in self._units
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
