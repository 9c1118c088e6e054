"""EqBen's pilot question, the four orders in which it is asked, and the parser for answers.

An answer is parsed by the first of these rules that matches:

1. *format*: two different numbers with a semicolon between, such as `1;2` or `#2; #1`, anywhere in
   the answer; or the whole answer is two numbers with a comma, a slash, a space or `and`.
2. *words*: mentions of captions and of sides, paired from left to right, such as "the left
   image is caption 2" or "caption 1 belongs to the right one". One caption with one side is
   enough, since it determines the other; the question's own example says no more.

Repetitions of the question are ignored, and a quoted caption counts as its number. An answer that
contradicts itself, gives both images the same caption, or says "not" is rejected: a guess at its
meaning would score the parser, not the model.
"""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from eqforge.core.errors import InputError
from eqforge.schemas.records.lettered import without_thoughts

QUESTION: Final = (
    "There are two images (left and right). Now you have two captions: caption 1: {caption_1}; "
    "caption 2: {caption_2}. Please indicate which caption corresponds to the left image and which "
    "caption corresponds to the right one. The answer should follow the format: "
    '"#index for the left image; #index for the right image". For example, "1;2" represents that '
    "caption 1 corresponds to image left."
)
"""The paper's template. Source: EqBen (Wang et al. 2023), section 5.5."""

FIELDS = ("{caption_1}", "{caption_2}")

Order = tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrangement:
    """The order of a pair: the images from left to right, and the captions numbered 1 and 2."""

    images: Order
    captions: Order

    @property
    def truth(self) -> tuple[int, int]:
        """The correct caption numbers of the left and of the right image."""
        left, right = (self.captions.index(image) + 1 for image in self.images)
        return left, right

    @property
    def names(self) -> tuple[str, str]:
        """The orders of images and captions, each `01` or `10`."""
        return "".join(map(str, self.images)), "".join(map(str, self.captions))


ARRANGEMENTS: Final = tuple(
    Arrangement(images=images, captions=captions)
    for images, captions in itertools.product(((0, 1), (1, 0)), repeat=2)
)
"""All four, sorted by the order of images, then of captions."""


def ask(template: str, captions: tuple[str, str], arrangement: Arrangement) -> str:
    first, second = (captions[number] for number in arrangement.captions)
    before, _, rest = template.partition(FIELDS[0])
    between, _, after = rest.partition(FIELDS[1])
    return f"{before}{first}{between}{second}{after}"


def check_template(template: str) -> None:
    places = [template.find(field) for field in FIELDS]
    if [template.count(field) for field in FIELDS] != [1, 1] or places != sorted(places):
        raise InputError(
            "--question: expected text that contains {caption_1} once, then {caption_2} once; "
            f"found {template!r}"
        )


Form = Literal["format", "words", "empty", "no_answer", "contradictory", "same_caption", "negated"]
FORMS: dict[Form, str] = {
    "format": "The answer has two numbers in the requested form.",
    "words": "The answer names captions and sides in words.",
    "empty": "The answer is empty.",
    "no_answer": "The answer assigns no caption to a side.",
    "contradictory": "The answer assigns both captions to the same image.",
    "same_caption": "The answer assigns the same caption to both images.",
    "negated": "The answer only rules out a match.",
}
"""How an answer was parsed; from `empty` on, why it was not."""

