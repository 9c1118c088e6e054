"""Words that mean the same in a caption: a list made by hand, for which WordNet is not needed.

In `caption_synonyms.tsv`, `before` names what has to follow a word: for an adjective the noun that
it describes, else the next word; `NOUN` is any noun. `unless` names what the caption must not have.
The first row of a word whose conditions hold is taken; its synonyms are empty where the word is
better kept. A word that is no dictionary form, such as "clothes", stands for this form alone, and
its synonyms are taken as they are.
"""

import functools
from collections.abc import Set
from dataclasses import dataclass
from typing import Final, Literal

from eqforge.generators.text.words import read_table

PartOfSpeech = Literal["n", "a"]

ANY_NOUN: Final = "NOUN"


@dataclass(frozen=True, kw_only=True, slots=True)
class Synonyms:
    """The synonyms of a word, and where they hold; see above."""

    words: tuple[str, ...]
    before: frozenset[str]
    unless: frozenset[str]

    def hold(self, following: Set[str], there: Set[str]) -> bool:
        """Return True where they can stand for the word; both sets hold texts and lemmas."""
        is_followed = not self.before or not self.before.isdisjoint(following)
        return is_followed and self.unless.isdisjoint(there)


@functools.cache
def caption_synonyms() -> dict[tuple[PartOfSpeech, str], tuple[Synonyms, ...]]:
    """Read the rows of each word of the list, in order."""
    found: dict[tuple[PartOfSpeech, str], tuple[Synonyms, ...]] = {}
    for row in read_table("caption_synonyms.tsv"):
        key: tuple[PartOfSpeech, str] = ("n" if row["pos"] == "n" else "a", row["word"])
        words, before, unless = (
            tuple(filter(None, row[name].split(","))) for name in ("synonyms", "before", "unless")
        )
        entry = Synonyms(words=words, before=frozenset(before), unless=frozenset(unless))
        found[key] = (*found.get(key, ()), entry)
    return found
