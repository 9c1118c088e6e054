"""Writes the report of a dataset."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from eqforge.core.errors import InputError
from eqforge.core.identity import sha256_hex
from eqforge.core.ticker import ticked
from eqforge.core.versions import version
from eqforge.evaluation.report.answers import read_answers
from eqforge.evaluation.report.charts import charts_of
from eqforge.evaluation.report.folder import Folder
from eqforge.evaluation.report.judged import judged, with_judgements
from eqforge.evaluation.report.kinds import Kind, kind_of, read_table, rows_of, units_of
from eqforge.evaluation.report.limits import (
    limits_of_rejects,
    limits_of_settings,
    refused_values,
)
from eqforge.evaluation.report.pictures import (
    read_pictures,
    write_encoded,
    write_pictures,
)
from eqforge.evaluation.report.place import Note, check_place, finish, take_place
from eqforge.evaluation.report.rejects import ORDER, Kept, Whys, of_reject
from eqforge.evaluation.report.site import write_assets, write_page
from eqforge.evaluation.report.summary import REJECTS, SAMPLES, summary
from eqforge.evaluation.report.tables import Shown, TablePage, Written, write_table
from eqforge.schemas.dataset.profile import Profile
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.datasets import DATASETS

STRIP: Final = 12
_MEASURED: Final = ["reason", "detail", "value", "threshold"]
"""The columns of rejects that say what was compared with a limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportSettings:
    """What a report holds.

    Attributes:
      output: its folder.
      scores: folders or files of the scores of models.
      quantity: what a score in a file is; None if unknown.
      whole_pictures: whether pictures are in it as they are stored, beside the small ones.
      overwrite: whether a report of something else in the folder is replaced.
    """

    output: str
    scores: tuple[Path, ...] = ()
    quantity: str | None = None
    whole_pictures: bool = True
    overwrite: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """A report that was written.

    Attributes:
      page: its first page.
      samples: how many items its pages of samples have.
      rejects: how many rejects.
      pictures: how many pictures.
      undecodable: how many of these cannot be shown.
    """

    page: str
    samples: int
    rejects: int
    pictures: int
    undecodable: int


def write_report(
    dataset: Dataset, profile: Profile, settings: ReportSettings, kept: Kept | None = None
) -> Report:
    """Writes the report of a dataset; one that was stopped goes on where it was.

    Args:
      dataset: the dataset.
      profile: what is known of it.
      settings: what the report holds.
      kept: the pictures of rejects; None where there are none.

    Raises:
      InputError: the folder holds something else, or a file of the dataset or of scores cannot be
        read.
    """
    if dataset.manifest.num_rows("samples") + dataset.manifest.num_rows("rejects") == 0:
        raise InputError(f"{dataset.folder}: has neither samples nor rejects to show")
    answers = read_answers(dataset, settings.scores, settings.quantity)
    note = _note(dataset, settings)
    check_place(settings.output, note, overwrite=settings.overwrite)
    kind = kind_of(dataset)
    pictures = read_pictures(dataset, whole=settings.whole_pictures)
    rejects = read_table(dataset, "rejects", *ORDER)
    if kept is not None:
        pictures.stored = dict(kept.stored(rows_of(rejects))) | pictures.stored
    listed = [_samples(dataset, profile, kind), *_rejects(dataset, profile, kept, rejects)]
    take_place(settings.output, note, overwrite=settings.overwrite)
    folder = Folder(settings.output)
    write_pictures(dataset, pictures, settings.output)
    undecodable = len(pictures.bad)
    if kept is not None:
        write_encoded(kept.pictures(rows_of(rejects)), pictures, settings.output)
    laid = {"samples": answers}
    strips = {"samples": STRIP}
    tables = {
        page.name: write_table(
            folder, page, items, pictures, laid.get(page.name, ()), strips.get(page.name, 0)
        )
        for page, items in listed
    }
    _pages(folder, dataset, profile, kind, tables, rejects)
    finish(settings.output, note)
    return Report(
        page=f"{settings.output.rstrip('/')}/index.html",
        samples=tables["samples"].items,
        rejects=rejects.num_rows,
        pictures=len(pictures.stored),
        undecodable=undecodable,
    )


def _note(dataset: Dataset, settings: ReportSettings) -> Note:
    names = ("scores.json", "")
    found = [path / names[0] if path.is_dir() else path for path in settings.scores]
    scores = [sha256_hex(path.read_bytes()) for path in found if path.is_file()]
    made_of = {
        "eqforge": version("eqforge"),
        "scores": scores,
        "whole_pictures": settings.whole_pictures,
    }
    return Note(dataset=dataset.manifest.dataset, sha256=[dataset.sha256], made_of=made_of)


def _distinct(table: pa.Table, name: str) -> int:
    """Returns how many values a column has; a table without rows has no columns."""
    return pc.count_distinct(table[name], "all").as_py() if table.num_rows else 0


def _samples(dataset: Dataset, profile: Profile, kind: Kind) -> tuple[TablePage, Iterator[Shown]]:
    keys = (*([kind.group] if kind.group else []), "sample_id")
    samples = with_judgements(dataset, read_table(dataset, "samples", *keys))
    known = dataset.manifest.dataset in DATASETS and bool(profile.commands)
    page = TablePage(
        name="samples",
        thing=kind.thing,
        total=_distinct(samples, kind.group or "sample_id"),
        again=f"{profile.commands[-1]} --only " if known else "",
    )
    make = kind.make(dataset)
    items = (judged(make, rows) for rows in units_of(samples, kind.group))
    return page, ticked(items, page.total, page.thing)


def _rejects(
    dataset: Dataset, profile: Profile, kept: Kept | None, rejects: pa.Table
) -> Iterator[tuple[TablePage, Iterator[Shown]]]:
    """Yields the table of rejects where there are some."""
    if rejects.num_rows:
        page = TablePage(name="rejects", thing="rejects", total=rejects.num_rows)
        whys = Whys(dataset, rows_of(rejects))
        items = ((of_reject(row, profile, kept, whys), [row]) for row in rows_of(rejects))
        yield page, ticked(items, page.total, page.thing)


def _pages(
    folder: Folder,
    dataset: Dataset,
    profile: Profile,
    kind: Kind,
    tables: dict[str, Written],
    rejects: pa.Table,
) -> None:
    measured = rejects.select(_MEASURED) if rejects.num_rows else rejects
    limits = limits_of_settings(dataset.manifest.config), limits_of_rejects(rows_of(measured))
    charts = charts_of("samples", tables["samples"], limits, refused_values(rows_of(measured)))
    folder.give("charts", charts)
    report = summary(dataset, profile, tables, kind.thing)
    shown = ("title", "table", "refused")
    report["charts"] = [{name: each[name] for name in shown} for each in charts]
    nav = [("Overview", "index.html"), (kind.thing.capitalize(), SAMPLES)]
    nav += [("Rejects", REJECTS)] if "rejects" in tables else []
    shared = {"name": report["title"], "report": report, "nav": nav}
    write_assets(folder)
    write_page(folder, "index.html", "index.html", here="index.html", **shared)
    for name, title in (("samples", kind.thing), ("rejects", "rejects")):
        if name in tables:
            page = f"{name}.html"
            table = {"name": name, "title": title, "rows": tables[name].items}
            write_page(folder, "rows.html", page, here=page, table=table, **shared)
