"""REPLACE negatives: one object, attribute or relation for another of its kind."""

import random

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.hard_negatives.attributes import attribute_places
from eqforge.generators.text.hard_negatives.objects import object_places
from eqforge.generators.text.hard_negatives.places import replace_at
from eqforge.generators.text.hard_negatives.records import HardNegative, NegativeRefusal
from eqforge.generators.text.hard_negatives.relations import preposition_places, verb_places


def replace_object(
    analysis: Analysis,
    rng: random.Random,
    known: frozenset[str] = frozenset(),
    *,
    use_wordnet: bool = True,
) -> HardNegative | NegativeRefusal:
    """Puts another thing of its kind in the place of a noun, in the same number.

    Args:
      analysis: the caption's analysis.
      rng: draws the noun, then the word in its place.
      known: words of other captions of the image, in lower case: none of them is put in.
      use_wordnet: whether nouns that the closed classes lack take co-hyponyms of WordNet.

    Raises:
      InputError: WordNet is wanted and not on this machine.
      MissingExtra: a package of the extra "text" is not installed.
    """
    places = object_places(analysis, use_wordnet)
    return replace_at(analysis, "replace_object", places, rng, known, "no_object")


def replace_attribute(
    analysis: Analysis,
    rng: random.Random,
    known: frozenset[str] = frozenset(),
    *,
    use_wordnet: bool = True,
) -> HardNegative | NegativeRefusal:
    """Puts another colour, size, state or number in the place of one.

    Args:
      analysis: the caption's analysis.
      rng: draws the word to replace, then the word in its place.
      known: words of other captions of the image, in lower case: none of them is put in.
      use_wordnet: whether adjectives that the closed classes lack take antonyms of WordNet.

    Raises:
      InputError: WordNet is wanted and not on this machine.
      MissingExtra: a package of the extra "text" is not installed.
    """
    places = attribute_places(analysis, use_wordnet)
    return replace_at(analysis, "replace_attribute", places, rng, known, "no_attribute")


def replace_relation(
    analysis: Analysis,
    rng: random.Random,
    known: frozenset[str] = frozenset(),
    *,
    use_wordnet: bool = True,
) -> HardNegative | NegativeRefusal:
    """Puts another preposition or verb in the place of one, in the same form.

    Args:
      analysis: the caption's analysis.
      rng: draws the words to replace, then the words in their place.
      known: words of other captions of the image, in lower case: none of them is put in.
      use_wordnet: whether verbs that the closed classes lack take co-hyponyms of WordNet.

    Raises:
      InputError: WordNet is wanted and not on this machine.
      MissingExtra: a package of the extra "text" is not installed.
    """
    places = [*preposition_places(analysis), *verb_places(analysis, use_wordnet)]
    return replace_at(analysis, "replace_relation", places, rng, known, "no_relation")
