"""Psychometric functions in a table: thresholds and slopes with intervals, and notes on them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from eqforge.evaluation.metrics.psychometric import REACHED, Curves, fit_curves
from eqforge.evaluation.statistics.bootstrap import ENOUGH_CLUSTERS, resample_means
from eqforge.evaluation.statistics.shares import LEVEL, NO_INTERVAL, Interval
from eqforge.evaluation.tables.report import Judged, Measure, Rules, as_measure

if TYPE_CHECKING:
    from numpy.typing import NDArray

HOW_FITTED: Final = (
    f"Threshold: the size at which {REACHED:.0%} are right, by a logistic function of log2 of the",
    "size that begins at chance and leaves at most 6 % lapses (Wichmann and Hill 2001), sought",
    "between the smallest and the largest size alone. Slope: rise of the log-odds each time the",
    "size doubles. Intervals of both, and of the share at the largest, are percentiles.",
)
"""What a reader has to know of the numbers."""

_MISFIT: Final = 0.02
"""What is right may lie so far off the curve without a note."""


class FittedCurves:
    """Fits curves to judgements.

    Attributes:
      said: what was noticed, in words.
    """

    def __init__(self) -> None:
        """Has fitted nothing yet."""
        self.said: list[str] = []

    def of(
        self,
        model: str,
        subset: str,
        metric: str,
        judged: Judged,
        at: NDArray[np.bool_],
        sizes: NDArray[np.float64],
        rules: Rules,
    ) -> Iterator[Measure]:
        """Yields threshold, slope and the share at the largest size, of one judgement.

        Args:
          model: what is measured.
          subset: of which samples.
          metric: the judgement, whose chance is one half.
          judged: its credits [n].
          at: which sample is of which size [n, k].
          sizes: above 0 [k].
          rules: how intervals are drawn.
        """
        right = at * judged.credits[metric][:, None]
        found = resample_means(
            np.column_stack([right, at]),
            judged.clusters,
            seed=(rules.seed, zlib.crc32(subset.encode())),
            resamples=rules.resamples,
        )
        rows = np.vstack([found.values, found.draws]) * len(at)
        hits, asked = np.split(rows, 2, axis=1)
        curves = fit_curves(sizes, hits, asked)
        self._say(f"{model}, {subset}, {metric}", curves)
        if found.clusters >= ENOUGH_CLUSTERS:
            self._say_misfit(f"{model}, {subset}, {metric}", curves, sizes, hits, asked)
        like = as_measure(model, subset, metric, judged, found, 0)
        like = replace(like, unit="number", chance=None, ties=None)
        alone = found.clusters == 1
        for name, values in (("threshold", curves.thresholds), ("slope", curves.slopes)):
            low, high = NO_INTERVAL if alone else _interval(values[1:])
            yield replace(
                like, metric=f"{metric} {name}", value=float(values[0]), low=low, high=high
            )
        shares = curves.share(sizes.max())
        low, high = NO_INTERVAL if alone else _interval(shares[1:])
        yield replace(
            like,
            unit="share",
            metric=f"{metric} at largest",
            value=float(shares[0]),
            low=low,
            high=high,
        )

    def _say(self, where: str, curves: Curves) -> None:
        threshold, slope, smallest, largest = (
            float(values[0])
            for values in (curves.thresholds, curves.slopes, curves.smallest, curves.largest)
        )
        if np.isinf(threshold):
            self.said.append(f"{where}: {REACHED:.0%} is not reached by {largest:.3g}")
        elif threshold == smallest:
            self.said.append(
                f"{where}: {REACHED:.0%} is reached at {smallest:.3g}; the threshold is no larger"
            )
        if np.isinf(slope):
            self.said.append(f"{where}: a step, of which no slope can be told")

    def _say_misfit(
        self,
        where: str,
        curves: Curves,
        sizes: NDArray[np.float64],
        hits: NDArray[np.float64],
        asked: NDArray[np.float64],
    ) -> None:
        """Notes each size at which what was right lies off the curve, in nearly all draws too."""
        for size, right, of in zip(sizes, hits.T, asked.T, strict=True):
            share, fitted = right / np.where(of > 0, of, np.nan), curves.share(size)
            low, high = _interval((share - fitted)[1:], 1 - (1 - LEVEL) / len(sizes))
            if (low > 0 or high < 0) and abs(share[0] - fitted[0]) > _MISFIT:
                self.said.append(
                    f"{where}: the curve does not hold: at {size:.3g} it says {fitted[0]:.1%}, "
                    f"and {share[0]:.1%} are right"
                )


def _interval(draws: NDArray[np.float64], level: float = LEVEL) -> Interval:
    """Returns the bounds of the central `level` of draws that are not NaN, which may be infinite.

    They are NaN where more than half are.
    """
    found = draws[~np.isnan(draws)]
    if 2 * len(found) < len(draws):
        return NO_INTERVAL
    tail = (1 - level) / 2
    low, high = np.quantile(found, [tail, 1 - tail], method="closest_observation")
    return float(low), float(high)
