"""Writes the report of a dataset."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eqforge.core.console import ticked
from eqforge.core.errors import InputError
from eqforge.core.identity import sha256_hex, version
from eqforge.evaluation.report.folder import Note, check_place, finish, prepare_folder, write_pages
from eqforge.evaluation.report.items import Item
from eqforge.evaluation.report.kinds import (
    ORDER,
    Kept,
    Kind,
    Row,
    Whys,
    kind_of,
    of_reject,
    read_table,
    rows_of,
    units_of,
)
from eqforge.evaluation.report.overview import (
    Borderline,
    borderline,
    charts_of,
    limits_of_settings,
    summary,
)
from eqforge.evaluation.report.pictures import read_pictures, write_encoded, write_pictures
from eqforge.evaluation.report.tables import SHARE, Answers, Shown, TablePage, write_table
from eqforge.evaluation.tables.logs import form_of_file
from eqforge.evaluation.tables.report import model_names
from eqforge.evaluation.tables.samples import read_columns, text_array
from eqforge.evaluation.tables.scores import places_of
from eqforge.evaluation.tasks.harnesses import shares_right
from eqforge.evaluation.tasks.questions import is_questions, right_in_groups
from eqforge.evaluation.tasks.samples import Task, task_of
from eqforge.schemas.dataset.profile import Profile
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.judgements import JudgeAnswer, disputed_by_judges, disputed_by_rules
from eqforge.schemas.tables.datasets import DATASETS

STRIP: Final = 12
_JUDGEMENTS: Final = "judgements"
_JUDGEMENT: Final = "judgement"


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """A report: its first page, and counts of its items and images."""

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
    """Write or resume the report of a dataset; without `whole_pictures`, write only thumbnails."""
    manifest = dataset.manifest
    if manifest.num_rows("samples") + manifest.num_rows("rejects") == 0:
        raise InputError(f"{dataset.folder} has neither samples nor rejects to show")
    answers = read_answers(dataset, scores, quantity)
    files = [path / "scores.json" if path.is_dir() else path for path in scores]
    made_of = {
        "eqforge": version("eqforge"),
        "scores": [sha256_hex(path.read_bytes()) for path in files if path.is_file()],
        "whole_pictures": whole_pictures,
    }
    note = Note(dataset=manifest.dataset, sha256=[dataset.sha256], made_of=made_of)
    replaced = check_place(output, note, overwrite=overwrite)
    kind = kind_of(dataset)
    pictures = read_pictures(dataset, whole=whole_pictures)
    rejects = read_table(dataset, "rejects", *ORDER)
    pictures.stored = dict(kept.stored(rows_of(rejects))) | pictures.stored
    keys = (*([kind.group] if kind.group else []), "sample_id")
    table = with_judgements(dataset, read_table(dataset, "samples", *keys))
    samples = _samples(table, dataset, profile, kind)
    folder = prepare_folder(output, note, replaced)
    write_pictures(dataset, pictures, folder)
    undecodable = len(pictures.bad)
    write_encoded(kept.pictures(rows_of(rejects)), pictures, folder)
    near = borderline(table, rejects) if kind.group is None else Borderline()
    tables = {"samples": write_table(folder, *samples, pictures, answers, STRIP, near.kept)}
    if rejects.num_rows:
        page = TablePage(name="rejects", thing="rejects", total=rejects.num_rows)
        whys = Whys(dataset, rows_of(rejects))
        refused = ((of_reject(row, profile, kept, whys), [row]) for row in rows_of(rejects))
        shown_rejects = ticked(refused, page.total, page.thing)
        found = write_table(folder, page, shown_rejects, pictures, asked=near.rejected)
        tables["rejects"] = found
    limits = limits_of_settings(manifest.config)
    measured = ["reason", "detail", "value", "threshold"] if rejects.num_rows else []
    charts = charts_of(tables["samples"], limits, list(rows_of(rejects.select(measured))))
    folder.write_data("charts", charts)
    shown = ("title", "label", "meaning", "refused")
    report = summary(dataset, profile, tables, kind.thing)
    report["borderline"] = near.data(tables) if near.score else None
    report["charts"] = [{name: each[name] for name in shown} for each in charts]
    titles = {"samples": kind.thing, "rejects": "rejects"}
    lists = [(name, titles[name], each.items) for name, each in tables.items()]
    write_pages(folder, "index.html", report, lists)
    finish(folder, note)
    return Report(
        page=f"{output.rstrip('/')}/index.html",
        samples=tables["samples"].items,
        rejects=rejects.num_rows,
        pictures=len(pictures.stored),
        undecodable=undecodable,
    )


def _samples(
    samples: pa.Table, dataset: Dataset, profile: Profile, kind: Kind
) -> tuple[TablePage, Iterator[Shown]]:
    known = dataset.manifest.dataset in DATASETS and bool(profile.commands)
    of_item = samples.column(kind.group or "sample_id") if samples.num_rows else []  # no columns
    page = TablePage(
        name="samples",
        thing=kind.thing,
        total=pc.count_distinct(of_item, "all").as_py() if samples.num_rows else 0,
        again=f"{profile.commands[-1]} --only " if known else "",
    )
    make = kind.make(dataset)
    items = (judged(make, rows) for rows in units_of(samples, kind.group))
    return page, ticked(items, page.total, page.thing)


def read_answers(
    dataset: Dataset, paths: Sequence[Path], quantity: str | None = None
) -> list[Answers]:
    found = [_read(dataset, path, quantity) for path in paths]
    names = model_names([each.name for each in found], list(paths))
    return [replace(each, name=name) for name, each in zip(names, found, strict=True)]


def _read(dataset: Dataset, path: Path, quantity: str | None) -> Answers:
    if is_questions(dataset):
        return _of_shares(path, right_in_groups(dataset, path))
    task = task_of(dataset)
    if task is None:
        raise InputError(
            f"--scores cannot be used with {dataset.folder}; omit --scores. Only reports on pairs, "
            "foils, rewordings and grouped questions show scores."
        )
    if form_of_file(path) is not None:
        return _of_shares(path, shares_right(dataset, path))
    scores = task.read(path, dataset, quantity)
    keys = text_array(read_columns(dataset, "samples", ["sample_id"])["sample_id"])
    places_of(keys, scores, str(path), allow_missing=True)
    margins = zip(scores.keys.tolist(), _margins(scores.values, task).tolist(), strict=True)
    verdicts = {
        key: ("right" if value > 0 else "wrong" if value < 0 else "tied", value)
        for key, value in margins
        if not np.isnan(value)
    }
    return Answers(name=scores.model, verdicts=verdicts, measure="margin")


def _of_shares(path: Path, shares: Mapping[str, float]) -> Answers:
    verdicts = {name: ("right" if share == 1 else "wrong", share) for name, share in shares.items()}
    return Answers(name=path.stem, verdicts=verdicts, measure=SHARE)


def _margins(values: NDArray[np.floating[Any]], task: Task) -> NDArray[np.float64]:
    """Return each sample's smallest margin [n] from its scores [n, images x captions].

    A sample is right above 0, tied at 0 and wrong below. Pairs have the four comparisons of the
    group score (Winoground, section 3.1), and hard positives the two of the augmented accuracy.
    """
    scores = values.astype(np.float64)
    if task.width == 4:
        true, other = scores[:, [0, 0, 3, 3]], scores[:, [1, 2, 1, 2]]
        return np.asarray((true - other).min(axis=1))
    return np.asarray(scores[:, :-1].min(axis=1) - scores[:, -1])


def with_judgements(dataset: Dataset, samples: pa.Table) -> pa.Table:
    if not dataset.files(_JUDGEMENTS) or not samples.num_rows:
        return samples
    known = read_table(dataset, _JUDGEMENTS, "sample_id").combine_chunks()
    places = pc.index_in(samples["sample_id"], value_set=known["sample_id"])
    return samples.append_column(_JUDGEMENT, known.to_struct_array().take(places))


def judged(make: Callable[[list[Row]], Item], rows: list[Row]) -> tuple[Item, list[Row]]:
    """Return an item with its rows' lowest probability, and the rows to search it by."""
    found = [row.pop(_JUDGEMENT, None) for row in rows]
    known = [each for each in found if each is not None]
    item, facts = make(rows), dict[str, Any]()
    if not known:
        return item, rows
    probabilities = [each["probability"] for each in known if each["probability"] is not None]
    if probabilities:
        facts["probability"] = min(probabilities)
    answers = [msgspec.convert(one, JudgeAnswer) for each in known for one in each["answers"]]
    if answers and disputed_by_judges(answers):
        facts["judges"] = "disagree"
    elif answers:
        facts["judges"] = "against" if disputed_by_rules(answers) else "for"
    shown = msgspec.structs.replace(
        item,
        facts=(*item.facts, *((name, str(value)) for name, value in facts.items())),
        rows=(*item.rows, *((_JUDGEMENTS, each) for each in known)),
    )
    return shown, [{**rows[0], **facts}, *rows[1:]]
