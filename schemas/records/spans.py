"""A span of a text."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """The characters text[start:end], in code points; empty where start == end."""

    start: int
    end: int


def spans_of(pairs: Iterable[tuple[int, int]]) -> tuple[Span, ...]:
    """Returns the spans of pairs of start and end."""
    return tuple(Span(start=start, end=end) for start, end in pairs)
