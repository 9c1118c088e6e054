"""What a thing holds, is covered with, or is made of: "filled with" and "full of"."""

from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import tag_at, word_at
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.rewordings.phrasings.pairs import BE, Pair, precedes_phrase

_FOODS = frozenset(("dish", "sweet"))
_FOLDED = frozenset(("bagel", "bread", "bun", "crepe", "omelet", "pastry", "pita", "roll", "wrap"))


def _is_full(analysis: Analysis, first: int, last: int) -> bool:
    """Tells whether what is full is named right before, and is no food with a filling."""
    is_one = tag_at(analysis, last) in ("DT", "CD", "PRP$") or word_at(analysis, last) == "lots"
    if is_one or not precedes_phrase(analysis, first, last) or _adds_one(analysis, last):
        return False  # "filled with a bowl", "filled with lots of"
    if word_at(analysis, first - 1) in BE:
        return word_at(analysis, first - 2) in ("that", "which")
    if not tag_at(analysis, first - 1).startswith("NN") or word_at(analysis, first - 1) == "half":
        return False
    holder = analysis.tokens[first - 1].lemma
    is_food = bool(_FOODS & set(closed_classes("object").groups.get(holder, ())))
    return not is_food and holder not in _FOLDED


def _adds_one(analysis: Analysis, start: int) -> bool:
    """Tells whether one thing is joined to a noun phrase: "furniture and a window"."""
    end = next((last for first, last in analysis.noun_phrases if first == start), start)
    while word_at(analysis, end) == ",":
        end = next((last for first, last in analysis.noun_phrases if first == end + 1), start)
    joined = end + (word_at(analysis, end) in ("&", "and"))
    return joined > end and word_at(analysis, joined) in ("a", "an", "one", "the")


def _is_covered_all_over(analysis: Analysis, first: int, last: int) -> bool:
    """Tells whether what covers has no article: "covered in snow", not "covered in a box"."""
    has_article = tag_at(analysis, last) in ("DT", "PRP$", "CD", "PRP", "WP", "EX")
    return not has_article and precedes_phrase(analysis, first, last)


def _is_material(analysis: Analysis, first: int, last: int) -> bool:
    before = tag_at(analysis, first - 1)
    is_behind = before.startswith("NN") or word_at(analysis, first - 1) in BE
    return is_behind and _is_covered_all_over(analysis, first, last)


STATES: Final[tuple[Pair, ...]] = (
    Pair(
        one="filled with",
        other="full of",
        ground="Oxford Advanced Learner's Dictionary, 'full of'.",
        fits=_is_full,
    ),
    Pair(
        one="covered in",
        other="covered with",
        ground="Oxford Advanced Learner's Dictionary, 'covered'.",
        fits=_is_covered_all_over,
    ),
    Pair(
        one="made of",
        other="made out of",
        ground="Oxford Advanced Learner's Dictionary, 'make'.",
        fits=_is_material,
    ),
)
