"""Pronouns, and what stands for them: "each other", "someone"."""

from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import word_at
from eqforge.generators.text.rewordings.phrasings.pairs import WEBSTER, Pair, stands_by_itself


def _is_unnamed(analysis: Analysis, first: int, last: int) -> bool:
    """Tells whether a person opens the caption as a noun phrase: not in "a person shaped cake"."""
    is_whole = (first, last) in analysis.noun_phrases and word_at(analysis, last) != "else"
    return first == 0 and is_whole and stands_by_itself(analysis, first, last)


EACH_OTHER: Final = Pair(
    one="each other",
    other="one another",
    ground=f"{WEBSTER}'one another'.",
    fits=stands_by_itself,
)

SOMEONE: Final = Pair(
    one="a person",
    other="someone",
    ground="Oxford Advanced Learner's Dictionary, 'someone'.",
    fits=_is_unnamed,
)
