"""Confidence intervals of means whose terms come in clusters, such as the captions of an image."""

import numpy as np
import numpy.typing as npt

_CHUNK = 2_000_000


def cluster_interval(
    values: npt.NDArray[np.float64],
    clusters: npt.NDArray[np.int64],
    *,
    seed: int,
    resamples: int = 1000,
    level: float = 0.95,
) -> tuple[float, float]:
    """Returns the percentile bootstrap interval of a mean, drawing whole clusters.

    Args:
      values: the terms [n], at least one.
      clusters: for each term the number of its cluster [n].
      seed: of the draws; the same seed gives the same interval.
      resamples: how often clusters are drawn.
      level: probability that the interval is to hold, in (0, 1).

    Returns:
      Lower and upper bound; both are the mean where there is one cluster.
    """
    _, numbers = np.unique(clusters, return_inverse=True)
    sums = np.bincount(numbers, weights=values)
    sizes = np.bincount(numbers).astype(float)
    rng = np.random.default_rng(seed)
    means = []
    rows = max(1, _CHUNK // len(sums))
    for start in range(0, resamples, rows):
        shape = (min(rows, resamples - start), len(sums))
        drawn = rng.integers(0, len(sums), size=shape)
        means.append(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))
    tail = (1 - level) / 2
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail])
    return float(low), float(high)
