"""Write reviewers' tasks as pages to open from disk, or for Label Studio."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.identity import sha256_hex, version
from eqforge.core.visible import counted
from eqforge.evaluation.report.folder import (
    Folder,
    Note,
    check_place,
    finish,
    for_page,
    prepare_folder,
    write_assets,
    write_page,
)
from eqforge.evaluation.report.items import Item, Pane, Text, plain
from eqforge.evaluation.report.pictures import Pictures, read_pictures, write_some
from eqforge.evaluation.review import label_studio
from eqforge.evaluation.review.assign import (
    Task,
    assign,
    chosen,
    hidden_id,
    selected_items,
    shuffled,
)
from eqforge.evaluation.review.forms import FORMS
from eqforge.evaluation.review.protocols import Protocol, protocol_of
from eqforge.evaluation.review.settings import Plan
from eqforge.evaluation.review.units import (
    blind_texts,
    check_fits,
    claims_shown,
    places_shown,
    units_of,
)
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.sources.vlue import read_answer_list

_REVIEWER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
# The page that links to all others, and names that Windows forbids.
_NO_PAGES: Final = re.compile(r"index|con|prn|aux|nul|(com|lpt)[0-9]")
_CHUNK: Final = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewPlan:
    """The tasks of a review.

    Attributes:
      tasks: number of tasks per reviewer, including repeats.
      unjudged: number of unjudged samples that --disputed skipped.
    """

    page: str
    items: int
    tasks: dict[str, int]
    minutes: dict[str, float]
    unjudged: int = 0


class _Package(NamedTuple):
    about: dict[str, Any]
    tasks: Sequence[Task]
    items: list[dict[str, Any]]


def write_plan(settings: Plan) -> ReviewPlan:
    protocol = protocol_of(settings.protocol)
    dataset = open_dataset(settings.dataset)
    only = selected_items(dataset, settings)
    reviewers = tuple(filter(None, ",".join(settings.reviewers).split(",")))
    answers = [] if settings.answer_list is None else sorted(read_answer_list(settings.answer_list))
    overlap = _overlap(settings, protocol, len(reviewers))
    _check(settings, protocol, reviewers, overlap, only.ids)
    units = units_of(dataset, protocol.unit, settings.of)
    ids = chosen(dataset, units.ids, settings, only.ids)
    items = units.make(ids)
    shown_id: Callable[[str], str] = hidden_id if units.is_telling else str
    output = str(settings.output)
    shown_protocol = msgspec.structs.replace(protocol, of="", source="")
    note = Note(
        dataset=dataset.manifest.dataset,
        sha256=[dataset.sha256],
        made_of={
            "eqforge": version("eqforge"),
            "protocol": msgspec.to_builtins(shown_protocol),
            "of": units.digest,
            "answers": answers,
            "reviewers": sorted(reviewers),
            "overlap": overlap,
            "items": sorted(map(shown_id, ids)),
            **({} if settings.tool == "pages" else {"tool": settings.tool}),
        },
    )
    panes = [pane for item in items.values() for pane in item.panes]
    shown = {pane.image_id for pane in panes if pane.image_id is not None}
    pictures = read_pictures(dataset, whole=True, only=shown)
    check_fits(protocol, items.values(), pictures.stored, dataset)
    folder = prepare_folder(output, note, check_place(output, note, overwrite=settings.overwrite))
    tasks = assign(ids, reviewers, overlap, repeats=protocol.repeats)
    # The plan's identity: a digest of everything that reviewers see.
    digest_input = [dataset.sha256, shown_protocol, tasks, units.digest, answers]
    plan = sha256_hex(msgspec.json.encode(digest_input, order="sorted"))
    about = {
        "dataset": dataset.manifest.dataset,
        "sha256": dataset.sha256,
        "protocol": protocol.name,
        "form": protocol.form,
        "plan": plan,
        "overlap": overlap,
        "of": units.digest,
        "fields": msgspec.to_builtins(protocol.fields),
    }
    is_pages, place = settings.tool == "pages", label_studio.place_of(plan)
    home = folder if is_pages else replace(folder, below=f"data/{place}/")
    write_some(dataset, panes, pictures, home)  # finds images that cannot be decoded
    packages = {
        name: _Package(
            about={**about, "reviewer": name},
            tasks=[replace(task, id=shown_id(task.id)) for task in own_tasks],
            items=[blinded(items[task.id], task, protocol, name, pictures) for task in own_tasks],
        )
        for name, own_tasks in tasks.items()
        if own_tasks
    }
    minutes = {name: len(own_tasks) * protocol.seconds / 60 for name, own_tasks in tasks.items()}
    context = {
        **{"here": "", "nav": [], "protocol": protocol, "place": place},
        **dict.fromkeys(("name", "title"), f"Review of {dataset.manifest.dataset}"),
        "reviewers": [_entry(name, own_tasks, minutes[name]) for name, own_tasks in tasks.items()],
    }
    if is_pages:
        _write_pages(folder, protocol, packages, answers, context)
    else:
        _write_projects(home, protocol, packages)
    template = "reviewers.html" if is_pages else "label_studio.html"
    write_page(folder, template, "index.html", **context)
    write_assets(folder)
    finish(folder, note)
    return ReviewPlan(
        page=f"{output.rstrip('/')}/index.html",
        items=len(ids),
        tasks={name: len(own_tasks) for name, own_tasks in tasks.items()},
        minutes=minutes,
        unjudged=only.unjudged,
    )


def _overlap(settings: Plan, protocol: Protocol, reviewers: int) -> int:
    """Return how many reviewers judge each item."""
    if settings.overlap is not None:
        return settings.overlap
    # Decisions do not record who voted, so disputed items go to all reviewers.
    if settings.disagreed is not None or protocol.form == "order":
        return reviewers
    return min(2 if protocol.repeats else 1, reviewers)


def _entry(name: str, tasks: Sequence[Task], minutes: float) -> dict[str, str]:
    """Return a reviewer's line on the start page; reviewers without tasks have no page."""
    if not tasks:
        return {"name": name, "page": "", "tasks": "no tasks", "minutes": ""}
    return {
        "name": name,
        "page": f"{name}.html",
        "tasks": counted(len(tasks), "tasks"),
        "minutes": in_minutes(minutes),
    }


