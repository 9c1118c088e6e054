"""What people have on: "a man in a hat", "a man wearing a hat", "a woman dressed in a suit"."""

import functools
from collections.abc import Iterator
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import is_mass, tag_at, word_at
from eqforge.generators.text.rewordings.nominals import nominals
from eqforge.generators.text.rewordings.places import has_plain_spacing, replacement
from eqforge.generators.text.rewordings.records import Rewording, Rule

_GROUND = "Oxford Advanced Learner's Dictionary, 'in' (preposition)."
GARMENTS = frozenset(
    (
        *("apron", "attire", "bikini", "blouse", "cap", "clothes", "clothing", "coat", "costume"),
        *("dress", "gear", "glasses", "goggles", "gown", "hat", "helmet", "hoodie", "jacket"),
        *("jean", "jeans", "jersey", "jumpsuit", "kimono", "outfit", "overalls", "pajamas"),
        *("pants", "pant", "robe", "shirt", "short", "shorts", "skirt", "suit", "sunglasses"),
        *("sweater", "sweatshirt", "swimsuit", "t-shirt", "tuxedo", "uniform", "vest"),
        *("wetsuit",),
    )
)
_ACCESSORIES = frozenset(
    (
        *("backpack", "bandana", "belt", "boot", "bowtie", "glove", "headband", "heel", "jewelry"),
        *("makeup", "mask", "necklace", "sandal", "scarf", "shoe", "sneaker", "sock", "tie"),
        *("top", "trousers", "watch"),
    )
)
_WHOLE_DRESS = frozenset(
    (
        *("attire", "clothes", "clothing", "costume", "gear", "gown", "kimono", "outfit"),
        *("robe", "suit", "tuxedo", "uniform", "wetsuit"),
    )
)
_UNCOUNTED = frozenset(("attire", "clothes", "clothing", "gear"))
_WAYS = {"in": ("in",), "wearing": ("wearing",), "dressed_in": ("dressed", "in")}


def _find(rule: str, way: str, other: str, analysis: Analysis) -> Iterator[Rewording]:
    words = _WAYS[way]
    if not any(token.text.lower() == words[0] for token in analysis.tokens):
        return
    garments = _WHOLE_DRESS if "dressed_in" in (way, other) else GARMENTS
    for noun in nominals(analysis):
        first, last = noun.last, noun.last + len(words)
        if noun.kind != "person" or not noun.is_determined:
            continue
        if tuple(word_at(analysis, index) for index in range(first, last)) != words:
            continue
        end = _garment_end(analysis, last, garments)
        if end is None or not _stops(analysis, end):
            continue
        if has_plain_spacing(analysis, first - 1, last):
            edit = replacement(analysis, first, last, " ".join(_WAYS[other]))
            yield Rewording(rule=rule, edits=(edit,))


def _garment_end(analysis: Analysis, start: int, garments: frozenset[str]) -> int | None:
    """Returns the end of a noun phrase that names clothing which stands for itself."""
    end = next((last for first, last in analysis.noun_phrases if first == start), None)
    if end is None or word_at(analysis, end) == "of" or tag_at(analysis, end) == "HYPH":
        return None
    head, opening = analysis.tokens[end - 1], tag_at(analysis, start)
    is_bare = opening not in ("DT", "PRP$", "CD") and head.tag == "NN"
    if is_bare and head.lemma not in _UNCOUNTED and not is_mass(head):
        return None  # "in uniform"
    return end if {head.lemma, head.text.lower()} & garments else None


def _stops(analysis: Analysis, end: int) -> bool:
    """Tells whether nothing that follows clothing needs the words before it, or repeats them.

    "Wearing a hat and riding a bike", "wearing a hat while riding", "in a suit wearing a hat"; and
    what is joined to the clothing has to be worn too.
    """
    rest = [token.text.lower() for token in analysis.tokens[end:]]
    if {"dressed", "wearing", "while", "wears"} & set(rest):
        return False
    ends = dict(analysis.noun_phrases)
    while word_at(analysis, end) in ("&", ",", "and"):
        following = end + 1 + (word_at(analysis, end + 1) == "and")
        last = ends.get(following)
        if last is None:
            is_verb = word_at(analysis, following).endswith("ing")
            return word_at(analysis, end) == "," and not is_verb
        head = analysis.tokens[last - 1]
        if not {head.lemma, head.text.lower()} & (GARMENTS | _ACCESSORIES):
            return False
        end = last
    return True


def _rules() -> Iterator[Rule]:
    for way, other in (
        ("in", "wearing"),
        ("wearing", "in"),
        ("wearing", "dressed_in"),
        ("dressed_in", "wearing"),
    ):
        name = f"{way}_as_{other}"
        yield Rule(
            name=name,
            reverse=f"{other}_as_{way}",
            ground=_GROUND,
            find=functools.partial(_find, name, way, other),
        )


CLOTHING: Final = tuple(_rules())
