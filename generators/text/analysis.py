"""One analysis per caption: tokens with spans, tags and lemmas, and noun phrases.

A tagger makes it once, and every step that edits or measures the caption reuses it.
"""

import dataclasses
from collections.abc import Sequence
from typing import Protocol


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """A word, number or punctuation mark of a caption.

    Attributes:
      text: the token as it stands in the caption: caption[start:end].
      start: offset of its first character, in code points.
      end: offset just after its last character, in code points.
      tag: Penn Treebank part-of-speech tag, e.g. "NNS"; "SYM" where the tagger has none.
      lemma: dictionary form in lower case, e.g. "cat" for "Cats".
    """

    text: str
    start: int
    end: int
    tag: str
    lemma: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Analysis:
    """What a tagger says about one caption.

    Attributes:
      tokens: in order, not overlapping; together they hold every character that is not white
        space.
      noun_phrases: (first, last) token indices, `last` exclusive; in order, not overlapping.
    """

    text: str
    tokens: tuple[Token, ...]
    noun_phrases: tuple[tuple[int, int], ...]
    tagger: str


class Tagger(Protocol):
    """Analyses captions; a caption's analysis does not depend on its batch."""

    @property
    def name(self) -> str:
        """Name and version of everything the analysis depends on, as stored in the row."""
        ...

    def analyse(self, texts: Sequence[str]) -> list[Analysis]:
        """Returns one analysis per text, in order."""
        ...


def is_noun(token: Token) -> bool:
    """Tells whether the token is tagged a common or proper noun, singular or plural."""
    return token.tag.startswith("NN")


def is_adjective(token: Token) -> bool:
    """Tells whether the token is tagged an adjective, of any degree."""
    return token.tag.startswith("JJ")


def is_word(token: Token) -> bool:
    """Tells whether the token has a letter or digit, so is not punctuation or a symbol."""
    return any(character.isalnum() for character in token.text)
