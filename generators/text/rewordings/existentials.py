"""Reword captions as existentials: "there is a man riding a wave".

A fragment, "a man riding a wave", says the same, and so does a clause about a new subject, "a man
is riding a wave". "There is a dog on a couch" is more usual than "a dog is on a couch", so the
latter is not made from it. Captions about the image itself are reworded with "this is": "this is a
view of a street".

Source: Huddleston and Pullum 2002, The Cambridge Grammar of the English Language, ch. 16; Quirk et
al. 1985, A Comprehensive Grammar of the English Language, ch. 3 (contractions) and 6 ("this").
"""

from collections.abc import Iterator
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import Edit
from eqforge.generators.text.perturbations.synonyms import sentence_capitals
from eqforge.generators.text.rewordings.clauses import finite_verbs, is_one_sentence
from eqforge.generators.text.rewordings.introduced import (
    PLACES,
    describes,
    has_second_participle,
    is_active,
    is_single_phrase,
    new_nominal,
    single_nominal,
    whole_nominal,
)
from eqforge.generators.text.rewordings.nominals import Nominal
from eqforge.generators.text.rewordings.records import (
    Edits,
    deletion,
    has_plain_spacing,
    insertion,
    replacement,
)
from eqforge.generators.text.words import word_set

_PICTURES = word_set("existentials.pictures")
_SIDES = word_set("existentials.sides")
_ARTICLES = ("a", "an", "the")
_SHOWN_ALL = ("complete", "of", "with", "showing", "from", "that", "through", "in", "at")


def _opened(analysis: Analysis, words: str) -> Edit:
    start, letter = analysis.tokens[0].start, analysis.tokens[0].text[0]
    opening = words if letter.islower() else words.capitalize()
    is_name = sentence_capitals(analysis).get(start, False)
    first = letter if is_name else letter.lower()
    return Edit(start=start, end=start + 1, replacement=f"{opening} {first}")


def _without_opening(analysis: Analysis) -> Edit:
    opening, _, first = analysis.tokens[:3]
    letter = first.text[0] if opening.text.islower() else first.text[0].upper()
    return Edit(start=opening.start, end=first.start + 1, replacement=letter)


def _add_this_is(analysis: Analysis) -> Iterator[Edits]:
    """Yield "this is a view of a street" for "a view of a street"."""
    if not (is_single_phrase(analysis, 0, _ARTICLES) and has_plain_spacing(analysis, 0, 2)):
        return
    last = analysis.noun_phrases[0][1]
    head = analysis.tokens[last - 1]
    if head.text.lower() == "close" and analysis.word(last) in ("up", "-"):
        head, last = analysis.tokens[last], last + 1
    is_picture = head.text.lower() in _PICTURES and analysis.word(last) in _SHOWN_ALL
    is_side = head.text.lower() in _SIDES and analysis.word(last) == "of"
    if not (is_picture or is_side):
        return
    yield (_opened(analysis, "this is"),)


def _drop_this_is(analysis: Analysis) -> Iterator[Edits]:
    """Yield "a view of a street" for "this is a view of a street"."""
    if analysis.words((0, 2)) != ("this", "is") or not is_single_phrase(analysis, 2, _ARTICLES):
        return
    if has_plain_spacing(analysis, 0, 4) and analysis.tokens[2].text[0].islower():
        yield (_without_opening(analysis),)


def _add(analysis: Analysis) -> Iterator[Edits]:
    noun = whole_nominal(analysis, 0) or single_nominal(analysis, 0)
    if noun is None or not has_plain_spacing(analysis, 0, 1):
        return
    yield (_opened(analysis, f"there {noun.there}"),)


