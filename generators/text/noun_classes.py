"""What kind of thing a noun names: a room, a vehicle, something living.

Classes are the noun itself, the groups of the closed classes of objects (`hard_negatives.lexicon`),
"living", "shapeless" (water, a light), and the name of a file of WordNet, such as "artifact",
"food" or "person": what the groups belong to or, for other nouns, that of the most frequent sense
that a picture can show.
"""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import Range, head_of, is_living
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.wordnet import WORDNET_LOCK, open_wordnet
from eqforge.generators.text.words import read_word_list

_FILES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("bird", "pet or farm animal", "wild animal"), "animal"),
    **dict.fromkeys(("dish", "drink", "fruit", "sweet", "vegetable"), "food"),
    **dict.fromkeys(("boy or girl", "man or woman"), "person"),
    **dict.fromkeys(("ground", "land", "slope or shore", "water"), "object"),
    "plant": "plant",
}
"""The files of WordNet that have the words of some groups; those of all others are artifacts."""

_VISIBLE: Final = frozenset(
    ("animal", "artifact", "body", "food", "object", "person", "phenomenon", "plant", "substance")
)
_SHAPELESS: Final = Path(__file__).with_name("data") / "shapeless_nouns.txt"
_SENSES: Final = 3
"""A sense that is rarer than so many others is not the one that captions have."""


def classes_of(analysis: Analysis, phrase: Range) -> frozenset[str]:
    """Returns the classes of what a noun phrase names.

    Args:
      analysis: the caption's analysis.
      phrase: first and last token, `last` exclusive.

    Raises:
      InputError: WordNet is not on this machine.
    """
    head = head_of(analysis, phrase)
    living = frozenset(("living",)) if is_living(analysis, phrase) else frozenset()
    return _classes(head.lemma, head.text.lower()) | living


@functools.lru_cache(maxsize=65_536)
def _classes(lemma: str, word: str) -> frozenset[str]:
    known = closed_classes("object").groups
    groups = {*known.get(lemma, ()), *known.get(word, ())}
    files = {_FILES.get(group, "artifact") for group in groups} or _files_of(lemma)
    shapeless = {"shapeless"} if lemma in _shapeless() else set()
    return frozenset({lemma, *groups, *files, *shapeless})


@functools.cache
def _shapeless() -> frozenset[str]:
    return frozenset(read_word_list(_SHAPELESS))


def _files_of(lemma: str) -> set[str]:
    with WORDNET_LOCK:
        senses = open_wordnet().synsets(lemma, "n")[:_SENSES]
    names = [sense.lexname().removeprefix("noun.") for sense in senses]
    return set([*(name for name in names if name in _VISIBLE), *names][:1])
