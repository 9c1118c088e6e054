"""Captions that say what there is: "there is a man riding a wave".

So does a caption that is no sentence, "a man riding a wave", and one whose subject is new to the
reader, "a man is riding a wave". Where it is a place that is said of the subject ("a dog is on a
couch" and "there is a dog on a couch"), the sentence with "there" is the usual one, and the other
is not made of it. What a caption calls the picture itself is not there, but shown: "this is a view
of a street".
"""

import functools
from collections.abc import Collection, Iterator
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.caption_verbs import finite_forms
from eqforge.generators.text.coordination.conjuncts import tag_at, word_at
from eqforge.generators.text.edits import Edit
from eqforge.generators.text.rewordings.clauses import finite_verbs, is_one_sentence
from eqforge.generators.text.rewordings.nominals import Nominal, names_living, nominal_from
from eqforge.generators.text.rewordings.participles import (
    active_verb,
    describes,
    has_second_participle,
)
from eqforge.generators.text.rewordings.places import (
    deletion,
    has_plain_spacing,
    insertion,
    replacement,
)
from eqforge.generators.text.rewordings.records import Rewording, Rule

_GROUND = (
    "Huddleston and Pullum 2002, The Cambridge Grammar of the English Language, ch. 16: the "
    "existential clause says that what an indefinite noun phrase describes is there."
)
_SHOWN = (
    "Quirk et al. 1985, A Comprehensive Grammar of the English Language, ch. 6: 'this' points at "
    "what is before the reader's eyes, as a caption does that is a noun phrase alone."
)
_CONTRACTED = (
    "Quirk et al. 1985, A Comprehensive Grammar of the English Language, ch. 3: contracted forms "
    "of 'be' stand for the full ones."
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
_PICTURES = frozenset(
    (
        *("close", "close-up", "closeup", "collage", "drawing", "illustration", "image"),
        *("painting", "photo", "photograph", "picture", "portrait", "scene", "screenshot"),
        *("selfie", "shot", "sketch", "up", "view"),
    )
)
_SIDES = frozenset(
    (
        "back",
        "bottom",
        "corner",
        "edge",
        "end",
        "entrance",
        "front",
        "inside",
        "interior",
        "outside",
        "rear",
        "reflection",
        "side",
        "storefront",
        "tail",
        "top",
        "underside",
    )
)
_ARTICLES = ("a", "an", "the")
_SHOWN_ALL = ("complete", "of", "with", "showing", "from", "that", "through", "in", "at")
_PREPOSITIONS = frozenset(
    (
        *("above", "across", "against", "along", "alongside", "among", "around", "at", "atop"),
        *("behind", "below", "beneath", "beside", "between", "by", "close", "full", "in"),
        *(
            "for",
            "from",
            "inside",
            "into",
            "near",
            "next",
            "on",
            "outside",
            "over",
            "that",
            "under",
            "underneath",
        ),
        *("which", "who", "with", "without"),
    )
)
_PLACES = _PREPOSITIONS - {
    "close",
    "for",
    "from",
    "full",
    "into",
    "next",
    "that",
    "which",
    "who",
    "with",
    "without",
}
_ADVERBS = frozenset(("high", "out", "up"))
_NO_PARTICIPLES = frozenset(("according", "concerning", "during", "following", "including"))
_BEHIND_PARTICIPLES = ("DT", "PRP$", "CD", "NN", "NNS", "IN", "TO", "JJ", "RB", "RP")
_BEHIND_STATES = ("IN", "TO", "RP", ".", "")
_MANY = frozenset(("bunch", "couple", "lot", "number", "pair", "variety"))
_MADE = frozenset(
    (
        *("arranged", "attached", "broken", "built", "buried", "carved", "clogged", "covered"),
        *("cut", "embedded", "focused", "parked", "seen", "stowed", "stuck"),
        *("decorated", "designed", "displayed", "done", "draped", "drawn", "illuminated", "laid"),
        *("lit", "made", "mounted", "painted", "placed", "posed", "posted", "printed", "served"),
        *("set", "sliced", "surrounded", "suspended", "tied", "topped", "wrapped", "written"),
    )
)
"""Past participles of what is done to things, which are no verbs in the past without an object."""
_DRESSED = frozenset(
    (
        *("bundled", "crouched", "draped", "dressed", "engaged", "perched", "poised", "posed"),
        *("sprawled",),
    )
)
_THERE_IS = ("there", "is")
_THERES = (("there", "'s"), ("there", "\u2019s"))


def _add(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    noun = _whole(analysis, 0) or _single(analysis, 0)
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
    noun = _whole(analysis, 2) or _single(analysis, 2)
    if noun is None or word_at(analysis, 1) != noun.there or not has_plain_spacing(analysis, 0, 3):
        return
    there, first = analysis.tokens[0].text, analysis.tokens[2]
    letter = first.text[0]
    if letter.isupper() or (there == "there" and not letter.islower()):
        return
    word = letter if there == "there" else letter.upper()
    edit = Edit(start=analysis.tokens[0].start, end=first.start + 1, replacement=word)
    yield Rewording(rule=rule, edits=(edit,))


def _show(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    if not (_is_single(analysis, 0, _ARTICLES) and has_plain_spacing(analysis, 0, 2)):
        return
    last = analysis.noun_phrases[0][1]
    head = analysis.tokens[last - 1]
    if head.text.lower() == "close" and word_at(analysis, last) in ("up", "-"):
        head, last = analysis.tokens[last], last + 1
    is_picture = head.text.lower() in _PICTURES and word_at(analysis, last) in _SHOWN_ALL
    is_side = head.text.lower() in _SIDES and word_at(analysis, last) == "of"
    if not (is_picture or is_side):
        return
    first = analysis.tokens[0]
    this = "this" if first.text[0].islower() else "This"
    words = f"{this} is {first.text[0].lower()}"
    edit = Edit(start=first.start, end=first.start + 1, replacement=words)
    yield Rewording(rule=rule, edits=(edit,))


def _show_no_more(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    opening = [word_at(analysis, index) for index in range(2)]
    if opening != ["this", "is"] or not _is_single(analysis, 2, _ARTICLES):
        return
    this, first = analysis.tokens[0], analysis.tokens[2]
    if has_plain_spacing(analysis, 0, 4) and first.text[0].islower():
        letter = first.text[0] if this.text[0].islower() else first.text[0].upper()
        edit = Edit(start=this.start, end=first.start + 1, replacement=letter)
        yield Rewording(rule=rule, edits=(edit,))


def _is_single(analysis: Analysis, start: int, articles: Collection[str] = ("a", "an")) -> bool:
    """Tells whether a caption is a noun phrase with one of these articles from a token on."""
    last = dict(analysis.noun_phrases).get(start, start)
    tags = [tag_at(analysis, index) for index in range(start, last)]
    if word_at(analysis, start) not in articles or len(tags) < 2:
        return False
    if tags[-1] not in ("NN", "JJ") or any(tag.startswith(("NNS", "NNPS")) for tag in tags):
        return False
    return not finite_verbs(analysis, start) and is_one_sentence(analysis)


def _single(analysis: Analysis, start: int) -> Nominal | None:
    """Returns a noun phrase with "a" that a caption consists of, whatever it is of or joined to.

    "A statue of a man reading a book", "a herd of zebra", "a cat and a mouse on the ground": it is
    there, whichever of its parts what follows is said of.
    """
    if not _is_single(analysis, start):
        return None
    last = dict(analysis.noun_phrases)[start]
    head = analysis.tokens[last - 1]
    if head.tag != "NN" or head.lemma in (*_NO_THINGS, *_MANY):
        return None
    end = next((e for s, e in analysis.noun_phrases if s == last + 1), last)
    second = analysis.tokens[end - 1]
    joined = word_at(analysis, last)
    if joined == "and" or (joined == "," and "and" in _words(analysis, end)):
        opener = word_at(analysis, last + 1)
        is_one = opener in ("a", "an", "her", "his", "its") or tag_at(analysis, last + 1) in (
            "NN",
            "JJ",
        )
        if end == last or second.tag != "NN" or not is_one or "are" in _words(analysis, end):
            return None
    elif joined != "of" or end == last or _names_no_thing_at(analysis, last, end):
        return None
    if not (_is_followed(analysis, end) or word_at(analysis, end) in (",", "and")):
        return None
    return Nominal(
        first=start,
        last=end,
        head=head,
        kind="thing",
        be="is",
        relative=None,
        there="is",
        is_determined=True,
        is_bare=False,
        is_indefinite=True,
        is_framed=False,
    )


def _words(analysis: Analysis, start: int) -> set[str]:
    return {word_at(analysis, index) for index in range(start, len(analysis.tokens))}


def _is_followed(analysis: Analysis, index: int) -> bool:
    """Tells whether a token may follow a noun phrase that is all of a caption."""
    word, tag = word_at(analysis, index), tag_at(analysis, index)
    if _may_hide_verb(analysis, index):
        return False
    if word in _PREPOSITIONS or tag in ("", "."):
        return True
    return _is_state(analysis, index) or _is_active(analysis, index)


def _may_hide_verb(analysis: Analysis, start: int) -> bool:
    """Tells whether a finite verb may be taken for a noun: "a watch set to 12:25 sits"."""
    return any(
        tag_at(analysis, index) == "NNS"
        and word_at(analysis, index) in finite_forms()
        and tag_at(analysis, index - 1) in ("CD", "NN", "NNS", "NNP")
        for index in range(start, len(analysis.tokens))
    )


def _is_state(analysis: Analysis, index: int) -> bool:
    """Tells whether a token is a past participle, and no verb: not "a couple cut into a cake"."""
    if tag_at(analysis, index) != "VBN" or tag_at(analysis, index + 1) not in _BEHIND_STATES:
        return False
    noun = analysis.tokens[index - 1]
    is_thing = not names_living(noun) and noun.lemma not in _MANY
    return word_at(analysis, index) in (_MADE | _DRESSED if is_thing else _DRESSED)


def _from_clause(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    noun = _subject(analysis)
    if noun is None:
        return
    if [word_at(analysis, noun.last + place) for place in (1, 2)] == ["going", "to"]:
        return  # what is going to happen is not there yet
    if describes(analysis, noun.last + 1, noun) or _is_active(analysis, noun.last + 1):
        yield Rewording(rule=rule, edits=_with_there(analysis, noun))


def _from_place(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    noun = _subject(analysis)
    if noun is not None and _names_place(analysis, noun.last + 1):
        yield Rewording(rule=rule, edits=_with_there(analysis, noun))


def _with_there(analysis: Analysis, noun: Nominal) -> tuple[Edit, Edit]:
    first = analysis.tokens[0]
    letter = first.text[0]
    there = "there" if letter.islower() else "There"
    words = f"{there} {noun.there} {letter.lower()}"
    opening = Edit(start=first.start, end=first.start + 1, replacement=words)
    return opening, deletion(analysis, noun.last, noun.last + 1)


def _names_place(analysis: Analysis, index: int) -> bool:
    """Tells whether a preposition of place and what it takes stand at a token: "in a box"."""
    behind = index + 1
    if [word_at(analysis, index), word_at(analysis, behind)] == ["in", "front"]:
        return word_at(analysis, behind + 1) == "of"
    opens = any(first == behind for first, _ in analysis.noun_phrases)
    return word_at(analysis, index) in _PLACES and opens


def _subject(analysis: Analysis) -> Nominal | None:
    """Returns the indefinite subject of a caption whose only verb, behind it, is "is" or "are"."""
    noun = _new(analysis, 0)
    if noun is None or word_at(analysis, noun.last) != noun.be:
        return None
    if finite_verbs(analysis, noun.last) != [noun.last] or not is_one_sentence(analysis):
        return None
    if _goes_on(analysis, noun.last + 1):
        return None
    is_plain = has_plain_spacing(analysis, 0, 2) and has_plain_spacing(
        analysis, noun.last - 1, noun.last + 2
    )
    return noun if is_plain else None


def _goes_on(analysis: Analysis, start: int) -> bool:
    """Tells whether something that is no noun phrase is joined: "is in a wall and on"."""
    return any(
        word_at(analysis, index - 1) == "and" and tag_at(analysis, index) in ("IN", "RB", "RP")
        for index in range(start + 1, len(analysis.tokens))
    )


def _to_clause(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    if word_at(analysis, 0) != "there":
        return
    noun = _whole(analysis, 2)
    if noun is None or word_at(analysis, 1) != noun.there or not _is_plain(analysis, noun):
        return
    if not (describes(analysis, noun.last, noun) or _is_active(analysis, noun.last)):
        return
    if not has_second_participle(analysis, noun.last):
        there, first = analysis.tokens[0].text, analysis.tokens[2]
        letter = first.text[0] if there == "there" else first.text[0].upper()
        opening = Edit(start=analysis.tokens[0].start, end=first.start + 1, replacement=letter)
        edits = (opening, insertion(analysis, noun.last, noun.be))
        yield Rewording(rule=rule, edits=edits)


def _is_plain(analysis: Analysis, noun: Nominal) -> bool:
    is_lower = analysis.tokens[noun.first].text[0].islower()
    behind = has_plain_spacing(analysis, noun.last - 1, noun.last + 1)
    return is_lower and behind and has_plain_spacing(analysis, 0, 3)


def _contract(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    opening = tuple(word_at(analysis, index) for index in range(2))
    is_of_one = word_at(analysis, 2) in ("a", "an")
    if opening == _THERE_IS and is_of_one and has_plain_spacing(analysis, 0, 3):
        words = f"{analysis.tokens[0].text}'s"
        yield Rewording(rule=rule, edits=(replacement(analysis, 0, 2, words),))


def _spell_out(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    opening = tuple(word_at(analysis, index) for index in range(2))
    is_of_one = word_at(analysis, 2) in ("a", "an")
    if opening in _THERES and is_of_one and not analysis.text.isupper():
        words = f"{analysis.tokens[0].text} is"
        yield Rewording(rule=rule, edits=(replacement(analysis, 0, 2, words),))


def _whole(analysis: Analysis, start: int) -> Nominal | None:
    """Returns the noun phrase that a caption consists of from a token on, with its modifiers."""
    noun = _new(analysis, start)
    if noun is None or not _is_modified(analysis, noun) or finite_verbs(analysis, noun.last):
        return None
    return noun if is_one_sentence(analysis) else None


def _new(analysis: Analysis, start: int) -> Nominal | None:
    """Returns the noun phrase at a token if it introduces a thing, and not the picture itself."""
    if tag_at(analysis, start).startswith("NNP"):
        return None
    noun = nominal_from(analysis, start)
    if noun is None or noun.is_framed or not (noun.is_indefinite and noun.is_determined):
        return None
    if analysis.tokens[noun.first].text.lower() in ("one", "1") or _names_no_thing(analysis, noun):
        return None
    return noun


def _names_no_thing(analysis: Analysis, noun: Nominal) -> bool:
    return _names_no_thing_at(analysis, noun.first, noun.last)


def _names_no_thing_at(analysis: Analysis, first: int, last: int) -> bool:
    return any(token.lemma in _NO_THINGS for token in analysis.tokens[first:last])


def _is_modified(analysis: Analysis, noun: Nominal) -> bool:
    """Tells whether what follows a noun phrase modifies it, or ends the caption."""
    word = word_at(analysis, noun.last)
    if word == "and":
        other = nominal_from(analysis, noun.last + 1)
        return noun.there == "are" and other is not None and other.is_determined
    if _is_followed(analysis, noun.last):
        return True
    if [word, tag_at(analysis, noun.last + 1)] == ["being", "VBN"]:
        return True
    if word in _ADVERBS and word_at(analysis, noun.last + 1) in _PLACES:
        return True
    if word in ("about", "ready") and word_at(analysis, noun.last + 1) == "to":
        return True
    return describes(analysis, noun.last, noun) or active_verb(analysis, noun.last) is not None


def _is_active(analysis: Analysis, index: int) -> bool:
    """Tells whether a token is any present participle: "leaking water", not "going to leak"."""
    word, behind = word_at(analysis, index), tag_at(analysis, index + 1)
    if tag_at(analysis, index) != "VBG" or word in _NO_PARTICIPLES:
        return False
    return behind in _BEHIND_PARTICIPLES


EXISTENTIALS: Final = tuple(
    Rule(name=name, reverse=reverse, ground=ground, find=functools.partial(find, name))
    for name, reverse, ground, find in (
        ("add_there_is", "drop_there_is", _GROUND, _add),
        ("drop_there_is", "add_there_is", _GROUND, _drop),
        ("clause_to_there_is", "there_is_to_clause", _GROUND, _from_clause),
        ("there_is_to_clause", "clause_to_there_is", _GROUND, _to_clause),
        ("add_this_is", "drop_this_is", _SHOWN, _show),
        ("drop_this_is", "add_this_is", _SHOWN, _show_no_more),
        ("place_to_there_is", None, _GROUND, _from_place),
        ("there_is_to_theres", "theres_to_there_is", _CONTRACTED, _contract),
        ("theres_to_there_is", "there_is_to_theres", _CONTRACTED, _spell_out),
    )
)
