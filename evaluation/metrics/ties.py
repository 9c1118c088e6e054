"""Metrics, and the credits of ties: equal scores decide nothing, so a rule has to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Scores: TypeAlias = "NDArray[np.floating[Any]]"
Credits: TypeAlias = "NDArray[np.float64]"
"""The credit of each item, in [0, 1]; a metric is their mean."""
Flags: TypeAlias = "NDArray[np.bool_]"
Unit = Literal["share", "number"]

TieRule = Literal["strict", "half", "expectation"]
TIE_RULES: dict[TieRule, str] = {
    "strict": "a tie loses",
    "half": "an item counts as one half if it loses only because of a tie",
    "expectation": "ties are broken at random, and an item counts as its probability of winning",
}
"""Description of each rule; the papers' code is `strict`."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A formula and its chance level.

    Attributes:
      of: maps the scores of samples [n, …] and the tie rule to credits [n]; thresholded metrics
        also take the score above which a caption is called true.
      chance: mean for random scores; None if there is no such number.
      is_thresholded: whether it needs scores with a threshold, such as probabilities.
    """

    of: Callable[..., Credits]
    chance: float | None = None
    unit: Unit = "share"
    is_thresholded: bool = False
    is_cost: bool = False


def all_above(upper: Scores, lower: Scores, rule: TieRule = "strict") -> Credits:
    """Return each item's credit of "every upper score is above every lower one".

    Under `expectation` equal scores are in random order, all orders equally likely: of k upper
    and m lower scores that share the deciding value, the upper ones come first with probability
    k! m! / (k + m)!, so a scorer whose scores are all equal gets chance level.
    Scores are [n, a] and [n, b].
    """
    from scipy.special import comb  # type: ignore[import-untyped]

    least, most = upper.min(axis=1), lower.max(axis=1)
    won, tied = least > most, least == most
    if rule == "strict":
        return won.astype(np.float64)
    if rule == "half":
        return won + 0.5 * tied
    uppers = (upper == least[:, None]).sum(axis=1)
    lowers = (lower == most[:, None]).sum(axis=1)
    return np.where(tied, 1.0 / comb(uppers + lowers, uppers), won.astype(np.float64))


def both(first: Credits, second: Credits, rule: TieRule = "strict") -> Credits:
    """Combine the credits of two comparisons [n]; under `expectation` they are independent."""
    return first * second if rule == "expectation" else np.minimum(first, second)
