"""Nouns and adjectives exchanged for synonyms: "a couch" and "a sofa".

A row of `caption_synonyms.tsv` says what is true wherever a word is; here two rows have to say so
of each other, where the word stands, so that "an armchair" does not become "a chair". Some pairs do
for a perturbation, or tell near-synonyms from foils, and are still not what a careful writer would
exchange.
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.caption_synonyms import PartOfSpeech
from eqforge.generators.text.perturbations.synonyms import (
    replacement_edits,
    synonym_places,
    synonyms_at,
    words_there,
)
from eqforge.generators.text.rewordings.records import Edits, Rule, has_plain_spacing
from eqforge.generators.text.words import word_set

_GROUND: Final = "Both words name the same, as the list of synonyms for captions has it."
_NAMES: Final[tuple[tuple[PartOfSpeech, str], ...]] = (
    ("n", "noun_as_synonym"),
    ("a", "adjective_as_synonym"),
)
_LEFT_OUT: Final = (
    *({"adult", "grownup"}, {"animal", "creature"}, {"crowd", "throng"}, {"damp", "wet"}),
    *({"blossom", "flower"}, {"contemporary", "modern"}, {"different", "various"}),
    *({"foggy", "misty"}, {"part", "portion"}, {"phone", "telephone"}, {"cop", "policeman"}),
    *({"cloudy", "overcast"}, {"home", "house"}, {"carpet", "rug"}, {"bookcase", "bookshelf"}),
)
_SLICED: Final = word_set("synonyms.sliced")
_OF_FAMILY: Final = frozenset(("boy", "brother", "girl", "lady", "man", "sister", "woman"))


def _find(pos: PartOfSpeech, analysis: Analysis) -> Iterator[Edits]:
    for index, synonyms in synonym_places(analysis, pos).items():
        for word, form in synonyms if has_plain_spacing(analysis, index, index + 1) else ():
            if _is_exchanged(analysis, index, word) and _is_mutual(
                analysis, index, pos, word, form
            ):
                edits = tuple(replacement_edits(analysis.tokens, index, form))
                yield edits


def _is_mutual(analysis: Analysis, index: int, pos: PartOfSpeech, word: str, form: str) -> bool:
    """Say whether a synonym that stands in place of a token may become the token again."""
    token = analysis.tokens[index]
    tokens = list(analysis.tokens)
    tokens[index] = dataclasses.replace(token, text=form, lemma=word)
    back = synonyms_at(tokens, index, pos, words_there(tokens))
    return token.text.lower() in {form.lower() for _, form in back}


def _is_exchanged(analysis: Analysis, index: int, word: str) -> bool:
    """Say whether a synonym is as usual as the word where it stands."""
    token = analysis.tokens[index]
    pair = (token.lemma, word)
    before, behind = analysis.word(index - 1), analysis.word(index + 1)
    if token.tag == "NNS" and before in ("a", "an"):  # "a women"
        return False
    if set(pair) == {"guy", "man"}:
        return "and" not in (before, behind)
    if set(pair) == {"multiple", "several"}:
        return behind not in ("colored", "coloured")
    if token.tag == "NNS" and token.lemma in ("somebody", "someone"):
        return False  # "someones" for "someone's"
    if set(pair) == {"center", "middle"}:
        return behind == "of"
    if set(pair) == {"ad", "advertisement"} and token.tag == "NN":
        return analysis.tag(index - 1) in ("DT", "JJ", "PRP$")
    if "image" in pair and behind == "of":
        return index <= 3  # "blurs the image of a building"
    if pair == ("group", "bunch"):
        return token.tag == "NN" and index <= 1
    if pair == ("piece", "slice"):
        is_small = before in ("little", "small", "tiny")
        return (
            not is_small and behind == "of" and not _SLICED.isdisjoint(_lemmas(analysis, index + 2))
        )
    if pair == ("small", "little"):
        return behind != "area" and before not in ("so", "too", "very")
    if pair == ("little", "small"):
        return _OF_FAMILY.isdisjoint(_lemmas(analysis, index + 1))
    if "youngster" in pair and before == "young":
        return False
    if set(pair) == {"baby", "infant"}:
        return not analysis.tag(index + 1).startswith(("JJ", "NN"))
    return pair != ("bunch", "group") and set(pair) not in _LEFT_OUT


def _lemmas(analysis: Analysis, start: int) -> list[str]:
    """Return the dictionary forms of two tokens: an adjective, if there is one, and a noun."""
    return [token.lemma for token in analysis.tokens[start : start + 2]]


SYNONYMS: Final = tuple(
    Rule(name=name, reverse=name, ground=_GROUND, find=functools.partial(_find, pos))
    for pos, name in _NAMES
)
