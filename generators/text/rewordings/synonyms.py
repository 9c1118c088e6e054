"""Nouns and adjectives exchanged for synonyms: "a couch" and "a sofa".

A row of `caption_synonyms.tsv` says what is true wherever a word is; here two rows have to say so
of each other, so that "an armchair" does not become "a chair".
"""

import functools
from collections.abc import Iterator
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.caption_synonyms import PartOfSpeech, caption_synonyms
from eqforge.generators.text.perturbations.synonyms import replacement_edits, synonym_places
from eqforge.generators.text.rewordings.places import has_plain_spacing
from eqforge.generators.text.rewordings.records import Rewording, Rule

_GROUND: Final = "Both words name the same, as the list of synonyms for captions has it."
_NAMES: Final[tuple[tuple[PartOfSpeech, str], ...]] = (
    ("n", "noun_as_synonym"),
    ("a", "adjective_as_synonym"),
)


def _find(rule: str, pos: PartOfSpeech, analysis: Analysis) -> Iterator[Rewording]:
    for index, synonyms in synonym_places(analysis, pos).items():
        token = analysis.tokens[index]
        for word, form in synonyms:
            is_mutual = {token.lemma, token.text.lower()} & _synonyms_of(pos, word)
            if is_mutual and has_plain_spacing(analysis, index, index + 1):
                edits = tuple(replacement_edits(analysis.tokens, index, form))
                yield Rewording(rule=rule, edits=edits)


@functools.cache
def _synonyms_of(pos: PartOfSpeech, word: str) -> frozenset[str]:
    return frozenset(each for row in caption_synonyms().get((pos, word), ()) for each in row.words)


SYNONYMS: Final = tuple(
    Rule(name=name, reverse=name, ground=_GROUND, find=functools.partial(_find, name, pos))
    for pos, name in _NAMES
)
