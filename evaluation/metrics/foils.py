"""Scores of one image with a caption and its foil, as VALSE reports them.

Scores are an array [n, 2]: sample; caption, foil.
"""

from __future__ import annotations

from dataclasses import dataclass

from eqforge.core.late import numpy as np
from eqforge.evaluation.metrics.ties import Credits, Flags, Scores, TieRule, all_above

CHANCE = {"acc": 1 / 2, "p_c": 1 / 2, "p_f": 1 / 2, "pairwise": 1 / 2}
"""Chance levels: a scorer that calls every caption true or false by a coin toss."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FoilCredits:
    """The credits of each sample.

    Attributes:
      p_c: the caption is called true [n]; their mean is the share of captions recognised.
      p_f: the foil is called false [n].
      acc: mean of p_c and p_f [n].
      pairwise: the caption scores above the foil [n].
      tied: caption and foil have the same score [n].
    """

    p_c: Credits
    p_f: Credits
    acc: Credits
    pairwise: Credits
    tied: Flags


def judge_foils(scores: Scores, rule: TieRule = "strict", threshold: float = 0.5) -> FoilCredits:
    """Judges every sample by VALSE's metrics; their `min` is min(mean p_c, mean p_f).

    Args:
      scores: [n, 2], sample; caption, foil.
      rule: the credit of a score equal to the other, or to the threshold.
      threshold: captions scoring above it are called true: 0.5 for probabilities, 0 for logits.

    Source: VALSE (Parcalabescu et al. 2022), section 4.2; EqBen, table 1, names acc and min.
    """
    limit = np.full((len(scores), 1), threshold, dtype=scores.dtype)
    p_c = all_above(scores[:, [0]], limit, rule)
    p_f = all_above(limit, scores[:, [1]], rule)
    return FoilCredits(
        p_c=p_c,
        p_f=p_f,
        acc=(p_c + p_f) / 2,
        pairwise=all_above(scores[:, [0]], scores[:, [1]], rule),
        tied=scores[:, 0] == scores[:, 1],
    )