def _check(
    settings: Plan,
    protocol: Protocol,
    reviewers: Sequence[str],
    overlap: int,
    only: Sequence[str],
) -> None:
    listed = settings.answer_list
    if listed is not None and not any(field.listed for field in protocol.fields):
        raise InputError(f"--answer-list cannot be used with {protocol.name}; omit --answer-list")
    for name in reviewers:
        if not _REVIEWER.fullmatch(name):
            raise InputError(
                f"--reviewers {name}: a name may have up to 40 characters: letters without "
                "accents, digits, - and _"
            )
        if _NO_PAGES.fullmatch(name.lower()):
            raise InputError(f"--reviewers {name}: this name is reserved; choose another")
        if sum(name.lower() == each.lower() for each in reviewers) > 1:
            raise InputError(f"--reviewers: {name} appears twice")
    if not reviewers:
        raise InputError("--reviewers: specify at least one name")
    if not 1 <= overlap <= len(reviewers):
        raise InputError(
            f"--overlap {overlap}: expected at least 1, and at most the number of reviewers "
            f"({len(reviewers)})"
        )
    if settings.each is not None and protocol.unit not in ("samples", "captions"):
        raise InputError(f"--each {settings.each} works only with protocols that review samples")
    if settings.each is not None and only:
        raise InputError("--each does not work with --disagreed, --disputed or --unlikely")
    if settings.each is not None and settings.sample is None:
        raise InputError("--each needs --sample")
    *able, last = (name for name, form in FORMS.items() if form.controls is not None)
    if settings.tool == "label-studio" and protocol.form not in (*able, last):
        raise InputError(
            f"--tool label-studio supports only the forms {', '.join(able)} and {last}, but "
            f"--protocol {protocol.name} has the form {protocol.form}; omit --tool to get web pages"
        )
    if settings.sample is not None and settings.sample < 1:
        raise InputError(f"--sample {settings.sample}: expected 1 or more")


