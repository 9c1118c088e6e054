"""Confidence intervals of shares, which do not collapse if all or none are right.

If none of 22 samples is right, every bootstrap draw is 0, and percentiles give [0, 0]. Here a share
of clustered samples gets Clopper and Pearson's exact interval for as many independent trials as
give the same variance. With few clusters that variance is uncertain, and the number of trials is
reduced. If the draws have no variance, or each sample is its own cluster, every cluster is a trial.

Source: Korn and Graubard 1998, "Confidence intervals for proportions with small expected number of
positive counts estimated from survey data", Survey Methodology 24; for differences Zou and Donner
2008, "Construction of confidence limits about effect measures", Statistics in Medicine 27.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Interval: TypeAlias = tuple[float, float]

LEVEL = 0.95
NO_INTERVAL: Interval = (math.nan, math.nan)

ROUNDING = 1e-9
"""Tolerance for rounding: reordered sums, and means of 0 or 1, differ by less."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Share:
    """A mean of values in [0, 1].

    Attributes:
      draws: the mean of each resample of the clusters [resamples], or NaN.
      clusters: effective number of clusters, 1 / sum of squared weights (Kish).
      samples: the maximum number of trials; infinite if some samples count a fraction.
      widening: factor on the standard deviation of the draws, at least 1.
    """

    value: float
    draws: NDArray[np.float64]
    clusters: float
    samples: float = math.inf
    widening: float = 1.0

    def interval(self, level: float = LEVEL) -> Interval:
        """Return bounds in [0, 1]; NaN if the mean or more than half of the draws are NaN."""
        found = self.draws[~np.isnan(self.draws)]
        if math.isnan(self.value) or not len(found) or 2 * len(found) < len(self.draws):
            return NO_INTERVAL
        spread = float(found.std())
        trials = self.clusters
        if spread > ROUNDING and trials < self.samples * (1 - ROUNDING):
            trials = self._trials(spread, level)
        return exact_interval(self.value, trials / self.widening**2, level)

    def _trials(self, spread: float, level: float) -> float:
        """Return the number of trials with the draws' variance; `spread` is their deviation."""
        # Draws of few clusters vary too little, and their variance is uncertain, hence Student's t;
        # with one sample per cluster both factors are 1.
        from scipy.special import stdtrit  # type: ignore[import-untyped]

        free, tail = max(self.clusters - 1, ROUNDING), (1 + level) / 2
        of_samples = stdtrit(min(self.samples - 1, 1e9), tail)
        few = free / (free + 1) / (1 - 1 / self.samples) * (of_samples / stdtrit(free, tail)) ** 2
        return float(min(few * self.value * (1 - self.value) / spread**2, self.samples))


def exact_interval(share: float, trials: float, level: float = LEVEL) -> Interval:
    """Return Clopper and Pearson's interval of a probability; trials need not be whole."""
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    right, wrong = share * trials, (1 - share) * trials
    low = betaincinv(right, wrong + 1, tail) if share > ROUNDING else 0.0
    high = betaincinv(right + 1, wrong, 1 - tail) if share < 1 - ROUNDING else 1.0
    return float(low), float(high)


def difference_interval(first: Share, second: Share, level: float = LEVEL) -> Interval:
    """Return bounds of the first share minus the second, in [-1, 1]; NaN if one has none.

    The shares are resampled together; the interval accounts for the correlation of their draws.
    """
    (low, high), (other_low, other_high) = first.interval(level), second.interval(level)
    together = _correlation(first.draws, second.draws)
    difference = first.value - second.value
    below = _side(first.value - low, other_high - second.value, together)
    above = _side(high - first.value, second.value - other_low, together)
    return float(max(difference - below, -1.0)), float(min(difference + above, 1.0))


def _side(own: float, other: float, correlation: float) -> float:
    return math.sqrt(max(0.0, own**2 - 2 * correlation * own * other + other**2))


def _correlation(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Return Pearson's correlation of draws; 0 if one does not vary."""
    found = ~(np.isnan(first) | np.isnan(second))
    if not found.any() or min(first[found].std(), second[found].std()) <= ROUNDING:
        return 0.0
    return float(np.corrcoef(first[found], second[found])[0, 1])
