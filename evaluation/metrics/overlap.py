"""Which captions a perturbation helps, harms or leaves alone, and whether they stay the same."""

import itertools
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from eqforge.evaluation.metrics.ties import Flags

GROUPS = ("decreased", "increased", "unchanged")


def changes(before: NDArray[np.float64], after: NDArray[np.float64]) -> dict[str, Flags]:
    """Returns the queries in each group of GROUPS, by the change of their score [queries].

    Args:
      before: each query's score, such as its R@1 + R@5 + R@10 [queries].
      after: the same with the perturbed caption [queries]; NaN where it was not perturbed, and
        the query is in no group.

    Source: Hendriksen et al. 2024, section 5.4.
    """
    difference = after - before
    return dict(zip(GROUPS, (difference < 0, difference > 0, difference == 0), strict=True))


def mean_jaccard(
    before: NDArray[np.float64], after: Mapping[str, NDArray[np.float64]]
) -> dict[str, float]:
    """Returns for each group the mean Jaccard similarity, |A and B| / |A or B|, of perturbations.

    A and B are the groups of two perturbations, among the captions that both changed: a caption
    that one left unchanged does not show whether they agree. The paper's perturbations apply to
    every caption, so there it makes no difference.

    Args:
      before: each caption's score, such as its R@1 + R@5 + R@10 [captions].
      after: by perturbation, the same with the perturbed caption [captions]; NaN where it was not
        perturbed or has no score.

    Returns:
      A mean in [0, 1] for each of GROUPS, over pairs of perturbations; pairs of empty sets are
      left out, and it is NaN if none remains.

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
