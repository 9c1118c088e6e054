"""The table of graded captions: thresholds and slopes beside the scores of every level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.visible import counted
from eqforge.evaluation.metrics.hard_positives import CHANCE, judge_hard_positives
from eqforge.evaluation.metrics.ties import all_above
from eqforge.evaluation.tables.curves import HOW_FITTED, FittedCurves
from eqforge.evaluation.tables.report import Judged, Measure, Report, Rules, measure
from eqforge.evaluation.tables.sample_judges import SampleTask, Verdict
from eqforge.evaluation.tables.sample_tasks import SampleRules, samples_report
from eqforge.evaluation.tables.samples import (
    EVERYTHING,
    column_names,
    read_columns,
    read_samples,
    text_array,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eqforge.schemas.dataset.reader import Dataset

DistanceName = Literal["level", "words", "characters", "embedding", "entailment"]
UNITS: Final[Mapping[DistanceName, str]] = {
    "level": "number of edits",
    "words": "words that the edits change",
    "characters": "characters that the edits change",
    "embedding": "one minus the cosine of the captions' vectors",
    "entailment": "one minus the probability that the text follows from the caption",
}
JUDGED: Final = ("original", "reworded")
"""What curves are fitted to: the caption above the false text, and its rewording above it."""

_FALSE, _TRUE = "hard_negative", "hard_positive"
_SIDES: Final = (
    ("false edits", _FALSE, ("original", "reworded", "false edit drop")),
    ("rewordings", _TRUE, ("rewording drop", "rewording change")),
)
"""The texts: what they are called, their columns, and what is measured at each of their sizes."""

_MOST_PLACES: Final = 12
_BINS: Final = 8


def judge_as_graded(
    values: NDArray[np.floating[Any]], quantity: str | None, rules: Rules
) -> Verdict:
    """Judges levels as hard positives are, and says how the score moves with either edit."""
    del quantity
    found = judge_hard_positives(values, rules.ties)
    caption, positive, negative = values.astype(np.float64).T
    moved = {
        "false edit drop": caption - negative,
        "rewording drop": caption - positive,
        "rewording change": np.abs(caption - positive),
    }
    return Verdict(
        credits={
            "original": found.original,
            "reworded": all_above(values[:, [1]], values[:, [2]], rules.ties),
            "augmented": found.augmented,
            "brittleness": found.brittleness,
            **moved,
        },
        tied=found.tied,
        chance=CHANCE | {"reworded": CHANCE["original"]},
        units=dict.fromkeys(moved, "number"),
    )


GRADED: Final = SampleTask(
    title="thresholds, slopes, and scores by the number of edits",
    images=("image_id",),
    captions=("caption", "hard_positive", "hard_negative"),
    cluster="image",
    by=("level",),
    judge=judge_as_graded,
)


def is_graded(dataset: Dataset) -> bool:
    """Tells whether a dataset's samples are levels of ladders.

    Raises:
      InputError: a file is missing or damaged.
    """
    wanted = {"level", "levels", "hard_negative_words", *GRADED.captions}
    return wanted <= set(column_names(dataset, "samples"))


def graded_report(
    dataset: Dataset, paths: Sequence[Path], settings: SampleRules, distance: DistanceName
) -> Report:
    """Returns the table of some models' scores of ladders.

    Args:
      dataset: what was scored.
      paths: a folder or file of scores for each model.
      settings: how they are judged.
      distance: what the size of a change is measured in.

    Raises:
      InputError: the dataset has no such distances, or see samples_report.
    """
    if distance != "level" and settings.by is None:
        samples = read_samples(dataset, settings.cluster or GRADED.cluster, None)
    else:
        samples = None
    fits = _Fits(_read_sizes(dataset, distance), distance, settings.by)
    report = samples_report(dataset, GRADED, paths, settings, samples, fits.of)
    return replace(report, notes=(*report.notes, *fits.notes()))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Sizes:
    """The sizes of changes, those that there are, or, of many, so many bins of them.

    Attributes:
      keys: ids of the samples, sorted [n].
      places: for each text the number of each sample's size [n]; -1 where it has none above 0.
      sizes: what the curve is fitted to, those of the false edits or their means [k], ascending;
        NaN where no false edit has that size.
      names: of the sizes.
      is_uneven: whether ladders have different heights.
    """

    keys: NDArray[Any]
    places: Mapping[str, NDArray[np.int64]]
    sizes: NDArray[np.float64]
    names: Sequence[str]
    is_uneven: bool

    def of(self, side: str, keys: NDArray[Any]) -> NDArray[np.int64]:
        """Returns the number of the size of a text of each of some samples."""
        return self.places[side][np.searchsorted(self.keys, keys)]


def _read_sizes(dataset: Dataset, distance: DistanceName) -> _Sizes:
    columns = {
        side: distance if distance == "level" else f"{side}_{distance}" for side in (_FALSE, _TRUE)
    }
    wanted = ["sample_id", "levels", *dict.fromkeys(columns.values())]
    found = read_columns(dataset, "samples", wanted)
    order = np.argsort(text_array(found["sample_id"]))
    values = {side: np.array(found[name], dtype=float)[order] for side, name in columns.items()}
    if distance == "entailment":
        values = {side: 1 - of_side for side, of_side in values.items()}
    there = np.concatenate([of_side[of_side > 0] for of_side in values.values()])
    if not len(there):
        raise InputError(
            f"--distance {distance}: the samples of {dataset.folder} have none; "
            f"eqforge build graded-captions --{distance} MODEL measures it"
        )
    starts = np.unique(there)  # each bin holds the sizes from its start to the next
    if len(starts) > _MOST_PLACES:
        parts = np.arange(_BINS) / _BINS
        starts = np.unique(np.quantile(there, parts, method="lower"))
    places = {
        side: np.where(of_side > 0, np.searchsorted(starts, of_side, side="right") - 1, -1)
        for side, of_side in values.items()
    }
    bins = [there[np.searchsorted(starts, there, "right") - 1 == k] for k in range(len(starts))]
    members = [values[_FALSE][places[_FALSE] == number] for number in range(len(starts))]
    return _Sizes(
        keys=text_array(found["sample_id"])[order],
        places=places,
        sizes=np.array([np.exp(np.log(np.sort(m)).mean()) if len(m) else np.nan for m in members]),
        names=[_range(float(part.min()), float(part.max())) for part in bins],
        is_uneven=len(set(found["levels"])) > 1,
    )


def _range(least: float, most: float) -> str:
    return f"{least:.3g}" if least == most else f"{least:.3g} to {most:.3g}"


class _Fits:
    """Adds to each subset a curve, and to all samples the rows of every size of either text.

    Args:
      sizes: of the changes.
      distance: what they are measured in.
      by: the column of the subsets; None for the level or none.
    """

    def __init__(self, sizes: _Sizes, distance: DistanceName, by: str | None) -> None:
        self._sizes, self._distance, self._by = sizes, distance, by
        self._curves = FittedCurves()

    def of(self, model: str, subset: str, judged: Judged, rules: Rules) -> Iterator[Measure]:
        """Yields threshold, slope and the share at the largest size, of each judgement."""
        if judged.groups is not None or judged.keys is None:
            return
        place = self._sizes.of(_FALSE, judged.keys)
        if len(there := np.unique(place[place >= 0])) > 1:
            at, sizes = place[:, None] == there, self._sizes.sizes[there]
            for metric in JUDGED:
                yield from self._curves.of(model, subset, metric, judged, at, sizes, rules)
        if subset == EVERYTHING and self._distance != "level":
            yield from self._by_size(model, judged, rules)

    def _by_size(self, model: str, judged: Judged, rules: Rules) -> Iterator[Measure]:
        """Yields what is measured of false edits, and of rewordings, of each size."""
        assert judged.keys is not None
        for called, side, metrics in _SIDES:
            place = self._sizes.of(side, judged.keys)
            for number, name in enumerate(self._sizes.names):
                if (members := place == number).any():
                    part = _part(judged, members, metrics)
                    yield from measure(model, f"{called}, {name}", part, rules)[1]

    def notes(self) -> Iterator[str]:
        """Yields what a reader has to know of the fits."""
        yield f"Size: {UNITS[self._distance]}, of the false edits."
        yield from HOW_FITTED
        if self._sizes.is_uneven and self._by != "levels":
            yield "Ladders have different heights, and the largest sizes are of the high ones"
            yield "alone: --by levels keeps them apart."
        if left_out := int((self._sizes.places[_FALSE] < 0).sum()):
            yield f"{counted(left_out, 'samples')} without a size above 0: in no curve."
        yield from self._curves.said


def _part(judged: Judged, members: NDArray[np.bool_], metrics: Sequence[str]) -> Judged:
    """Returns some metrics of some of the samples."""
    assert judged.clusters is not None
    return replace(
        judged,
        credits={name: judged.credits[name][members] for name in metrics},
        tied=None if judged.tied is None else judged.tied[members],
        clusters=judged.clusters[members],
        expected=int(members.sum()),
        keys=None,
    )
