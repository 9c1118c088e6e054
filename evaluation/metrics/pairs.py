"""Scores of minimal pairs: two images, two captions, and which of them match.

Scores are an array [n, 2, 2]: sample, image, caption; image i matches caption i. Higher is a better
match, on any scale. Chance levels are those of four independent scores from one continuous
distribution. Chance is not a floor: a scorer that looks only at the caption has an image score of
0, one that looks only at the image a text score of 0.

Source: Winoground (Thrush et al. 2022), section 3.3, and EqBen (Wang et al. 2023), section 5.1;
both strict, so that a tie loses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from eqforge.core.late import numpy as np
from eqforge.evaluation.metrics.ties import (
    Credits,
    Flags,
    Metric,
    Scores,
    TieRule,
    all_above,
    both,
)


def text_score(scores: Scores, rule: TieRule = "strict") -> Credits:
    """Return the credit of "each image prefers its own caption" [n]."""
    return both(*_own_captions(scores, rule), rule)


def image_score(scores: Scores, rule: TieRule = "strict") -> Credits:
    """Return the credit of "each caption prefers its own image" [n]."""
    return text_score(scores.transpose(0, 2, 1), rule)


def _own_captions(scores: Scores, rule: TieRule) -> tuple[Credits, Credits]:
    """Return for either image the credit of "it prefers its own caption"."""
    return (
        all_above(scores[:, [0], [0]], scores[:, [0], [1]], rule),
        all_above(scores[:, [1], [1]], scores[:, [1], [0]], rule),
    )


def group_score(scores: Scores, rule: TieRule = "strict") -> Credits:
    """Return the credit of "images and captions all prefer their own" [n]."""
    return all_above(scores[:, [0, 1], [0, 1]], scores[:, [0, 1], [1, 0]], rule)


def choice(scores: Scores, rule: TieRule = "strict") -> Credits:
    """Return how many of the two images prefer their own caption, as a share [n]."""
    first, second = _own_captions(scores, rule)
    return (first + second) / 2


def equivariance(scores: Scores, rule: TieRule = "strict") -> Credits:
    """Return each sample's deviation from equivariance [n]; 0 exactly if s00 = s11 and s01 = s10.

    With s(image, caption) it is ((s00 - s01) - (s11 - s10))² + ((s00 - s10) - (s11 - s01))²: a
    change from the true to the false caption has to cost both images the same, and a change from
    the true to the false image both captions. It has the square of the scores' unit, so compare
    models only on scores of one scale, such as cosines.

    Source: EqBen, section 3.2 (EqSim for close pairs) and figure 6, without margin.
    """
    del rule
    exact = scores.astype(np.float64)
    matched = exact[:, 0, 0] - exact[:, 1, 1]
    crossed = exact[:, 0, 1] - exact[:, 1, 0]
    return (matched - crossed) ** 2 + (matched + crossed) ** 2


def pair_ties(scores: Scores) -> Flags:
    """Return where a comparison within the sample ties [n], even if others decide it."""
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
"""What a table of pairs shows."""
