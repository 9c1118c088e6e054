"""Nouns and adjectives exchanged for synonyms: "a couch" and "a sofa".

A row of `caption_synonyms.tsv` says what is true wherever a word is; here two rows have to say so
of each other, where the word stands, so that "an armchair" does not become "a chair".
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
from eqforge.generators.text.rewordings.places import has_plain_spacing
from eqforge.generators.text.rewordings.records import Rewording, Rule

_GROUND: Final = "Both words name the same, as the list of synonyms for captions has it."
_NAMES: Final[tuple[tuple[PartOfSpeech, str], ...]] = (
    ("n", "noun_as_synonym"),
    ("a", "adjective_as_synonym"),
)


def _find(rule: str, pos: PartOfSpeech, analysis: Analysis) -> Iterator[Rewording]:
    for index, synonyms in synonym_places(analysis, pos).items():
        for word, form in synonyms if has_plain_spacing(analysis, index, index + 1) else ():
            if _is_mutual(analysis, index, pos, word, form):
                edits = tuple(replacement_edits(analysis.tokens, index, form))
                yield Rewording(rule=rule, edits=edits)


def _is_mutual(analysis: Analysis, index: int, pos: PartOfSpeech, word: str, form: str) -> bool:
    """Tells whether a synonym that stands in place of a token may become the token again."""
    token = analysis.tokens[index]
    tokens = list(analysis.tokens)
    tokens[index] = dataclasses.replace(token, text=form, lemma=word)
    back = synonyms_at(tokens, index, pos, words_there(tokens))
    return token.text.lower() in {form.lower() for _, form in back}


SYNONYMS: Final = tuple(
    Rule(name=name, reverse=name, ground=_GROUND, find=functools.partial(_find, name, pos))
    for pos, name in _NAMES
)
