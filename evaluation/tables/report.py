"""What a table of scores holds, before it becomes text, JSON, CSV or LaTeX."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from eqforge.core.errors import InputError
from eqforge.core.late import numpy as np
from eqforge.evaluation.metrics.ties import TieRule
from eqforge.evaluation.statistics.bootstrap import RESAMPLES, Resampled, resample_means
from eqforge.evaluation.statistics.comparison import Comparison

if TYPE_CHECKING:
    from numpy.typing import NDArray

Unit = Literal["share", "number"]

DROP = "drop "
"""Prefix of metrics that are the relative drop of another one."""

VERSION = 2
"""Version of how numbers and intervals are computed; 2 has exact intervals of shares."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """How scores become numbers.

    Attributes:
      ties: the credit of a tie.
      seed, resamples: settings of the bootstrap.
    """

    ties: TieRule = "strict"
    seed: int = 0
    resamples: int = RESAMPLES


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """One number of a table.

    Attributes:
      model: the model that scored.
      subset: the part of the dataset, or the name of an average.
      metric: what was measured.
      unit: `share` for shares in [0, 1] and relative drops, which are printed as percentages.
      value, low, high: the number and its 95 % interval; NaN where there is none.
      chance: expected value for random scores; None if undefined.
      expected, scored, missing: samples; expected = scored + missing.
      clusters: number of independent clusters resampled for the interval.
      ties: share of samples in which a comparison ties; None if nothing is compared.
    """

    model: str
    subset: str
    metric: str
    unit: Unit = "share"
    value: float
    low: float
    high: float
    chance: float | None
    expected: int
    scored: int
    missing: int
    clusters: int
    ties: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelComparison:
    """A model against another on one metric of one subset, in the unit of the metric."""

    model: str
    against: str
    subset: str
    metric: str
    unit: Unit = "share"
    found: Comparison


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """A table.

    Attributes:
      title: what was measured on what.
      rules: how scores became numbers; None if nothing is judged or drawn.
      measures: the numbers.
      comparisons: of each model with the first.
      notes: what a reader should know before trusting the numbers.
      paper_columns: subset and metric of each column of the paper's own table; empty where the
        table is set with a row for each subset.
      version: VERSION.
    """

    title: str
    rules: Rules | None
    measures: tuple[Measure, ...]
    comparisons: tuple[ModelComparison, ...] = ()
    notes: tuple[str, ...] = ()
    paper_columns: tuple[tuple[str, str], ...] = ()
    version: int = VERSION

    def __str__(self) -> str:
        """Returns the table as `eqforge metrics` prints it."""
        from eqforge.evaluation.tables.render import as_text  # which imports this module

        return as_text(self)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Judged:
    """The credits of each sample of one subset under one model.

    Attributes:
      credits: the credits [n] of each metric, in the order of the columns.
      chance: chance level of each metric that has one.
      tied: in which samples a comparison ties [n]; None if nothing is compared.
      clusters: the cluster of each sample [n]; None for one cluster per sample.
      weights: weights of the samples [n]; None for equal ones.
      groups: the group of each sample [n], where the mean of the groups' means is taken.
      expected: how many samples the subset has, scored or not.
      units: units of the metrics that are not shares.
      most: maximum credit of a sample for sums of shares; 1 for other shares.
      keys: ids of the samples [n], to compare models; None if all models have all samples.
    """

    credits: Mapping[str, NDArray[np.float64]]
    chance: Mapping[str, float]
    tied: NDArray[np.bool_] | None
    clusters: NDArray[Any] | None
    expected: int
    weights: NDArray[np.float64] | None = None
    groups: NDArray[Any] | None = None
    units: Mapping[str, Unit] = field(default_factory=dict)
    most: Mapping[str, float] = field(default_factory=dict)
    keys: NDArray[Any] | None = None

    def unit_of(self, metric: str) -> Unit:
        """Returns the unit of a metric."""
        return self.units.get(metric, "share")

    def most_of(self, metric: str) -> float | None:
        """Returns the maximum credit of a sample, None if the metric is not a share."""
        return self.most.get(metric, 1.0) if self.unit_of(metric) == "share" else None

    @property
    def scored(self) -> int:
        """How many samples have scores."""
        return len(next(iter(self.credits.values())))


def measure(
    model: str, subset: str, judged: Judged, rules: Rules
) -> tuple[Resampled, list[Measure]]:
    """Returns the means of one subset with their intervals, and their draws for averages.

    Args:
      model: name of the model.
      subset: name of the subset.
      judged: the credits.
      rules: how scores become numbers. Each subset is drawn with a seed of its own.
    """
    found = resample_means(
        np.column_stack(list(judged.credits.values())),
        judged.clusters,
        weights=judged.weights,
        groups=judged.groups,
        seed=(rules.seed, zlib.crc32(subset.encode())),
        resamples=rules.resamples,
    )
    return found, [
        as_measure(model, subset, metric, judged, found, column)
        for column, metric in enumerate(judged.credits)
    ]


def as_measure(
    model: str, subset: str, metric: str, judged: Judged, found: Resampled, column: int
) -> Measure:
    """Returns one mean of a subset as a number of the table."""
    most = judged.most_of(metric)
    low, high = found.interval(column) if most is None else found.share_interval(column, most)
    return Measure(
        model=model,
        subset=subset,
        metric=metric,
        unit=judged.unit_of(metric),
        value=float(found.values[column]),
        low=low,
        high=high,
        chance=judged.chance.get(metric),
        expected=judged.expected,
        scored=judged.scored,
        missing=judged.expected - judged.scored,
        clusters=found.clusters,
        ties=None if judged.tied is None or not judged.scored else float(judged.tied.mean()),
    )


def labels_of(models: Sequence[str], labels: Sequence[str]) -> dict[str, str]:
    """Returns the label of each model; without labels its own name.

    Raises:
      InputError: there are more or fewer labels than models, or two are the same.
    """
    if labels and (len(labels) != len(models) or len(set(labels)) < len(labels)):
        raise InputError(
            f"--labels: expected {len(models)} different names, of {', '.join(models)}; found "
            f"{', '.join(labels)}"
        )
    return dict(zip(models, labels or models, strict=True))


def labelled(report: Report, labels: Sequence[str]) -> Report:
    """Returns the table with labels in place of the models' names, which its notes keep.

    Raises:
      InputError: there are more or fewer labels than models, or two are the same.
    """
    if not labels:
        return report
    named = labels_of(models_of(report), labels)
    return replace(
        report,
        measures=tuple(replace(one, model=named[one.model]) for one in report.measures),
        comparisons=tuple(
            replace(one, model=named[one.model], against=named[one.against])
            for one in report.comparisons
        ),
        notes=(*report.notes, *(f"{label}: {model}" for model, label in named.items())),
    )


def models_of(report: Report) -> Sequence[str]:
    """Returns the models in their order."""
    return list(dict.fromkeys(measure.model for measure in report.measures))
