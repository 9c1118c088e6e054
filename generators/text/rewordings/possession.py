"""What something has: "a cat with a long tail" and "a cat that has a long tail".

In captions without a verb so does "with" for "has": "a cat has a long tail".

"With" says many things. It says "that has" at the end of a caption, before parts of a body, of a
room or of a thing, and before what is in a place of its own: "a vase with flowers in it".
"""

import functools
from collections.abc import Iterator
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import tag_at, word_at
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.rewordings.clauses import finite_verbs, is_one_sentence
from eqforge.generators.text.rewordings.nominals import Nominal, nominal_from
from eqforge.generators.text.rewordings.places import has_plain_spacing, replacement
from eqforge.generators.text.rewordings.records import Rewording, Rule

_GROUND = "Oxford Advanced Learner's Dictionary, 'with'."
_BODY_PARTS = frozenset(
    (
        *("antler", "antlers", "arm", "back", "beak", "beard", "belly", "body", "braid", "chest"),
        *("collar", "dreadlock", "ear", "eye", "eyes", "face", "feather", "feathers", "feet"),
        *("foot", "fur", "glasses", "hair", "head", "hood", "hoof", "horn", "horns", "leg"),
        *("mane", "mohawk", "moustache", "mouth", "mustache", "neck", "nose", "patch", "paw"),
        *("ponytail", "spot", "spots", "stomach", "stripe", "stripes", "tag", "tail", "tattoo"),
        *("tooth", "trunk", "tusk", "tusks", "wing", "wings", "wool"),
    )
)
_PARTS = frozenset(
    (
        *("arch", "armrest", "balcony", "banner", "button", "clock", "chimney", "cushion"),
        *("design", "door", "drawer", "engine", "face", "flag", "frame", "handle", "headboard"),
        *("keyboard", "leg", "letter", "lid", "light", "logo", "mirror", "number", "numeral"),
        *("pattern", "pillar", "propeller", "roof", "screen", "seat", "spire", "steeple"),
        *("stripe", "tail", "tower", "wheel", "window", "wing", "word"),
    )
)
_ROOMS = frozenset(
    (
        *("apartment", "bathroom", "bedroom", "house", "kitchen", "office", "restroom", "room"),
        *("classroom", "cabin", "restaurant"),
    )
)
_ROOM_PARTS = frozenset(
    (
        *("appliance", "bookcase", "bookshelf", "cabinet", "carpet", "ceiling", "chandelier"),
        *("countertop", "cupboard", "dresser", "fan", "fireplace", "floor", "furniture"),
        *("island", "lamp", "light", "mirror", "nightstand", "painting", "shelving", "stall"),
        *("stovetop", "tile", "urinal", "vanity", "wall"),
    )
)
_PLACES = frozenset(("way", "land", "slope or shore", "water", "building", "room"))
_WHERE = (
    *(["in"], ["on"], ["inside"], ["inside", "of"], ["around"], ["under"], ["behind"], ["near"]),
    *(["over"], ["above"], ["beside"], ["next", "to"], ["in", "front", "of"], ["on", "top", "of"]),
)
_OWN = frozenset(("her", "him", "his", "it", "its", "their", "them"))
_POSSESSED = ("DT", "PRP$", "CD", "JJ", "NN", "NNS")
_NO_THINGS = frozenset(("image", "photo", "photograph", "picture", "scene", "view"))
_HAVE = {"is": "has", "are": "have"}


