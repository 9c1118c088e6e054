"""Confidence intervals of means by drawing whole clusters, whatever the order of the rows.

Samples that share a video, an image or a word are not independent; drawn one by one they make
intervals too narrow. Here clusters are drawn, with replacement, as many as there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.float64]

Seed: TypeAlias = int | Sequence[int]

RESAMPLES = 1000
LEVEL = 0.95

ENOUGH_CLUSTERS = 20
"""Below it percentile intervals are too narrow: of evenly spread values those of 3, 5, 10 and 20
clusters hold the mean in 75, 85, 91 and 93 of 100 samples; see tests/evaluation/statistics.
"""

# Clusters that are alike are drawn by their number, in a time that does not depend on how many
# they are; above this many different ones drawing them one by one is faster.
_ALIKE = 2_000


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Resampled:
    """Means and their resamples.

    Attributes:
      values: the means [metrics].
      draws: the means of each resample [resamples, metrics].
      clusters: how many clusters there are.
    """

    values: Numbers
    draws: Numbers
    clusters: int

    def interval(self, metric: int = 0, level: float = LEVEL) -> tuple[float, float]:
        """Returns the percentile interval of one mean; see percentile_interval.

        It is NaN for one cluster alone: every draw of it is the same.
        """
        if self.clusters == 1:
            return float("nan"), float("nan")
        return percentile_interval(self.draws[:, metric], level)


def percentile_interval(draws: Numbers, level: float = LEVEL) -> tuple[float, float]:
    """Returns the bounds between which the middle `level` of the draws that have a value lies.

    They are NaN where fewer than half have one.
    """
    found = draws[~np.isnan(draws)]
    if not len(found) or 2 * len(found) < len(draws):
        return float("nan"), float("nan")
    tail = (1 - level) / 2
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
    """Returns weighted means of columns, and the same of clusters drawn anew.

    With groups it is the mean of the means of the groups, which weigh the same in every draw; a
    draw without one of them is NaN.

    The metrics are drawn together, so that differences of two columns may be taken draw by draw.
    Rows in another order give the same numbers, to the last bit.

    Args:
      credits: [n, metrics], or [n] for one.
      clusters: for each row its cluster [n], of any type that sorts; None for a cluster a row.
      weights: of the rows [n], at least 0, or for each column its own [n, metrics]; None for equal
        ones.
      groups: for each row its group [n], of any type that sorts; None for one group.
      seed: of the draws; several numbers where parts are drawn that must not depend on each other.
      resamples: how often clusters are drawn, at least once.
    """
    exact = credits.astype(np.float64)
    columns = exact[:, None] if exact.ndim == 1 else exact
    totals, sizes = _sums(columns, clusters, groups, weights)
    if not len(sizes):
        nothing = np.full((resamples, columns.shape[1]), np.nan)
        return Resampled(values=nothing[0], draws=nothing, clusters=0)
    flat = np.column_stack([totals.reshape(len(totals), -1), sizes.reshape(len(sizes), -1)])
    kinds, counts = _alike(flat)
    rng = np.random.default_rng(seed)
    drawn = _draw_alike if len(kinds) <= _ALIKE else _draw_each
    rows = np.vstack([counts @ kinds, drawn(rng, kinds, counts, resamples)])
    parts = np.split(rows, [totals[0].size], axis=1)
    sums, weight = (
        part.reshape(-1, *like.shape[1:]) for part, like in zip(parts, (totals, sizes), strict=True)
    )
    with np.errstate(invalid="ignore"):  # a resample may draw clusters of no weight alone
        averages = (sums / weight).mean(axis=1)
    return Resampled(values=averages[0], draws=averages[1:], clusters=int(counts.sum()))


def _sums(
    columns: Numbers,
    clusters: NDArray[Any] | None,
    groups: NDArray[Any] | None,
    weights: NDArray[Any] | None,
) -> tuple[Numbers, Numbers]:
    """Returns what each cluster has of each group: weighted sums and weights.

    Returns:
      The sums [clusters, groups, metrics], and the weights [clusters, groups, 1 or metrics].
    """
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
    """Returns each cluster's weighted sums [clusters, metrics] and weights [clusters, 1+]."""
    sizes = np.ones((len(columns), 1)) if weights is None else weights.astype(np.float64)
    sizes = sizes[:, None] if sizes.ndim == 1 else sizes
    weighted = columns * sizes
    if clusters is None or not len(columns):
        return weighted, sizes
    _, numbers = np.unique(clusters, return_inverse=True)
    # Floating-point sums depend on the order of their terms, so the terms are put into one.
    order = np.lexsort([*weighted.T, *sizes.T, numbers])
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    return (
        np.add.reduceat(weighted[order], starts, axis=0),
        np.add.reduceat(sizes[order], starts),
    )


def _alike(rows: Numbers) -> tuple[Numbers, NDArray[np.int64]]:
    """Returns the distinct rows, sorted, and how often each stands; faster than `np.unique`."""
    ordered = rows[np.lexsort(rows.T[::-1])]
    starts = np.flatnonzero(np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)])
    return ordered[starts], np.diff(np.r_[starts, len(rows)])


def _draw_alike(
    rng: np.random.Generator, kinds: Numbers, counts: NDArray[Any], resamples: int
) -> Numbers:
    """Draws how many clusters of each kind there are: exact, by a multinomial distribution."""
    total = int(counts.sum())
    return rng.multinomial(total, counts / total, size=resamples) @ kinds


def _draw_each(
    rng: np.random.Generator, kinds: Numbers, counts: NDArray[Any], resamples: int
) -> Numbers:
    kind_of = np.repeat(np.arange(len(kinds)), counts)
    sums = np.empty((resamples, kinds.shape[1]))
    for row in sums:
        drawn = kind_of[rng.integers(0, len(kind_of), size=len(kind_of), dtype=np.int32)]
        row[:] = np.bincount(drawn, minlength=len(kinds)) @ kinds
    return sums


def combine(parts: Sequence[Numbers], shares: Sequence[float] | None = None) -> Numbers:
    """Returns the weighted mean of draws of independent parts, draw by draw.

    Args:
      parts: draws [resamples] of each part, drawn with different seeds.
      shares: the weight of each part; None for equal ones.
    """
    return np.average(np.stack(list(parts)), axis=0, weights=shares)
