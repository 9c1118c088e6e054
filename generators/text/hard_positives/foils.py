"""Finds the words of a caption that its negative replaced: the foil."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from eqforge.generators.text.edits import Span
from eqforge.generators.text.tokenizer import find_tokens

DETERMINERS = frozenset(("a", "an", "the", "his", "her", "their", "its"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Foil:
    """The one span in which a caption and its negative differ, without determiners at its ends.

    Attributes:
      words: the foiled words of the caption, in lower case.
      span: of these words, in the caption; empty, after a word, if the negative only adds words.
      negative_words: the words that replace them, in lower case.
      negative_span: of those words, in the negative.
      lost_determiner: a determiner after the foiled words that the negative lacks: "a" in "on a
        bench", where the negative has "beside bench"; otherwise empty.
    """

    words: tuple[str, ...]
    span: Span
    negative_words: tuple[str, ...]
    negative_span: Span
    lost_determiner: str


def find_foil(caption: str, negative: str) -> Foil | None:
    """Returns the foil between a caption and its negative, None if they have the same words.

    Letter case is ignored, and so is the difference between "a" and "an". The span is the shortest
    one outside which the two captions have the same words.
    """
    tokens, negative_tokens = list(find_tokens(caption)), list(find_tokens(negative))
    words, negative_words = (
        [_key(token[0]) for token in found] for found in (tokens, negative_tokens)
    )
    if words == negative_words:
        return None
    first = _common_prefix(words, negative_words)
    last = _common_prefix(words[first:][::-1], negative_words[first:][::-1])
    ends, negative_ends = (first, len(words) - last), (first, len(negative_words) - last)
    loses = _loses_determiner(words, negative_words, ends, negative_ends)
    start, end = _without_determiners(words, *ends)
    negative_start, negative_end = _without_determiners(negative_words, *negative_ends)
    return Foil(
        words=tuple(words[start:end]),
        span=_span(tokens, start, end),
        negative_words=tuple(negative_words[negative_start:negative_end]),
        negative_span=_span(negative_tokens, negative_start, negative_end),
        lost_determiner=words[ends[1] - 1] if loses else "",
    )


def _key(word: str) -> str:
    lower = word.lower()
    return "a" if lower == "an" else lower


def _common_prefix(left: list[str], right: list[str]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(left), len(right)))


def _loses_determiner(
    words: list[str], negative_words: list[str], ends: tuple[int, int], negative: tuple[int, int]
) -> bool:
    """Tells whether the foil ends in a determiner in the caption but not in the negative."""
    ends_in_determiner = ends[1] - ends[0] > 1 and words[ends[1] - 1] in DETERMINERS
    has_own = negative[1] > negative[0] and negative_words[negative[1] - 1] in DETERMINERS
    return ends_in_determiner and negative[1] > negative[0] and not has_own


def _without_determiners(words: list[str], start: int, end: int) -> tuple[int, int]:
    while start < end and words[end - 1] in DETERMINERS:
        end -= 1
    while start < end and words[start] in DETERMINERS:
        start += 1
    return start, end


def _span(tokens: Sequence[re.Match[str]], start: int, end: int) -> Span:
    if start < end:
        return Span(start=tokens[start].start(), end=tokens[end - 1].end())
    offset = tokens[start - 1].end() if start else 0
    return Span(start=offset, end=offset)
