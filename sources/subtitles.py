"""Reads the cues of subtitles: SubRip (`.srt`) and WebVTT (`.vtt`).

Subtitle libraries skip a cue that they cannot read; here it is returned with what is wrong.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

_ARROW = "-->"
_TIME = r"(?:(\d{1,4}):)?([0-5]?\d):([0-5]?\d)(?:[.,](\d{1,3}))?"
_TIMES = re.compile(rf"\s*{_TIME}\s*{_ARROW}\s*{_TIME}(?:\s.*)?")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<\d[\d:.]*>|\{\\[^{}]*\}")
_OTHER_BLOCKS = re.compile(r"(WEBVTT|NOTE|STYLE|REGION)(?:\s|$)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cue:
    """A cue of a file of subtitles.

    Attributes:
      line: where it begins in the file, from 1.
      source: its lines as they stand.
      start_s, end_s: in seconds.
      text: what is shown, on one line, without tags.
      problem: what is wrong with it; then times and text mean nothing.
    """

    line: int
    source: str
    start_s: float = 0.0
    end_s: float = 0.0
    text: str = ""
    problem: str = ""


def read_cues(content: str, is_webvtt: bool) -> Iterator[Cue]:
    """Yields the cues of a file in its order.

    A cue's number or name, its position and its tags are left out, and so are WebVTT's notes,
    styles and regions.

    Args:
      content: the text of the file; lines end with a line feed.
      is_webvtt: whether it is WebVTT, which writes `&` as `&amp;`.
    """
    for number, lines in _blocks(content):
        if not (is_webvtt and _OTHER_BLOCKS.match(lines[0])):
            yield _cue(number, lines, is_webvtt)


def _blocks(content: str) -> Iterator[tuple[int, list[str]]]:
    """Yields what stands between blank lines, with the number of its first line."""
    block: list[str] = []
    for number, line in enumerate([*content.split("\n"), ""], start=1):
        if line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []


def _cue(number: int, lines: list[str], is_webvtt: bool) -> Cue:
    source = "\n".join(lines)
    place = next((n for n, line in enumerate(lines[:2]) if _ARROW in line), None)
    if place is None:
        return Cue(line=number, source=source, problem=f"no line of times with {_ARROW}")
    if any(_ARROW in line for line in lines[place + 1 :]):
        problem = "two cues without a blank line between them"
        return Cue(line=number, source=source, problem=problem)
    times = _TIMES.fullmatch(lines[place])
    if times is None:
        problem = f"times: expected 00:00:01.000 {_ARROW} 00:00:02.500, found {lines[place][:80]!r}"
        return Cue(line=number, source=source, problem=problem)
    text = _TAG.sub("", " ".join(lines[place + 1 :]))
    return Cue(
        line=number,
        source=source,
        start_s=_seconds(*times.groups()[:4]),
        end_s=_seconds(*times.groups()[4:]),
        text=" ".join((html.unescape(text) if is_webvtt else text).split()),
    )


def _seconds(hours: str | None, minutes: str, seconds: str, fraction: str | None) -> float:
    whole = (int(hours or 0) * 60 + int(minutes)) * 60 + int(seconds)
    return float(f"{whole}.{fraction or 0}")
