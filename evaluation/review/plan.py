"""Writes the tasks of reviewers: as pages, opened from disk, or for Label Studio."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.identity import sha256_hex
from eqforge.core.versions import version
from eqforge.core.visible import counted
from eqforge.evaluation.report.folder import (
    Folder,
    Note,
    finish,
    for_page,
    take_place,
    write_assets,
    write_page,
)
from eqforge.evaluation.report.items import Item
from eqforge.evaluation.report.pictures import Pictures, read_pictures, write_some
from eqforge.evaluation.review import label_studio
from eqforge.evaluation.review.assign import Task, assign, chosen, rank
from eqforge.evaluation.review.doubtful import doubtful
from eqforge.evaluation.review.forms import FORMS
from eqforge.evaluation.review.protocols import Protocol, protocol_of
from eqforge.evaluation.review.settings import Plan
from eqforge.evaluation.review.units import Units, check_fits, units_of
from eqforge.evaluation.review.votes import FORMAT, VERSION
from eqforge.evaluation.tables.samples import check_label_column
from eqforge.schemas.dataset.reader import Dataset, open_dataset
from eqforge.sources.decisions import disagreed, read_decisions
from eqforge.sources.vlue import read_answer_list

_REVIEWER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
# The page that leads to the others, and names that no file has on Windows.
_NO_PAGES: Final = re.compile(r"index|con|prn|aux|nul|(com|lpt)[0-9]")
_USUAL_OVERLAP: Final = 2
_CHUNK: Final = 20
"""This many items are in a file of tasks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewPlan:
    """The tasks that were written.

    Attributes:
      page: the first page.
      items: how many items are reviewed.
      tasks: how many tasks each reviewer has, hidden repeats included.
      minutes: about how long each takes.
      unjudged: where what judges dispute is reviewed, the samples that none was asked about, which
        are left out.
    """

    page: str
    items: int
    tasks: dict[str, int]
    minutes: dict[str, float]
    unjudged: int = 0


def write_plan(settings: Plan) -> ReviewPlan:
    """Writes the tasks of all reviewers; the same options give the same tasks.

    Who has none gets no page.

    Raises:
      InputError: the dataset has no samples, or none of those asked for; a setting is wrong,
        the protocol asks about what the samples are not, or the folder holds something else.
    """
    protocol = protocol_of(settings.protocol)
    dataset = open_dataset(settings.dataset)
    only, unjudged = _wanted(dataset, settings)
    reviewers = tuple(filter(None, ",".join(settings.reviewers).split(",")))
    answers = [] if settings.answer_list is None else sorted(read_answer_list(settings.answer_list))
    overlap = settings.overlap
    if overlap is None:
        overlap = min(_USUAL_OVERLAP if protocol.repeats else 1, len(reviewers))
        # Decisions do not say who voted: what was disagreed on goes to all, so that nobody is
        # left out.
        if settings.disagreed is not None or protocol.form == "order":
            overlap = len(reviewers)
    _check(settings, protocol, reviewers, overlap, only)
    units = units_of(dataset, protocol.unit, settings.of)
    some = _chosen(dataset, units, settings, only)
    items = units.make(some)
    output = str(settings.output)
    note = Note(
        dataset=dataset.manifest.dataset,
        sha256=[dataset.sha256],
        made_of={
            "eqforge": version("eqforge"),
            "protocol": msgspec.to_builtins(protocol),
            "of": units.digest,
            "answers": answers,
            "reviewers": sorted(reviewers),
            "overlap": overlap,
            "items": sorted(some),
            **({} if settings.tool == "pages" else {"tool": settings.tool}),
        },
    )
    panes = [pane for item in items.values() for pane in item.panes]
    wanted = {pane.image_id for pane in panes if pane.image_id is not None}
    pictures = read_pictures(dataset, whole=True, only=wanted)
    check_fits(protocol, items.values(), pictures.stored, dataset)
    take_place(output, note, overwrite=settings.overwrite)
    tasks = assign(some, reviewers, overlap, repeats=protocol.repeats)
    # What tells a plan from every other: a digest of all that reviewers are shown.
    said = [dataset.sha256, protocol, tasks, units.digest, answers]
    plan = sha256_hex(msgspec.json.encode(said, order="sorted"))
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
    home = output
    if settings.tool == "label-studio":
        home = storage.join(output, "data", label_studio.place_of(plan))
    write_some(dataset, panes, pictures, home)  # finds the pictures that cannot be decoded
    own = {
        name: _Own(
            about=about,
            tasks=dealt,
            items=[blinded(items[task.id], task, protocol, name, pictures) for task in dealt],
        )
        for name, dealt in tasks.items()
        if dealt
    }
    minutes = {name: len(dealt) * protocol.seconds / 60 for name, dealt in tasks.items()}
    context = {
        **{"here": "", "nav": [], "protocol": protocol},
        **dict.fromkeys(("name", "title"), f"Review of {dataset.manifest.dataset}"),
        "place": label_studio.place_of(plan),
        "reviewers": [
            {
                "name": name,
                "page": f"{name}.html" if dealt else "",
                "tasks": counted(len(dealt), "tasks") if dealt else "no tasks",
                "minutes": told_minutes(minutes[name]) if dealt else "",
            }
            for name, dealt in tasks.items()
        ],
    }
    folder = Folder(output)
    if settings.tool == "pages":
        _write_pages(folder, protocol, own, answers, context)
    else:
        _write_projects(Folder(home), protocol, own)
        write_page(folder, "label_studio.html", "index.html", **context)
    write_assets(folder)
    finish(output, note)
    return ReviewPlan(
        page=f"{output.rstrip('/')}/index.html",
        items=len(some),
        tasks={name: len(dealt) for name, dealt in tasks.items()},
        minutes=minutes,
        unjudged=unjudged,
    )


