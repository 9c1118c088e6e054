"""Quantities: "many" and "lots of", "several" and "a number of"."""

from typing import Final

from eqforge.generators.text.analysis import Analysis, Token
from eqforge.generators.text.coordination.conjuncts import tag_at, word_at
from eqforge.generators.text.rewordings.phrasings.pairs import BE, WEBSTER, Pair

_COUNTED_BEFORE = frozenset(
    (
        *("a", "an", "as", "good", "great", "how", "is", "not", "so", "that", "the", "too"),
        *("very", "was"),
    )
)


def _counts(analysis: Analysis, first: int, last: int) -> bool:
    """Tells whether a quantity is that of a plural noun, and nothing before it belongs to it."""
    before = tag_at(analysis, first - 1), word_at(analysis, first - 1)
    if before[0] in ("DT", "PRP$", "POS", "CD") or before[1] in _COUNTED_BEFORE:
        return False
    if before[1] == "and" and word_at(analysis, first - 2) == "lots":
        return False
    if before[1] == "of" or tag_at(analysis, last) in ("VBN", "VBG", "RB"):
        return False  # "one of many", "many parked cars", which taggers may read in two ways
    if "many" in (before[1], word_at(analysis, last)):
        return False  # "many many dogs"
    for start, end in analysis.noun_phrases:
        if start in (first, last) and end > last:
            head, opening = analysis.tokens[end - 1], tag_at(analysis, last)
            is_open = opening not in ("DT", "PRP$", "CD", "PDT")
            return _is_plural(head) and is_open and not _adds_mass(analysis, end)
    return False


def _counts_large(analysis: Analysis, first: int, last: int) -> bool:
    """Tells whether nothing else is large: not "a large number of large dogs"."""
    others = analysis.tokens[:first] + analysis.tokens[last:]
    return all(token.lemma != "large" for token in others) and _counts(analysis, first, last)


def _is_plural(noun: Token) -> bool:
    return noun.tag in ("NNS", "NNPS") or noun.lemma == "people"


def _adds_mass(analysis: Analysis, end: int) -> bool:
    """Tells whether a bare singular is joined to a noun phrase: "lots of cars and traffic"."""
    for first, last in analysis.noun_phrases:
        if first == end + 1 and word_at(analysis, end) in ("&", ",", "and", "or"):
            return not _is_plural(analysis.tokens[last - 1]) and tag_at(analysis, first) != "DT"
    return False


def _is_amount(analysis: Analysis, first: int, last: int) -> bool:
    before = word_at(analysis, first - 1)
    if before in ("and", "quite", "such", "whole", "awful", "the"):
        return False
    opening = tag_at(analysis, last)
    if opening in ("DT", "PRP$", "PRP", "CD", "PDT"):
        return False
    head = next((end for start, end in analysis.noun_phrases if start == last), None)
    return head is not None and (before not in BE or analysis.tokens[head - 1].tag == "NN")


QUANTITIES: Final[tuple[Pair, ...]] = (
    Pair(
        one="a lot of",
        other="lots of",
        ground="Huddleston and Pullum 2002, ch. 5: 'a lot' and 'lots' are non-count quantity "
        "nouns of the same meaning.",
        fits=_is_amount,
    ),
    Pair(
        one="many",
        other="lots of",
        ground="Oxford Advanced Learner's Dictionary, 'lots'.",
        fits=_counts,
    ),
    Pair(
        one="many",
        other="a large number of",
        ground=f"{WEBSTER}'many'.",
        fits=_counts_large,
    ),
    Pair(
        one="several",
        other="a number of",
        ground="Oxford Dictionary of English, 'number'.",
        fits=_counts,
    ),
)
