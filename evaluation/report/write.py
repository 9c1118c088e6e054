"""Writes the report of a dataset."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eqforge.core.errors import InputError
from eqforge.core.identity import sha256_hex
from eqforge.core.ticker import ticked
from eqforge.core.versions import version
from eqforge.evaluation.report.answers import judged, read_answers, with_judgements
from eqforge.evaluation.report.folder import (
    Folder,
    Note,
    check_place,
    finish,
    take_place,
    write_assets,
    write_page,
)
from eqforge.evaluation.report.kinds import Kind, kind_of, read_table, rows_of, units_of
from eqforge.evaluation.report.overview import charts_of, limits_of_settings, summary
from eqforge.evaluation.report.pictures import read_pictures, write_encoded, write_pictures
from eqforge.evaluation.report.rejects import ORDER, Kept, Whys, of_reject
from eqforge.evaluation.report.tables import Shown, TablePage, write_table
from eqforge.schemas.dataset.profile import Profile
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.datasets import DATASETS

STRIP: Final = 12


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
    dataset: Dataset,
    profile: Profile,
    kept: Kept,
    output: str,
    *,
    scores: Sequence[Path] = (),
    quantity: str | None = None,
    whole_pictures: bool = True,
    overwrite: bool = False,
) -> Report:
    """Write the report of a dataset; one that was stopped goes on where it was.

    Args:
      dataset: the dataset.
      profile: what is known of it.
      kept: the pictures of rejects.
      output: folder of the report.
      scores: folders or files of the scores of models.
      quantity: what a score in a file is; None if unknown.
      whole_pictures: whether pictures are in it as they are stored, beside the small ones.
      overwrite: whether a report of something else in the folder is replaced.

    Raises:
      InputError: the folder holds something else, or a file of the dataset or of scores cannot be
        read.
    """
    manifest = dataset.manifest
    if manifest.num_rows("samples") + manifest.num_rows("rejects") == 0:
        raise InputError(f"{dataset.folder}: has neither samples nor rejects to show")
    answers = read_answers(dataset, scores, quantity)
    files = [path / "scores.json" if path.is_dir() else path for path in scores]
    made_of = {
        "eqforge": version("eqforge"),
        "scores": [sha256_hex(path.read_bytes()) for path in files if path.is_file()],
        "whole_pictures": whole_pictures,
    }
    note = Note(dataset=manifest.dataset, sha256=[dataset.sha256], made_of=made_of)
    check_place(output, note, overwrite=overwrite)
    kind = kind_of(dataset)
    pictures = read_pictures(dataset, whole=whole_pictures)
    rejects = read_table(dataset, "rejects", *ORDER)
    pictures.stored = dict(kept.stored(rows_of(rejects))) | pictures.stored
    samples = _samples(dataset, profile, kind)
    take_place(output, note, overwrite=overwrite)
    folder = Folder(output)
    write_pictures(dataset, pictures, output)
    undecodable = len(pictures.bad)
    write_encoded(kept.pictures(rows_of(rejects)), pictures, output)
    tables = {"samples": write_table(folder, *samples, pictures, answers, STRIP)}
    if rejects.num_rows:
        refused = _rejects(dataset, profile, kept, rejects)
        tables["rejects"] = write_table(folder, *refused, pictures)
    limits = limits_of_settings(manifest.config)
    measured = ["reason", "detail", "value", "threshold"] if rejects.num_rows else []
    charts = charts_of(tables["samples"], limits, list(rows_of(rejects.select(measured))))
    folder.give("charts", charts)
    shown = ("title", "table", "refused")
    report = summary(dataset, profile, tables, kind.thing)
    report["charts"] = [{name: each[name] for name in shown} for each in charts]
    titles = {"samples": kind.thing, "rejects": "rejects"}
    lists = [(name, titles[name], each.items) for name, each in tables.items()]
    write_pages(folder, "index.html", report, lists)
    finish(output, note)
    return Report(
        page=f"{output.rstrip('/')}/index.html",
        samples=tables["samples"].items,
        rejects=rejects.num_rows,
        pictures=len(pictures.stored),
        undecodable=undecodable,
    )


def _samples(dataset: Dataset, profile: Profile, kind: Kind) -> tuple[TablePage, Iterator[Shown]]:
    keys = (*([kind.group] if kind.group else []), "sample_id")
    samples = with_judgements(dataset, read_table(dataset, "samples", *keys))
    known = dataset.manifest.dataset in DATASETS and bool(profile.commands)
    of_item = samples.column(keys[0]) if samples.num_rows else []  # no rows have no columns
    page = TablePage(
        name="samples",
        thing=kind.thing,
        total=pc.count_distinct(of_item, "all").as_py() if samples.num_rows else 0,
        again=f"{profile.commands[-1]} --only " if known else "",
    )
    make = kind.make(dataset)
    items = (judged(make, rows) for rows in units_of(samples, kind.group))
    return page, ticked(items, page.total, page.thing)


def _rejects(
    dataset: Dataset, profile: Profile, kept: Kept, rejects: pa.Table
) -> tuple[TablePage, Iterator[Shown]]:
    page = TablePage(name="rejects", thing="rejects", total=rejects.num_rows)
    whys = Whys(dataset, rows_of(rejects))
    items = ((of_reject(row, profile, kept, whys), [row]) for row in rows_of(rejects))
    return page, ticked(items, page.total, page.thing)


def write_pages(
    folder: Folder, first: str, report: dict[str, Any], lists: Sequence[tuple[str, str, int]]
) -> None:
    """Write the pages of a report, and what they load.

    Args:
      folder: of the report.
      first: template of the first page.
      report: what the first page says; its `title` is the report's.
      lists: name, title and number of items of each list that has a page.
    """
    nav = [("Overview", "index.html")]
    nav += [(title.capitalize(), f"{name}.html") for name, title, _ in lists]
    shared = {"name": report["title"], "report": report, "nav": nav}
    write_assets(folder)
    write_page(folder, first, "index.html", here="index.html", **shared)
    for name, title, items in lists:
        page, table = f"{name}.html", {"name": name, "title": title, "rows": items}
        write_page(folder, "rows.html", page, here=page, table=table, **shared)
