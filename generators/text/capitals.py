"""Capitals at the starts of sentences: they belong to the place, those of names to the word."""

import re
from typing import Final

from eqforge.generators.text.analysis import Analysis, Token, is_word
from eqforge.generators.text.parts import english

_SENTENCE_ENDS: Final = frozenset((".", "!", "?", "\u2026", ".."))
_HAS_SENTENCES: Final = re.compile(r"[.!?\u2026]\W*\w")


def sentence_capitals(analysis: Analysis) -> dict[int, bool]:
    """Returns which words have the capital of their sentence, and whether they keep it elsewhere.

    Captions in capitals throughout, or with one in every word, have none of that kind. A name
    behind a full stop need not start a sentence ("St. Louis") and is left out.

    Returns:
      By the first character of the word: whether it is a name, an acronym or "I".
    """
    found: dict[int, bool] = {}
    if analysis.text.isupper() or analysis.text.istitle():
        return found
    is_first = begins = True
    for token in analysis.tokens:
        if token.text in _SENTENCE_ENDS:
            begins = True
        elif begins and is_word(token):
            if token.text[0].isupper():
                is_own = _has_own_capital(token)
                if is_first or not is_own:
                    found[token.start] = is_own
            if is_first and not _HAS_SENTENCES.search(analysis.text):
                break
            is_first = begins = False
    return found


def raised(word: str) -> str:
    """Returns a word with a capital, where no other letter of it is one: "iPhone" stays."""
    return _with_first(word, word[0].upper())


def lowered(word: str) -> str:
    """Returns a word without its capital, where no other letter of it is one: "TV" stays."""
    return _with_first(word, word[0].lower())


def _with_first(word: str, letter: str) -> str:
    """Returns a word with its first letter in another case, if that can be undone."""
    is_undone = word[0] in (letter.upper(), letter.lower())
    return letter + word[1:] if is_undone and word[1:] == word[1:].lower() else word


def _has_own_capital(token: Token) -> bool:
    """Tells whether a word has a capital wherever it stands: a name, "Asian", "I", "T-shirt"."""
    word = token.text
    if token.tag.startswith("NNP") or (word != "A" and not word[1:2].isalpha()):
        return True
    lexicon = english().lexicon
    return word in lexicon and word.lower() not in lexicon
