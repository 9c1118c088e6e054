"""Scores of minimal pairs, and of one image with true and false captions.

Scores of pairs are an array [n, 2, 2] (sample, image, caption), in which image i matches caption i.
Scores of one image are an array [n, 2] (caption, foil) or [n, 3] (caption, hard positive, hard
negative). The first caption is true, and the last is false. Higher scores mean better matches.

Chance levels assume independent scores from the same continuous distribution. A model can score
below chance: a model that ignores the image has an image score of 0, and a model that ignores the
caption has a text score of 0.

Source: Winoground (Thrush et al. 2022), section 3.3, and EqBen (Wang et al. 2023), section 5.1;
VALSE (Parcalabescu et al. 2022), section 4.2 (EqBen's table 1 mentions its acc and min); "The Hard
Positive Truth about Vision-Language Compositionality" (Kamath et al. 2024), section 4.1. In these
papers, a tie counts as wrong, but not as brittle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from eqforge.evaluation.metrics.ties import Credits, Flags, Metric, Scores, TieRule, all_above, both


def text_score(scores: Scores, rule: TieRule = "strict") -> Credits:
    """Credit each sample in which both images score higher with their own caption [n]."""
    return both(*_own_captions(scores, rule), rule)


def image_score(scores: Scores, rule: TieRule = "strict") -> Credits:
    """Credit each sample in which both captions score higher with their own image [n]."""
    return text_score(scores.transpose(0, 2, 1), rule)


def _own_captions(scores: Scores, rule: TieRule) -> tuple[Credits, Credits]:
    return (
        all_above(scores[:, [0], [0]], scores[:, [0], [1]], rule),
        all_above(scores[:, [1], [1]], scores[:, [1], [0]], rule),
    )


def group_score(scores: Scores, rule: TieRule = "strict") -> Credits:
    """Credit each sample in which every matching score is above every mismatched score [n]."""
    return all_above(scores[:, [0, 1], [0, 1]], scores[:, [0, 1], [1, 0]], rule)


def choice(scores: Scores, rule: TieRule = "strict") -> Credits:
    """Return the fraction of the two images that score higher with their own caption [n]."""
    first, second = _own_captions(scores, rule)
    return (first + second) / 2


def equivariance(scores: Scores, rule: TieRule = "strict") -> Credits:
    """Return each sample's deviation from equivariance [n]; 0 iff s00 = s11 and s01 = s10.

    With s(image, caption), the deviation is ((s00 - s01) - (s11 - s10))² + ((s00 - s10) - (s11 -
    s01))². It is 0 if a false caption lowers the scores of both images equally, and a false image
    lowers the scores of both captions equally. Its unit is the square of the scores' unit, so
    compare only models whose scores have the same scale, such as cosines.

    Source: EqBen, section 3.2 (EqSim for close pairs) and figure 6, without margin.
    """
    del rule
    exact = scores.astype(np.float64)
    matched = exact[:, 0, 0] - exact[:, 1, 1]
    crossed = exact[:, 0, 1] - exact[:, 1, 0]
    return (matched - crossed) ** 2 + (matched + crossed) ** 2


def pair_ties(scores: Scores) -> Flags:
    """Flag samples with a tied comparison [n], even if other comparisons decide the result."""
    right, swapped = scores[:, [0, 1], [0, 1]], scores[:, [0, 1], [1, 0]]
    return (right[:, :, None] == swapped[:, None, :]).any(axis=(1, 2))


WINOGROUND: Final[Mapping[str, Metric]] = {
    "text": Metric(text_score, chance=1 / 4),
    "image": Metric(image_score, chance=1 / 4),
    "group": Metric(group_score, chance=1 / 6),
}
PAIR_METRICS: Final[Mapping[str, Metric]] = {
    **WINOGROUND,
    "equivariance": Metric(equivariance, unit="number"),
}


def pairwise(scores: Scores, rule: TieRule = "strict") -> Credits:
    """Credit each sample whose first caption scores above its last caption [n]."""
    return all_above(scores[:, [0]], scores[:, [-1]], rule)


def caption_recognised(scores: Scores, rule: TieRule = "strict", threshold: float = 0.5) -> Credits:
    """VALSE's p_c: credit each caption that scores above a threshold [n]."""
    return all_above(scores[:, [0]], _limit(scores, threshold), rule)


def foil_recognised(scores: Scores, rule: TieRule = "strict", threshold: float = 0.5) -> Credits:
    """VALSE's p_f: credit each foil that scores below a threshold [n]."""
    return all_above(_limit(scores, threshold), scores[:, [-1]], rule)


def _limit(scores: Scores, threshold: float) -> Scores:
    return np.full((len(scores), 1), threshold, dtype=scores.dtype)


def foil_accuracy(scores: Scores, rule: TieRule = "strict", threshold: float = 0.5) -> Credits:
    """VALSE's acc: mean of p_c and p_f [n]."""
    recognised = caption_recognised(scores, rule, threshold)
    return (recognised + foil_recognised(scores, rule, threshold)) / 2


def augmented(scores: Scores, rule: TieRule = "strict") -> Credits:
    """Credit each sample whose caption and hard positive score above the hard negative [n]."""
    return all_above(scores[:, :2], scores[:, [2]], rule)


def brittleness(scores: Scores, rule: TieRule = "strict") -> Credits:
    """Credit each sample whose hard negative scores between the other two [n]; lower is better."""
    original, positive, negative = scores.T
    low, high = np.minimum(original, positive), np.maximum(original, positive)
    won = (low < negative) & (negative < high)
    tied = ((negative == low) | (negative == high)) & ~won
    if rule == "strict":
        return won.astype(np.float64)
    if rule == "half":
        return won + 0.5 * tied
    # A tie with one is a coin toss; each of three equal scores is equally often in the middle.
    return won + np.where(low == high, 1 / 3, 1 / 2) * tied


def foil_ties(scores: Scores) -> Flags:
    """Flag samples whose last caption ties with another caption [n]."""
    return (scores[:, :-1] == scores[:, [-1]]).any(axis=1)


def mean_score(column: int) -> Metric:
    return Metric(lambda scores, _: scores[:, column].astype(np.float64), unit="number")


THRESHOLDED: Final[Mapping[str, Metric]] = {
    "acc": Metric(foil_accuracy, chance=1 / 2, is_thresholded=True),
    "p_c": Metric(caption_recognised, chance=1 / 2, is_thresholded=True),
    "p_f": Metric(foil_recognised, chance=1 / 2, is_thresholded=True),
}
"""VALSE's metrics with a threshold. Chance calls every caption true or false by a coin toss."""

FOIL_METRICS: Final[Mapping[str, Metric]] = {
    "pairwise": Metric(pairwise, chance=1 / 2),
    **THRESHOLDED,
}

HARD_POSITIVE_METRICS: Final[Mapping[str, Metric]] = {
    "original": Metric(pairwise, chance=1 / 2),
    "augmented": Metric(augmented, chance=1 / 3),
    "brittleness": Metric(brittleness, chance=1 / 3, is_cost=True),
    "mean caption": mean_score(0),
    "mean hard positive": mean_score(1),
    "mean hard negative": mean_score(2),
    **THRESHOLDED,
}
"""Metrics of hard positives. Chance: three independent scores of one distribution."""

COSTS: Final = frozenset(
    name
    for metrics in (PAIR_METRICS, FOIL_METRICS, HARD_POSITIVE_METRICS)
    for name, metric in metrics.items()
    if metric.is_cost
)
