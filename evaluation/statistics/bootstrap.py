"""Confidence intervals of means by a cluster bootstrap, independent of the order of rows.

Samples that share a video, an image or a word are not independent; resampling them one by one makes
intervals too narrow. So clusters are drawn with replacement, as many as there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from eqforge.evaluation.statistics.shares import (
    LEVEL,
    NO_INTERVAL,
    ROUNDING,
    Interval,
    Share,
    difference_interval,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

Numbers: TypeAlias = "NDArray[np.float64]"

Seed: TypeAlias = int | Sequence[int]

RESAMPLES = 1000

ENOUGH_CLUSTERS = 20
"""With fewer clusters percentile intervals may be too narrow: for uniform values and 3, 5, 10 and
20 clusters they cover the mean in 76, 92, 95 and 95% of samples; see tests/evaluation/statistics.
"""

# Equal clusters are drawn together as a count, in time independent of their number; with more
# distinct ones than this, drawing them one by one is faster.
_ALIKE = 2_000


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Resampled:
    """Means and their resamples.

    Attributes:
      values: [metrics].
      draws: [resamples, metrics].
      even_clusters: effective number of equally weighted clusters [metrics].
      samples: [metrics].
      binary: whether every sample is 0 or 1 [metrics].
    """

    values: Numbers
    draws: Numbers
    clusters: int
    even_clusters: Numbers
    samples: NDArray[np.int64]
    binary: NDArray[np.bool_]

    def interval(self, metric: int = 0, level: float = LEVEL) -> Interval:
        """Return a mean's percentile interval; NaN for a single cluster, whose draws are equal."""
        if self.clusters == 1:
            return NO_INTERVAL
        return percentile_interval(self.draws[:, metric], level, self.even_clusters[metric])

    def share_interval(self, metric: int = 0, most: float = 1.0, widening: float = 1.0) -> Interval:
        """Return the interval of a mean of values in [0, most]; NaN for a single cluster."""
        if self.clusters == 1:
            return NO_INTERVAL
        low, high = self.share(metric, most, widening).interval()
        return most * low, most * high

    def share(self, metric: int = 0, most: float = 1.0, widening: float = 1.0) -> Share:
        return Share(
            value=float(self.values[metric]) / most,
            draws=self.draws[:, metric] / most,
            clusters=float(self.even_clusters[metric]),
            samples=float(self.samples[metric]) if self.binary[metric] else math.inf,
            widening=widening,
        )


def percentile_interval(
    draws: Numbers, level: float = LEVEL, clusters: float = math.inf
) -> Interval:
    """Return bounds of the central `level` of the draws; NaN if most draws are.

    Draws of few clusters vary too little, and their variance is uncertain, so more of them count.

    Source: Hesterberg 2015, "What Teachers Should Know About the Bootstrap", section 5.3 (expanded
    percentile intervals).
    """
    from scipy.special import ndtr, stdtrit  # type: ignore[import-untyped]

    found = draws[~np.isnan(draws)]
    if not len(found) or 2 * len(found) < len(draws):
        return NO_INTERVAL
    tail = (1 - level) / 2
    if math.isfinite(clusters):
        free = max(clusters - 1, ROUNDING)
        tail = float(ndtr(stdtrit(free, tail) * math.sqrt((free + 1) / free)))
    low, high = np.quantile(found, [tail, 1 - tail])
    return float(low), float(high)


def resample_means(
    credits: NDArray[Any],
    clusters: NDArray[Any] | None = None,
    *,
    weights: NDArray[Any] | None = None,
    groups: NDArray[Any] | None = None,
    seed: Seed = 0,
    resamples: int = RESAMPLES,
) -> Resampled:
    """Return weighted means of columns, and of resampled clusters.

    With groups it is the mean of the groups' means, equally weighted in every draw; a draw that
    lacks a group is NaN. All metrics share draws, so columns may be subtracted draw by draw. The
    order of the rows does not change the results, to the last bit.

    Args:
      credits: values [n, metrics], or [n] for one metric.
      clusters: cluster of each row [n], of any sortable type; None for one cluster per row.
      weights: at least 0, [n] or per column [n, metrics]; None for equal weights.
      groups: group of each row [n], of any sortable type; None for one group.
      seed: several numbers give independent draws for the parts of a table.
    """
    exact = credits.astype(np.float64)
    columns = exact[:, None] if exact.ndim == 1 else exact
    totals, sizes = _sums(columns, clusters, groups, weights)
    if not len(sizes):
        return _nothing(resamples, columns.shape[1])
    flat = np.column_stack([totals.reshape(len(totals), -1), sizes.reshape(len(sizes), -1)])
    kinds, counts = _alike(flat)
    rng = np.random.default_rng(seed)
    draw = _draw_alike if len(kinds) <= _ALIKE else _draw_each
    rows = np.vstack([counts @ kinds, draw(rng, kinds, counts, resamples)])
    parts = np.split(rows, [totals[0].size], axis=1)
    sums, weight = (
        part.reshape(-1, *like.shape[1:]) for part, like in zip(parts, (totals, sizes), strict=True)
    )
    with np.errstate(invalid="ignore"):  # a resample may draw only clusters of zero weight
        averages = (sums / weight).mean(axis=1)
        # Weight of a cluster of each kind in the means [kinds, 1 or metrics].
        shares = (kinds[:, totals[0].size :].reshape(-1, *sizes.shape[1:]) / weight[0]).mean(axis=1)
    metrics, counted = columns.shape[1], _ones_or(weights, len(columns)) > 0
    return Resampled(
        values=averages[0],
        draws=averages[1:],
        clusters=int(counts.sum()),
        even_clusters=np.broadcast_to(1 / (counts @ shares**2), metrics),
        samples=np.broadcast_to(counted.sum(axis=0), metrics),
        binary=((columns == 0) | (columns == 1) | ~counted).all(axis=0),
    )


