"""The tasks of reviewers as Label Studio reads them, and what it exports as a file of votes.

A labelling config interprets what it holds: `$5` in it is a field of the task. So it holds no text
of a protocol or of a dataset; all of that is data of the tasks, which Label Studio shows as it is.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.files.typed_json import decode
from eqforge.core.visible import escaped_json
from eqforge.evaluation.review.assign import Task
from eqforge.evaluation.review.protocols import Protocol
from eqforge.schemas.records.reviews import VERDICTS, Verdict

_LONGEST_S: Final = 300.0
"""Whoever takes longer has left the room, as on the pages."""

_FIELD: Final = re.compile(r'"\$(\w+)"')
_KEYS: Final[Mapping[Verdict, str]] = {"keep": "k", "drop": "d", "unsure": "u"}

Values = Mapping[str, dict[str, Any]]


class _Result(msgspec.Struct, frozen=True, kw_only=True):
    from_name: str = ""
    value: dict[str, Any] = {}


class _Person(msgspec.Struct, frozen=True, kw_only=True):
    id: int


class _Annotation(msgspec.Struct, frozen=True, kw_only=True):
    result: list[_Result]
    was_cancelled: bool = False
    lead_time: float | None = None
    completed_by: int | _Person | None = None


class _Exported(msgspec.Struct, frozen=True, kw_only=True):
    annotations: list[_Annotation] | None = None
    data: dict[str, Any] = {}


class _Known(msgspec.Struct, frozen=True, kw_only=True):
    """What a task says of itself, and does not show.

    Attributes:
      file: the fields of the file of votes that are the same for all tasks of a reviewer.
      form: what kind of answer it asks for; see _FORMS.
      task, id, is_repeat: as in a vote.
      places, ranked: which of the item's pictures and captions each is that is shown.
      names: of the texts to write, in the order of the controls.
    """

    file: dict[str, Any]
    form: str
    task: int
    id: str
    is_repeat: bool
    places: list[int] = []
    ranked: list[int] = []
    names: list[str] = []


@dataclass(frozen=True, kw_only=True, slots=True)
class _Form:
    """A kind of answer.

    Attributes:
      controls: what of the labelling config asks for it, for items with as many pictures and texts.
      data: the fields of each task that the controls show, of the protocol and what a task shows.
      vote: the fields of a vote, of the values by control, of the task's data and of what it says
        of itself; an InputError without the place if they are no answer.
    """

    controls: Callable[[Protocol, int, int], str]
    data: Callable[[Protocol, Mapping[str, Any]], dict[str, str]]
    vote: Callable[[Values, Mapping[str, Any], _Known], dict[str, Any]]


def place_of(plan: str) -> str:
    """Returns the folder of a plan: several may lie below the one folder that a server serves."""
    return f"review-{plan[:12]}"


def address(plan: str, file: str | None) -> str | None:
    """Returns where a server has a picture of a plan's folder; None if there is none."""
    path = f"{place_of(plan)}/{file}"
    return None if file is None else f"/data/local-files/?d={quote(path)}"


def form_of(protocol: Protocol) -> str:
    """Returns what kind of answer a protocol asks for.

    Raises:
      InputError: Label Studio cannot ask for it.
    """
    form = protocol.form
    if form not in _FORMS:
        raise InputError(
            f"--protocol {protocol.name}: --tool label-studio asks to {' or '.join(_FORMS)}, and "
            f"not to {form}; leave out --tool to have pages"
        )
    return form


def config_of(protocol: Protocol, pictures: int, texts: int) -> str:
    """Returns the labelling config, which has no text of the protocol; see above.

    Args:
      protocol: what is asked.
      pictures: so many does an item show at most.
      texts: likewise.
    """
    guide = '  <Header value="$guide" size="5"/>\n' if protocol.guide else ""
    return (
        '<View>\n  <Header value="$question" size="4"/>\n'
        f"{guide}"
        '  <HyperText name="shown" value="$shown" clickableLinks="true"/>\n'
        f"{_FORMS[form_of(protocol)].controls(protocol, pictures, texts)}"
        '  <TextArea name="note" toName="shown" rows="2" maxSubmissions="1" placeholder="Note"/>\n'
        "</View>\n"
    )


def tasks_of(
    protocol: Protocol,
    file: Mapping[str, Any],
    tasks: Sequence[Task],
    items: Sequence[Mapping[str, Any]],
    pages: Sequence[str],
    config: str,
) -> str:
    """Returns the tasks of a reviewer, JSON in the form of Label Studio's import.

    Args:
      protocol: what is asked.
      file: what the reviewer's file of votes says beside the votes.
      tasks: the reviewer's.
      items: what each shows, as `blinded` gives it.
      pages: the same as HTML.
      config: the labelling config, whose fields each task must have.
    """
    form = form_of(protocol)
    asked = dict.fromkeys(_FIELD.findall(config), "")  # each task must have them all
    asked |= {"question": protocol.question, "guide": protocol.guide}
    found = []
    for task, item, page in zip(tasks, items, pages, strict=True):
        known = _Known(
            file=dict(file),
            form=form,
            task=task.number,
            id=task.id,
            is_repeat=task.is_repeat,
            places=item["places"],
            ranked=item["ranked"],
            names=_names(protocol, item),
        )
        fields = _FORMS[form].data(protocol, item)
        found.append({"data": {**asked, **fields, "shown": page, "known": _hidden(known)}})
    return escaped_json(msgspec.json.format(msgspec.json.encode(found), indent=1).decode()) + "\n"


