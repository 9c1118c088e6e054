"""A pair of phrases, where either stands for the other, and what several pairs ask for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.caption_verbs import finite_forms
from eqforge.generators.text.coordination.conjuncts import tag_at, word_at

Fits = Callable[[Analysis, int, int], bool]
"""Whether a phrase may be exchanged where it stands, given its tokens; the last is exclusive."""

WEBSTER: Final = "Merriam-Webster's Collegiate Dictionary, 11th ed., "
"""Begins a ground; the word that was looked up follows."""

BE: Final = frozenset(("are", "is"))
"""Forms of "be" in captions."""

DEGREES: Final = frozenset(
    ("as", "extremely", "how", "pretty", "quite", "really", "so", "too", "up", "very")
)
"""What says how near or how close up something is: "so near", "very close up"."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """Two phrases, and where either stands for the other.

    Attributes:
      one, other: the phrases, in lower case.
      ground: why they say the same, with a source.
      fits: tells whether one of them may be exchanged where it stands.
      has_plural: whether both are nouns, of which the plurals are exchanged as well.
    """

    one: str
    other: str
    ground: str
    fits: Fits
    has_plural: bool = False


def precedes_phrase(analysis: Analysis, _: int, last: int) -> bool:
    """Tells whether a noun phrase follows, other than "last", "that" and "himself".

    Word lexicons take some verbs for nouns: "a tower with a clock atop sits".
    """
    word = word_at(analysis, last)
    if (
        word in finite_forms()
        or word in ("last", "that", "none", "nothing", "front")
        or word.endswith(("self", "selves"))
    ):
        return False
    return any(start == last for start, _ in analysis.noun_phrases)


def stands_by_itself(analysis: Analysis, _: int, last: int) -> bool:
    """Tells whether a phrase does not begin a longer one: not "each other person"."""
    return not tag_at(analysis, last).startswith(("NN", "JJ", "VBN"))
