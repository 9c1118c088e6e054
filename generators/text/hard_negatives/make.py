"""Makes a hard negative of a caption."""

import random
from collections.abc import Iterable, Iterator

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.hard_negatives.attributes import attribute_places
from eqforge.generators.text.hard_negatives.negation import negate
from eqforge.generators.text.hard_negatives.objects import object_places
from eqforge.generators.text.hard_negatives.places import (
    Place,
    every_replacement,
    replace_at,
)
from eqforge.generators.text.hard_negatives.records import (
    HardNegative,
    NegativeKind,
    NegativeRefusal,
)
from eqforge.generators.text.hard_negatives.relations import preposition_places, verb_places
from eqforge.generators.text.hard_negatives.swap import swap_attributes, swap_objects
from eqforge.generators.text.tokenizer import find_tokens


def make_hard_negative(
    analysis: Analysis,
    kind: NegativeKind,
    rng: random.Random,
    known: frozenset[str] = frozenset(),
) -> HardNegative | NegativeRefusal:
    """Returns a hard negative of one kind, or why the caption has none.

    Args:
      analysis: the caption's analysis.
      kind: what to edit, and how.
      rng: draws among the possible edits.
      known: words of other captions of the image, from `known_words`; they are never put in, since
        what another caption names is likely to be in the image.

    Raises:
      InputError: WordNet is needed and not on this machine.
      MissingExtra: a package of the extra "text" is not installed.
    """

    def replaced(places: Iterable[Place], none: str) -> HardNegative | NegativeRefusal:
        return replace_at(analysis, kind, places, rng, known, none)

    match kind:
        case "replace_object":
            return replaced(object_places(analysis), "no_object")
        case "replace_attribute":
            return replaced(attribute_places(analysis), "no_attribute")
        case "replace_relation":
            places = [*preposition_places(analysis), *verb_places(analysis)]
            return replaced(places, "no_relation")
        case "swap_object":
            return swap_objects(analysis, rng)
        case "swap_attribute":
            return swap_attributes(analysis, rng)
        case "negation":
            return negate(analysis, rng)


def find_hard_negatives(
    analysis: Analysis,
    kind: NegativeKind,
    rng: random.Random,
    known: frozenset[str] = frozenset(),
) -> Iterator[HardNegative]:
    """Yields every replacement of a kind, or one exchange or negation drawn among the possible.

    Args:
      analysis: the caption's analysis.
      kind: what to edit, and how.
      rng: draws where to exchange or negate.
      known: see `make_hard_negative`.

    Raises:
      InputError: WordNet is needed and not on this machine.
      MissingExtra: a package of the extra "text" is not installed.
    """
    if kind == "replace_object":
        yield from every_replacement(analysis, kind, object_places(analysis), known)
    elif kind == "replace_attribute":
        yield from every_replacement(analysis, kind, attribute_places(analysis), known)
    elif kind == "replace_relation":
        places = [*preposition_places(analysis), *verb_places(analysis)]
        yield from every_replacement(analysis, kind, places, known)
    elif isinstance(made := make_hard_negative(analysis, kind, rng, known), HardNegative):
        yield made


def known_words(captions: Iterable[str]) -> frozenset[str]:
    """Returns the words of captions, in lower case."""
    return frozenset(match[0].lower() for caption in captions for match in find_tokens(caption))
