"""Makes a hard negative of a caption."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.hard_negatives.negation import affirm, negate
from eqforge.generators.text.hard_negatives.objects import object_places
from eqforge.generators.text.hard_negatives.places import (
    Place,
    attribute_places,
    every_replacement,
    preposition_places,
    replace_at,
    verb_places,
)
from eqforge.generators.text.hard_negatives.records import (
    HardNegative,
    NegativeKind,
)
from eqforge.generators.text.hard_negatives.swap import swap_attributes, swap_objects
from eqforge.generators.text.taggers import lemmatise
from eqforge.generators.text.tokenizer import find_tokens
from eqforge.generators.text.words import DENIALS
from eqforge.schemas.records.scores import Rejection


def _relation_places(analysis: Analysis) -> Iterator[Place]:
    yield from preposition_places(analysis)
    yield from verb_places(analysis)


_REPLACED: Final[Mapping[NegativeKind, tuple[Callable[[Analysis], Iterator[Place]], str]]] = {
    "replace_object": (object_places, "no_object"),
    "replace_attribute": (attribute_places, "no_attribute"),
    "replace_relation": (_relation_places, "no_relation"),
}
"""Where each kind replaces words, and the reason if there is no place."""

_CHANGED: Final[
    Mapping[NegativeKind, Callable[[Analysis, random.Random], HardNegative | Rejection]]
] = {"swap_object": swap_objects, "swap_attribute": swap_attributes, "negation": negate}
"""The other kinds."""

_POSSIBLE: Final = frozenset(("may", "might"))
"""Modals that go with their own negation: what may be may not be."""


def make_hard_negative(
    analysis: Analysis,
    kind: NegativeKind,
    rng: random.Random,
    known: frozenset[str] = frozenset(),
) -> HardNegative | Rejection:
    """Return a hard negative of one kind, or why the caption has none.

    Args:
      known: words of other captions of the image, from `known_words`; they are never put in, since
        what another caption names is likely to be in the image.
    """
    if reason := unclear_reason(analysis):
        is_affirmed = kind == "negation" and reason == "already_negated"
        made = affirm(analysis) if is_affirmed else Rejection(reason=reason)
    elif kind in _REPLACED:
        places_of, none = _REPLACED[kind]
        made = replace_at(analysis, kind, places_of(analysis), rng, known, none)
    else:
        made = _CHANGED[kind](analysis, rng)
    return _in_its_capitals(analysis, made) if isinstance(made, HardNegative) else made


def find_hard_negatives(
    analysis: Analysis,
    kind: NegativeKind,
    rng: random.Random,
    known: frozenset[str] = frozenset(),
) -> Iterator[HardNegative]:
    """Yield every replacement of a kind, or one exchange or negation drawn among the possible."""
    if kind not in _REPLACED:
        if isinstance(made := make_hard_negative(analysis, kind, rng, known), HardNegative):
            yield made
    elif unclear_reason(analysis) is None:
        places_of, _ = _REPLACED[kind]
        for made in every_replacement(analysis, kind, places_of(analysis), known):
            yield _in_its_capitals(analysis, made)


def unclear_reason(analysis: Analysis) -> str | None:
    """Return why what is changed in a caption may be true; None if nothing speaks for that.

    "No dog", "lacks windows" and "might be a dog" may be true of an image without dogs and windows.

    Returns:
      A key of NEGATIVE_REFUSALS: "only_possible" before "already_negated", which can be taken back.
    """
    if any(token.tag == "MD" and token.text.lower() in _POSSIBLE for token in analysis.tokens):
        return "only_possible"
    is_denial = not DENIALS.isdisjoint(token.text.lower() for token in analysis.tokens)
    return "already_negated" if is_denial else None


def _in_its_capitals(analysis: Analysis, made: HardNegative) -> HardNegative:
    """Return a negative in capitals where the whole caption is."""
    if not analysis.text.isupper():
        return made
    return replace(made, edited=replace(made.edited, text=made.edited.text.upper()))


def known_words(captions: Iterable[str]) -> frozenset[str]:
    """Return the words of captions in lower case, and of plurals the singular."""
    words = {match[0].lower() for caption in captions for match in find_tokens(caption)}
    return frozenset(words | {lemmatise(word, "NNS") for word in words})
