"""Scores of minimal pairs: two images, two captions, and which of them match.

Scores are an array [n, 2, 2]: sample, image, caption; image i matches caption i. Higher is a better
match, on any scale.
"""

from __future__ import annotations

from dataclasses import dataclass

from eqforge.core.late import numpy as np
from eqforge.evaluation.metrics.ties import Credits, Flags, Scores, TieRule, all_above, both

CHANCE = {"text": 1 / 4, "image": 1 / 4, "group": 1 / 6}
"""Chance levels: four independent scores from one continuous distribution.

Chance is not a floor: a scorer that looks only at the caption has an image score of 0, one that
looks only at the image a text score of 0.
"""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PairCredits:
    """The credits of each sample; the score is their mean.

    Attributes:
      text: each image prefers its own caption [n].
      image: each caption prefers its own image [n].
      group: both [n].
      tied: a comparison within the sample ties [n], even if others decide it.
    """

    text: Credits
    image: Credits
    group: Credits
    tied: Flags


def judge_pairs(scores: Scores, rule: TieRule = "strict") -> PairCredits:
    """Judges every sample by the text, image and group score.

    Args:
      scores: [n, 2, 2], sample, image, caption.
      rule: the credit of a tie.

    Source: Winoground (Thrush et al. 2022), section 3.3, and EqBen (Wang et al. 2023), section 5.1;
      both strict, so that a tie loses.
    """
    right, swapped = scores[:, [0, 1], [0, 1]], scores[:, [0, 1], [1, 0]]
    text = [all_above(right[:, [i]], swapped[:, [i]], rule) for i in (0, 1)]
    image = [all_above(right[:, [i]], swapped[:, [1 - i]], rule) for i in (0, 1)]
    return PairCredits(
        text=both(text[0], text[1], rule),
        image=both(image[0], image[1], rule),
        group=all_above(right, swapped, rule),
        tied=(right[:, :, None] == swapped[:, None, :]).any(axis=(1, 2)),
    )


def equivariance(scores: Scores) -> Credits:
    """Returns each sample's deviation from equivariance; 0 is equivariant.

    With s(image, caption) it is ((s00 - s01) - (s11 - s10))² + ((s00 - s10) - (s11 - s01))²: a
    change from the true to the false caption has to cost both images the same, and a change from
    the true to the false image both captions. It has the square of the scores' unit, so compare
    models only on scores of one scale, such as cosines.

    Args:
      scores: [n, 2, 2], sample, image, caption.

    Returns:
      Deviations [n], at least 0; 0 exactly if s00 = s11 and s01 = s10.

    Source: EqBen, section 3.2 (EqSim for close pairs) and figure 6, without margin.
    """
    exact = scores.astype(np.float64)
    matched = exact[:, 0, 0] - exact[:, 1, 1]
    crossed = exact[:, 0, 1] - exact[:, 1, 0]
    return (matched - crossed) ** 2 + (matched + crossed) ** 2
