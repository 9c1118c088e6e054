"""Finds the moment at which something changes, by captions of before and after."""

import numpy as np

from eqforge.evaluation.metrics.ties import TieRule
from eqforge.evaluation.statistics.bootstrap import Numbers

THRESHOLDS_S = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
FRAMES_PER_SECOND = 5.0


def boundary_scores(before: Numbers, after: Numbers) -> Numbers:
    """Returns how well a boundary fits between each frame and the next [frames - 1].

    It is s(frame t, caption before) + s(frame t + 1, caption after): both match at once.

    Args:
      before: score of each frame with the caption of before [frames], at least two frames.
      after: score of each frame with the caption of after [frames].

    Source: EqBen (Wang et al. 2023), appendix A.6, whose words this follows.
    """
    return before[:-1] + after[1:]


def best_times_s(before: Numbers, after: Numbers, times_s: Numbers) -> Numbers:
    """Returns the time halfway between the two frames where the boundary fits best [tied places].

    It is one time, or where several places fit equally well all of them, ascending.

    Args:
      before: score of each frame with the caption of before [frames].
      after: score of each frame with the caption of after [frames].
      times_s: the frames' times [frames], ascending.
    """
    scores = boundary_scores(before, after)
    best = np.flatnonzero(scores == scores.max())
    return (times_s[best] + times_s[best + 1]) / 2


def within(
    times_s: Numbers, boundary_s: float, threshold_s: float, rule: TieRule = "strict"
) -> float:
    """Returns what a boundary counts, in [0, 1]: 1 where it is found nearer than a threshold.

    Args:
      times_s: where it is put [tied places]; several where nothing decides between them.
      boundary_s: where it is.
      threshold_s: how near is near; strict, as in GEB+.
      rule: what places count of which some alone are near: nothing, one half, or their share.

    Source: EqBen, table 12, after GEB+.
    """
    near = np.abs(times_s - boundary_s) < threshold_s
    if rule == "expectation" or near.all():
        return float(near.mean())
    return 0.5 if rule == "half" and near.any() else 0.0


def chance_within(times_s: Numbers, boundary_s: float, threshold_s: float) -> float:
    """Returns the share of all places between two frames that are near enough to a boundary.

    Args:
      times_s: the frames' times [frames], ascending, at least two.
      boundary_s: the boundary.
      threshold_s: how near is near.
    """
    return within((times_s[:-1] + times_s[1:]) / 2, boundary_s, threshold_s, "expectation")