def blinded(
    item: Item, task: Task, protocol: Protocol, reviewer: str, pictures: Pictures
) -> dict[str, Any]:
    """Return an item as a page reads it, without anything that reveals which texts are true.

    A hash draws the order of images and texts, and `review import` draws it again. `places`
    maps positions to the item's images; if images are ranked, `images` has their ids.
    """
    form = FORMS[protocol.form]
    places = places_shown(item, protocol.form, protocol.unit, task, reviewer)
    # Neutral names that only identify the image.
    names = [f"image {number}" for number in range(1, len(places) + 1)]
    names = ["image"] if len(places) == 1 else names
    panes = [
        msgspec.structs.replace(item.panes[place], name=name)
        for name, place in zip(names, places, strict=True)
    ]
    texts, rows = item.texts, len(panes)
    if protocol.form == "judge":
        claims = claims_shown(item, task, reviewer)
        texts = tuple(plain(claim.text) for claim in claims)
        rows = max((len(claim.tones) for claim in claims), default=1)
        panes = [Pane(name=pane.name, image_id=pane.image_id) for pane in panes]
    elif protocol.form == "rank":
        texts = tuple(texts[place] for place in shuffled("caption", task, reviewer, len(texts)))
    elif protocol.form == "decide":
        texts = blind_texts(item)
        panes = [
            msgspec.structs.replace(
                pane, texts=tuple(Text(parts=text.parts) for text in pane.texts)
            )
            for pane in panes
        ]
        if not any(pane.image_id in pictures.stored for pane in panes):  # texts alone
            texts, panes = (*(text for pane in panes for text in pane.texts), *texts), []
    hidden = {"id": "", "facts": (), "rows": (), "panes": tuple(panes), "texts": texts}
    comparable = item.comparable and bool(panes)
    page_item = for_page(msgspec.structs.replace(item, **hidden, comparable=comparable), pictures)
    if protocol.form == "order":
        return {**page_item, "images": [pane.image_id for pane in panes]}
    if form.choices is not None:
        labels = names if rows > 1 else ["the image"]
        page_item |= {"asked": labels, "choices": form.choices(len(texts))}
    return {**page_item, "places": places}


def in_minutes(minutes: float) -> str:
    """Round a duration up to whole minutes, as `review.js` does."""
    return f"about {math.ceil(minutes):,} min"


def _write_pages(
    folder: Folder,
    protocol: Protocol,
    reviewers: Mapping[str, _Package],
    answers: Sequence[str],
    context: dict[str, Any],
) -> None:
    form = FORMS[protocol.form]
    form_fields = {"reasons": protocol.reasons, "answers": answers, "seconds": protocol.seconds}
    buttons = [{"answer": name, "label": label, "key": key} for name, label, key in form.buttons]
    form_fields |= {"legend": form.asks[0], "missing": form.asks[1]}
    for name, (about, tasks, items) in reviewers.items():
        for start in range(0, len(items), _CHUNK):
            folder.write_data(f"{name}/items/{start // _CHUNK}", items[start : start + _CHUNK])
        task_rows = [[task.id, task.is_repeat] for task in tasks]
        folder.write_data(
            f"{name}/tasks", {**about, **form_fields, "chunk": _CHUNK, "tasks": task_rows}
        )
        page = {**context, "answers": buttons, "refusal": form.refusal, "reviewer": name}
        write_page(folder, "review.html", f"{name}.html", **page)


def _write_projects(folder: Folder, protocol: Protocol, reviewers: Mapping[str, _Package]) -> None:
    every = [item for package in reviewers.values() for item in package.items]
    controls = label_studio.controls_of(protocol, every)
    folder.write("config.xml", label_studio.config_of(protocol, controls))
    for name, (about, tasks, items) in reviewers.items():
        file = {**about, "format": "eqforge votes", "format_version": 2, "tasks": len(tasks)}
        content = label_studio.tasks_of(protocol, file, tasks, items, controls)
        folder.write(f"tasks-{name}.json", content)