_ECHOES = (
    r"#?index for the left image\s*[;,]\s*#?index for the right image",
    r"for example,?\s*[\"“”']*\s*1\s*;\s*2\s*[\"“”']*\s*represents that caption 1 corresponds to "
    r"image left",
    r"[\"“”']*1\s*;\s*2[\"“”']*\s*represents that",
    r"(?<!\w)(?:the )?left and right(?!\w)",
    r"which caption corresponds to the left image and which caption corresponds to the right one",
)
_ECHO = re.compile("|".join(_ECHOES), re.IGNORECASE)
_NUMBER = r"(?:the\s+)?(?:caption\s*)?#?\s*([12])(?![\w.]*\d)"
_FORMAT = re.compile(rf"(?<![\w.#]){_NUMBER}\s*;\s*{_NUMBER}", re.IGNORECASE)
_WHOLE = re.compile(
    rf"(?:(?:the\s+)?answer(?:\s+is)?\s*:?\s*)?{_NUMBER}\s*(?:[;,/|&-]|\band\b|\s)\s*{_NUMBER}",
    re.IGNORECASE,
)
_MENTION = re.compile(
    r"(?P<caption>\bcaptions?\s*(?:number\s*|no\.\s*)?[#\"“(]*\s*(?P<n>[12])(?!\w)"
    r"|\b(?:the\s+)?(?P<word>first|second)\s+caption\b"
    r"|(?<![\w.#])#\s*(?P<hash>[12])(?!\w))"
    r"|(?P<side>\b(?:image|picture|photo|one|side)\s+(?:(?:on\s+)?the\s+)?(?P<after>left|right)\b"
    r"|\b(?P<before>left|right)(?:[\s-]+hand)?\s+(?:side\s+)?(?:image|picture|photo|one|side)\b"
    r"|\b(?:on|to|of)\s+the\s+(?P<on>left|right)\b"
    r"|\bthe\s+(?P<the>left|right)\b|\b(?P<bare>left|right)\s*(?=[:=]|-+>))"
    r"|(?P<sign>[:=]|-+>)\s*[\"“(]*(?P<value>[12])(?![\w.])",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(?:not|neither|nor|cannot)\b|n['\u2019]t\b", re.IGNORECASE)
_WRAPPING = " \t\n\"'\u201c\u201d\u2018\u2019`.()[]*#<>"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """The answer's caption numbers of the two images; None if it was not parsed."""

    left: int | None = None
    right: int | None = None
    form: Form


def read_answer(answer: str, captions: tuple[str, str] | None = None) -> Reading:
    """Parse an answer; quoted captions count as their numbers, and thoughts do not count."""
    answer = without_thoughts(answer)
    if not answer.strip():
        return Reading(form="empty")
    text = _ECHO.sub(" ", answer)
    for number, caption in enumerate(captions or (), start=1):
        text = re.sub(rf"caption {number}: {re.escape(caption)}", " ", text, flags=re.IGNORECASE)
    numbered = text if captions is None else _numbered(text, captions)
    pairs = {(int(left), int(right)) for left, right in _in_format(text, numbered)}
    if pairs:
        return _settled({left for left, _ in pairs}, {right for _, right in pairs}, "format")
    if _NEGATED.search(numbered):
        return Reading(form="negated")
    assignments = list(_assignments(numbered))
    if not assignments:
        return Reading(form="no_answer")
    lefts, rights = (
        {number for number, side in assignments if side == s} for s in ("left", "right")
    )
    return _settled(lefts, rights, "words")


def _settled(lefts: set[int], rights: set[int], form: Form) -> Reading:
    if len(lefts) > 1 or len(rights) > 1:
        return Reading(form="contradictory")
    if lefts == rights:
        return Reading(form="same_caption")
    left = next(iter(lefts)) if lefts else 3 - next(iter(rights))
    return Reading(left=left, right=3 - left, form=form)


def _in_format(text: str, numbered: str) -> list[tuple[str, str]]:
    for candidate in (text, numbered):
        if whole := _WHOLE.fullmatch(candidate.strip(_WRAPPING)):
            return [(whole[1], whole[2])]
    return _FORMAT.findall(text)


def _numbered(text: str, captions: tuple[str, str]) -> str:
    for number in sorted((0, 1), key=lambda one: -len(captions[one])):
        caption = captions[number].strip().rstrip(".")
        if len(caption.split()) > 1 and captions[0] != captions[1]:
            quoted = re.compile(rf"(?<!\w){re.escape(caption)}(?!\w)", re.IGNORECASE)
            text = quoted.sub(f" caption {number + 1} ", text)
    return text


def _assignments(text: str) -> Iterator[tuple[int, str]]:
    """Yield (caption number, side) from mentions paired from left to right."""
    mentions: list[tuple[str, str]] = []
    for match in _MENTION.finditer(text):
        found = _mention(match)
        # As in "Left: 1": a bare number is a caption only after a side.
        if match["sign"] is not None and (not mentions or mentions[-1][0] != "side"):
            continue
        if not mentions or mentions[-1] != found:
            mentions.append(found)
    while len(mentions) >= 2:
        (kind, value), (other, against) = mentions[0], mentions[1]
        if kind == other:
            mentions = mentions[1:]
            continue
        number, side = (value, against) if kind == "caption" else (against, value)
        yield int(number), side
        mentions = mentions[2:]


def _mention(match: re.Match[str]) -> tuple[str, str]:
    if match["side"] is not None:
        names = ("after", "before", "on", "the", "bare")
        return "side", next(match[name] for name in names if match[name]).lower()
    word = (match["word"] or "").lower()
    ordinal = {"first": "1", "second": "2"}.get(word)
    return "caption", match["n"] or ordinal or match["hash"] or match["value"]
