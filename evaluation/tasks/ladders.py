"""The table of ladders of rendered pairs: the smallest change that a model sees."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from eqforge.core.visible import counted
from eqforge.evaluation.metrics.pairs import PAIR_METRICS, choice
from eqforge.evaluation.metrics.psychometric import REACHED, Curves, fit_curves
from eqforge.evaluation.metrics.ties import Metric
from eqforge.evaluation.statistics.bootstrap import ENOUGH_CLUSTERS, resample_means
from eqforge.evaluation.statistics.shares import LEVEL, NO_INTERVAL, Interval
from eqforge.evaluation.tables.render import Measure, Report, Rules
from eqforge.evaluation.tables.report import Judged, as_measure, measure
from eqforge.evaluation.tables.samples import EVERYTHING, read_samples, text_array
from eqforge.evaluation.tasks.samples import TASKS, samples_report
from eqforge.schemas.records.scenes import STEP_SIZE, STEP_UNITS
from eqforge.schemas.tables.benchmark_rows import PAIRS_NAME

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eqforge.evaluation.tables.settings import MetricsSettings
    from eqforge.schemas.dataset.reader import Dataset

LADDERS: Final = "graded"

CHOICE: Final = "choice"
"""The metric: share of images that prefer their own caption to the other one."""

_SHOWN: Final = (CHOICE, "text", "image", "group")

STEPS: Final = replace(
    TASKS["pairs"],
    title="scores of pairs, and of ladders",
    by=("change",),
    metrics={CHOICE: Metric(choice, chance=1 / 2), **PAIR_METRICS},
)

HOW_FITTED: Final = (
    f"Threshold: the size at which {REACHED:.0%} of choices are right, within the range of sizes.",
    "It is read from a fitted logistic function of log2(size). The function starts at chance and",
    "allows up to 6% lapses (Wichmann and Hill 2001). Slope: rise of the log-odds when the size",
    "doubles. The intervals of threshold, slope and 'at largest' are percentiles.",
)

_DIGITS: Final = 2
"""Specs round sizes to this many digits."""

_MISFIT: Final = 0.02
"""Measured and fitted shares may differ by this much without a note."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Step:
    key: str
    change: str
    size: float | None


class _Score(msgspec.Struct, frozen=True):
    name: str
    value: float | None


class _Own(msgspec.Struct, frozen=True):
    change: str
    scores: list[_Score] | None


_SHARED: Final = ("sample_id", "kind")
_OWN: Final = ("change", "scores")


def is_ladders(dataset: Dataset) -> bool:
    names = set(dataset.columns("samples"))
    if not _is_combined(dataset) and not {*_SHARED, *_OWN, *STEPS.images} <= names:
        return False
    return any(True for _ in _read_steps(dataset))


def ladders_report(dataset: Dataset, paths: Sequence[Path], settings: MetricsSettings) -> Report:
    steps = sorted(_read_steps(dataset), key=lambda each: each.key)
    ladders = _Ladders(steps, settings.rules)
    samples = None
    if _is_combined(dataset) and settings.by in (None, "kind"):
        changes = {each.key: each.change for each in steps}
        samples = read_samples(dataset, settings.cluster or STEPS.cluster, "kind", changes)
    report = samples_report(dataset, STEPS, paths, settings, samples, ladders.measures)
    return replace(report, notes=(*report.notes, *ladders.notes()))


def _is_combined(dataset: Dataset) -> bool:
    return dataset.manifest.dataset == PAIRS_NAME


def _read_steps(dataset: Dataset) -> Iterator[_Step]:
    for row in _rows(dataset):
        if row["kind"] == LADDERS:
            sizes = [score["value"] for score in row["scores"] or () if score["name"] == STEP_SIZE]
            size = round(sizes[0], _DIGITS) if sizes and sizes[0] else None
            yield _Step(key=row["sample_id"], change=row["change"], size=size)


def _rows(dataset: Dataset) -> Iterator[Mapping[str, Any]]:
    """Yield rendered pairs with their own dataset's columns."""
    if not _is_combined(dataset):
        yield from dataset.rows("samples", [*_SHARED, *_OWN])
        return
    for row in dataset.rows("samples", [*_SHARED, "annotation"]):
        # Annotations of other pairs may be any text.
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            details = msgspec.json.decode(row["annotation"], type=_Own)
            yield {**row, **msgspec.to_builtins(details), "kind": row["kind"].rpartition("/")[2]}


