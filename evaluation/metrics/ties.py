"""What a tie counts: scores that are equal decide nothing, so a rule has to say it."""

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb  # type: ignore[import-untyped]

Scores: TypeAlias = NDArray[np.floating[Any]]
Credits: TypeAlias = NDArray[np.float64]
"""What each item counts, in [0, 1]; a metric is their mean."""
Flags: TypeAlias = NDArray[np.bool_]

TieRule = Literal["strict", "half", "expectation"]
TIE_RULES: dict[TieRule, str] = {
    "strict": "a tie loses",
    "half": "an item that nothing but a tie keeps from being won counts one half",
    "expectation": "an item counts the probability that it is won when ties are broken at random",
}
"""Each rule in words; `strict` is what the papers' code does."""


def all_above(upper: Scores, lower: Scores, rule: TieRule = "strict") -> Credits:
    """Returns for each item what "every upper score is above every lower one" counts.

    Under `expectation` equal scores stand in random order, all orders equally likely: of k upper
    and m lower scores that share the deciding value, the upper ones come first with probability
    k! m! / (k + m)!, so that a scorer whose scores are all equal gets what chance gets.

    Args:
      upper: scores [n, a].
      lower: scores [n, b].
      rule: what a tie counts.

    Returns:
      The credits [n].
    """
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
    """Returns what an item counts that needs two comparisons of different scores.

    Args:
      first: credits [n] of one.
      second: credits [n] of the other, by the same rule.
      rule: under `expectation` the two are independent and multiply.
    """
    return first * second if rule == "expectation" else np.minimum(first, second)
