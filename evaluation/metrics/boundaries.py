"""Finds the moment of a change from captions of the states before and after it."""

import numpy as np

from eqforge.evaluation.metrics.ties import TieRule
from eqforge.evaluation.statistics.bootstrap import Numbers

THRESHOLDS_S = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
FRAMES_PER_SECOND = 5.0


def boundary_scores(before: Numbers, after: Numbers) -> Numbers:
    """Returns the score of a boundary between each frame and the next [frames - 1].

    It is s(frame t, caption before) + s(frame t + 1, caption after): both match at once.

    Args:
      before: score of each frame with the caption before the change [frames], at least two.
      after: score of each frame with the caption after the change [frames].

    Source: EqBen (Wang et al. 2023), appendix A.6, whose words this follows.
    """
    return before[:-1] + after[1:]


def best_times_s(before: Numbers, after: Numbers, times_s: Numbers) -> Numbers:
    """Returns the time halfway between the frames where the boundary scores best [tied places].

    It is one time, or several in ascending order where places tie.

    Args:
      before: score of each frame with the caption before the change [frames].
      after: score of each frame with the caption after the change [frames].
      times_s: the frames' times [frames], ascending.
    """
    scores = boundary_scores(before, after)
    best = np.flatnonzero(scores == scores.max())
    return (times_s[best] + times_s[best + 1]) / 2


def within(
    times_s: Numbers, boundary_s: float, threshold_s: float, rule: TieRule = "strict"
) -> float:
    """Returns a boundary's credit, in [0, 1]: 1 if found nearer than a threshold.

    Args:
      times_s: predicted times [tied places]; several where they tie.
      boundary_s: true time.
      threshold_s: tolerance, exclusive as in GEB+.
      rule: the credit where only some tied places are near: 0, one half, or their share.

    Source: EqBen, table 12, after GEB+.
    """
    near = np.abs(times_s - boundary_s) < threshold_s
    if rule == "expectation" or near.all():
        return float(near.mean())
    return 0.5 if rule == "half" and near.any() else 0.0


def chance_within(times_s: Numbers, boundary_s: float, threshold_s: float) -> float:
    """Returns the share of places between frames that are near enough to a boundary, in [0, 1].

    Args:
      times_s: the frames' times [frames], ascending, at least two.
      boundary_s: true time.
      threshold_s: tolerance, exclusive.
    """
    return within((times_s[:-1] + times_s[1:]) / 2, boundary_s, threshold_s, "expectation")
