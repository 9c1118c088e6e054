"""Pairs of phrases of which either can stand for the other: "each other" and "one another".

Left out, because only one of the two follows from the other: "a couple of" and "two" (it may be
three), "on top of" and "on" (a picture on a wall), "in the middle of" and "in the center of".
"""

import functools
import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from eqforge.generators.text.analysis import Analysis, Token
from eqforge.generators.text.caption_verbs import finite_forms
from eqforge.generators.text.coordination.conjuncts import PRONOUNS
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.perturbations.synonyms import article_edits, match_case
from eqforge.generators.text.rewordings.records import (
    Edits,
    Rule,
    exchange_name,
    has_plain_spacing,
    replacement,
)
from eqforge.generators.text.words import word_set

Fits = Callable[[Analysis, int, int], bool]
"""Whether a phrase may be exchanged where it stands, given its tokens; the last is exclusive."""

_WEBSTER: Final = "Merriam-Webster's Collegiate Dictionary, 11th ed., "
_OXFORD: Final = "Oxford Advanced Learner's Dictionary, "
_ENGLISH: Final = "Oxford Dictionary of English, "
_BE: Final = frozenset(("are", "is"))
"""Forms of "be" in captions."""

_DEGREES: Final = word_set("phrasings.degrees")
"""What says how near or how close up something is: "so near", "very close up"."""


class Pair(NamedTuple):
    """Two phrases in lower case, the source that says they mean the same, and where either fits."""

    one: str
    other: str
    ground: str
    fits: Fits
    has_plural: bool = False


def precedes_phrase(analysis: Analysis, _: int, last: int) -> bool:
    """Return True if a noun phrase follows, other than "last", "that" and "himself".

    Word lexicons take some verbs for nouns: "a tower with a clock atop sits".
    """
    word = analysis.word(last)
    if (
        word in finite_forms()
        or word in ("last", "that", "none", "nothing", "front")
        or word.endswith(("self", "selves"))
    ):
        return False
    return any(start == last for start, _ in analysis.noun_phrases)


def stands_by_itself(analysis: Analysis, _: int, last: int) -> bool:
    """Return True if a phrase does not begin a longer one: not "each other person"."""
    return not analysis.tag(last).startswith(("NN", "JJ", "VBN"))


def _is_unnamed(analysis: Analysis, first: int, last: int) -> bool:
    """Say whether a person opens the caption as a noun phrase: not in "a person shaped cake"."""
    is_whole = (first, last) in analysis.noun_phrases and analysis.word(last) != "else"
    return first == 0 and is_whole and stands_by_itself(analysis, first, last)


def _is_place(analysis: Analysis, first: int, last: int) -> bool:
    """Say whether a preposition of place stands before a noun phrase: not "the next to last"."""
    is_free = analysis.tag(first - 1) not in ("DT", "PRP$", "TO")
    return is_free and analysis.word(first - 1) != "by" and precedes_phrase(analysis, first, last)


def _is_support(analysis: Analysis, first: int, last: int) -> bool:
    """Say whether something stands on another thing: not "a kiss on top of her head"."""
    return analysis.tag(last) != "PRP$" and _is_place(analysis, first, last)


def _is_inside_or_outside(analysis: Analysis, first: int, last: int) -> bool:
    """Say whether "inside" or "outside" is no noun and stands before a noun with an article."""
    before = analysis.tag(first - 1)
    if before.startswith(("DT", "JJ", "PRP$", "IN", "TO", "POS")):
        return False
    return analysis.word(last) in ("a", "an", "the") and _is_place(analysis, first, last)


def _is_distance(analysis: Analysis, first: int, last: int) -> bool:
    before = analysis.word(first - 1)
    is_plain = before not in (*_DEGREES, "and", "or", "side")  # "clean and near modern"
    is_plain = is_plain and analysis.tag(last) not in ("CD", "PRP$")
    others = [token.text.lower() for token in analysis.tokens[:first] + analysis.tokens[last:]]
    is_repeated = {"close", "near"} & set(others)  # "close to a log close to a tree"
    return is_plain and not is_repeated and _is_place(analysis, first, last)


_FOODS = frozenset(("dish", "sweet"))
_FOLDED = frozenset(("bagel", "bread", "bun", "crepe", "omelet", "pastry", "pita", "roll", "wrap"))


def _is_full(analysis: Analysis, first: int, last: int) -> bool:
    """Say whether what is full is named right before, and is no food with a filling."""
    is_one = analysis.tag(last) in ("DT", "CD", "PRP$") or analysis.word(last) == "lots"
    if is_one or not precedes_phrase(analysis, first, last):
        return False  # "filled with a bowl", "filled with lots of"
    start, end = last, dict(analysis.noun_phrases).get(last, last)
    while analysis.word(end) == ",":
        end = dict(analysis.noun_phrases).get(end + 1, start)
    joined = end + (analysis.word(end) in ("&", "and"))
    if joined > end and analysis.word(joined) in ("a", "an", "one", "the"):
        return False  # "furniture and a window"
    if analysis.word(first - 1) in _BE:
        return analysis.word(first - 2) in ("that", "which")
    if not analysis.tag(first - 1).startswith("NN") or analysis.word(first - 1) == "half":
        return False
    holder = analysis.tokens[first - 1].lemma
    is_food = bool(_FOODS & set(closed_classes("object").groups.get(holder, ())))
    return not is_food and holder not in _FOLDED


