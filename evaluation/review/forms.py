"""The ways to answer an item, on a page and in Label Studio, and the votes they give."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.evaluation.review.protocols import Form, Protocol
from eqforge.schemas.records.judgements import VERDICTS, Verdict

Item = Mapping[str, Any]
"""A task's content, as `blinded` returns it."""
Values = Callable[[str], list[str]]
Level = Literal["nominal", "ordinal"]
Answer = Verdict | Literal["given", "skipped"]

TRUTHS: Final = ("true", "false", "unsure")
_SLACK: Final = 1e-6
_LEAST: Final = 0.001
"""Minimum width and height of a box, as fractions of the image; `box.js` uses the same value."""


class Vote(msgspec.Struct, frozen=True, kw_only=True):
    """A reviewer's answer.

    Attributes:
      answer: keep, drop or unsure; for other questions, given or skipped.
      reason: why the item is dropped or skipped; may be empty.
      ranks: of each caption for each image, 1 for the best, in the order of the sample's columns
        (in files of version 2: as shown). For texts to judge, the index in TRUTHS, from 1.
      order: ids of the images, the best first.
      texts: what was written, by field name; or whether each text is true.
      box: x, y, width and height, as shares of the image's width and height.
    """

    task: int
    id: str
    answer: Answer
    reason: str = ""
    note: str = ""
    is_repeat: bool = False
    seconds: Annotated[float, msgspec.Meta(ge=0, lt=86_400)] = 0.0
    ranks: tuple[tuple[int, ...], ...] = ()
    order: tuple[str, ...] = ()
    texts: dict[str, str] = {}
    box: tuple[float, float, float, float] | None = None

    @property
    def verdict(self) -> Verdict:
        """The decision; unsure if the question is not whether to keep the item."""
        return "unsure" if self.answer == "given" or self.answer == "skipped" else self.answer

    @property
    def is_given(self) -> bool:
        return self.answer == "given"

    @property
    def content(self) -> tuple[object, ...]:
        """The fields by which two answers are compared."""
        return self.answer, self.ranks, self.order, tuple(sorted(self.texts.items())), self.box


class Option(NamedTuple):
    """A choice of a control; `text`, if any, is displayed instead of the value."""

    value: str
    key: str = ""
    text: str = ""


class Control(NamedTuple):
    """A question in Label Studio, with options or, without any, a text field."""

    name: str
    label: str = ""
    options: tuple[Option, ...] = ()
    after: tuple[str, str] | None = None
    """The control and option that trigger this question; None if it is always required."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The hidden data of a Label Studio task.

    Attributes:
      file: fields of the vote file that are the same for all tasks of a reviewer.
      places: indices of the item's images, in the order shown.
      rows, columns, choices: numbers of images and texts asked about, and the allowed choices.
      names: names of the texts to write, in the order of the controls.
    """

    file: dict[str, Any]
    form: str
    task: int
    id: str
    is_repeat: bool
    places: list[int] = []
    rows: int = 0
    columns: int = 0
    choices: list[str] = []
    names: list[str] = []


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerForm:
    """A way to answer items; it defines pages, Label Studio projects and imports.

    Attributes:
      buttons: the answers that a page offers, with labels and keys.
      refusal: the answer that may have a reason.
      gives: the fields of a vote in addition to its answer.
      wrong: returns the error in a given answer, or an empty text.
      values: yields each part of an item with its value in a vote, from 1.
      is_compared: whether two answers can be compared for equality.
      choices: returns the choices for each text; None for forms without choices.
      asks: heading above an image's texts, and the message for a missing choice.
      controls: returns Label Studio's questions; None if Label Studio does not support the form.
      read: returns the fields of a vote from the values of the controls.
    """

    buttons: tuple[tuple[Answer, str, str], ...] = (
        ("given", "Done", "Enter"),
        ("skipped", "Skip", "k"),
    )
    refusal: str = "skipped"
    written: str
    gives: tuple[str, ...] = ()
    wrong: Callable[[Vote], str] = lambda vote: ""
    values: Callable[[Vote], Iterator[tuple[str, int]]] = lambda vote: iter(())
    level: Level = "nominal"
    is_compared: bool = False
    choices: Callable[[int], Sequence[str]] | None = None
    asks: tuple[str, str] = ("", "")
    controls: Callable[[Protocol, Item], list[Control]] | None = None
    read: Callable[[Values, Known, Mapping[str, Any]], dict[str, Any]] = lambda *_: {}

    @property
    def answers(self) -> tuple[Answer, ...]:
        return tuple(name for name, _, _ in self.buttons)


def _decision_controls(protocol: Protocol, item: Item) -> list[Control]:
    answers = tuple(Option(name, key) for name, _, key in FORMS["decide"].buttons)
    numbered = ((str(number), text) for number, text in enumerate(protocol.reasons, start=1))
    reasons = tuple(Option(number, number, text) for number, text in numbered)
    controls = [Control("answer", options=answers)]
    return controls + [Control("reason", options=reasons, after=("answer", "drop"))] * bool(reasons)


def _read_decision(values: Values, known: Known, data: Mapping[str, Any]) -> dict[str, Any]:
    answers = values("answer")
    if len(answers) != 1 or answers[0] not in VERDICTS:
        raise InputError(
            f"expected one of {', '.join(VERDICTS)}; found {shown(answers)}. Answer or skip the "
            "task, and export again"
        )
    fields = [f"reason_{each}" for each in values("reason")] if answers[0] == "drop" else []
    if lost := [field for field in fields if not isinstance(data.get(field), str)]:
        raise InputError(f"data.{lost[0]} is missing. It must contain the text of the reason")
    if len(fields) > 1:
        raise InputError("expected at most one reason, found several")
    return {"answer": answers[0], "reason": "".join(data[field] for field in fields)}


