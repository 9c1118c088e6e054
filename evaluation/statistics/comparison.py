"""Compares two models on the same samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eqforge.evaluation.statistics.bootstrap import (
    RESAMPLES,
    Numbers,
    Resampled,
    resample_means,
)
from eqforge.evaluation.statistics.shares import NO_INTERVAL, Interval, difference_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """How much the second model exceeds the first, on the samples scored by both.

    Attributes:
      samples, clusters: number of those compared.
      difference: mean credit of the second minus that of the first; in [-1, 1] for shares.
      low, high: 95 % interval by a cluster bootstrap. For shares it is that of the share that
        gained minus the share that lost, which does not collapse where no sample did either;
        otherwise percentiles.
      better, worse: number of samples on which the second has more credit, and less.
      p_value: two-sided probability of a difference at least as large if the models were
        exchangeable in every cluster; at least 1 / (resamples + 1).
    """

    samples: int
    clusters: int
    difference: float
    low: float
    high: float
    better: int
    worse: int
    p_value: float


def compare_paired(
    first: Numbers,
    second: Numbers,
    clusters: NDArray[Any] | None = None,
    *,
    weights: Numbers | None = None,
    groups: NDArray[Any] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    most: float | None = None,
) -> Comparison:
    """Compare two models by their credits [n] on the same samples, in the same order.

    Clusters, weights and groups are as in `resample_means`; credits are in [0, most], or unbounded.
    """
    gains = second - first
    found = resample_means(
        gains if most is None else with_parts(gains),
        clusters,
        weights=weights,
        groups=groups,
        seed=seed,
        resamples=resamples,
    )
    weighted = gains if weights is None else gains * weights
    if groups is not None:
        shares = np.ones(len(gains)) if weights is None else weights
        _, group = np.unique(groups, return_inverse=True)
        weighted = weighted / np.bincount(group, shares)[group]
    low, high = found.interval() if most is None else difference_of(found, most)
    return Comparison(
        samples=len(gains),
        clusters=found.clusters,
        difference=float(found.values[0]),
        low=low,
        high=high,
        better=int((gains > 0).sum()),
        worse=int((gains < 0).sum()),
        p_value=exchange_test(weighted, clusters, seed=seed + 1, resamples=resamples),
    )


def with_parts(gains: Numbers) -> Numbers:
    """Return gains, gains above 0, and losses as numbers above 0, as columns [n, 3]."""
    return np.column_stack([gains, gains.clip(min=0), (-gains).clip(min=0)])


def difference_of(found: Resampled, most: float) -> Interval:
    """Return the interval of a mean gain, from resampled columns of `with_parts`."""
    if found.clusters == 1:
        return NO_INTERVAL
    low, high = difference_interval(found.share(1, most), found.share(2, most))
    return most * low, most * high


def exchange_test(
    gains: Numbers, clusters: NDArray[Any] | None, *, seed: int, resamples: int
) -> float:
    """Return the p-value of a mean gain [n] if its sign were random in each cluster.

    Source: a randomisation test; Edgington and Onghena 2007, "Randomization Tests", chapter 5.
    """
    named = np.arange(len(gains)) if clusters is None else clusters
    _, numbers = np.unique(named, return_inverse=True)
    order = np.lexsort([gains, numbers])
    sums = np.bincount(numbers[order], weights=gains[order])
    # Among sums of equal size the number with a flipped sign is binomial.
    sizes, counts = np.unique(np.abs(sums[sums != 0]), return_counts=True)
    rng = np.random.default_rng(seed)
    extreme = 1
    observed = abs(float(np.sort(sums).sum()))
    for _ in range(resamples):
        turned = rng.binomial(counts, 0.5)
        extreme += abs(float(sizes @ (counts - 2 * turned))) >= observed * (1 - 1e-12)
    return extreme / (resamples + 1)
