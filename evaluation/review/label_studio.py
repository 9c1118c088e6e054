"""Write review tasks for Label Studio, and convert its exports to vote files.

Label Studio interprets its labelling config: `$5` there is a field of the task. So the config
contains no text of a protocol or dataset; these are task data, which Label Studio shows verbatim.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.files.typed_json import decode
from eqforge.core.visible import escaped_json
from eqforge.evaluation.report.folder import rendered
from eqforge.evaluation.review.forms import FORMS, Control, Item, Known, texts_to_write
from eqforge.evaluation.review.protocols import Protocol

if TYPE_CHECKING:
    from eqforge.evaluation.review.assign import Task

_LONGEST_S: Final = 300.0
"""Longer times count as a break, as on the pages."""
_RADIO: Final = 'toName="shown" choice="single-radio" showInline="true"'


class _Result(msgspec.Struct, frozen=True):
    from_name: str = ""
    value: dict[str, Any] = {}


class _Person(msgspec.Struct, frozen=True):
    id: int


class _Annotation(msgspec.Struct, frozen=True):
    result: list[_Result]
    was_cancelled: bool = False
    lead_time: float | None = None
    completed_by: int | _Person | None = None


class _Exported(msgspec.Struct, frozen=True):
    annotations: list[_Annotation] | None = None
    data: dict[str, Any] = {}


def place_of(plan: str) -> str:
    """Return the folder of a plan; one server folder may hold several plans."""
    return f"review-{plan[:12]}"


def controls_of(protocol: Protocol, items: Sequence[Item]) -> list[Control]:
    """Return the controls for the item with the most images and texts."""
    ask = FORMS[protocol.form].controls
    assert ask is not None  # see `_check` of plan.py
    return ask(protocol, max(items, key=lambda item: (len(item["panes"]), len(item["texts"]))))


def config_of(protocol: Protocol, controls: Sequence[Control]) -> str:
    guide = '  <Header value="$guide" size="5"/>\n' if protocol.guide else ""
    return (
        '<View>\n  <Header value="$question" size="4"/>\n'
        f"{guide}"
        '  <HyperText name="shown" value="$shown" clickableLinks="true"/>\n'
        f"{''.join(_control_lines(controls))}"
        '  <TextArea name="note" toName="shown" rows="2" maxSubmissions="1" placeholder="Note"/>\n'
        "</View>\n"
    )


def _control_lines(controls: Sequence[Control]) -> Iterator[str]:
    for each in controls:
        if each.label:
            yield f'  <Header value="${each.name}" size="6"/>\n'
        if not each.options:
            text = f'name="{each.name}" toName="shown" rows="2" maxSubmissions="1"'
            yield f"  <TextArea {text}/>\n"
            continue
        rule = 'required="true"'
        if each.after is not None:
            name, value = each.after
            rule = f'visibleWhen="choice-selected" whenTagName="{name}" whenChoiceValue="{value}"'
        yield f'  <Choices name="{each.name}" {_RADIO} {rule}>\n'
        for value, key, text in each.options:
            named = f'"${each.name}_{value}" alias="{value}"' if text else f'"{value}"'
            hotkey = f' hotkey="{key}"' if key else ""
            yield f"    <Choice value={named}{hotkey}/>\n"
        yield "  </Choices>\n"


def tasks_of(
    protocol: Protocol,
    file: Mapping[str, Any],
    tasks: "Sequence[Task]",
    items: Sequence[Item],
    controls: Sequence[Control],
) -> str:
    # Each task must have all fields of the config.
    common = {"question": protocol.question, "guide": protocol.guide, "shown": ""}
    common |= dict.fromkeys(_data(controls), "")
    found = []
    for task, item in zip(tasks, items, strict=True):
        known = Known(
            file=dict(file),
            form=protocol.form,
            task=task.number,
            id=task.id,
            is_repeat=task.is_repeat,
            places=item["places"],
            rows=len(item.get("asked", ())),
            columns=len(item["texts"]),
            choices=item.get("choices", []),
            names=[name for name, _ in texts_to_write(protocol, item)],
        )
        # Unreadable where Label Studio lists the data of all tasks.
        hidden = base64.urlsafe_b64encode(msgspec.json.encode(known)).decode()
        page = _page(item, str(file["plan"]))
        data = _data(controls_of(protocol, [item]))
        found.append({"data": {**common, **data, "shown": page, "known": hidden}})
    return escaped_json(msgspec.json.format(msgspec.json.encode(found), indent=1).decode()) + "\n"


def _data(controls: Sequence[Control]) -> dict[str, str]:
    labels = {each.name: each.label for each in controls if each.label}
    options = ((each.name, option) for each in controls for option in each.options)
    return labels | {
        f"{name}_{option.value}": option.text for name, option in options if option.text
    }


def _page(item: Item, plan: str) -> str:
    """Return a task's content; an image that cannot be decoded has no address."""
    panes = []
    for pane in item["panes"]:
        file = pane["thumb"] and pane["file"]
        path = quote(f"{place_of(plan)}/{file}")
        panes.append({**pane, "address": file and f"/data/local-files/?d={path}"})
    return rendered("label_studio_item.html", panes=panes, texts=item["texts"])


