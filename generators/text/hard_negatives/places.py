"""A place in a caption whose words can be replaced, and the edit that replaces them."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from eqforge.generators.text.analysis import Analysis, Token
from eqforge.generators.text.edits import Edit, apply_edits
from eqforge.generators.text.hard_negatives.records import (
    HardNegative,
    NegativeKind,
    NegativeRefusal,
)
from eqforge.generators.text.perturbations.synonyms import article_edits, cased
from eqforge.generators.text.taggers import lemmatise


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Tokens of a caption and their possible replacements.

    Attributes:
      first, last: the tokens, `last` exclusive.
      words: words or phrases, inflected, in lower case; at least one.
    """

    first: int
    last: int
    words: tuple[str, ...]


def replace_at(
    analysis: Analysis,
    kind: NegativeKind,
    places: Iterable[Place],
    rng: random.Random,
    known: frozenset[str],
    none: str,
) -> HardNegative | NegativeRefusal:
    """Draws a place and a word, and makes the replacement.

    Args:
      analysis: the caption's analysis.
      kind: the kind of the negative.
      places: where words may be replaced.
      rng: draws the place, then the word.
      known: words not to put in, in lower case; the caption's own words are not put in either.
      none: the reason to give if there is no place.
    """
    options = sorted(places, key=lambda place: place.first)
    if not options:
        return NegativeRefusal(kind=kind, reason=none)
    open_options = _open(analysis, options, known)
    if not open_options:
        return NegativeRefusal(kind=kind, reason="all_known")
    place, words = rng.choice(open_options)
    edits = _edits(analysis.tokens, place, rng.choice(words))
    return HardNegative(kind=kind, edited=apply_edits(analysis.text, edits))


def every_replacement(
    analysis: Analysis, kind: NegativeKind, places: Iterable[Place], known: frozenset[str]
) -> Iterator[HardNegative]:
    """Yields all replacements among which `replace_at` draws, in the order of their places."""
    for place, words in _open(analysis, sorted(places, key=lambda place: place.first), known):
        for word in words:
            edits = _edits(analysis.tokens, place, word)
            yield HardNegative(kind=kind, edited=apply_edits(analysis.text, edits))


def _open(
    analysis: Analysis, places: Iterable[Place], known: frozenset[str]
) -> list[tuple[Place, list[str]]]:
    """Returns the places with the words that may be put in; those that have any."""
    taken = known.union(*((token.text.lower(), token.lemma) for token in analysis.tokens))
    return [
        (place, words)
        for place in places
        if (words := [word for word in place.words if taken.isdisjoint(_forms(word))])
    ]


def _forms(phrase: str) -> set[str]:
    """Returns the words of a phrase, and of plurals the singular."""
    return {form for word in phrase.split() for form in (word, lemmatise(word, "NNS"))}


def _edits(tokens: Sequence[Token], place: Place, word: str) -> Sequence[Edit]:
    """Returns the edit of a place of one or more tokens, after that of an article before it."""
    first, last = tokens[place.first], tokens[place.last - 1]
    edit = Edit(start=first.start, end=last.end, replacement=cased(word, tokens, place.first))
    return (*article_edits(tokens, place.first, word), edit)