def _ranks(texts: int) -> tuple[str, ...]:
    return tuple(str(rank) for rank in range(1, texts + 1))


def _wrong_choices(vote: Vote, choices: Callable[[int], Sequence[str]]) -> str:
    bounded = [(each, len(choices(len(row)))) for row in vote.ranks for each in row]
    if bounded and all(vote.ranks) and all(1 <= each <= most for each, most in bounded):
        return ""
    expected = (
        "caption, from 1 to the number of captions" if choices is _ranks else "text, from 1 to 3"
    )
    return f"ranks: expected one rank for each {expected}"


def _choice_controls(protocol: Protocol, item: Item) -> list[Control]:
    texts = [
        "".join(part if isinstance(part, str) else part[0] for part in text["parts"])
        for text in item["texts"]
    ]
    options = tuple(map(Option, item["choices"]))
    several = len(item["asked"]) > 1
    return [
        Control(f"rank_{row}_{column}", f"{name}: {text}" if several else text, options)
        for row, name in enumerate(item["asked"])
        for column, text in enumerate(texts)
    ]


def _read_choices(values: Values, known: Known, data: Mapping[str, Any]) -> dict[str, Any]:
    ranks = [[0] * known.columns for _ in range(known.rows)]
    for row, row_ranks in enumerate(ranks):
        for column in range(known.columns):
            found = values(f"rank_{row}_{column}")
            if len(found) != 1 or found[0] not in known.choices:
                raise InputError("expected an answer for each text; answer all, or skip the task")
            row_ranks[column] = 1 + known.choices.index(found[0])
    return {"answer": "given", "ranks": ranks}


def texts_to_write(protocol: Protocol, item: Item) -> list[tuple[str, str]]:
    return [
        (f"{field.name}_{place}", f"{field.label} {pane['name']}".rstrip())
        if field.per_picture
        else (field.name, field.label.rstrip())
        for field in protocol.fields
        for place, pane in (
            zip(item["places"], item["panes"], strict=True) if field.per_picture else [(0, {})]
        )
    ]


def _read_texts(values: Values, known: Known, data: Mapping[str, Any]) -> dict[str, Any]:
    texts = {
        name: "\n".join(values(f"text_{number}")).strip() for number, name in enumerate(known.names)
    }
    return {"answer": "given", "texts": texts}


def _wrong_box(vote: Vote) -> str:
    if vote.box is None:
        return "box: expected x, y, width and height"
    x, y, width, height = vote.box
    inside = min(x, y) >= 0 and x + width <= 1 + _SLACK and y + height <= 1 + _SLACK
    right = inside and min(width, height) >= _LEAST - _SLACK
    return "" if right else "box: expected a box inside the image, as fractions of the image's size"


FORMS: Final[Mapping[Form, AnswerForm]] = {
    "decide": AnswerForm(
        buttons=(("keep", "Keep", "k"), ("drop", "Drop", "d"), ("unsure", "Unsure", "u")),
        refusal="drop",
        written="decisions",
        values=lambda vote: iter([("", 1 + VERDICTS.index(vote.verdict))]),
        is_compared=True,
        controls=_decision_controls,
        read=_read_decision,
    ),
    "judge": AnswerForm(
        buttons=(("given", "Done", "Enter"), ("drop", "Drop", "d")),
        refusal="drop",
        written="decisions",
        gives=("texts",),
        wrong=lambda vote: _wrong_choices(vote, lambda _: TRUTHS),
        values=lambda vote: (
            (text, 1 + TRUTHS.index(answer)) for text, answer in vote.texts.items()
        ),
        is_compared=True,
        choices=lambda _: TRUTHS,
        asks=("True, false or unsure for", "Judge each text."),
        controls=_choice_controls,
        read=_read_choices,
    ),
    "rank": AnswerForm(
        written="samples",
        gives=("ranks",),
        wrong=lambda vote: _wrong_choices(vote, _ranks),
        values=lambda vote: (
            (f"{picture} {place}", rank)
            for picture, ranks in enumerate(vote.ranks)
            for place, rank in enumerate(ranks)
        ),
        level="ordinal",
        is_compared=True,
        choices=_ranks,
        asks=("How well each fits", "Give each caption a rank."),
        controls=_choice_controls,
        read=_read_choices,
    ),
    "order": AnswerForm(  # Two orders of 25 images are hardly ever equal.
        written="queries",
        gives=("order",),
        wrong=lambda vote: (
            ""
            if 1 < len(vote.order) == len(set(vote.order))
            else "order: expected the ids of at least two images, each once"
        ),
        values=lambda vote: ((name, place) for place, name in enumerate(vote.order, start=1)),
        level="ordinal",
    ),
    "write": AnswerForm(
        written="rows",
        gives=("texts",),
        wrong=lambda vote: "" if vote.texts else "texts: expected the written texts",
        # Texts may be empty: the import reports missing ones.
        controls=lambda protocol, item: [
            Control(f"text_{number}", label)
            for number, (_, label) in enumerate(texts_to_write(protocol, item))
        ],
        read=_read_texts,
    ),
    "box": AnswerForm(written="boxes", gives=("box", "texts"), wrong=_wrong_box),
}