def _drop(analysis: Analysis) -> Iterator[Edits]:
    if analysis.word(0) != "there" or analysis.word(1) not in ("is", "are"):
        return
    noun = whole_nominal(analysis, 2) or single_nominal(analysis, 2)
    if noun is None or analysis.word(1) != noun.there or not has_plain_spacing(analysis, 0, 3):
        return
    letter = analysis.tokens[2].text[0]
    if not letter.isupper() and (letter.islower() or analysis.tokens[0].text != "there"):
        yield (_without_opening(analysis),)


def _from_clause(analysis: Analysis) -> Iterator[Edits]:
    noun = _subject(analysis)
    if noun is None:
        return
    if analysis.words((noun.last + 1, noun.last + 3)) == ("going", "to"):
        return  # what is going to happen is not there yet
    if describes(analysis, noun.last + 1, noun) or is_active(analysis, noun.last + 1):
        yield _with_there(analysis, noun)


def _from_place(analysis: Analysis) -> Iterator[Edits]:
    noun = _subject(analysis)
    if noun is None:
        return
    here = noun.last + 1
    is_place = analysis.word(here) in PLACES and analysis.phrase_from(here + 1) is not None
    if analysis.words((here, here + 2)) == ("in", "front"):
        is_place = analysis.word(here + 2) == "of"
    if is_place:  # "in a box"
        yield _with_there(analysis, noun)


def _with_there(analysis: Analysis, noun: Nominal) -> tuple[Edit, Edit]:
    opening = _opened(analysis, f"there {noun.there}")
    return opening, deletion(analysis, noun.last, noun.last + 1)


def _subject(analysis: Analysis) -> Nominal | None:
    noun = new_nominal(analysis, 0)
    if noun is None or analysis.word(noun.last) != noun.be:
        return None
    if finite_verbs(analysis, noun.last) != [noun.last] or not is_one_sentence(analysis):
        return None
    for index in range(noun.last + 2, len(analysis.tokens)):
        if analysis.word(index - 1) == "and" and analysis.tag(index) in ("IN", "RB", "RP"):
            return None  # more than a noun phrase is joined: "is in a wall and on"
    is_plain = has_plain_spacing(analysis, 0, 2) and has_plain_spacing(
        analysis, noun.last - 1, noun.last + 2
    )
    return noun if is_plain else None


def _to_clause(analysis: Analysis) -> Iterator[Edits]:
    if analysis.word(0) != "there":
        return
    noun = whole_nominal(analysis, 2)
    if noun is None or analysis.word(1) != noun.there:
        return
    if not (has_plain_spacing(analysis, 0, 3) and analysis.tokens[noun.first].text[0].islower()):
        return
    if not has_plain_spacing(analysis, noun.last - 1, noun.last + 1):
        return
    if not (describes(analysis, noun.last, noun) or is_active(analysis, noun.last)):
        return
    if not has_second_participle(analysis, noun.last):
        yield _without_opening(analysis), insertion(analysis, noun.last, noun.be)


def _contract(analysis: Analysis) -> Iterator[Edits]:
    is_of_one = analysis.word(2) in ("a", "an") and has_plain_spacing(analysis, 0, 3)
    if is_of_one and analysis.words((0, 2)) == ("there", "is"):
        yield (replacement(analysis, 0, 2, f"{analysis.tokens[0].text}'s"),)


def _spell_out(analysis: Analysis) -> Iterator[Edits]:
    is_of_one = analysis.word(2) in ("a", "an") and not analysis.text.isupper()
    if is_of_one and analysis.words((0, 2)) in (("there", "'s"), ("there", "\u2019s")):
        yield (replacement(analysis, 0, 2, f"{analysis.tokens[0].text} is"),)


EXISTENTIALS: Final = {
    "add_there_is": _add,
    "drop_there_is": _drop,
    "clause_to_there_is": _from_clause,
    "there_is_to_clause": _to_clause,
    "add_this_is": _add_this_is,
    "drop_this_is": _drop_this_is,
    "place_to_there_is": _from_place,
    "there_is_to_theres": _contract,
    "theres_to_there_is": _spell_out,
}