def _wanted(dataset: Dataset, settings: Plan) -> tuple[tuple[str, ...], int]:
    """Returns the ids of the items that are asked for, none for all, and how many none judged."""
    only: tuple[str, ...] = ()
    if settings.disagreed is not None:
        only = disagreed(read_decisions(settings.disagreed))
        if not only:
            raise InputError(
                f"--disagreed {settings.disagreed}: nothing in it is unsure, all who were "
                "asked have voted, and alike"
            )
    if settings.disputed is None and settings.unlikely is None:
        return only, 0
    if only:
        raise InputError("--disagreed: leave out --disputed and --unlikely, or it")
    found = doubtful(dataset, settings.disputed, settings.unlikely)
    return found.ids, found.unjudged


def _check(
    settings: Plan,
    protocol: Protocol,
    reviewers: Sequence[str],
    overlap: int,
    only: Sequence[str],
) -> None:
    listed = settings.answer_list
    if listed is not None and not any(field.listed for field in protocol.fields):
        raise InputError(f"--answer-list {listed}: has no effect on {protocol.name}")
    for name in reviewers:
        if not _REVIEWER.fullmatch(name):
            raise InputError(
                f"--reviewers {name}: expected letters without accents, digits, - and _, at most "
                "40: it becomes the name of a page"
            )
        if _NO_PAGES.fullmatch(name.lower()):
            raise InputError(f"--reviewers {name}: no page of a reviewer can have this name")
        if sum(name.lower() == each.lower() for each in reviewers) > 1:
            raise InputError(f"--reviewers: {name} is named twice")
    if not reviewers:
        raise InputError("--reviewers: name at least one")
    if not 1 <= overlap <= len(reviewers):
        raise InputError(
            f"--overlap {overlap}: expected 1 to {len(reviewers)}, the number of reviewers"
        )
    if settings.each is not None and protocol.unit not in ("samples", "captions"):
        raise InputError(f"--each {settings.each}: this protocol is not about samples")
    if settings.each is not None and (settings.sample is None or only):
        raise InputError("--each: add --sample, which says how many of each, without --disagreed")
    if settings.tool == "label-studio":
        label_studio.check_form(protocol)
    if settings.sample is not None and settings.sample < 1:
        raise InputError(f"--sample {settings.sample}: expected 1 or more")


def _chosen(dataset: Dataset, units: Units, settings: Plan, only: Sequence[str]) -> list[str]:
    """Returns the ids of what is reviewed."""
    there = set(units.ids)
    if lost := [name for name in only if name not in there]:
        raise InputError(f"{dataset.folder}: has no sample {lost[0]!r} to review")
    column = settings.each
    if column is None:
        return chosen(only or units.ids, settings.sample)
    check_label_column(dataset.schema("samples"), column, dataset.folder)
    of_each: dict[str, list[str]] = {}
    for row in dataset.rows("samples", ["sample_id", column]):
        if row["sample_id"] in there:
            of_each.setdefault(str(row[column]), []).append(row["sample_id"])
    return [name for _, some in sorted(of_each.items()) for name in chosen(some, settings.sample)]


