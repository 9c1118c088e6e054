"""Represent a caption's tokens, tags, lemmas and noun phrases.

A tagger analyses a caption once, and every step that edits or measures it reuses the result.
"""

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Protocol

Range = tuple[int, int]
"""First and last token of a phrase, `last` exclusive."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """A word, number or punctuation mark of a caption: caption[start:end], in code points.

    Attributes:
      tag: Penn Treebank part-of-speech tag, e.g. "NNS"; "SYM" if the tagger has none.
      lemma: dictionary form in lower case, e.g. "cat" for "Cats".
    """

    text: str
    start: int
    end: int
    tag: str
    lemma: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Analysis:
    """Tokens and noun phrases of one caption, in order and not overlapping.

    Attributes:
      tokens: together they hold every character that is not white space.
      noun_phrases: (first, last) token indices, `last` exclusive.
    """

    text: str
    tokens: tuple[Token, ...]
    noun_phrases: tuple[Range, ...]
    tagger: str

    def tag(self, index: int) -> str:
        """Return the tag of a token; "" before the first or after the last."""
        return self.tokens[index].tag if 0 <= index < len(self.tokens) else ""

    def word(self, index: int) -> str:
        """Return a token in lower case; "" before the first or after the last."""
        return self.tokens[index].text.lower() if 0 <= index < len(self.tokens) else ""

    def words(self, span: Range) -> tuple[str, ...]:
        return tuple(token.text.lower() for token in self.tokens[slice(*span)])

    def head(self, phrase: Range) -> Token:
        """Return the head of a noun phrase: the last noun before any "of"."""
        words = self.words(phrase)
        return self.tokens[phrase[0] + (words.index("of") if "of" in words else len(words)) - 1]

    def phrase_from(self, index: int) -> Range | None:
        return next((each for each in self.noun_phrases if each[0] == index), None)

    def phrase_to(self, index: int | None) -> Range | None:
        return next((each for each in self.noun_phrases if each[1] == index), None)

    def phrase_around(self, index: int) -> Range | None:
        return next((each for each in self.noun_phrases if each[0] <= index < each[1]), None)


class Tagger(Protocol):
    """Analyses captions; a caption's analysis does not depend on its batch."""

    @property
    def name(self) -> str:
        """Name and version of everything the analysis depends on, as stored in the row."""
        ...

    def analyse(self, texts: Sequence[str]) -> list[Analysis]: ...


def is_noun(token: Token) -> bool:
    return token.tag.startswith("NN")


def is_adjective(token: Token) -> bool:
    return token.tag.startswith("JJ")


def is_word(token: Token) -> bool:
    return any(character.isalnum() for character in token.text)


# Combining marks belong to the letter before them; for use inside a character class.
MARKS = r"\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_LETTER = rf"[^\W_][{MARKS}]*"
_TOKEN = re.compile(
    rf"""
      (?:[a-z]\.){{2,}}                           # abbreviation: U.S., a.m.
    | \d+(?:[.,:/]\d+)+(?![^\W_])                 # 3.5  1,000  10:30  1/2
    | (?:{_LETTER})+?(?=n['\u2019]t(?![^\W_]))         # "do" of "don't"
    | n['\u2019]t(?![^\W_])
    | ['\u2019](?:s|re|ve|ll|d|m)(?![^\W_])
    | o['\u2019]clock(?![^\W_])
    | (?:{_LETTER})+(?:-(?:{_LETTER})+)*          # word, with its hyphens
    | \.{{2,}} | -{{2,}}
    | \S
    """,
    re.VERBOSE | re.IGNORECASE,
)


def find_tokens(text: str) -> Iterator[re.Match[str]]:
    """Yield a match per token, in order; only white space lies outside the matches."""
    return _TOKEN.finditer(text)
