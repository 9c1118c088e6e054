"""Writes the tasks of reviewers as pages, opened from disk."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from eqforge.evaluation.report.folder import Folder, for_page
from eqforge.evaluation.report.items import Item
from eqforge.evaluation.report.kinds import kind_of, read_table, units_of
from eqforge.evaluation.report.pictures import Pictures, read_pictures, write_some
from eqforge.evaluation.report.place import Note, finish, take_place
from eqforge.evaluation.report.site import write_assets, write_page
from eqforge.evaluation.review.assign import Task, assign, chosen
from eqforge.evaluation.review.protocols import Protocol
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.errors import InputError
from eqforge.schemas.versions import version
from eqforge.schemas.visible import counted

CHUNK: Final = 20
"""So many items are in a file of tasks."""

_REVIEWER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewSettings:
    """What is reviewed, and by whom.

    Attributes:
      output: folder of the tasks.
      protocol: what reviewers are asked.
      reviewers: their names.
      overlap: how many of them see each item.
      sample: how many items are reviewed at most; None for all.
      only: ids of the items that are reviewed; empty for all.
      overwrite: whether tasks of something else in the folder are replaced.
    """

    output: str
    protocol: Protocol
    reviewers: tuple[str, ...]
    overlap: int = 2
    sample: int | None = None
    only: tuple[str, ...] = ()
    overwrite: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewPlan:
    """The tasks that were written.

    Attributes:
      page: the first page.
      items: how many items are reviewed.
      tasks: how many tasks each reviewer has, hidden repeats included.
      minutes: about how long each takes.
    """

    page: str
    items: int
    tasks: dict[str, int]
    minutes: dict[str, float]


def check_settings(settings: ReviewSettings) -> None:
    """Checks who reviews.

    Raises:
      InputError: a name is no name of a file or named twice, or there are too few reviewers.
    """
    names = settings.reviewers
    for name in names:
        if not _REVIEWER.fullmatch(name):
            raise InputError(
                f"--reviewers {name}: expected letters without accents, digits, - and _, at most "
                "40: it becomes the name of a page"
            )
    twice = [name for name in names if sum(name.lower() == each.lower() for each in names) > 1]
    if twice:
        raise InputError(f"--reviewers: {twice[0]} is named twice")
    if not names:
        raise InputError("--reviewers: name at least one")
    if not 1 <= settings.overlap <= len(names):
        raise InputError(
            f"--overlap {settings.overlap}: expected 1 to {len(names)}, the number of reviewers"
        )
    if settings.sample is not None and settings.sample < 1:
        raise InputError(f"--sample {settings.sample}: expected 1 or more")


def write_plan(dataset: Dataset, settings: ReviewSettings) -> ReviewPlan:
    """Writes the tasks of all reviewers; the same options give the same tasks.

    Raises:
      InputError: the dataset has no samples, or none of those asked for; a setting is wrong, or
        the folder holds something else.
    """
    check_settings(settings)
    items = dict(_items(dataset))
    if not items:
        raise InputError(f"{dataset.folder}: has no samples to review")
    if lost := [name for name in settings.only if name not in items]:
        raise InputError(f"{dataset.folder}: has no sample {lost[0]!r} to review")
    some = chosen(settings.only or list(items), settings.sample)
    note = Note(
        dataset=dataset.manifest.dataset,
        sha256=[dataset.sha256],
        made_of={
            "eqforge": version("eqforge"),
            "protocol": msgspec.to_builtins(settings.protocol),
            "reviewers": sorted(settings.reviewers),
            "overlap": settings.overlap,
            "items": sorted(some),
        },
    )
    pictures = read_pictures(dataset, whole=True)
    take_place(settings.output, note, overwrite=settings.overwrite)
    panes = (pane for name in some for pane in items[name].panes)
    write_some(dataset, panes, pictures, settings.output)
    tasks = assign(some, settings.reviewers, settings.overlap)
    folder = Folder(settings.output)
    for reviewer, own in tasks.items():
        _write_tasks(folder, dataset, settings.protocol, reviewer, own, items, pictures)
    minutes = {name: len(own) * settings.protocol.seconds / 60 for name, own in tasks.items()}
    _pages(folder, dataset, settings.protocol, tasks, minutes)
    finish(settings.output, note)
    return ReviewPlan(
        page=f"{settings.output.rstrip('/')}/index.html",
        items=len(some),
        tasks={name: len(own) for name, own in tasks.items()},
        minutes=minutes,
    )


def _items(dataset: Dataset) -> Iterator[tuple[str, Item]]:
    """Yields each sample by itself, by its id: what is decided on is a sample."""
    samples = read_table(dataset, "samples", "sample_id")
    if not samples.num_rows:
        return
    make = kind_of(dataset).make(dataset)
    for (row,) in units_of(samples, None):
        yield row["sample_id"], make([row])


def _write_tasks(
    folder: Folder,
    dataset: Dataset,
    protocol: Protocol,
    reviewer: str,
    tasks: Sequence[Task],
    items: dict[str, Item],
    pictures: Pictures,
) -> None:
    shown = [for_page(_blind(items[task.id], task), pictures) for task in tasks]
    for start in range(0, len(shown), CHUNK):
        folder.give(f"{reviewer}/items/{start // CHUNK}", shown[start : start + CHUNK])
    about = {
        "dataset": dataset.manifest.dataset,
        "sha256": dataset.sha256,
        "protocol": protocol.name,
        "reasons": protocol.reasons,
        "seconds": protocol.seconds,
        "reviewer": reviewer,
        "chunk": CHUNK,
        "tasks": [[task.id, task.is_repeat] for task in tasks],
    }
    folder.give(f"{reviewer}/tasks", about)


def _blind(item: Item, task: Task) -> Item:
    """Returns an item without its id, facts and lineage; two pictures may change places."""
    panes = item.panes[::-1] if task.is_turned and item.comparable else item.panes
    if len(panes) > 1 and item.comparable:
        panes = tuple(
            msgspec.structs.replace(pane, name=f"picture {number}")
            for number, pane in enumerate(panes, start=1)
        )
    elif len(panes) == 1:
        panes = (msgspec.structs.replace(panes[0], name="picture"),)
    return msgspec.structs.replace(item, id="", facts=(), rows=(), panes=tuple(panes))


def _pages(
    folder: Folder,
    dataset: Dataset,
    protocol: Protocol,
    tasks: dict[str, list[Task]],
    minutes: dict[str, float],
) -> None:
    title = f"Review of {dataset.manifest.dataset}"
    shared: dict[str, Any] = {"name": title, "title": title, "nav": [], "protocol": protocol}
    reviewers = [
        {
            "name": name,
            "page": f"{name}.html",
            "tasks": counted(len(own), "tasks"),
            "minutes": f"about {max(1, round(minutes[name])):,} min",
        }
        for name, own in tasks.items()
    ]
    write_assets(folder)
    write_page(folder, "reviewers.html", "index.html", here="", reviewers=reviewers, **shared)
    for name in tasks:
        write_page(folder, "review.html", f"{name}.html", here="", reviewer=name, **shared)
