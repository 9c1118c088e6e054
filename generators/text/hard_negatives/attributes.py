"""The adjectives and numbers of a caption that can be replaced by others of their kind."""

from collections.abc import Iterator

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import (
    ADJECTIVES,
    is_fixed_pair,
    tag_at,
    word_at,
    words_of,
)
from eqforge.generators.text.fixed_expressions import is_in_fixed_expression
from eqforge.generators.text.hard_negatives.fitting import fitting_words
from eqforge.generators.text.hard_negatives.places import Place
from eqforge.generators.text.inflection import inflect_word

_UNCOLOURED = ("black", "and", "white")
_OF_TWO = frozenset(("both", "each", "either", "one", "other"))
"""Words that tell how many there are, or tell them apart: "one sits and the other stands"."""
_PICTURES = frozenset(("image", "images", "photo", "photograph", "photos", "picture", "pictures"))


def attribute_places(analysis: Analysis) -> Iterator[Place]:
    """Yields the adjectives, and the numbers of things, with their replacements.

    A black and white photo becomes a color photo.

    Args:
      analysis: the caption's analysis.

    Raises:
      InputError: WordNet is needed and not on this machine.
      MissingExtra: a package of the extra "text" is not installed.
    """
    for index, token in enumerate(analysis.tokens):
        end = index + len(_UNCOLOURED)
        if words_of(analysis, (index, end)) == _UNCOLOURED and word_at(analysis, end) in _PICTURES:
            yield Place(first=index, last=end, words=("color",))
            continue
        word = token.text.lower()
        is_number = token.tag == "CD" and _counts(analysis, index)
        if not (token.tag in ADJECTIVES or is_number):
            continue
        if word_at(analysis, index - 1) in ("off", "other", "some"):
            continue  # "off white"; a tower has "other", or "some", short buildings beside it
        if is_fixed_pair(analysis.text, token.start) or is_in_fixed_expression(
            analysis.text, token.start, token.end
        ):
            continue
        span = (index, index + 1)
        found = fitting_words(analysis, span, "attribute", word) or fitting_words(
            analysis, span, "attribute", token.lemma
        )
        forms = [w if token.tag in ("JJ", "CD") else inflect_word(w, token.tag) for w in found]
        if words := tuple(form for form in forms if form is not None):
            yield Place(first=index, last=index + 1, words=words)


def _counts(analysis: Analysis, number: int) -> bool:
    """Tells whether a number counts things: "two", or "two big", dogs."""
    phrase = next((each for each in analysis.noun_phrases if each[0] <= number < each[1]), None)
    if phrase is None or phrase[1] == number + 1:
        return False
    behind = words_of(analysis, (number + 1, len(analysis.tokens)))
    is_plain = "of" not in words_of(analysis, phrase) and _OF_TWO.isdisjoint(behind)
    return is_plain and tag_at(analysis, phrase[1] - 1) == "NNS"
