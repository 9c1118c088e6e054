"""Scores of one image with three captions: the original, a paraphrase, and a false one.

Scores are an array [n, 3]: sample; original caption, hard positive, hard negative.
"""

from __future__ import annotations

from dataclasses import dataclass

from eqforge.core.late import numpy as np
from eqforge.evaluation.metrics.ties import Credits, Flags, Scores, TieRule, all_above

CHANCE = {"original": 1 / 2, "augmented": 1 / 3, "brittleness": 1 / 3}
"""Chance levels: three independent scores from one continuous distribution."""

COSTS = ("brittleness",)
"""Metrics of which less is better."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class HardPositiveCredits:
    """The credits of each sample; the score is their mean.

    Attributes:
      original: the original scores above the hard negative [n].
      augmented: the original and the hard positive are both score above it [n].
      brittleness: one scores above it and the other below [n]; lower is better.
      tied: the hard negative ties with one of them [n].
    """

    original: Credits
    augmented: Credits
    brittleness: Credits
    tied: Flags


def judge_hard_positives(scores: Scores, rule: TieRule = "strict") -> HardPositiveCredits:
    """Judges every sample by original accuracy, augmented accuracy and brittleness.

    Args:
      scores: [n, 3], sample; original, hard positive, hard negative.
      rule: the credit of a tie.

    Source: "The Hard Positive Truth about Vision-Language Compositionality" (Kamath et al. 2024),
      section 4.1; strict, so that a tie is neither right nor brittle.
    """
    original, positive, negative = scores[:, [0]], scores[:, [1]], scores[:, [2]]
    return HardPositiveCredits(
        original=all_above(original, negative, rule),
        augmented=all_above(scores[:, :2], negative, rule),
        brittleness=_between(original[:, 0], negative[:, 0], positive[:, 0], rule),
        tied=((original == negative) | (positive == negative))[:, 0],
    )


def _between(first: Scores, middle: Scores, last: Scores, rule: TieRule) -> Credits:
    """Returns the credit of "the middle score lies strictly between the others" [n]."""
    low, high = np.minimum(first, last), np.maximum(first, last)
    won = (low < middle) & (middle < high)
    tied = ((middle == low) | (middle == high)) & ~won
    if rule == "strict":
        return won.astype(np.float64)
    if rule == "half":
        return won + 0.5 * tied
    # A tie with one is a coin toss; of three equal scores each is equally often in the middle.
    return won + np.where(low == high, 1 / 3, 1 / 2) * tied
