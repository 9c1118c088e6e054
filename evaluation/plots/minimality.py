"""Scores against measured minimality: is a pair harder the less its images differ?"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.evaluation.metrics.pairs import WINOGROUND
from eqforge.evaluation.plots.canvas import colour, drawing, words
from eqforge.evaluation.plots.equivariance import finish
from eqforge.evaluation.plots.pair_scores import PairScores
from eqforge.evaluation.statistics.bootstrap import resample_means
from eqforge.evaluation.tables.render import Rules

PairMetric = Literal["text", "image", "group"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bin:
    """Pairs of similar minimality.

    Attributes:
      low, high: smallest and largest measure of its pairs.
      middle: median measure.
      pairs: number of pairs.
      score, score_low, score_high: in [0, 1], with a 95 % interval by a cluster bootstrap.
    """

    low: float
    high: float
    middle: float
    pairs: int
    score: float
    score_low: float
    score_high: float


def bins_of(model: PairScores, metric: PairMetric, count: int, rules: Rules) -> list[Bin]:
    """Returns a model's score in bins with about as many pairs each; equal measures share a bin.

    Args:
      model: its scores, and the measure of each pair.
      metric: which score.
      count: maximum number of bins.
      rules: ties, seed and resamples.

    Raises:
      InputError: no pair has a measure.
    """
    known = np.isfinite(model.measured)
    if not known.any():
        raise InputError(f"{model.model}: none of the pairs that it scored was measured")
    measured, clusters = model.measured[known], model.clusters[known]
    credits = WINOGROUND[metric].of(model.scores[known], rules.ties)
    found = []
    for place, members in enumerate(_bins(measured, count)):
        drawn = resample_means(
            credits[members],
            clusters[members],
            seed=(rules.seed, place),
            resamples=rules.resamples,
        )
        low, high = drawn.share_interval()
        found.append(
            Bin(
                low=float(measured[members].min()),
                high=float(measured[members].max()),
                middle=float(np.median(measured[members])),
                pairs=int(members.sum()),
                score=float(drawn.values[0]),
                score_low=low,
                score_high=high,
            )
        )
    return found


def _bins(measured: NDArray[np.float64], count: int) -> list[NDArray[np.bool_]]:
    inner = np.unique(np.quantile(measured, np.arange(1, count) / count, method="higher"))
    places = np.searchsorted(inner, measured, side="right")
    return [places == place for place in np.unique(places)]


def draw_minimality(
    models: Sequence[tuple[str, Sequence[Bin]]],
    metric: PairMetric,
    measure: str,
    title: str,
    path: Path,
) -> None:
    """Draws a line per model, with intervals, over the bins' medians; chance is dotted."""
    with drawing(path) as axes:
        for place, (name, bins) in enumerate(models):
            at = [one.middle for one in bins]
            scores = np.array([one.score for one in bins])
            around = [
                scores - [one.score_low for one in bins],
                [one.score_high for one in bins] - scores,
            ]
            axes.errorbar(
                at,
                100 * scores,
                yerr=100 * np.clip(around, 0, None),
                label=words(name),
                marker="o",
                markersize=3,
                capsize=2,
                linewidth=1.2,
                **colour(place),
            )
        axes.axhline(
            100 * (WINOGROUND[metric].chance or 0.0), color="#999999", linestyle=":", label="chance"
        )
        axes.set_ylim(bottom=0)
        finish(axes, title, measure.replace("_", " "), f"{metric} score, per cent")