def is_export(data: bytes) -> bool:
    """Returns whether some JSON may be an export: a list, which no file of votes is."""
    return data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["


def votes_of(data: bytes, file: str) -> bytes:
    """Returns the file of votes that an export stands for, as the pages save it.

    Tasks that were skipped have no vote. Whether the votes can be taken is not checked here.

    Args:
      data: the export, JSON.
      file: its name, for messages.

    Raises:
      InputError: it is no export of one reviewer's tasks, or has several answers on one task.
    """
    about: dict[str, Any] = {}
    people: set[int | None] = set()
    votes = []
    for number, task in enumerate(decode(data, list[_Exported], file)):
        known = _known(task, file, number)
        about = about or known.file
        if known.file != about:
            raise InputError(f"{file}: {_mixed(about, known.file)}")
        where = f"{file}: task {known.task}"
        annotations = [each for each in task.annotations or () if not each.was_cancelled]
        if len(annotations) > 1:
            raise InputError(
                f"{where}: has {len(annotations)} annotations; delete all but one in Label Studio, "
                "and export again"
            )
        for each in annotations:
            people.add(
                each.completed_by.id
                if isinstance(each.completed_by, _Person)
                else each.completed_by
            )
            votes.append(_vote(each, known, task.data, where))
    if len(people - {None}) > 1:
        raise InputError(
            f"{file}: has annotations of {len(people - {None})} people; the tasks of "
            f"{shown(about.get('reviewer'))} are for one"
        )
    if not about:
        raise InputError(f"{file}: has no task that was annotated")
    return msgspec.json.encode({**about, "votes": votes})


def _known(task: _Exported, file: str, number: int) -> _Known:
    known = task.data.get("known")
    if not isinstance(known, str) or task.annotations is None:
        raise InputError(
            f"{file}: [{number}]: is neither a vote nor a task of `eqforge review plan` as Label "
            "Studio exports it in the format JSON, which is not JSON-MIN"
        )
    try:
        said = base64.b64decode(known, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError(f"{file}: [{number}].data.known: was changed: {error}") from error
    return decode(said, _Known, file, f"[{number}].data.known")


def _hidden(known: _Known) -> str:
    """Returns what is not to be read where Label Studio lists the data of all tasks."""
    return base64.urlsafe_b64encode(msgspec.json.encode(known)).decode()


def _mixed(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    names = sorted({shown(each.get("reviewer")) for each in (one, other)})
    if len(names) > 1:
        both = " and of ".join(names)
        return f"has tasks of {both}; import those of each reviewer into a project of their own"
    return f"has tasks of two plans of {names[0]}; import those of each into a project of its own"


def _vote(
    annotation: _Annotation, known: _Known, data: Mapping[str, Any], where: str
) -> dict[str, Any]:
    form = _FORMS.get(known.form)
    if form is None:
        raise InputError(
            f"{where}: asks for answers of the form {shown(known.form)}, which is not known"
        )
    said = {each.from_name: each.value for each in annotation.result}
    try:
        answer = form.vote(said, data, known)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    return {
        "task": known.task,
        "id": known.id,
        "is_repeat": known.is_repeat,
        "note": "\n".join(_texts(said, "note", "text")).strip(),
        "seconds": min(_LONGEST_S, round(annotation.lead_time or 0.0, 1)),
        **answer,
    }


def _texts(said: Mapping[str, dict[str, Any]], control: str, field: str) -> list[str]:
    """Returns the texts that a control was given; none if it was left.

    Raises:
      InputError: it was given something else.
    """
    found = said.get(control, {}).get(field, [])
    texts = [found] if isinstance(found, str) else found
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"{control}: expected texts, found {shown(found)}")
    return texts


def _decide_controls(protocol: Protocol, pictures: int, texts: int) -> str:
    answers = "".join(
        f'    <Choice value="{answer}" hotkey="{key}"/>\n' for answer, key in _KEYS.items()
    )
    reasons = "".join(
        f'    <Choice value="$reason_{number}" alias="{number}" hotkey="{number}"/>\n'
        for number in range(1, len(protocol.reasons) + 1)
    )
    dropped = 'visibleWhen="choice-selected" whenTagName="answer" whenChoiceValue="drop"'
    asked = f'  <Choices name="answer" {_RADIO} required="true">\n{answers}  </Choices>\n'
    why = f'  <Choices name="reason" {_RADIO} {dropped}>\n{reasons}  </Choices>\n'
    return asked + why if reasons else asked


def _decide_data(protocol: Protocol, item: Mapping[str, Any]) -> dict[str, str]:
    return {f"reason_{number}": text for number, text in enumerate(protocol.reasons, start=1)}


def _decide_vote(said: Values, data: Mapping[str, Any], known: _Known) -> dict[str, Any]:
    answers = _texts(said, "answer", "choices")
    if len(answers) != 1 or answers[0] not in VERDICTS:
        raise InputError(
            f"expected one of {', '.join(VERDICTS)}, found {shown(answers)}; answer it or skip it, "
            "and export again"
        )
    reasons = _texts(said, "reason", "choices") if answers[0] == "drop" else []
    fields = [f"reason_{reason}" for reason in reasons]
    if lost := [field for field in fields if not isinstance(data.get(field), str)]:
        raise InputError(f"data.{lost[0]}: the reason that was chosen is not there")
    if len(fields) > 1:
        raise InputError("expected one reason at most, found several")
    return {"answer": answers[0], "reason": "".join(data[field] for field in fields)}


def _rank_controls(protocol: Protocol, pictures: int, texts: int) -> str:
    """Returns a choice of a rank for each caption of each picture."""
    ranks = "".join(f'    <Choice value="{rank}"/>\n' for rank in range(1, texts + 1))
    return "".join(
        f'  <Header value="${name}" size="6"/>\n'
        f'  <Choices name="{name}" {_RADIO} required="true">\n{ranks}  </Choices>\n'
        for name in _ranked_names(pictures, texts)
    )


def _ranked_names(pictures: int, texts: int) -> list[str]:
    return [f"rank_{row}_{column}" for row in range(pictures) for column in range(texts)]


def _rank_data(protocol: Protocol, item: Mapping[str, Any]) -> dict[str, str]:
    panes, texts = item["panes"], [_plain(text) for text in item["texts"]]
    said = [
        f"{pane['name']}: {text}" if len(panes) > 1 else text for pane in panes for text in texts
    ]
    return dict(zip(_ranked_names(len(panes), len(texts)), said, strict=True))


def _plain(text: Mapping[str, Any]) -> str:
    return "".join(part if isinstance(part, str) else part[0] for part in text["parts"])


def _rank_vote(said: Values, data: Mapping[str, Any], known: _Known) -> dict[str, Any]:
    ranks = [[0] * len(known.ranked) for _ in known.places]
    for row, picture in enumerate(known.places):
        for column, caption in enumerate(known.ranked):
            found = _texts(said, f"rank_{row}_{column}", "choices")
            if len(found) != 1 or not found[0].isdecimal() or picture >= len(ranks):
                raise InputError("expected a rank for each caption; answer it or skip it")
            ranks[picture][caption] = int(found[0])
    return {"answer": "given", "ranks": ranks}


def _write_controls(protocol: Protocol, pictures: int, texts: int) -> str:
    """Returns a field for each text; it may be left: the import tells what is missing."""
    count = sum(len(field.names(pictures)) for field in protocol.fields)
    return "".join(
        f'  <Header value="$text_{number}" size="6"/>\n'
        f'  <TextArea name="text_{number}" toName="shown" rows="2" maxSubmissions="1"/>\n'
        for number in range(count)
    )


def _write_data(protocol: Protocol, item: Mapping[str, Any]) -> dict[str, str]:
    labels = [
        f"{field.label} {pane}".rstrip()
        for field in protocol.fields
        for pane in ([pane["name"] for pane in item["panes"]] if field.per_picture else [""])
    ]
    return {f"text_{number}": label for number, label in enumerate(labels)}


def _names(protocol: Protocol, item: Mapping[str, Any]) -> list[str]:
    """Returns the names of the texts in the order of the controls, as pages give them."""
    return [
        f"{field.name}_{place}" if field.per_picture else field.name
        for field in protocol.fields
        for place in (item["places"] if field.per_picture else [0])
    ]


def _write_vote(said: Values, data: Mapping[str, Any], known: _Known) -> dict[str, Any]:
    texts = {
        name: "\n".join(_texts(said, f"text_{number}", "text")).strip()
        for number, name in enumerate(known.names)
    }
    return {"answer": "given", "texts": texts}


_RADIO: Final = 'toName="shown" choice="single-radio" showInline="true"'
_FORMS: Final[Mapping[str, _Form]] = {
    "decide": _Form(controls=_decide_controls, data=_decide_data, vote=_decide_vote),
    "rank": _Form(controls=_rank_controls, data=_rank_data, vote=_rank_vote),
    "write": _Form(controls=_write_controls, data=_write_data, vote=_write_vote),
}
"""The kinds of answers that Label Studio is asked for."""
