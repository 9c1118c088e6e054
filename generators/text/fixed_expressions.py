"""Expressions that lose their sense if one word is replaced: "red wine", "in front of"."""

import functools
from pathlib import Path

from eqforge.generators.text.words import find_words, read_word_list

FIXED_EXPRESSIONS = Path(__file__).with_name("data") / "fixed_expressions.txt"


def is_in_fixed_expression(text: str, start: int, end: int) -> bool:
    """Tells whether a span of a text overlaps a fixed expression.

    Args:
      text: any text.
      start: the span's first character.
      end: the first character after it.
    """
    return any(
        found_start < end and start < found_end
        for found_start, found_end, _ in find_words(text, _expressions())
    )


@functools.cache
def _expressions() -> tuple[str, ...]:
    return read_word_list(FIXED_EXPRESSIONS)
