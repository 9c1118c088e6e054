"""Nouns: "photo" and "photograph", "a tennis game" and "a game of tennis"."""

from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import PRONOUNS, tag_at, word_at
from eqforge.generators.text.rewordings.phrasings.pairs import (
    DEGREES,
    WEBSTER,
    Pair,
    precedes_phrase,
)

_COMPOUND = (
    "Quirk et al. 1985, A Comprehensive Grammar of the English Language, ch. 17: a noun before a "
    "noun says what a prepositional phrase says behind it."
)


def _is_whole_noun(analysis: Analysis, first: int, last: int) -> bool:
    """Tells whether a noun is no part of a compound, such as "photo booth", and no verb."""
    if tag_at(analysis, last) in ("DT", "PRP", "PRP$"):
        return False  # "photographs herself"
    return not any(
        tag_at(analysis, index).startswith("NN") or tag_at(analysis, index) in ("HYPH", "POS")
        for index in (first - 1, last)
    )


def _opens_frame(analysis: Analysis, first: int, last: int) -> bool:
    """Tells whether the caption opens with a noun for itself: "a large picture of a dog"."""
    opener = word_at(analysis, 0) in ("a", "an", "the", "this") or first == 0
    is_first = bool(analysis.noun_phrases) and analysis.noun_phrases[0] == (0, last)
    is_of = word_at(analysis, last) == "of" and tag_at(analysis, last + 1) not in PRONOUNS
    return opener and is_first and is_of and _is_whole_noun(analysis, first, last)


def _opens_caption(analysis: Analysis, first: int, last: int) -> bool:
    """Tells whether a whole noun opens the caption, or of it what stands before "of"."""
    return first == 0 and _is_whole_noun(analysis, first, last)


def _is_undescribed(analysis: Analysis, first: int, last: int) -> bool:
    """Tells whether no participle follows a new noun: not "a city street lined with cars"."""
    is_described = tag_at(analysis, last) in ("VBG", "VBN")
    return not is_described and _is_new_whole_noun(analysis, first, last)


def _is_new_whole_noun(analysis: Analysis, first: int, last: int) -> bool:
    """Tells whether a noun is no part of a compound, and its phrase begins with "a"."""
    begins = any(
        start <= first < end and word_at(analysis, start) in ("a", "an")
        for start, end in analysis.noun_phrases
    )
    return begins and _is_whole_noun(analysis, first, last)


def _is_close_up(analysis: Analysis, first: int, last: int) -> bool:
    """Tells whether what is close up has no degree: not "a very close up view"."""
    is_free = word_at(analysis, first - 1) not in DEGREES
    return is_free and precedes_phrase(analysis, first, last)


NOUNS: Final[tuple[Pair, ...]] = (
    Pair(
        one="photo",
        other="photograph",
        ground=f"{WEBSTER}'photo'.",
        fits=_is_whole_noun,
        has_plural=True,
    ),
    Pair(
        one="close up of",
        other="close up view of",
        ground="Oxford Advanced Learner's Dictionary, 'close-up'.",
        fits=_is_close_up,
    ),
    Pair(
        one="closeup of",
        other="closeup view of",
        ground="Oxford Advanced Learner's Dictionary, 'close-up'.",
        fits=_is_close_up,
    ),
    Pair(
        one="laptop",
        other="laptop computer",
        ground="Oxford Advanced Learner's Dictionary, 'laptop'.",
        fits=_is_whole_noun,
        has_plural=True,
    ),
    Pair(
        one="stuffed animal",
        other="stuffed toy",
        ground="Oxford Advanced Learner's Dictionary, 'stuffed animal'.",
        fits=_is_whole_noun,
        has_plural=True,
    ),
    Pair(
        one="fire hydrant",
        other="hydrant",
        ground=f"{WEBSTER}'hydrant'.",
        fits=_is_whole_noun,
        has_plural=True,
    ),
    Pair(
        one="baseball player",
        other="ballplayer",
        ground="Oxford Dictionary of English, 'ballplayer'.",
        fits=_is_whole_noun,
        has_plural=True,
    ),
    Pair(
        one="street light",
        other="streetlight",
        ground=f"{WEBSTER}'streetlight'.",
        fits=_is_whole_noun,
        has_plural=True,
    ),
    *(
        Pair(
            one=f"a {sport} game",
            other=f"a game of {sport}",
            ground=_COMPOUND,
            fits=_opens_caption,
        )
        for sport in ("baseball", "soccer", "tennis")
    ),
    Pair(
        one="city street",
        other="street in a city",
        ground=_COMPOUND,
        fits=_is_undescribed,
    ),
    Pair(
        one="picture",
        other="image",
        ground=f"{WEBSTER}'picture'.",
        fits=_opens_frame,
    ),
)
