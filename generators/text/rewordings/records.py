"""Define a rewording, the rules that find rewordings, and their edits."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import Edit

Edits = tuple[Edit, ...]
"""The edits of one rewording: in order, not overlapping, and together they change the caption."""

Finder = Callable[[Analysis], Iterator[Edits]]
"""A rule: yields the rewordings of a caption, in text order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewording:
    """Edits that keep a caption's meaning in other words, and the rule that found them."""

    rule: str
    edits: Edits


def has_plain_spacing(analysis: Analysis, first: int, last: int) -> bool:
    """Return True if the tokens of a range are not in capitals and have one space between them.

    Words are inserted and removed with the space after them, so that either can be undone.
    """
    if first < 0 or last > len(analysis.tokens) or analysis.text.isupper():
        return False
    tokens = analysis.tokens[first:last]
    written = analysis.text[tokens[0].start : tokens[-1].end]
    capitals = any(len(token.text) > 1 and token.text.isupper() for token in tokens)
    return written == " ".join(token.text for token in tokens) and not capitals


def insertion(analysis: Analysis, index: int, words: str) -> Edit:
    start = analysis.tokens[index].start
    return Edit(start=start, end=start, replacement=f"{words} ")


def deletion(analysis: Analysis, first: int, last: int) -> Edit:
    tokens = analysis.tokens
    return Edit(start=tokens[first].start, end=tokens[last].start, replacement="")


def replacement(analysis: Analysis, first: int, last: int, words: str) -> Edit:
    tokens = analysis.tokens
    return Edit(start=tokens[first].start, end=tokens[last - 1].end, replacement=words)
