"""The table of graded captions: thresholds and slopes beside the scores of every level."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from eqforge.evaluation.metrics.hard_positives import CHANCE, judge_hard_positives
from eqforge.evaluation.metrics.psychometric import REACHED, Curves, fit_curves
from eqforge.evaluation.metrics.ties import all_above
from eqforge.evaluation.statistics.bootstrap import ENOUGH_CLUSTERS, resample_means
from eqforge.evaluation.statistics.shares import LEVEL, NO_INTERVAL, Interval
from eqforge.evaluation.tables.report import Judged, Measure, Report, Rules, as_measure, measure
from eqforge.evaluation.tables.sample_judges import SampleTask, Verdict
from eqforge.evaluation.tables.sample_tasks import SampleRules, samples_report
from eqforge.evaluation.tables.samples import (
    EVERYTHING,
    column_names,
    read_columns,
    read_samples,
    text_array,
)
from eqforge.schemas.errors import InputError
from eqforge.schemas.visible import counted

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
_MISFIT: Final = 0.02
"""What is right may lie so far off the curve without a note."""


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
        self._said: list[str] = []

    def of(self, model: str, subset: str, judged: Judged, rules: Rules) -> Iterator[Measure]:
        """Yields threshold, slope and the share at the largest size, of each judgement."""
        if judged.groups is not None or judged.keys is None:
            return
        place = self._sizes.of(_FALSE, judged.keys)
        if len(there := np.unique(place[place >= 0])) > 1:
            at, sizes = place[:, None] == there, self._sizes.sizes[there]
            for metric in JUDGED:
                yield from self._curve(model, subset, metric, judged, at, sizes, rules)
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

    def _curve(
        self,
        model: str,
        subset: str,
        metric: str,
        judged: Judged,
        at: NDArray[np.bool_],
        sizes: NDArray[np.float64],
        rules: Rules,
    ) -> Iterator[Measure]:
        right = at * judged.credits[metric][:, None]
        found = resample_means(
            np.column_stack([right, at]),
            judged.clusters,
            seed=(rules.seed, zlib.crc32(subset.encode())),
            resamples=rules.resamples,
        )
        rows = np.vstack([found.values, found.draws]) * len(at)
        hits, asked = np.split(rows, 2, axis=1)
        curves = fit_curves(sizes, hits, asked)
        self._say(f"{model}, {subset}, {metric}", curves)
        if found.clusters >= ENOUGH_CLUSTERS:
            self._say_misfit(f"{model}, {subset}, {metric}", curves, sizes, hits, asked)
        like = as_measure(model, subset, metric, judged, found, 0)
        like = replace(like, unit="number", chance=None, ties=None)
        alone = found.clusters == 1
        for name, values in (("threshold", curves.thresholds), ("slope", curves.slopes)):
            low, high = NO_INTERVAL if alone else _interval(values[1:])
            yield replace(
                like, metric=f"{metric} {name}", value=float(values[0]), low=low, high=high
            )
        shares = curves.share(sizes.max())
        low, high = NO_INTERVAL if alone else _interval(shares[1:])
        yield replace(
            like,
            unit="share",
            metric=f"{metric} at largest",
            value=float(shares[0]),
            low=low,
            high=high,
        )

    def _say(self, where: str, curves: Curves) -> None:
        threshold, slope, smallest, largest = (
            float(values[0])
            for values in (curves.thresholds, curves.slopes, curves.smallest, curves.largest)
        )
        if np.isinf(threshold):
            self._said.append(f"{where}: {REACHED:.0%} is not reached by {largest:.3g}")
        elif threshold == smallest:
            self._said.append(
                f"{where}: {REACHED:.0%} is reached at {smallest:.3g}; the threshold is no larger"
            )
        if np.isinf(slope):
            self._said.append(f"{where}: a step, of which no slope can be told")

    def _say_misfit(
        self,
        where: str,
        curves: Curves,
        sizes: NDArray[np.float64],
        hits: NDArray[np.float64],
        asked: NDArray[np.float64],
    ) -> None:
        """Notes each size at which what was right lies off the curve, in nearly all draws too."""
        for size, right, of in zip(sizes, hits.T, asked.T, strict=True):
            share, fitted = right / np.where(of > 0, of, np.nan), curves.share(size)
            low, high = _interval((share - fitted)[1:], 1 - (1 - LEVEL) / len(sizes))
            if (low > 0 or high < 0) and abs(share[0] - fitted[0]) > _MISFIT:
                self._said.append(
                    f"{where}: the curve does not hold: at {size:.3g} it says {fitted[0]:.1%}, "
                    f"and {share[0]:.1%} are right"
                )

    def notes(self) -> Iterator[str]:
        """Yields what a reader has to know of the fits."""
        yield f"Size: {UNITS[self._distance]}. Threshold: the size of the false edits at which"
        yield f"{REACHED:.0%} are right, by a logistic function of log2 of the size that begins at"
        yield "chance and leaves at most 6 % lapses (Wichmann and Hill 2001), sought between the"
        yield "smallest and the largest size alone. Slope: rise of the log-odds each time the size"
        yield "doubles. Intervals of both, and of the share at the largest, are percentiles."
        if self._sizes.is_uneven and self._by != "levels":
            yield "Ladders have different heights, and the largest sizes are of the high ones"
            yield "alone: --by levels keeps them apart."
        if left_out := int((self._sizes.places[_FALSE] < 0).sum()):
            yield f"{counted(left_out, 'samples')} without a size above 0: in no curve."
        yield from self._said


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


def _interval(draws: NDArray[np.float64], level: float = LEVEL) -> Interval:
    """Returns the bounds of the central `level` of draws that are not NaN, which may be infinite.

    They are NaN where more than half are.
    """
    found = draws[~np.isnan(draws)]
    if 2 * len(found) < len(draws):
        return NO_INTERVAL
    tail = (1 - level) / 2
    low, high = np.quantile(found, [tail, 1 - tail], method="closest_observation")
    return float(low), float(high)