def _is_covered_all_over(analysis: Analysis, first: int, last: int) -> bool:
    """Say whether what covers has no article: "covered in snow", not "covered in a box"."""
    has_article = analysis.tag(last) in ("DT", "PRP$", "CD", "PRP", "WP", "EX")
    return not has_article and precedes_phrase(analysis, first, last)


def _is_material(analysis: Analysis, first: int, last: int) -> bool:
    before = analysis.tag(first - 1)
    is_behind = before.startswith("NN") or analysis.word(first - 1) in _BE
    return is_behind and _is_covered_all_over(analysis, first, last)


_COUNTED_BEFORE = word_set("phrasings.counted_before")


def _counts(analysis: Analysis, first: int, last: int) -> bool:
    """Say whether a quantity is that of a plural noun, and nothing before it belongs to it."""
    before = analysis.tag(first - 1), analysis.word(first - 1)
    if before[0] in ("DT", "PRP$", "POS", "CD") or before[1] in _COUNTED_BEFORE:
        return False
    if before[1] == "and" and analysis.word(first - 2) == "lots":
        return False
    if before[1] == "of" or analysis.tag(last) in ("VBN", "VBG", "RB"):
        return False  # "one of many", "many parked cars", which taggers may read in two ways
    if "many" in (before[1], analysis.word(last)):
        return False  # "many many dogs"
    for start, end in analysis.noun_phrases:
        if start in (first, last) and end > last:
            head, opening = analysis.tokens[end - 1], analysis.tag(last)
            is_open = opening not in ("DT", "PRP$", "CD", "PDT")
            other = analysis.phrase_from(end + 1)
            if other is not None and analysis.word(end) in ("&", ",", "and", "or"):
                noun = analysis.tokens[other[1] - 1]
                if not _is_plural(noun) and analysis.tag(other[0]) != "DT":
                    return False  # "lots of cars and traffic"
            return _is_plural(head) and is_open
    return False


def _counts_large(analysis: Analysis, first: int, last: int) -> bool:
    """Say whether nothing else is large: not "a large number of large dogs"."""
    others = analysis.tokens[:first] + analysis.tokens[last:]
    return all(token.lemma != "large" for token in others) and _counts(analysis, first, last)


def _is_plural(noun: Token) -> bool:
    return noun.tag in ("NNS", "NNPS") or noun.lemma == "people"


def _is_amount(analysis: Analysis, first: int, last: int) -> bool:
    before = analysis.word(first - 1)
    if before in ("and", "quite", "such", "whole", "awful", "the"):
        return False
    opening = analysis.tag(last)
    if opening in ("DT", "PRP$", "PRP", "CD", "PDT"):
        return False
    head = next((end for start, end in analysis.noun_phrases if start == last), None)
    return head is not None and (before not in _BE or analysis.tokens[head - 1].tag == "NN")


_NON_COUNT = (
    "Huddleston and Pullum 2002, ch. 5: 'a lot' and 'lots' are non-count quantity nouns of the "
    "same meaning."
)
_COMPOUND = (
    "Quirk et al. 1985, A Comprehensive Grammar of the English Language, ch. 17: a noun before a "
    "noun says what a prepositional phrase says behind it."
)


def _is_whole_noun(analysis: Analysis, first: int, last: int) -> bool:
    """Say whether a noun is no part of a compound, such as "photo booth", and no verb."""
    if analysis.tag(last) in ("DT", "PRP", "PRP$"):
        return False  # "photographs herself"
    return not any(
        analysis.tag(index).startswith("NN") or analysis.tag(index) in ("HYPH", "POS")
        for index in (first - 1, last)
    )


def _opens_frame(analysis: Analysis, first: int, last: int) -> bool:
    """Say whether the caption opens with a noun for itself: "a large picture of a dog"."""
    opener = analysis.word(0) in ("a", "an", "the", "this") or first == 0
    is_first = bool(analysis.noun_phrases) and analysis.noun_phrases[0] == (0, last)
    is_of = analysis.word(last) == "of" and analysis.tag(last + 1) not in PRONOUNS
    return opener and is_first and is_of and _is_whole_noun(analysis, first, last)


def _opens_caption(analysis: Analysis, first: int, last: int) -> bool:
    """Say whether a whole noun opens the caption, or what stands before its "of"."""
    return first == 0 and _is_whole_noun(analysis, first, last)


def _is_undescribed(analysis: Analysis, first: int, last: int) -> bool:
    """Say whether no participle follows a new noun: not "a city street lined with cars"."""
    is_described = analysis.tag(last) in ("VBG", "VBN")
    return not is_described and _is_new_whole_noun(analysis, first, last)


