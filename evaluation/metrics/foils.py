"""Scores of one image with captions: the original, perhaps a paraphrase of it, and a false one.

Scores are an array [n, 2] of caption and foil, or [n, 3] of original caption, hard positive and
hard negative: the first is true, the last is false.

Source: VALSE (Parcalabescu et al. 2022), section 4.2; EqBen, table 1, names acc and min. "The Hard
Positive Truth about Vision-Language Compositionality" (Kamath et al. 2024), section 4.1; strict, so
that a tie is neither right nor brittle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from eqforge.core.late import numpy as np
from eqforge.evaluation.metrics.ties import Credits, Flags, Metric, Scores, TieRule, all_above


def pairwise(scores: Scores, rule: TieRule = "strict") -> Credits:
    """Return the credit of "the first caption scores above the last" [n]."""
    return all_above(scores[:, [0]], scores[:, [-1]], rule)


def caption_recognised(scores: Scores, rule: TieRule = "strict", threshold: float = 0.5) -> Credits:
    """Return VALSE's p_c: the caption scores above a threshold, so it is called true [n]."""
    return all_above(scores[:, [0]], _limit(scores, threshold), rule)


def foil_recognised(scores: Scores, rule: TieRule = "strict", threshold: float = 0.5) -> Credits:
    """Return VALSE's p_f: the foil scores below a threshold, so it is called false [n]."""
    return all_above(_limit(scores, threshold), scores[:, [-1]], rule)


def _limit(scores: Scores, threshold: float) -> Scores:
    return np.full((len(scores), 1), threshold, dtype=scores.dtype)


def foil_accuracy(scores: Scores, rule: TieRule = "strict", threshold: float = 0.5) -> Credits:
    """Return VALSE's acc: the mean of p_c and p_f [n]."""
    recognised = caption_recognised(scores, rule, threshold)
    return (recognised + foil_recognised(scores, rule, threshold)) / 2


def augmented(scores: Scores, rule: TieRule = "strict") -> Credits:
    """Return the credit of "original and hard positive both score above the negative" [n]."""
    return all_above(scores[:, :2], scores[:, [2]], rule)


def brittleness(scores: Scores, rule: TieRule = "strict") -> Credits:
    """Return the credit of "the negative lies between original and hard positive" [n].

    Lower is better.
    """
    original, positive, negative = scores.T
    low, high = np.minimum(original, positive), np.maximum(original, positive)
    won = (low < negative) & (negative < high)
    tied = ((negative == low) | (negative == high)) & ~won
    if rule == "strict":
        return won.astype(np.float64)
    if rule == "half":
        return won + 0.5 * tied
    # A tie with one is a coin toss; of three equal scores each is equally often in the middle.
    return won + np.where(low == high, 1 / 3, 1 / 2) * tied


def foil_ties(scores: Scores) -> Flags:
    """Return where the last caption ties with another [n]."""
    return (scores[:, :-1] == scores[:, [-1]]).any(axis=1)


def mean_score(column: int) -> Metric:
    """Return the score of one of the captions as a metric."""
    return Metric(lambda scores, _: scores[:, column].astype(np.float64), unit="number")


THRESHOLDED: Final[Mapping[str, Metric]] = {
    "acc": Metric(foil_accuracy, chance=1 / 2, is_thresholded=True),
    "p_c": Metric(caption_recognised, chance=1 / 2, is_thresholded=True),
    "p_f": Metric(foil_recognised, chance=1 / 2, is_thresholded=True),
}
"""VALSE's metrics by a threshold. Chance calls every caption true or false by a coin toss."""

FOIL_METRICS: Final[Mapping[str, Metric]] = {
    "pairwise": Metric(pairwise, chance=1 / 2),
    **THRESHOLDED,
}
"""What a table of captions and foils shows."""

HARD_POSITIVE_METRICS: Final[Mapping[str, Metric]] = {
    "original": Metric(pairwise, chance=1 / 2),
    "augmented": Metric(augmented, chance=1 / 3),
    "brittleness": Metric(brittleness, chance=1 / 3, is_cost=True),
    "mean caption": mean_score(0),
    "mean hard positive": mean_score(1),
    "mean hard negative": mean_score(2),
    **THRESHOLDED,
}
"""What a table of hard positives shows. Chance: three independent scores of one distribution."""
