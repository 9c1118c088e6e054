"""Compares each further model with the first, on the samples that both have scores of."""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from eqforge.evaluation.statistics.comparison import Comparison, compare_paired
from eqforge.evaluation.tables.report import Judged, ModelComparison, Rules


def compare_judged(
    judged: Mapping[str, Mapping[str, Judged]], rules: Rules
) -> tuple[ModelComparison, ...]:
    """Returns the comparisons on every metric of every subset that two models share.

    Args:
      judged: for each model, in order, the credits of each subset. Samples are
        matched by their keys; without keys they are the same ones in the same order.
      rules: seed and resamples.
    """
    return tuple(_compare(judged, rules))


def _compare(judged: Mapping[str, Mapping[str, Judged]], rules: Rules) -> Iterator[ModelComparison]:
    if not judged:
        return
    first, *others = judged
    for model in others:
        for subset, base in judged[first].items():
            other = judged[model].get(subset)
            if other is None:
                continue
            for metric in (name for name in base.credits if name in other.credits):
                found = _on_common(base, other, metric, rules)
                if found is not None:
                    yield ModelComparison(
                        model=model,
                        against=first,
                        subset=subset,
                        metric=metric,
                        unit=base.unit_of(metric),
                        found=found,
                    )


def _on_common(base: Judged, other: Judged, metric: str, rules: Rules) -> Comparison | None:
    here, there = _common(base, other)
    if not len(here):
        return None
    return compare_paired(
        base.credits[metric][here],
        other.credits[metric][there],
        None if base.clusters is None else base.clusters[here],
        weights=None if base.weights is None else base.weights[here],
        groups=None if base.groups is None else base.groups[here],
        seed=rules.seed,
        resamples=rules.resamples,
        most=base.most_of(metric),
    )


def _common(base: Judged, other: Judged) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Returns the places of the shared samples in each."""
    if base.keys is None or other.keys is None:
        everything = np.arange(base.scored)
        return everything, everything
    _, here, there = np.intersect1d(base.keys, other.keys, return_indices=True)
    return here, there
