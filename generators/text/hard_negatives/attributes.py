"""The adjectives and numbers of a caption that can be replaced by others of their kind."""

from collections.abc import Iterator

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import (
    ADJECTIVES,
    is_fixed_pair,
    is_living,
    tag_at,
)
from eqforge.generators.text.fixed_expressions import is_in_fixed_expression
from eqforge.generators.text.hard_negatives.co_hyponyms import adjective_antonyms
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.hard_negatives.places import Place, Source
from eqforge.generators.text.inflection import inflect_word

# Adjectives that have no alternative a picture could show.
_NOT_DESCRIPTIVE = frozenset(
    (
        *(
            "able",
            "close",
            "complete",
            "different",
            "few",
            "first",
            "front",
            "last",
            "left",
            "less",
        ),
        *(
            "many",
            "more",
            "most",
            "much",
            "net",
            "next",
            "other",
            "own",
            "past",
            "personal",
            "right",
            "same",
        ),
        *("several", "such", "top", "unable", "up", "various"),
    )
)


def attribute_places(analysis: Analysis, use_wordnet: bool) -> Iterator[Place]:
    """Yields the adjectives, and the numbers of things, with their replacements.

    Args:
      analysis: the caption's analysis.
      use_wordnet: whether adjectives in no closed class are replaced by WordNet antonyms.

    Raises:
      InputError: WordNet is needed and not on this machine.
      MissingExtra: a package of the extra "text" is not installed.
    """
    classes = closed_classes("attribute").alternatives
    for index, token in enumerate(analysis.tokens):
        word = token.text.lower()
        is_number = token.tag == "CD" and tag_at(analysis, index + 1) in ("NNS", "JJ")
        if not (token.tag in ADJECTIVES or is_number) or word in _NOT_DESCRIPTIVE:
            continue
        if is_fixed_pair(analysis.text, token.start) or is_in_fixed_expression(
            analysis.text, token.start, token.end
        ):
            continue
        name = word if word in classes else token.lemma
        found: tuple[str, ...] = classes.get(name, ())
        source: Source = "lexicon" if name in classes else "wordnet"
        if not found and use_wordnet and not is_number:
            found = adjective_antonyms(name)
        forms = [w if token.tag in ("JJ", "CD") else inflect_word(w, token.tag) for w in found]
        unfit = "new" if _is_of_living(analysis, index) else "young"
        if words := tuple(form for form in forms if form not in (None, unfit)):
            yield Place(first=index, last=index + 1, words=words, source=source)


def _is_of_living(analysis: Analysis, index: int) -> bool:
    """Tells whether an adjective stands in a noun phrase that names people or animals."""
    return any(
        first <= index < last and is_living(analysis, (first, last))
        for first, last in analysis.noun_phrases
    )
