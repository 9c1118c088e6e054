"""A span of a text."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """The characters text[start:end], in code points; empty where start == end."""

    start: int
    end: int
