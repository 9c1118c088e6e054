"""Expressions whose words are not exchanged: "red wine", and "next to", which is a preposition."""

import functools
from pathlib import Path

from eqforge.generators.text.words import find_words, read_word_list

_DATA = Path(__file__).with_name("data")
FIXED_EXPRESSIONS = _DATA / "fixed_expressions.txt"
FUNCTION_PHRASES = _DATA / "function_phrases.txt"


def is_in_fixed_expression(text: str, start: int, end: int) -> bool:
    """Say whether a span of a text overlaps an expression that loses its sense with a word.

    A whole expression may be exchanged: it is not in itself.
    """
    return _is_in(FIXED_EXPRESSIONS, text, start, end)


def is_fixed_expression(text: str) -> bool:
    """Say whether a text is one of the expressions, which as a whole may be exchanged."""
    return text in _expressions(FIXED_EXPRESSIONS)


def is_in_function_phrase(text: str, start: int, end: int) -> bool:
    """Say whether a span overlaps a phrase that works as a preposition, pronoun or adverb.

    "top" is no noun in "on top of", nor "next" an adjective in "next to".
    """
    return _is_in(FUNCTION_PHRASES, text, start, end)


def _is_in(path: Path, text: str, start: int, end: int) -> bool:
    span = text[start:end].lower()
    if _words(path).isdisjoint(span.split() if " " in span else (span,)):
        return False
    found = (each for each in _found(path, text) if each != (start, end))
    return any(first < end and start < last for first, last in found)


@functools.lru_cache(maxsize=8)  # several words of a text are asked for, one after the other
def _found(path: Path, text: str) -> tuple[tuple[int, int], ...]:
    return tuple((start, end) for start, end, _ in find_words(text, _expressions(path)))


@functools.cache
def _words(path: Path) -> frozenset[str]:
    """Return the words of all expressions, of which most words of a text are none."""
    return frozenset(word for phrase in _expressions(path) for word in phrase.split())


@functools.cache
def _expressions(path: Path) -> tuple[str, ...]:
    return read_word_list(path)