# --- what a reviewer sees


def blinded(
    item: Item, task: Task, protocol: Protocol, reviewer: str, pictures: Pictures
) -> dict[str, Any]:
    """Returns an item as a page reads it: without id, facts, scores and lineage.

    The order of pictures, and of captions that are ranked, is drawn by hash: `places` and `ranked`
    say which of the item's pictures and captions each is; where pictures are put in order, `images`
    has their ids.
    """

    def shuffle(what: str, places: list[int]) -> None:
        again = str(task.is_repeat)
        places.sort(key=lambda each: rank(what, reviewer, task.id, again, str(each)))

    places, ranked = list(range(len(item.panes))), list(range(len(item.texts)))
    if protocol.form == "rank":
        shuffle("caption", ranked)
    if protocol.form == "order":
        shuffle("picture", places)
    # A statement may speak of the left picture, so pictures of statements keep their places.
    elif task.is_turned and (item.comparable or protocol.unit in ("captions", "picture pairs")):
        places.reverse()
    panes = [item.panes[place] for place in places]
    if len(panes) == 1 or item.comparable or protocol.unit != "samples":
        # Names that say nothing but which picture is meant.
        names = [f"picture {number}" for number in range(1, len(panes) + 1)]
        names = ["picture"] if len(panes) == 1 else names
        panes = [
            msgspec.structs.replace(pane, name=name)
            for name, pane in zip(names, panes, strict=True)
        ]
    texts = tuple(item.texts[place] for place in ranked)
    hidden = {"id": "", "facts": (), "rows": (), "panes": tuple(panes), "texts": texts}
    said = for_page(msgspec.structs.replace(item, **hidden), pictures)
    if protocol.form == "order":
        return {**said, "images": [pane.image_id for pane in panes]}
    return {**said, "places": places, "ranked": ranked}


def told_minutes(minutes: float) -> str:
    """Returns how long tasks take, in whole minutes rounded up, as `review.js` tells it too."""
    return f"about {math.ceil(minutes):,} min"


# --- the files


class _Own(NamedTuple):
    """What a reviewer has: what a file of votes says of them, the tasks, and what these show."""

    about: dict[str, Any]
    tasks: Sequence[Task]
    items: list[dict[str, Any]]


def _write_pages(
    folder: Folder,
    protocol: Protocol,
    reviewers: Mapping[str, _Own],
    answers: Sequence[str],
    context: dict[str, Any],
) -> None:
    """Writes a page for each reviewer, and one that leads to them."""
    form = FORMS[protocol.form]
    asked = {"reasons": protocol.reasons, "answers": answers, "seconds": protocol.seconds}
    buttons = [{"answer": name, "label": label, "key": key} for name, label, key in form.buttons]
    buttoned = {**context, "answers": buttons, "refusal": form.refusal}
    for name, (about, tasks, items) in reviewers.items():
        for start in range(0, len(items), _CHUNK):
            folder.give(f"{name}/items/{start // _CHUNK}", items[start : start + _CHUNK])
        own = [[task.id, task.is_repeat] for task in tasks]
        folder.give(
            f"{name}/tasks", {**about, **asked, "chunk": _CHUNK, "reviewer": name, "tasks": own}
        )
        write_page(folder, "review.html", f"{name}.html", reviewer=name, **buttoned)
    write_page(folder, "reviewers.html", "index.html", **context)


def _write_projects(folder: Folder, protocol: Protocol, reviewers: Mapping[str, _Own]) -> None:
    """Writes the tasks of each reviewer for Label Studio, and a labelling config for all."""
    every = [item for own in reviewers.values() for item in own.items]
    controls = label_studio.controls_of(protocol, every)
    folder.write("config.xml", label_studio.config_of(protocol, controls))
    for name, (about, tasks, items) in reviewers.items():
        file = {**about, "format": FORMAT, "format_version": VERSION, "tasks": len(tasks)}
        file["reviewer"] = name
        said = label_studio.tasks_of(protocol, file, tasks, items, controls)
        folder.write(f"tasks-{name}.json", said)