def _nothing(resamples: int, metrics: int) -> Resampled:
    nothing = np.full((resamples, metrics), np.nan)
    return Resampled(
        values=nothing[0],
        draws=nothing,
        clusters=0,
        even_clusters=np.zeros(metrics),
        samples=np.zeros(metrics, dtype=np.int64),
        binary=np.zeros(metrics, dtype=bool),
    )


def _sums(
    columns: Numbers,
    clusters: NDArray[Any] | None,
    groups: NDArray[Any] | None,
    weights: NDArray[Any] | None,
) -> tuple[Numbers, Numbers]:
    """Return weighted sums [clusters, groups, metrics] and weights [clusters, groups, 1+]."""
    if groups is None or not len(columns):
        totals, sizes = _cluster_sums(columns, clusters, weights)
        return totals[:, None], sizes[:, None]
    named = np.arange(len(columns)) if clusters is None else clusters
    (_, cluster), (names, group) = (np.unique(x, return_inverse=True) for x in (named, groups))
    cells = cluster * len(names) + group
    shape = cluster.max() + 1, len(names)
    filled = np.unique(cells)
    parts = []
    for sums in _cluster_sums(columns, cells, weights):
        part = np.zeros((shape[0] * shape[1], sums.shape[1]))
        part[filled] = sums
        parts.append(part.reshape(*shape, -1))
    return parts[0], parts[1]


def _cluster_sums(
    columns: Numbers, clusters: NDArray[Any] | None, weights: NDArray[Any] | None
) -> tuple[Numbers, Numbers]:
    """Return each cluster's weighted sums [clusters, metrics] and weights [clusters, 1+]."""
    sizes = _ones_or(weights, len(columns))
    weighted = columns * sizes
    if clusters is None or not len(columns):
        return weighted, sizes
    _, numbers = np.unique(clusters, return_inverse=True)
    # Floating-point sums depend on the order of their terms, so the terms are sorted.
    order = np.lexsort([*weighted.T, *sizes.T, numbers])
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    return (
        np.add.reduceat(weighted[order], starts, axis=0),
        np.add.reduceat(sizes[order], starts),
    )


def _ones_or(weights: NDArray[Any] | None, rows: int) -> Numbers:
    values = np.ones(rows) if weights is None else weights.astype(np.float64)
    return values[:, None] if values.ndim == 1 else values


def _alike(rows: Numbers) -> tuple[Numbers, NDArray[np.int64]]:
    """Return the distinct rows, sorted, and their counts; faster than `np.unique`."""
    ordered = rows[np.lexsort(rows.T[::-1])]
    starts = np.flatnonzero(np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)])
    return ordered[starts], np.diff(np.r_[starts, len(rows)])


def _draw_alike(
    rng: np.random.Generator, kinds: Numbers, counts: NDArray[Any], resamples: int
) -> Numbers:
    """Draw the number of clusters of each kind, exactly, from a multinomial distribution."""
    total = int(counts.sum())
    return rng.multinomial(total, counts / total, size=resamples) @ kinds


def _draw_each(
    rng: np.random.Generator, kinds: Numbers, counts: NDArray[Any], resamples: int
) -> Numbers:
    kind_of = np.repeat(np.arange(len(kinds)), counts)
    sums = np.empty((resamples, kinds.shape[1]))
    for row in sums:
        sample = kind_of[rng.integers(0, len(kind_of), size=len(kind_of), dtype=np.int32)]
        row[:] = np.bincount(sample, minlength=len(kinds)) @ kinds
    return sums


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """The second model's gain over the first, on the samples scored by both.

    Attributes:
      difference: mean credit of the second minus that of the first; in [-1, 1] for shares.
      low, high: 95% interval by a cluster bootstrap. For shares it is the interval of the share
        that gained minus the share that lost, which does not collapse if no sample did either;
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
    """Compare two models by credits [n] of the same samples, in [0, most] or unbounded."""
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
    """Return gains, positive gains, and negated losses as columns [n, 3]."""
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
    # For sums of equal size, the number of flipped signs is binomial.
    sizes, counts = np.unique(np.abs(sums[sums != 0]), return_counts=True)
    rng = np.random.default_rng(seed)
    extreme = 1
    observed = abs(float(np.sort(sums).sum()))
    for _ in range(resamples):
        turned = rng.binomial(counts, 0.5)
        extreme += abs(float(sizes @ (counts - 2 * turned))) >= observed * (1 - 1e-12)
    return extreme / (resamples + 1)
