"""Relations with their arguments exchanged: "a clock above a door" and "a door below a clock".

"Next to" and the like hold both ways, and "above" and "below" undo each other along the vertical,
which is the same for all. "In front of" and "behind" do not: a car in front of a house stands where
the house's front is, and the house need not be where the car's back is. Nor do left and right of
people, who have their own. "Under" is left out too, since what it is said of may touch or cover.

A caption places the smaller and movable by the larger ("a bike next to a house", not the reverse),
so things next to each other change places only within a class of like size.
"""

import functools
from collections.abc import Iterator
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import tag_at, word_at
from eqforge.generators.text.exchange import exchange_phrases
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.rewordings.nominals import Nominal, nominal_from
from eqforge.generators.text.rewordings.places import has_plain_spacing, replacement
from eqforge.generators.text.rewordings.records import Rewording, Rule

_GROUND = (
    "Levinson 2003, Space in Language and Cognition, ch. 2: in absolute and relative frames of "
    "reference spatial relations have converses, in intrinsic ones they have none; Talmy 1983, How "
    "Language Structures Space: figure and ground."
)
_CONVERSES = {
    "next to": "next to",
    "beside": "beside",
    "near": "near",
    "close to": "close to",
    "above": "below",
    "below": "above",
    "to the left of": "to the right of",
    "to the right of": "to the left of",
}
_VERTICAL = ("above", "below")
_SIDES = ("to the left of", "to the right of")
_SMALL = "small thing"
_SIZES = {
    **dict.fromkeys(
        (
            *("accessory", "bat", "cutlery", "device", "dish", "dish or vessel", "drink", "fruit"),
            *("footwear", "headwear", "reading", "stuffed toy", "sweet", "toy or ball"),
            *("vegetable", "board or ski", "container"),
        ),
        _SMALL,
    ),
    **dict.fromkeys(("appliance", "bathroom fixture", "seat or bed", "table"), "furniture"),
    **dict.fromkeys(("craft", "land vehicle"), "vehicle"),
    "two-wheeler": "two-wheeler",
    "building": "building",
}
_HUNG = frozenset(
    (
        *("bed", "cabinet", "clock", "couch", "counter", "desk", "door", "fireplace", "lamp"),
        *("light", "microwave", "mirror", "oven", "painting", "picture", "poster", "shelf"),
        *("sign", "sink", "sofa", "stove", "table", "television", "toilet", "tv", "window"),
    )
)
# Sides of their own: "to the left of a bus" may be the bus's left.
_FACING = frozenset(
    (
        *("building", "craft", "land vehicle", "seat or bed", "stuffed toy", "two-wheeler"),
        *("appliance", "device"),
    )
)


def _find(rule: str, relation: str, analysis: Analysis) -> Iterator[Rewording]:
    words = relation.split()
    if words[-1] not in analysis.text.lower():
        return
    start = 2 if word_at(analysis, 0) == "there" and word_at(analysis, 1) in ("is", "are") else 0
    left = nominal_from(analysis, start)
    if left is None:
        return
    here = left.last + (word_at(analysis, left.last) == left.be)
    last = here + len(words)
    right = nominal_from(analysis, last)
    if right is None or [word_at(analysis, index) for index in range(here, last)] != words:
        return
    if not all(token.tag == "." for token in analysis.tokens[right.last :]):
        return
    if start and (here > left.last or {left.there, right.there} != {word_at(analysis, 1)}):
        return
    if not _can_change(analysis, relation, left, right):
        return
    if has_plain_spacing(analysis, 0, right.last):
        first, second = exchange_phrases(
            analysis, (left.first, left.last), (right.first, right.last)
        )
        be = f"{right.be} " if here > left.last else ""
        middle = f"{be}{_CONVERSES[relation]}"
        edits = (first, replacement(analysis, left.last, last, middle), second)
        yield Rewording(rule=rule, edits=edits)


def _can_change(analysis: Analysis, relation: str, left: Nominal, right: Nominal) -> bool:
    """Tells whether either of two noun phrases is as easily placed by the other."""
    sides = (left, right)
    if any(not noun.is_indefinite or noun.is_framed or not noun.is_determined for noun in sides):
        return False
    if any(tag_at(analysis, noun.first) == "PRP$" for noun in sides):
        return False
    if any(word in ("another", "other") for noun in sides for word in _words(analysis, noun)):
        return False
    if _words(analysis, left) == _words(analysis, right):
        return False
    if relation in _VERTICAL:
        return all(noun.head.lemma in _HUNG for noun in sides)
    sizes = [_sizes(noun) for noun in sides]
    if relation in _SIDES:
        facing = any(noun.is_living or _groups(noun) & _FACING for noun in sides)
        return bool(sizes[0] & sizes[1]) and not facing
    return (left.is_living and right.is_living) or bool(sizes[0] & sizes[1])


def _words(analysis: Analysis, noun: Nominal) -> list[str]:
    return [word_at(analysis, index) for index in range(noun.first, noun.last)]


def _groups(noun: Nominal) -> frozenset[str]:
    return frozenset(closed_classes("object").groups.get(noun.head.lemma, ()))


def _sizes(noun: Nominal) -> frozenset[str]:
    return frozenset(_SIZES[group] for group in _groups(noun) if group in _SIZES)


CONVERSES: Final = tuple(
    Rule(
        name=name,
        reverse=f"exchange_around_{converse.replace(' ', '_')}",
        ground=_GROUND,
        find=functools.partial(_find, name, relation),
    )
    for relation, converse in _CONVERSES.items()
    for name in (f"exchange_around_{relation.replace(' ', '_')}",)
)
