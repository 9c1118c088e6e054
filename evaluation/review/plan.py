"""Writes the tasks of reviewers: as pages, opened from disk, or for Label Studio."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.identity import sha256_hex
from eqforge.core.versions import version
from eqforge.evaluation.report.folder import Note, finish, take_place
from eqforge.evaluation.report.pictures import read_pictures, write_some
from eqforge.evaluation.review.assign import Task, assign, chosen
from eqforge.evaluation.review.blind import blinded
from eqforge.evaluation.review.dealt import Dealt
from eqforge.evaluation.review.fitting import check_fits
from eqforge.evaluation.review.label_studio import form_of
from eqforge.evaluation.review.pages import write_pages
from eqforge.evaluation.review.projects import home_of, write_projects
from eqforge.evaluation.review.protocols import Protocol
from eqforge.evaluation.review.tools import Tool
from eqforge.evaluation.review.units import Units, units_of
from eqforge.evaluation.tables.samples import check_label_column
from eqforge.schemas.dataset.reader import Dataset

_REVIEWER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_INDEX: Final = "index"
_DEVICES: Final = re.compile(r"con|prn|aux|nul|(com|lpt)[0-9]")
"""Names that no file has on Windows, whatever its suffix."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewSettings:
    """What is reviewed, and by whom.

    Attributes:
      output: folder of the tasks.
      protocol: what reviewers are asked.
      reviewers: their names.
      overlap: how many of them see each item.
      sample: how many items are reviewed at most; None for all.
      each: column of the samples; `sample` is then how many of each of its values.
      only: ids of the items that are reviewed; empty for all.
      of: file of the queries or boxes that the tasks are about; None for none.
      answers: the answers that may be given, where the protocol has them listed; empty for any.
      tool: what they answer in.
      overwrite: whether tasks of something else in the folder are replaced.
    """

    output: str
    protocol: Protocol
    reviewers: tuple[str, ...]
    overlap: int = 2
    sample: int | None = None
    each: str | None = None
    only: tuple[str, ...] = ()
    of: Path | None = None
    answers: tuple[str, ...] = ()
    tool: Tool = "pages"
    overwrite: bool = False


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
        if name.lower() == _INDEX or _DEVICES.fullmatch(name.lower()):
            raise InputError(f"--reviewers {name}: no page of a reviewer can have this name")
    twice = [name for name in names if sum(name.lower() == each.lower() for each in names) > 1]
    if twice:
        raise InputError(f"--reviewers: {twice[0]} is named twice")
    if not names:
        raise InputError("--reviewers: name at least one")
    if not 1 <= settings.overlap <= len(names):
        raise InputError(
            f"--overlap {settings.overlap}: expected 1 to {len(names)}, the number of reviewers"
        )
    if settings.each is not None and settings.protocol.unit not in ("samples", "captions"):
        raise InputError(f"--each {settings.each}: this protocol is not about samples")
    if settings.each is not None and (settings.sample is None or settings.only):
        raise InputError("--each: add --sample, which says how many of each, without --disagreed")
    if settings.tool == "label-studio":
        form_of(settings.protocol)
    if settings.sample is not None and settings.sample < 1:
        raise InputError(f"--sample {settings.sample}: expected 1 or more")


def write_plan(dataset: Dataset, settings: ReviewSettings) -> ReviewPlan:
    """Writes the tasks of all reviewers; the same options give the same tasks.

    Who has none gets no page.

    Raises:
      InputError: the dataset has no samples, or none of those asked for; a setting is wrong,
        the protocol asks about what the samples are not, or the folder holds something else.
    """
    check_settings(settings)
    protocol = settings.protocol
    units = units_of(dataset, protocol.unit, settings.of)
    some = _chosen(dataset, units, settings)
    items = units.make(some)
    note = Note(
        dataset=dataset.manifest.dataset,
        sha256=[dataset.sha256],
        made_of={
            "eqforge": version("eqforge"),
            "protocol": msgspec.to_builtins(protocol),
            "of": units.digest,
            "answers": sorted(settings.answers),
            "reviewers": sorted(settings.reviewers),
            "overlap": settings.overlap,
            "items": sorted(some),
            **({} if settings.tool == "pages" else {"tool": settings.tool}),
        },
    )
    panes = [pane for item in items.values() for pane in item.panes]
    wanted = {pane.image_id for pane in panes if pane.image_id is not None}
    pictures = read_pictures(dataset, whole=True, only=wanted)
    check_fits(protocol, items.values(), pictures.stored, dataset)
    take_place(settings.output, note, overwrite=settings.overwrite)
    tasks = assign(some, settings.reviewers, settings.overlap, repeats=protocol.repeats)
    dealt = Dealt(
        protocol=protocol,
        about={
            "dataset": dataset.manifest.dataset,
            "sha256": dataset.sha256,
            "protocol": protocol.name,
            "form": protocol.form,
            "plan": plan_digest(dataset.sha256, protocol, tasks, units.digest, settings.answers),
            "overlap": settings.overlap,
            "of": units.digest,
            "fields": msgspec.to_builtins(protocol.fields),
        },
        tasks=tasks,
        minutes={name: len(own) * protocol.seconds / 60 for name, own in tasks.items()},
        answers=sorted(settings.answers),
        show=lambda reviewer, own: [
            blinded(items[task.id], task, protocol, reviewer, pictures) for task in own
        ],
    )
    if settings.tool == "pages":
        write_some(dataset, panes, pictures, settings.output)
        write_pages(settings.output, dealt)
    else:
        write_some(dataset, panes, pictures, home_of(settings.output, dealt.plan))
        write_projects(settings.output, dealt)
    finish(settings.output, note)
    return ReviewPlan(
        page=f"{settings.output.rstrip('/')}/index.html",
        items=len(some),
        tasks={name: len(own) for name, own in tasks.items()},
        minutes=dict(dealt.minutes),
    )


def plan_digest(
    sha256: str,
    protocol: Protocol,
    tasks: Mapping[str, Sequence[Task]],
    of: str = "",
    answers: Collection[str] = (),
) -> str:
    """Returns what tells a plan from every other: a digest of all that reviewers are shown.

    Args:
      sha256: of the dataset's manifest.
      protocol: what they are asked.
      tasks: of each reviewer.
      of: digest of the file that the tasks are about; empty for none.
      answers: the answers that may be given; empty for any.
    """
    dealt = {name: [msgspec.to_builtins(task) for task in own] for name, own in tasks.items()}
    said = [sha256, msgspec.to_builtins(protocol), dealt, of, sorted(answers)]
    return sha256_hex(msgspec.json.encode(said, order="sorted"))


def _chosen(dataset: Dataset, units: Units, settings: ReviewSettings) -> list[str]:
    """Returns the ids of what is reviewed."""
    there = set(units.ids)
    if lost := [name for name in settings.only if name not in there]:
        raise InputError(f"{dataset.folder}: has no sample {lost[0]!r} to review")
    if settings.each is None:
        return chosen(settings.only or units.ids, settings.sample)
    of_each: dict[str, list[str]] = {}
    for name, value in _values(dataset, settings.each):
        if name in there:
            of_each.setdefault(value, []).append(name)
    return [name for _, some in sorted(of_each.items()) for name in chosen(some, settings.sample)]


def _values(dataset: Dataset, column: str) -> Iterator[tuple[str, str]]:
    """Yields what samples have in a column, by their ids."""
    check_label_column(dataset.schema("samples"), column, dataset.folder)
    for row in dataset.rows("samples", ["sample_id", column]):
        yield row["sample_id"], str(row[column])
