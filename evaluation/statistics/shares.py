"""Confidence intervals of shares, which do not collapse where all or nothing was right.

Of 22 samples none of which is right every bootstrap draw is 0, and percentiles of draws say
[0, 0]. Here a share of clustered samples is taken for that of as many independent trials as have
its variance, and those trials have Clopper and Pearson's exact interval. The fewer the clusters,
the less their draws tell of that variance, and the fewer the trials. Where the draws have no
variance, every cluster is a trial.

Source: Korn and Graubard 1998, "Confidence intervals for proportions with small expected number of
positive counts estimated from survey data", Survey Methodology 24; for differences Zou and Donner
2008, "Construction of confidence limits about effect measures", Statistics in Medicine 27.
"""

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, stdtrit  # type: ignore[import-untyped]

Interval: TypeAlias = tuple[float, float]

LEVEL = 0.95
NO_INTERVAL: Interval = (math.nan, math.nan)

ROUNDING = 1e-9
"""Sums of the same values in different orders differ by less, as do means of 0 and 1 from them."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Share:
    """A mean of values in [0, 1].

    Attributes:
      value: the mean, or NaN.
      draws: the same of each resample of the clusters [resamples], NaN where it has no value.
      clusters: how many clusters of equal weight tell as much: 1 / sum of squared weights (Kish).
      samples: how many there are, and trials at most; infinite where they are no trials, for some
        count a fraction.
      widening: factor on the standard deviation of the draws, at least 1.
    """

    value: float
    draws: NDArray[np.float64]
    clusters: float
    samples: float = math.inf
    widening: float = 1.0

    def interval(self, level: float = LEVEL) -> Interval:
        """Returns bounds in [0, 1]; NaN where there is no mean, or fewer than half of the draws."""
        found = self.draws[~np.isnan(self.draws)]
        if math.isnan(self.value) or not len(found) or 2 * len(found) < len(self.draws):
            return NO_INTERVAL
        spread = float(found.std())
        trials = self.clusters
        if spread > ROUNDING:
            trials = self._trials(spread, level)
        elif math.isinf(self.samples) and ROUNDING < self.value < 1 - ROUNDING:
            return self.value, self.value  # as where every sample is a tie that counts one half
        return exact_interval(self.value, trials / self.widening**2, level)

    def _trials(self, spread: float, level: float) -> float:
        """Returns how many trials have the variance of the draws, whose deviation is `spread`."""
        # Draws of few clusters vary too little, and quantiles of Student's t say how uncertain
        # that is; of one sample a cluster both factors are 1.
        free, tail = max(self.clusters - 1, ROUNDING), (1 + level) / 2
        of_samples = stdtrit(min(self.samples - 1, 1e9), tail)
        few = free / (free + 1) / (1 - 1 / self.samples) * (of_samples / stdtrit(free, tail)) ** 2
        return float(min(few * self.value * (1 - self.value) / spread**2, self.samples))


def exact_interval(share: float, trials: float, level: float = LEVEL) -> Interval:
    """Returns Clopper and Pearson's interval of a probability.

    Args:
      share: of the trials that were right, in [0, 1].
      trials: above 0; need not be whole.
      level: probability that the interval is to hold, in (0, 1).
    """
    tail = (1 - level) / 2
    right, wrong = share * trials, (1 - share) * trials
    low = betaincinv(right, wrong + 1, tail) if share > ROUNDING else 0.0
    high = betaincinv(right + 1, wrong, 1 - tail) if share < 1 - ROUNDING else 1.0
    return float(low), float(high)


def difference_interval(first: Share, second: Share, level: float = LEVEL) -> Interval:
    """Returns bounds of the first share less the second in [-1, 1], NaN where one has none.

    Args:
      first: a share.
      second: another one, drawn together with it; how their draws correlate is minded.
      level: probability that the interval is to hold, in (0, 1).
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
    """Returns Pearson's correlation of draws, 0 where one does not vary."""
    found = ~(np.isnan(first) | np.isnan(second))
    if not found.any() or min(first[found].std(), second[found].std()) <= ROUNDING:
        return 0.0
    return float(np.corrcoef(first[found], second[found])[0, 1])