def _is_new_whole_noun(analysis: Analysis, first: int, last: int) -> bool:
    """Say whether a noun is no part of a compound, and its phrase begins with "a"."""
    begins = any(
        start <= first < end and analysis.word(start) in ("a", "an")
        for start, end in analysis.noun_phrases
    )
    return begins and _is_whole_noun(analysis, first, last)


def _is_close_up(analysis: Analysis, first: int, last: int) -> bool:
    """Say whether what is close up has no degree: not "a very close up view"."""
    is_free = analysis.word(first - 1) not in _DEGREES
    return is_free and precedes_phrase(analysis, first, last)


_PAIRS: Final = (
    Pair("each other", "one another", f"{_WEBSTER}'one another'.", stands_by_itself),
    Pair("next to", "beside", f"{_ENGLISH}'beside'.", _is_place),
    Pair("on top of", "atop", f"{_WEBSTER}'atop'.", _is_support),
    Pair("near", "close to", f"{_WEBSTER}'near'.", _is_distance),
    Pair("inside", "inside of", f"{_WEBSTER}'inside of'.", _is_inside_or_outside),
    Pair("outside", "outside of", f"{_WEBSTER}'outside of'.", _is_inside_or_outside),
    Pair("filled with", "full of", f"{_OXFORD}'full of'.", _is_full),
    Pair("covered in", "covered with", f"{_OXFORD}'covered'.", _is_covered_all_over),
    Pair("made of", "made out of", f"{_OXFORD}'make'.", _is_material),
    Pair("a person", "someone", f"{_OXFORD}'someone'.", _is_unnamed),
    Pair("a lot of", "lots of", _NON_COUNT, _is_amount),
    Pair("many", "lots of", f"{_OXFORD}'lots'.", _counts),
    Pair("many", "a large number of", f"{_WEBSTER}'many'.", _counts_large),
    Pair("several", "a number of", f"{_ENGLISH}'number'.", _counts),
    Pair("photo", "photograph", f"{_WEBSTER}'photo'.", _is_whole_noun, has_plural=True),
    Pair("close up of", "close up view of", f"{_OXFORD}'close-up'.", _is_close_up),
    Pair("closeup of", "closeup view of", f"{_OXFORD}'close-up'.", _is_close_up),
    Pair("laptop", "laptop computer", f"{_OXFORD}'laptop'.", _is_whole_noun, has_plural=True),
    Pair("stuffed animal", "stuffed toy", f"{_OXFORD}'stuffed animal'.", _is_whole_noun, True),
    Pair("fire hydrant", "hydrant", f"{_WEBSTER}'hydrant'.", _is_whole_noun, has_plural=True),
    Pair("baseball player", "ballplayer", f"{_ENGLISH}'ballplayer'.", _is_whole_noun, True),
    Pair("street light", "streetlight", f"{_WEBSTER}'streetlight'.", _is_whole_noun, True),
    Pair("a baseball game", "a game of baseball", _COMPOUND, _opens_caption),
    Pair("a soccer game", "a game of soccer", _COMPOUND, _opens_caption),
    Pair("a tennis game", "a game of tennis", _COMPOUND, _opens_caption),
    Pair("city street", "street in a city", _COMPOUND, _is_undescribed),
    Pair("picture", "image", f"{_WEBSTER}'picture'.", _opens_frame),
)


def _find(pair: Pair, phrase: str, analysis: Analysis) -> Iterator[Edits]:
    if not _pattern(phrase).search(analysis.text):
        return
    other = pair.other if phrase == pair.one else pair.one
    size = len(phrase.split())
    for first in range(len(analysis.tokens) - size + 1):
        last = first + size
        words = " ".join(analysis.word(index) for index in range(first, last))
        ending = "s" if pair.has_plural and words == f"{phrase}s" else ""
        longer = tuple(other.split())  # "inside" may be the start of "inside of"
        is_part = len(longer) > 1 and analysis.words((first, first + len(longer))) == longer
        if words != phrase + ending or is_part:
            continue
        if not (has_plain_spacing(analysis, first, last) and pair.fits(analysis, first, last)):
            continue
        if any(token.text[0].isupper() for token in analysis.tokens[first + 1 : last]):
            continue
        cased = match_case(other + ending, analysis.tokens[first].text)
        if analysis.tokens[first].text == "A":
            cased = other[0].upper() + other[1:]
        edit = replacement(analysis, first, last, cased)
        yield (*article_edits(analysis.tokens, first, other), edit)


@functools.cache
def _pattern(phrase: str) -> re.Pattern[str]:
    return re.compile(r"\s+".join(map(re.escape, phrase.split())), re.IGNORECASE)


def _rules() -> Iterator[Rule]:
    for pair in _PAIRS:
        for phrase, other in ((pair.one, pair.other), (pair.other, pair.one)):
            reverse = exchange_name(other, phrase)
            find = functools.partial(_find, pair, phrase)
            yield Rule(exchange_name(phrase, other), reverse, pair.ground, find)


PHRASINGS: Final = tuple(_rules())
