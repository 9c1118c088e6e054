"""Turn credits into a table: means with their intervals, and each model against the first."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eqforge.core.errors import InputError
from eqforge.evaluation.metrics.ties import Unit
from eqforge.evaluation.statistics.bootstrap import (
    Comparison,
    Resampled,
    compare_paired,
    resample_means,
)
from eqforge.evaluation.tables.render import Measure, ModelComparison, Report, Rules, models_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DIGEST = re.compile(r"([0-9a-f]{12})[0-9a-f]{28,}$")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Judged:
    """The credits of each sample of one subset under one model.

    Attributes:
      credits: the credits [n] of each metric, in the order of the columns.
      chance: chance level by metric, if it has one.
      tied: samples with a tied comparison [n]; None if nothing is compared.
      clusters: the cluster of each sample [n]; None for one cluster per sample.
      weights: weights of the samples [n]; None for equal weights.
      groups: the group of each sample [n], for a mean of the groups' means.
      expected: number of samples in the subset, scored or not.
      units: units of the metrics that are not shares.
      most: maximum credit of a sample for sums of shares; 1 for other shares.
      keys: ids of the samples [n], to compare models; None if all models have all samples.
    """

    credits: Mapping[str, NDArray[np.float64]]
    chance: Mapping[str, float] = field(default_factory=dict)
    tied: NDArray[np.bool_] | None = None
    clusters: NDArray[Any] | None
    expected: int
    weights: NDArray[np.float64] | None = None
    groups: NDArray[Any] | None = None
    units: Mapping[str, Unit] = field(default_factory=dict)
    most: Mapping[str, float] = field(default_factory=dict)
    keys: NDArray[Any] | None = None

    def most_of(self, metric: str) -> float | None:
        """Maximum credit of a sample; None if the metric is not a share."""
        is_share = self.units.get(metric, "share") == "share"
        return self.most.get(metric, 1.0) if is_share else None

    @property
    def scored(self) -> int:
        return len(next(iter(self.credits.values())))

    def part(
        self,
        members: NDArray[Any],
        metrics: Iterable[str] | None = None,
        expected: int | None = None,
    ) -> Judged:
        """Return some of the samples as a subset.

        Args:
          members: a mask [n] or a slice.
          metrics: names of the metrics to keep; None for all.
          expected: number of samples of the subset, scored or not; None if all are scored.
        """
        by_sample = ("tied", "clusters", "weights", "groups", "keys")
        arrays = ((name, getattr(self, name)) for name in by_sample)
        chosen: dict[str, Any] = {
            name: None if array is None else array[members] for name, array in arrays
        }
        credits = {name: self.credits[name][members] for name in metrics or self.credits}
        part = replace(self, credits=credits, **chosen)
        return replace(part, expected=part.scored if expected is None else expected)


def measure(
    model: str, subset: str, judged: Judged, rules: Rules
) -> tuple[Resampled, list[Measure]]:
    """Return means and draws of a subset, drawn with its own seed, and measures with intervals."""
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
    most = judged.most_of(metric)
    low, high = found.interval(column) if most is None else found.share_interval(column, most)
    return Measure(
        model=model,
        subset=subset,
        metric=metric,
        unit=judged.units.get(metric, "share"),
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


def make_report(
    title: str,
    rules: Rules,
    judged: Mapping[str, Mapping[str, Judged]],
    notes: Iterable[str] = (),
    more: Callable[[str, str, Judged, list[Measure], Resampled], Iterable[Measure]] | None = None,
) -> Report:
    measures: list[Measure] = []
    for model, subsets in judged.items():
        for subset, one in subsets.items():
            found, means = measure(model, subset, one, rules)
            measures += means
            measures += [] if more is None else more(model, subset, one, means, found)
    return Report(
        title=title,
        rules=rules,
        measures=tuple(measures),
        comparisons=tuple(compare_judged(judged, rules)),
        notes=tuple(notes),
    )


def compare_judged(
    judged: Mapping[str, Mapping[str, Judged]], rules: Rules
) -> Iterator[ModelComparison]:
    """Compare each further model with the first, on every metric of every subset both have.

    Samples are matched by key; without keys they must be the same ones in the same order.
    """
    models = list(judged)
    for model in models[1:]:
        for subset, base in judged[models[0]].items():
            if (other := judged[model].get(subset)) is None:
                continue
            for metric in (name for name in base.credits if name in other.credits):
                if found := _on_common(base, other, metric, rules):
                    yield ModelComparison(
                        model=model,
                        against=models[0],
                        subset=subset,
                        metric=metric,
                        unit=base.units.get(metric, "share"),
                        found=found,
                    )


def _on_common(base: Judged, other: Judged, metric: str, rules: Rules) -> Comparison | None:
    if base.keys is None or other.keys is None:
        here = there = np.arange(base.scored)
    else:
        _, here, there = np.intersect1d(base.keys, other.keys, return_indices=True)
    if not len(here):
        return None
    clusters, weights, groups = (
        None if values is None else values[here]
        for values in (base.clusters, base.weights, base.groups)
    )
    return compare_paired(
        base.credits[metric][here],
        other.credits[metric][there],
        clusters,
        weights=weights,
        groups=groups,
        seed=rules.seed,
        resamples=rules.resamples,
        most=base.most_of(metric),
    )


def model_names(names: Sequence[str], paths: Sequence[Path]) -> list[str]:
    """Return unique model names by appending paths; digests and commits are cut to 12 digits."""
    if len(set(paths)) < len(paths):
        raise InputError(f"{max(paths, key=list(paths).count)} appears twice; pass it once")
    short = [_DIGEST.sub(r"\1", name) for name in names]
    return [
        name if short.count(name) == 1 else f"{name} ({path})"
        for name, path in zip(short, paths, strict=True)
    ]


def labels_of(models: Sequence[str], labels: Sequence[str]) -> dict[str, str]:
    if labels and (len(labels) != len(models) or len(set(labels)) < len(labels)):
        raise InputError(
            f"--labels {' '.join(labels)}: expected {len(models)} different names, one for each of "
            f"these models, in this order: {', '.join(models)}"
        )
    return dict(zip(models, labels or models, strict=True))


def labelled(report: Report, labels: Sequence[str]) -> Report:
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
