"""Captions that say what there is: "a man riding a wave" and "there is a man riding a wave"."""

import functools
from collections.abc import Iterator
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import tag_at, word_at
from eqforge.generators.text.edits import Edit
from eqforge.generators.text.rewordings.clauses import finite_verbs, is_one_sentence
from eqforge.generators.text.rewordings.nominals import Nominal, nominal_from
from eqforge.generators.text.rewordings.participles import active_verb, describes
from eqforge.generators.text.rewordings.places import has_plain_spacing
from eqforge.generators.text.rewordings.records import Rewording, Rule

_GROUND = (
    "Huddleston and Pullum 2002, The Cambridge Grammar of the English Language, ch. 16: the "
    "existential clause says that what an indefinite noun phrase describes is there."
)
# What a caption calls the picture itself, or a time: "a view of a street", "a day at the beach".
_NO_THINGS = frozenset(
    (
        *("close", "close-up", "closeup", "collage", "concept", "day", "drawing", "evening"),
        *("event", "example", "game", "illustration", "image", "look", "match", "moment"),
        *("morning", "night", "painting", "photo", "photograph", "picture", "portrait", "scene"),
        *("screenshot", "selfie", "shot", "side", "sketch", "time", "type", "up", "version"),
        *("video", "view", "way"),
    )
)
_PREPOSITIONS = frozenset(
    (
        *("above", "across", "against", "along", "alongside", "among", "around", "at", "atop"),
        *("behind", "below", "beneath", "beside", "between", "by", "close", "full", "in"),
        *("inside", "near", "next", "on", "outside", "over", "that", "under", "underneath"),
        *("which", "who", "with", "without"),
    )
)


def _add(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    noun = _whole(analysis, 0)
    if noun is None or not has_plain_spacing(analysis, 0, 1):
        return
    first = analysis.tokens[0]
    letter = first.text[0]
    there = "there" if letter.islower() else "There"
    words = f"{there} {noun.there} {letter.lower()}"
    edit = Edit(start=first.start, end=first.start + 1, replacement=words)
    yield Rewording(rule=rule, edits=(edit,))


def _drop(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    if word_at(analysis, 0) != "there" or word_at(analysis, 1) not in ("is", "are"):
        return
    noun = _whole(analysis, 2)
    if noun is None or word_at(analysis, 1) != noun.there or not has_plain_spacing(analysis, 0, 3):
        return
    there, first = analysis.tokens[0].text, analysis.tokens[2]
    letter = first.text[0]
    if letter.isupper() or (there == "there" and not letter.islower()):
        return
    word = letter if there == "there" else letter.upper()
    edit = Edit(start=analysis.tokens[0].start, end=first.start + 1, replacement=word)
    yield Rewording(rule=rule, edits=(edit,))


def _whole(analysis: Analysis, start: int) -> Nominal | None:
    """Returns the noun phrase that a caption consists of from a token on, with its modifiers."""
    if tag_at(analysis, start).startswith("NNP"):
        return None
    noun = nominal_from(analysis, start)
    if noun is None or noun.is_framed or not (noun.is_indefinite and noun.is_determined):
        return None
    if analysis.tokens[noun.first].text.lower() in ("one", "1") or _names_no_thing(analysis, noun):
        return None
    if not _is_modified(analysis, noun) or finite_verbs(analysis, noun.last):
        return None
    return noun if is_one_sentence(analysis) else None


def _names_no_thing(analysis: Analysis, noun: Nominal) -> bool:
    return any(token.lemma in _NO_THINGS for token in analysis.tokens[noun.first : noun.last])


def _is_modified(analysis: Analysis, noun: Nominal) -> bool:
    """Tells whether what follows a noun phrase modifies it, or ends the caption."""
    word, tag = word_at(analysis, noun.last), tag_at(analysis, noun.last)
    if word == "and":
        return noun.there == "are" and nominal_from(analysis, noun.last + 1) is not None
    if word in _PREPOSITIONS or tag in ("", "."):
        return True
    return describes(analysis, noun.last, noun) or active_verb(analysis, noun.last) is not None


EXISTENTIALS: Final = tuple(
    Rule(name=name, reverse=reverse, ground=_GROUND, find=functools.partial(find, name))
    for name, reverse, find in (
        ("add_there_is", "drop_there_is", _add),
        ("drop_there_is", "add_there_is", _drop),
    )
)
