"""Compares two models on the same samples."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqforge.evaluation.statistics.bootstrap import (
    RESAMPLES,
    Numbers,
    Resampled,
    resample_means,
)
from eqforge.evaluation.statistics.shares import NO_INTERVAL, Interval, difference_interval


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """By how much the second model is above the first, on the samples both have scores of.

    Attributes:
      samples, clusters: how many were compared.
      difference: mean credit of the second less that of the first, in [-1, 1].
      low, high: 95 % interval, by a bootstrap of clusters: of shares as that of the share that
        gained less that of the share that lost, which does not collapse where nobody did either;
        of others its percentiles.
      better, worse: on how many samples the second counts more, and less.
      p_value: probability of a difference at least as large, either way, if in every cluster the
        models could be exchanged; at least 1 / (resamples + 1).
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
    """Compares two models by their credits on the same samples.

    Args:
      first: credits [n] of the first model.
      second: credits [n] of the second, of the same samples in the same order.
      clusters: for each sample its cluster [n]; None for a cluster a sample.
      weights: of the samples [n], at least 0; None for equal ones.
      groups: of the samples [n], where the mean of the groups' means is compared; None otherwise.
      seed: of the draws.
      resamples: how often clusters are drawn, and how often models are exchanged.
      most: what a sample counts at most, where it counts from 0 up; None where there is no most.
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
    """Returns gains [n], what was gained and what was lost, as columns [n, 3]."""
    return np.column_stack([gains, gains.clip(min=0), (-gains).clip(min=0)])


def difference_of(found: Resampled, most: float) -> Interval:
    """Returns the interval of a mean gain, of the columns that `with_parts` makes."""
    if found.clusters == 1:
        return NO_INTERVAL
    low, high = difference_interval(found.share(1, most), found.share(2, most))
    return most * low, most * high


def exchange_test(
    gains: Numbers, clusters: NDArray[Any] | None, *, seed: int, resamples: int
) -> float:
    """Returns the p-value of a mean gain when in each cluster its sign could be either.

    Args:
      gains: [n].
      clusters: for each sample its cluster [n]; None for a cluster a sample.
      seed: of the signs.
      resamples: how often signs are drawn.

    Source: a randomisation test; Edgington and Onghena 2007, "Randomization Tests", chapter 5.
    """
    named = np.arange(len(gains)) if clusters is None else clusters
    _, numbers = np.unique(named, return_inverse=True)
    order = np.lexsort([gains, numbers])
    sums = np.bincount(numbers[order], weights=gains[order])
    # Sums of one size are exchanged alike: how many of them turn is binomial.
    sizes, counts = np.unique(np.abs(sums[sums != 0]), return_counts=True)
    rng = np.random.default_rng(seed)
    extreme = 1
    observed = abs(float(np.sort(sums).sum()))
    for _ in range(resamples):
        turned = rng.binomial(counts, 0.5)
        extreme += abs(float(sizes @ (counts - 2 * turned))) >= observed * (1 - 1e-12)
    return extreme / (resamples + 1)
