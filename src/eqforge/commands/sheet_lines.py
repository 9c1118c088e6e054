"""Breaks the texts of a contact sheet into lines that fit a width."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from eqforge.commands.fonts import Lettering

MAX_CHARACTERS = 2_000
"""How much of a caption is read; no cell has room for more."""

MAX_ID_CHARACTERS = 8_000
"""More than any path has: only a damaged dataset has a longer id or reason."""

# A line may break after a space, and around every character of Chinese, Japanese and Thai.
_ALONE: Final = (
    r"\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u0e01-\u0e30\u0e40-\u0e46\U00020000-\U0003ffff"
)
_MARKS: Final = r"[\u0e31-\u0e3a\u0e47-\u0e4e\u3001\u3002\uff0c]*"
_PIECE: Final = re.compile(rf"[{_ALONE}]{_MARKS}|\s+|[^\s{_ALONE}]+")
_PART: Final = re.compile(r"[^/_-]*[/_-]|[^/_-]+")


def whole(text: str, width_px: int, lettering: Lettering) -> list[str]:
    """Returns a text, such as an id, as lines that fit a width, however many; none of no text."""
    shown = text if len(text) <= MAX_ID_CHARACTERS else f"{text[:MAX_ID_CHARACTERS]}…"
    return list(_lines(shown, width_px, lettering)) if shown else []


def wrapped(texts: Sequence[str], width_px: int, lines: int, lettering: Lettering) -> list[str]:
    """Returns texts as lines that fit a width; if there are too many, the last ends in `…`."""
    beginnings = [text[:MAX_CHARACTERS] for text in texts[: lines + 1]]
    found = [line for text in beginnings for line in ("", *_lines(text, width_px, lettering))][1:]
    if len(found) <= lines:
        return found
    last = found[lines - 1]
    while last and lettering.width(f"{last}…") > width_px:
        last = last[:-1]
    return [*found[: lines - 1], f"{last}…"]


def _lines(text: str, width_px: int, lettering: Lettering) -> Iterator[str]:
    line = ""
    for piece in _pieces(text, width_px, lettering):
        if line and lettering.width((line + piece).rstrip()) > width_px:
            yield line.rstrip()
            line = ""
        line = (line + piece).lstrip()
    yield line.rstrip()


def _pieces(text: str, width_px: int, lettering: Lettering) -> Iterator[str]:
    """Yields the unbreakable pieces of a text: words, spaces, and the parts of overlong words."""
    for piece in _PIECE.findall(text):
        if piece.isspace():
            yield " "
        elif lettering.width(piece) > width_px:
            yield from _parts(piece, width_px, lettering)
        else:
            yield piece


def _parts(word: str, width_px: int, lettering: Lettering) -> Iterator[str]:
    """Yields an overlong word up to each `/`, `-` and `_`, and letter by letter where it has to."""
    for part in _PART.findall(word):
        if lettering.width(part) > width_px:
            yield from part
        else:
            yield part
