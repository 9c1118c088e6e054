"""The steps that a caption offers: rewordings by every rule, and false edits of one place each.

Negation and exchanges are no steps. "Not riding a bike", made of "riding a horse", may be true, so
a negation takes back what comes after it; and an exchange touches two places at once.
"""

import random
from collections.abc import Iterator
from typing import Literal, get_args

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.swap import Swap, swap_coordination
from eqforge.generators.text.edits import apply_edits
from eqforge.generators.text.graded.records import Step, step_of
from eqforge.generators.text.hard_negatives.attributes import attribute_places
from eqforge.generators.text.hard_negatives.make import unclear_reason
from eqforge.generators.text.hard_negatives.objects import object_places
from eqforge.generators.text.hard_negatives.places import Place, replace_at
from eqforge.generators.text.hard_negatives.records import HardNegative, NegativeKind
from eqforge.generators.text.hard_negatives.relations import preposition_places, verb_places
from eqforge.generators.text.rewordings.rules import KINDS, find_rewordings

Family = Literal[
    "swap",
    "relative_clause",
    "headline",
    "aspect",
    "existential",
    "voice",
    "converse",
    "clothing",
    "possession",
    "numeral",
    "phrase",
    "color",
    "synonym",
]
"""What rewordings are of: an exchange around "and", or a family of rules."""

FAMILIES: tuple[Family, ...] = get_args(Family)

FalseKind = Literal["replace_object", "replace_attribute", "replace_relation"]
FALSE_KINDS: tuple[FalseKind, ...] = get_args(FalseKind)


def rewording_steps(analysis: Analysis) -> Iterator[Step]:
    """Yields the rewordings of a caption, by every rule and by exchanging the sides of an "and".

    Raises:
      MissingExtra: a package of the extra "text" is not installed.
    """
    swap = swap_coordination(analysis)
    if isinstance(swap, Swap):
        yield step_of(f"swap/{swap.level}", analysis.text, swap.edited)
    for found in find_rewordings(analysis):
        yield Step(kind=KINDS[found.rule], edits=found.edits)


def offers_rewording(analysis: Analysis, step: Step, text: str) -> bool:
    """Tells whether a caption has a rewording of a kind that makes some text of it."""
    return any(
        found.kind == step.kind and apply_edits(analysis.text, found.edits).text == text
        for found in rewording_steps(analysis)
    )


def false_steps(analysis: Analysis, known: frozenset[str], rng: random.Random) -> Iterator[Step]:
    """Yields a replacement at every place of a caption that has one, each making it false.

    Args:
      analysis: the caption's analysis.
      known: words of other captions of the image, which are never put in.
      rng: draws the words.

    Raises:
      InputError: WordNet is needed and not on this machine.
      MissingExtra: a package of the extra "text" is not installed.
    """
    for kind, place in _places(analysis):
        made = replace_at(analysis, kind, [place], rng, known, "")
        if isinstance(made, HardNegative):
            yield step_of(kind, analysis.text, made.edited)


def offers_negative(analysis: Analysis, step: Step, text: str) -> bool:
    """Tells whether a caption has a false edit of a kind that makes some text of it."""
    return any(
        kind == step.kind and _makes(analysis, kind, place, text)
        for kind, place in _places(analysis)
    )


def _makes(analysis: Analysis, kind: NegativeKind, place: Place, text: str) -> bool:
    lower = text.lower()
    for word in place.words:
        if word in lower:
            only = Place(first=place.first, last=place.last, words=(word,))
            made = replace_at(analysis, kind, [only], random.Random(0), frozenset(), "")
            if isinstance(made, HardNegative) and made.edited.text == text:
                return True
    return False


def _places(analysis: Analysis) -> Iterator[tuple[NegativeKind, Place]]:
    if unclear_reason(analysis):
        return
    yield from (("replace_object", place) for place in object_places(analysis))
    yield from (("replace_attribute", place) for place in attribute_places(analysis))
    yield from (("replace_relation", place) for place in preposition_places(analysis))
    yield from (("replace_relation", place) for place in verb_places(analysis))
