"""The nouns of a caption that can be replaced by others of their kind, in the same number."""

from collections.abc import Iterator

from eqforge.generators.text.analysis import Analysis, Token
from eqforge.generators.text.coordination.conjuncts import (
    OPENERS,
    is_mass,
    is_mass_noun,
    tag_at,
    word_at,
)
from eqforge.generators.text.hard_negatives.co_hyponyms import noun_co_hyponyms
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.hard_negatives.places import Place, Source
from eqforge.generators.text.inflection import inflect_word

# Words whose usual sense in captions is not that of their class.
_NEVER = frozenset(("back", "glasses"))
_NOUN_TAGS = ("NN", "NNS")
_PLURAL_ONLY = frozenset(("jeans", "pants", "shorts", "trousers"))


def object_places(analysis: Analysis, use_wordnet: bool) -> Iterator[Place]:
    """Yields the heads of noun phrases with their replacements.

    A compound ("fire hydrant") is replaced as a whole or not at all.

    Args:
      analysis: the caption's analysis.
      use_wordnet: whether nouns in no closed class are replaced by WordNet co-hyponyms.

    Raises:
      InputError: WordNet is needed and not on this machine.
      MissingExtra: a package of the extra "text" is not installed.
    """
    classes = closed_classes("object").alternatives
    for first, last, is_open in _heads(analysis):
        head = analysis.tokens[last - 1]
        words = [token.text.lower() for token in analysis.tokens[first:last]]
        names = (" ".join(words), " ".join([*words[:-1], head.lemma]))
        name = next((name for name in names if name in classes), None)
        if words[-1] in _NEVER or tag_at(analysis, last) in OPENERS:  # "watches the water"
            continue
        source: Source = "wordnet" if name is None else "lexicon"
        found = () if name is None else classes[name]
        if name is None and use_wordnet and last - first == 1 and word_at(analysis, last) != "of":
            found = noun_co_hyponyms(head.lemma)
        counted = word_at(analysis, first - 1) in ("a", "an", "one")
        forms = tuple(f for w in found if (f := _in_number(w, head, counted, is_open)) is not None)
        if forms:
            yield Place(first=first, last=last, words=forms, source=source)


def _heads(analysis: Analysis) -> Iterator[tuple[int, int, bool]]:
    """Yields the tokens of the nouns that head noun phrases, compounds as a whole.

    Yields:
      First and last token, `last` exclusive, and whether a determiner opens the phrase.
    """
    for first, last in analysis.noun_phrases:
        start = last - 1
        while start > first and analysis.tokens[start - 1].tag[:2] in ("NN", "HY"):
            start -= 1
        if analysis.tokens[last - 1].tag in _NOUN_TAGS:
            opened = any(token.tag in OPENERS for token in analysis.tokens[first:start])
            yield start, last, opened


def _in_number(word: str, head: Token, is_counted: bool, is_opened: bool) -> str | None:
    """Returns a noun in the number needed to replace another, None if it has no such form.

    Args:
      word: the noun to put in, in the singular.
      head: the noun to replace.
      is_counted: whether "a", "an" or "one" stands before it, which "rice" cannot follow.
      is_opened: whether any determiner opens its phrase; without one, "rice" can only become
        "potatoes", not "potato".
    """
    *rest, last = word.split()
    if is_mass_noun(last):
        return None if is_counted or head.tag == "NNS" else word
    is_plural = head.tag == "NNS" or (not is_opened and is_mass(head))
    if not is_plural or last in _PLURAL_ONLY:
        return word
    plural = inflect_word(last, "NNS")
    return None if plural is None else " ".join([*rest, plural])