def is_export(data: bytes) -> bool:
    """Return True for a JSON list; vote files are objects."""
    return data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["


def votes_of(data: bytes, file: str) -> bytes:
    """Convert an export to a file of votes as the pages save it; skipped tasks have no vote."""
    about: dict[str, Any] = {}
    people: set[int] = set()
    votes = []
    for number, task in enumerate(decode(data, list[_Exported], file)):
        known = _known(task, file, number)
        about = about or known.file
        if known.file != about:
            names = sorted({shown(each.get("reviewer")) for each in (about, known.file)})
            two = " and of ".join(names) if len(names) > 1 else f"two plans of {names[0]}"
            raise InputError(
                f"{file} contains tasks of {two}. In Label Studio, create a separate project for "
                "each reviewer and each plan."
            )
        where = f"{file}: task {known.task}"
        annotations = [each for each in task.annotations or () if not each.was_cancelled]
        if len(annotations) > 1:
            raise InputError(
                f"{where} has {len(annotations)} annotations; delete all but one in Label Studio, "
                "and export again"
            )
        for each in annotations:
            if (by := each.completed_by) is not None:
                people.add(by.id if isinstance(by, _Person) else by)
            votes.append(_vote(each, known, task.data, where))
    if len(people) > 1:
        raise InputError(
            f"{file} contains annotations by {len(people)} people; keep only the annotations by "
            f"{shown(about.get('reviewer'))}"
        )
    if not about:
        raise InputError(f"{file} contains no annotated task; annotate the tasks, and export again")
    return msgspec.json.encode({**about, "votes": votes})


def _known(task: _Exported, file: str, number: int) -> Known:
    known = task.data.get("known")
    if not isinstance(known, str) or task.annotations is None:
        raise InputError(
            f"{file}: [{number}] is not a task from `eqforge review plan`; in Label Studio, export "
            "as JSON (not JSON-MIN)"
        )
    try:
        decoded = base64.b64decode(known, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError(f"{file}: [{number}].data.known is damaged: {error}") from error
    return decode(decoded, Known, file, f"[{number}].data.known")


def _vote(
    annotation: _Annotation, known: Known, data: Mapping[str, Any], where: str
) -> dict[str, Any]:
    form = next((form for name, form in FORMS.items() if name == known.form), None)
    if form is None:
        raise InputError(f"{where}: the answer form {shown(known.form)} is unknown")
    values = partial(_texts, {each.from_name: each.value for each in annotation.result})
    try:
        answer = form.read(values, known, data)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    return {
        "task": known.task,
        "id": known.id,
        "is_repeat": known.is_repeat,
        "note": "\n".join(values("note")).strip(),
        "seconds": min(_LONGEST_S, round(annotation.lead_time or 0.0, 1)),
        **answer,
    }


def _texts(values: Mapping[str, dict[str, Any]], control: str) -> list[str]:
    value = values.get(control, {})
    found = value.get("choices", value.get("text", []))
    texts = [found] if isinstance(found, str) else found
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"{control}: expected strings, found {shown(found)}")
    return texts
