"""Read the times of captions as people write them.

    1.5, 1.5 s, 0:01, 00:00:01.5, 1:02:03,5       seconds, and clock times
    frame 240                                     frames, counted from 0
    0:01-0:03, [1.0, 3.0], frame 240-300          ranges

Ambiguous text is not a time: `1,5`, `0:05-10`, or the 2 of the line `2 dogs run`.
"""

import re
from dataclasses import dataclass

_FRAME = r"frames?\s*\#?\s*\d{1,9}"
_CLOCK = r"\d{1,4}(?::[0-5]\d){1,2}(?:[.,]\d{1,9})?"
_TIME = rf"(?:{_FRAME}|{_CLOCK}|\d{{1,9}}(?:\.\d{{1,9}})?(?:\s*s(?:ec(?:onds?|s)?)?\b)?)"
_RANGE = rf"""
    (?P<open>[\[(])? \s* (?P<start>{_TIME})
    (?: (?P<to> \s*(?:-->|[-\u2013\u2014~]|\bto\b)\s* | \s*,\s* | \t) (?P<end>{_TIME}) )?
    \s* (?P<close>[\])])?
"""
_FLAGS = re.ASCII | re.IGNORECASE | re.VERBOSE
_MOMENT = re.compile(_RANGE, _FLAGS)
_LINE = re.compile(
    rf"\s* (?P<moment>{_RANGE}) (?:\s*(?P<sign>[:|,;])\s+ | (?P<tab>\t) | (?<=[\])])\s* | \s+)"
    r"(?:[-\u2013\u2014]\s+)? (?P<caption>\S.*)",
    _FLAGS,
)
_SECOND_TIME = re.compile(rf"{_CLOCK}|{_FRAME}", _FLAGS)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
FORMS = "seconds (61.5), a clock time (1:01.5), a frame (frame 240), or a range (0:01-0:03)"
UNCLEAR = "expected a time before the caption, such as 0:03, 3 s, 0:03-0:05 or frame 72"


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """A time, or a range of times, in seconds or in frames counted from 0."""

    start: float
    end: float
    in_frames: bool = False

    def to(self, last: "Moment") -> "Moment | None":
        """Return the range from this time to a later one; None if the units or ranges differ."""
        is_pair = self.start == self.end and last.start == last.end
        if not is_pair or self.in_frames != last.in_frames:
            return None
        return Moment(start=self.start, end=last.end, in_frames=self.in_frames)


def parse_moment(text: str) -> Moment | None:
    """Return the time or range that a text states; None if it states none or is ambiguous."""
    found = _MOMENT.fullmatch(text.strip())
    return None if found is None else _moment(found)


def split_line(text: str) -> tuple[str, str] | None:
    """Split a line into its time and its caption; None if it does not begin with a clear time.

    A number without a unit may belong to the caption or number the lines. It is a time only in
    brackets, before a tab, or in a range that ends with a sign such as a colon.
    """
    found = _LINE.fullmatch(text)
    if (
        found is None
        or _moment(found) is None
        or _SECOND_TIME.match(found["caption"].lstrip("-> "))
    ):
        return None
    is_range, in_brackets = found["end"] is not None, found["open"] is not None
    if _kind(found["end"] or found["start"]) == "number" and not (
        found["tab"]
        or (is_range and (in_brackets or found["sign"]))
        or (in_brackets and "." in found["start"])
    ):
        return None
    return found["moment"].strip(), found["caption"].strip()


def _moment(found: re.Match[str]) -> Moment | None:
    if bool(found["open"]) != bool(found["close"]):
        return None
    first = _kind(found["start"])
    last = first if found["end"] is None else _kind(found["end"])
    is_comma = found["to"] is not None and "," in found["to"] and not found["open"]
    if (is_comma and first != "clock") or (first, last) not in {
        (last, last),
        ("frame", "number"),
        ("number", "seconds"),
    }:
        return None
    start = _value(found["start"])
    end = start if found["end"] is None else _value(found["end"])
    return Moment(start=start, end=end, in_frames=first == "frame")


def _kind(time: str) -> str:
    if time[0] in "fF":
        return "frame"
    return "clock" if ":" in time else "seconds" if time[-1].isalpha() else "number"


def _value(time: str) -> float:
    total = 0.0
    for part in _NUMBER.findall(time):
        total = 60 * total + float(part.replace(",", "."))
    return total