class _Ladders:
    def __init__(self, steps: Sequence[_Step], rules: Rules) -> None:
        steps = [each for each in steps if each.size]
        self._rules = rules
        self._units = {each.change for each in steps}
        self._keys = text_array([each.key for each in steps])
        self._changes = text_array([each.change for each in steps])
        self._sizes = np.array([each.size for each in steps], dtype=float)
        self._notes: list[str] = []

    def measures(self, model: str, subset: str, judged: Judged) -> Iterator[Measure]:
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
            yield from fitted(model, subset, CHOICE, judged, at, there, self._rules, self._notes)
        (change,) = changes
        for number, size in enumerate(there.tolist()):
            part = judged.part(at[:, number], _SHOWN)
            yield from measure(model, f"{change} {size:g}", part, self._rules)[1]

    def notes(self) -> Iterator[str]:
        if not len(self._keys):
            return
        units = ", ".join(
            f"{change} in {unit}" for change, unit in STEP_UNITS.items() if change in self._units
        )
        yield f"Sizes: {units}. A choice is correct if the model prefers the image's caption."
        yield from HOW_FITTED
        yield f"The curves contain {counted(len(self._keys), 'ladder steps')}."
        yield from self._notes


def fitted(
    model: str,
    subset: str,
    metric: str,
    judged: Judged,
    at: NDArray[np.bool_],
    sizes: NDArray[np.float64],
    rules: Rules,
    notes: list[str],
) -> Iterator[Measure]:
    """Yield threshold, slope and share at the largest size; `at` marks each pair's sizes [n, k]."""
    right = at * judged.credits[metric][:, None]
    found = resample_means(
        np.column_stack([right, at]),
        judged.clusters,
        seed=(rules.seed, zlib.crc32(subset.encode())),
        resamples=rules.resamples,
    )
    rows = np.vstack([found.values, found.draws]) * len(at)
    hits, trials = np.split(rows, 2, axis=1)
    curves = fit_curves(sizes, hits, trials)
    where = f"{model}, {subset}, {metric}"
    notes += _limits(where, curves)
    if found.clusters >= ENOUGH_CLUSTERS:
        notes += _misfits(where, curves, sizes, hits, trials)
    like = as_measure(model, subset, metric, judged, found, 0)
    like = replace(like, unit="number", chance=None, ties=None)
    for name, values in (
        ("threshold", curves.thresholds),
        ("slope", curves.slopes),
        ("at largest", curves.share(sizes.max())),
    ):
        low, high = NO_INTERVAL if found.clusters == 1 else _interval(values[1:])
        yield replace(
            like,
            unit="share" if name == "at largest" else "number",
            metric=f"{metric} {name}",
            value=float(values[0]),
            low=low,
            high=high,
        )


def _limits(where: str, curves: Curves) -> Iterator[str]:
    threshold, slope, smallest, largest = (
        float(values[0])
        for values in (curves.thresholds, curves.slopes, curves.smallest, curves.largest)
    )
    if np.isinf(threshold):
        yield f"{where}: the model never reaches {REACHED:.0%}, not even at size {largest:.3g}"
    elif threshold == smallest:
        yield (
            f"{where}: the model reaches {REACHED:.0%} already at the smallest size, "
            f"{smallest:.3g}. Its threshold may be lower"
        )
    if np.isinf(slope):
        yield f"{where}: the curve is a step, so its slope is unknown"


def _misfits(
    where: str,
    curves: Curves,
    sizes: NDArray[np.float64],
    hits: NDArray[np.float64],
    trials: NDArray[np.float64],
) -> Iterator[str]:
    """Note each size at which the measured share lies off the curve in nearly all draws."""
    for size, right, of in zip(sizes, hits.T, trials.T, strict=True):
        share, on_curve = right / np.where(of > 0, of, np.nan), curves.share(size)
        low, high = _interval((share - on_curve)[1:], 1 - (1 - LEVEL) / len(sizes))
        if (low > 0 or high < 0) and abs(share[0] - on_curve[0]) > _MISFIT:
            yield (
                f"{where}: the curve does not fit at size {size:.3g}. It predicts "
                f"{on_curve[0]:.1%}, but {share[0]:.1%} of choices are right"
            )


def _interval(draws: NDArray[np.float64], level: float = LEVEL) -> Interval:
    """Return the central `level` of draws, which may be infinite; NaN if most draws are."""
    found = draws[~np.isnan(draws)]
    if 2 * len(found) < len(draws):
        return NO_INTERVAL
    tail = (1 - level) / 2
    low, high = np.quantile(found, [tail, 1 - tail], method="closest_observation")
    return float(low), float(high)