def _add(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    noun = _opening(analysis)
    if noun is None or word_at(analysis, noun.last) != "with":
        return
    if _has_parts(analysis, noun, noun.last + 1):
        words = " ".join(_clause(noun))
        edit = replacement(analysis, noun.last, noun.last + 1, words)
        yield Rewording(rule=rule, edits=(edit,))


def _drop(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    noun = _opening(analysis)
    if noun is None:
        return
    words = (word_at(analysis, noun.last), word_at(analysis, noun.last + 1))
    if words == _clause(noun) and _has_parts(analysis, noun, noun.last + 2):
        edit = replacement(analysis, noun.last, noun.last + 2, "with")
        yield Rewording(rule=rule, edits=(edit,))


def _to_headline(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    noun = nominal_from(analysis, 0)
    if noun is None or noun.is_framed or not (noun.is_indefinite and noun.is_determined):
        return
    is_owner = word_at(analysis, noun.last) == _HAVE[noun.be] and noun.head.lemma not in _NO_THINGS
    if not is_owner or not is_one_sentence(analysis):
        return
    if (
        tag_at(analysis, noun.last + 1) not in _POSSESSED
        or word_at(analysis, noun.last + 1) == "no"
    ):
        return
    is_only_verb = finite_verbs(analysis, noun.last) == [noun.last]
    if _is_done_to(analysis, noun.last + 1):
        return
    if is_only_verb and has_plain_spacing(analysis, noun.last - 1, noun.last + 2):
        edit = replacement(analysis, noun.last, noun.last + 1, "with")
        yield Rewording(rule=rule, edits=(edit,))


def _is_done_to(analysis: Analysis, start: int) -> bool:
    """Tells whether what someone has is what is done to it: "has her picture taken"."""
    ends = dict(analysis.noun_phrases)
    return tag_at(analysis, ends.get(start, start)) in ("VBN", "VBD")


def _to_sentence(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    noun = nominal_from(analysis, 0)
    if noun is None or noun.is_framed or not (noun.is_indefinite and noun.is_determined):
        return
    if word_at(analysis, noun.last) == "with" and _has_parts(analysis, noun, noun.last + 1):
        edit = replacement(analysis, noun.last, noun.last + 1, _HAVE[noun.be])
        yield Rewording(rule=rule, edits=(edit,))


def _clause(noun: Nominal) -> tuple[str, str]:
    return ("who" if noun.kind == "person" else "that", _HAVE[noun.relative or "is"])


def _opening(analysis: Analysis) -> Nominal | None:
    """Returns the noun phrase at the start or behind "there is", if a clause can follow it."""
    words = [word_at(analysis, index) for index in range(2)]
    noun = nominal_from(analysis, 2 if words in (["there", "is"], ["there", "are"]) else 0)
    if noun is None or noun.relative is None or noun.kind is None or not noun.is_determined:
        return None
    return noun


def _has_parts(analysis: Analysis, noun: Nominal, start: int) -> bool:
    """Tells whether the caption ends with a list of what a noun phrase has."""
    if not has_plain_spacing(analysis, noun.last - 1, start + 1):
        return False
    here = start
    are_parts = True
    while (part := nominal_from(analysis, here)) is not None:
        is_first = here == start
        if part.is_framed or not (part.is_indefinite or (not is_first and not part.is_determined)):
            return False
        are_parts = are_parts and _is_part(noun, part)
        here = part.last
        if _ends(analysis, here):
            return are_parts
        if _ends(analysis, _own_place(analysis, here)):
            return True
        if word_at(analysis, here) not in (",", "and"):
            return False
        here += 1 + (word_at(analysis, here + 1) == "and")
    return False


def _ends(analysis: Analysis, index: int) -> bool:
    return all(token.tag == "." for token in analysis.tokens[index:])


def _own_place(analysis: Analysis, start: int) -> int:
    """Returns the end of a place named by the owner, its start for none: "in it", "on its back"."""
    for words in _WHERE:
        here = start + len(words)
        if [word_at(analysis, index) for index in range(start, here)] != words:
            continue
        for first, last in analysis.noun_phrases:
            if first == here and word_at(analysis, first) in _OWN:
                return last
    return start


def _is_part(noun: Nominal, part: Nominal) -> bool:
    if noun.is_living:
        return part.head.lemma in _BODY_PARTS
    if noun.head.lemma in _ROOMS:
        groups = closed_classes("object").groups.get(part.head.lemma, ())
        is_thing = bool(groups) and not set(groups) & _PLACES
        return part.kind == "thing" and (is_thing or part.head.lemma in _ROOM_PARTS)
    return part.head.lemma in _PARTS


POSSESSION: Final = tuple(
    Rule(name=name, reverse=reverse, ground=_GROUND, find=functools.partial(find, name))
    for name, reverse, find in (
        ("with_as_that_has", "that_has_as_with", _add),
        ("that_has_as_with", "with_as_that_has", _drop),
        ("has_as_with", "with_as_has", _to_headline),
        ("with_as_has", "has_as_with", _to_sentence),
    )
)
