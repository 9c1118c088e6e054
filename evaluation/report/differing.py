"""Which words of two texts differ, where the dataset does not say."""

import difflib
import re
from collections.abc import Iterator
from typing import Final

# Words, and each character of scripts that are written without spaces.
_WORD: Final = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\u0e00-\u0e7f]|[^\W]+|[^\w\s]")
_MOST_WORDS: Final = 400
"""Longer texts are not compared word by word: that takes time by the square."""

Spans = list[tuple[int, int]]


def differing_words(first: str, second: str) -> tuple[Spans, Spans]:
    """Returns the characters [start, end) of the words in which each text differs from the other.

    Words that follow one another are one span. Texts of more than 400 words are not compared.
    """
    words = [list(_WORD.finditer(text)) for text in (first, second)]
    if max(map(len, words)) > _MOST_WORDS:
        return [], []
    keys = [[match[0].casefold() for match in each] for each in words]
    blocks = difflib.SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_opcodes()
    changed = [block for block in blocks if block[0] != "equal"]
    return (
        list(_spans(words[0], [(block[1], block[2]) for block in changed])),
        list(_spans(words[1], [(block[3], block[4]) for block in changed])),
    )


def _spans(words: list[re.Match[str]], runs: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for start, end in runs:
        if start < end:
            yield words[start].start(), words[end - 1].end()
