"""Makes a hard negative of a caption."""

import random
from collections.abc import Iterable

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.hard_negatives.negation import negate
from eqforge.generators.text.hard_negatives.records import (
    HardNegative,
    NegativeKind,
    NegativeRefusal,
)
from eqforge.generators.text.hard_negatives.replace import (
    replace_attribute,
    replace_object,
    replace_relation,
)
from eqforge.generators.text.hard_negatives.swap import swap_attributes, swap_objects
from eqforge.generators.text.tokenizer import find_tokens


def make_hard_negative(
    analysis: Analysis,
    kind: NegativeKind,
    rng: random.Random,
    known: frozenset[str] = frozenset(),
    *,
    use_wordnet: bool = True,
) -> HardNegative | NegativeRefusal:
    """Returns a hard negative of one kind, or why the caption has none.

    Args:
      analysis: the caption's analysis.
      kind: what to edit, and how.
      rng: draws among what is possible.
      known: words of other captions of the image, from `known_words`: none of them replaces a word,
        since what another caption names is likely to be in the image.
      use_wordnet: whether REPLACE falls back on WordNet where the closed classes lack a word.

    Raises:
      InputError: WordNet is wanted and not on this machine.
      MissingExtra: a package of the extra "text" is not installed.
    """
    match kind:
        case "replace_object":
            return replace_object(analysis, rng, known, use_wordnet=use_wordnet)
        case "replace_attribute":
            return replace_attribute(analysis, rng, known, use_wordnet=use_wordnet)
        case "replace_relation":
            return replace_relation(analysis, rng, known, use_wordnet=use_wordnet)
        case "swap_object":
            return swap_objects(analysis, rng)
        case "swap_attribute":
            return swap_attributes(analysis, rng)
        case "negation":
            return negate(analysis, rng)


def known_words(captions: Iterable[str]) -> frozenset[str]:
    """Returns the words of captions, in lower case."""
    return frozenset(match[0].lower() for caption in captions for match in find_tokens(caption))
