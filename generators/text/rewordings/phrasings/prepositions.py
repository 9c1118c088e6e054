"""Prepositions of place: "next to" and "beside", "inside" and "inside of"."""

from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import tag_at, word_at
from eqforge.generators.text.rewordings.phrasings.pairs import (
    DEGREES,
    WEBSTER,
    Pair,
    precedes_phrase,
)


def _is_place(analysis: Analysis, first: int, last: int) -> bool:
    """Tells whether a preposition of place stands before a noun phrase: not "the next to last"."""
    is_free = tag_at(analysis, first - 1) not in ("DT", "PRP$", "TO")
    return (
        is_free and word_at(analysis, first - 1) != "by" and precedes_phrase(analysis, first, last)
    )


def _is_support(analysis: Analysis, first: int, last: int) -> bool:
    """Tells whether something stands on another thing: not "a kiss on top of her head"."""
    return tag_at(analysis, last) != "PRP$" and _is_place(analysis, first, last)


def _is_inside_or_outside(analysis: Analysis, first: int, last: int) -> bool:
    """Tells whether "inside" or "outside" is no noun and stands before a noun with an article."""
    before = tag_at(analysis, first - 1)
    if before.startswith(("DT", "JJ", "PRP$", "IN", "TO", "POS")):
        return False
    return word_at(analysis, last) in ("a", "an", "the") and _is_place(analysis, first, last)


def _is_distance(analysis: Analysis, first: int, last: int) -> bool:
    before = word_at(analysis, first - 1)
    is_plain = before not in (*DEGREES, "and", "or", "side")  # "clean and near modern"
    is_plain = is_plain and tag_at(analysis, last) not in ("CD", "PRP$")
    others = [token.text.lower() for token in analysis.tokens[:first] + analysis.tokens[last:]]
    is_repeated = {"close", "near"} & set(others)  # "close to a log close to a tree"
    return is_plain and not is_repeated and _is_place(analysis, first, last)


PREPOSITIONS: Final[tuple[Pair, ...]] = (
    Pair(
        one="next to",
        other="beside",
        ground="Oxford Dictionary of English, 'beside'.",
        fits=_is_place,
    ),
    Pair(
        one="on top of",
        other="atop",
        ground=f"{WEBSTER}'atop'.",
        fits=_is_support,
    ),
    Pair(
        one="near",
        other="close to",
        ground=f"{WEBSTER}'near'.",
        fits=_is_distance,
    ),
    Pair(
        one="inside",
        other="inside of",
        ground=f"{WEBSTER}'inside of'.",
        fits=_is_inside_or_outside,
    ),
    Pair(
        one="outside",
        other="outside of",
        ground=f"{WEBSTER}'outside of'.",
        fits=_is_inside_or_outside,
    ),
)
