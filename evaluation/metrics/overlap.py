"""Which captions a perturbation helps, harms or leaves alone, and whether they stay the same."""

import itertools
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from eqforge.evaluation.metrics.ties import Flags

GROUPS = ("decreased", "increased", "unchanged")


def changes(before: NDArray[np.float64], after: NDArray[np.float64]) -> dict[str, Flags]:
    """Returns which queries are in each group, by what the perturbation did to their score.

    Args:
      before: each query's score, such as its R@1 + R@5 + R@10 [queries].
      after: the same with the perturbed caption [queries]; NaN where it was not perturbed, which is
        in no group.

    Source: Hendriksen et al. 2024, section 5.4.
    """
    difference = after - before
    return dict(zip(GROUPS, (difference < 0, difference > 0, difference == 0), strict=True))


def mean_jaccard(
    before: NDArray[np.float64], after: Mapping[str, NDArray[np.float64]]
) -> dict[str, float]:
    """Returns for each group the mean Jaccard similarity, |A and B| / |A or B|, over all pairs.

    A and B are what two perturbations do to the captions that both were applied to: a caption that
    one of them did not touch says nothing of whether they agree. The paper's perturbations are
    applied to every caption, so there it makes no difference.

    Args:
      before: each caption's score, such as its R@1 + R@5 + R@10 [captions].
      after: for each perturbation the same with the perturbed caption [captions], NaN where it was
        not perturbed or has no score.

    Returns:
      A mean in [0, 1] for each of GROUPS; pairs of empty sets are left out, and it is NaN if there
      is no other.

    Source: Hendriksen et al. 2024, section 5.4 and table 5.
    """
    shares: dict[str, list[float]] = {group: [] for group in GROUPS}
    for first, second in itertools.combinations(after.values(), 2):
        shared = np.isfinite(first) & np.isfinite(second)
        ours, theirs = (changes(before[shared], one[shared]) for one in (first, second))
        for group, found in shares.items():
            either = (ours[group] | theirs[group]).sum()
            if either:
                found.append((ours[group] & theirs[group]).sum() / either)
    return {
        group: float(np.mean(found)) if found else float("nan") for group, found in shares.items()
    }
