"""`eqforge inspect`: show the contents of a finished dataset."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import tyro

from eqforge.core.console import DocumentOptions, print_document
from eqforge.core.errors import InputError
from eqforge.core.shell import Command
from eqforge.core.visible import in_lines, json_text, nearest, visible
from eqforge.schemas.dataset.manifest import Manifest
from eqforge.schemas.tables.benchmarks import BENCHMARKS

if TYPE_CHECKING:
    from rich.table import Table

    from eqforge.schemas.dataset.reader import Dataset

SHORT_CHARACTERS: Final = 300
_MOST_IDS: Final = 5
_WORDS: Final = frozenset(
    ("table", "column", "type", "stage", "reason", "meaning", "task", "rule", "feature")
)
"""Headings of text columns; numbers are right-aligned."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Show counts, rejection reasons, columns and a few rows of a dataset, or draw its images."""

    dataset: Annotated[str, tyro.conf.Positional]
    """Folder or URL of the dataset."""

    rows: int = 3
    """Number of samples to show or draw. They are spread over the dataset."""

    sheet: Path | None = None
    """Image file to write, with a contact sheet of samples and their texts."""

    boxes: bool = False
    """Also draw the boxes of objects, if the dataset has boxes."""

    rejects: str | None = None
    """List the candidates that were rejected for this reason, or draw them with --sheet."""

    id: str | None = None
    """Show the sample or rejected candidate with this id. A unique part of the id is enough. With
    --sheet, its images are drawn instead."""

    full: bool = False
    """Show every column of the samples, and the columns and types of every table."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Inspection:
    """The contents of a dataset.

    Attributes:
      folder: folder or URL of the dataset.
      manifest: manifest of the dataset.
      samples: complete rows of samples: the row with the requested id, or rows spread across the
        dataset.
      rejects: complete rows of rejected candidates with the requested reason or id.
    """

    folder: str
    manifest: Manifest
    samples: tuple[dict[str, Any], ...] = ()
    rejects: tuple[dict[str, Any], ...] = ()


def inspect(arguments: Arguments) -> None:
    from eqforge.commands.contact_sheet import draw_sheet
    from eqforge.schemas.dataset.reader import open_dataset

    if arguments.rows < 0:
        raise InputError(f"--rows {arguments.rows}: expected 0 or more")
    if arguments.id is not None and arguments.rejects is not None:
        raise InputError("pass --id or --rejects, not both")
    dataset = open_dataset(arguments.dataset)
    if arguments.rejects is not None:
        found = _show_rejects(dataset, arguments.rejects, arguments)
    elif arguments.id is not None:
        found = _show_one(dataset, arguments.id, arguments)
    elif arguments.sheet is not None:
        count = draw_sheet(dataset, arguments.rows, arguments.boxes, arguments.sheet)
        total = dataset.manifest.num_rows("samples")
        print(f"{arguments.sheet}: {count:,} of {total:,} samples{_more(arguments.rows, total)}")
        found = Inspection(folder=arguments.dataset, manifest=dataset.manifest)
    else:
        found = _show_all(dataset, arguments)
    print_document(found)


def _show_all(dataset: "Dataset", arguments: Arguments) -> Inspection:
    from rich.console import Console

    manifest = dataset.manifest
    console = Console(highlight=False, markup=False, emoji=False)
    # What was imported as it is has no mode.
    mode = "" if manifest.dataset in BENCHMARKS else f", {manifest.mode} mode"
    console.print(visible(manifest.dataset + mode), style="bold")
    for table in _tables(dataset, arguments.full):
        console.print(table)
        console.print()
    samples = tuple(_spread_rows(dataset, arguments.rows))
    for row in samples:
        _print_row(row if arguments.full else {k: v for k, v in row.items() if _is_short(v)})
    return Inspection(folder=dataset.folder, manifest=manifest, samples=samples)


def _tables(dataset: "Dataset", is_full: bool) -> "Iterator[Table]":
    from eqforge.pipelines import stage_of

    manifest, unchanged = dataset.manifest, dataset.manifest.unchanged
    sizes = []
    for name, files in manifest.tables.items():
        same = f" ({unchanged:,} unchanged)" if name == "samples" and unchanged else ""
        size = _size(sum(file.num_bytes for file in files))
        sizes.append((name, f"{manifest.num_rows(name):,}{same}", str(len(files)), size))
    yield _table(("table", "rows", "files", "size"), sizes)
    stages = manifest.stages.items()
    counts = ((s, f"{b.candidates:,}", f"{b.kept:,}", f"{b.rejected:,}") for s, b in stages)
    yield _table(("stage", "candidates", "kept", "rejected"), counts)
    if any(stage_counts.reasons for _, stage_counts in stages):
        reasons = []
        for stage, stage_counts in stages:
            known = stage_of(manifest, stage)
            meanings = {} if known is None else known.reasons
            for reason, count in stage_counts.reasons.items():
                meaning = meanings.get(reason, "the record caused an exception")
                reasons.append((stage, reason, f"{count:,}", meaning))
        yield _table(("stage", "reason", "rejected", "meaning"), reasons)
    if manifest.findings:
        from eqforge.transforms.imports.vlue_lints import RULES

        # Breaches of the annotation rules; nothing was dropped for them.
        findings = (
            (task, rule, f"{count:,}", RULES.get(rule, ""))
            for task, rules in manifest.findings.items()
            for rule, count in rules.items()
        )
        yield _table(("task", "rule", "findings", "meaning"), findings)
    if "nouns" in dataset.columns("captions"):
        yield _granularity(dataset)
    if is_full:
        columns = []
        for name in manifest.tables:
            for field in dataset.schema(name):
                kind = str(field.type).replace(" not null", "").replace("item: ", "")
                columns.append((name, field.name, kind if len(kind) <= 60 else kind[:57] + "..."))
        yield _table(("table", "column", "type"), columns)


def _granularity(dataset: "Dataset") -> "Table":
    """Table the mean granularity of the captions, with 95% bootstrap intervals over images."""
    from eqforge.evaluation.tables.features import feature_means

    rows = []
    for one in feature_means(dataset):
        bounds = (one.mean, one.low, one.high)
        rounded = ("" if math.isnan(value) else f"{value:.3f}" for value in bounds)
        rows.append((one.name, f"{one.captions:,}", *rounded))
    return _table(("feature", "captions", "mean", "from", "to"), rows)


def _table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> "Table":
    from rich.table import Table

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, justify="left" if heading in _WORDS else "right")
    for row in rows:
        table.add_row(*map(visible, row))
    return table


def _size(num_bytes: int) -> str:
    if num_bytes < 1_000:
        return f"{num_bytes} B"
    units = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
    return next(f"{num_bytes / size:,.1f} {name}" for name, size in units if num_bytes >= size)


def _spread_rows(dataset: "Dataset", rows: int) -> "Iterator[dict[str, Any]]":
    """Yield samples spread over a dataset, without converting the others to Python objects."""
    from eqforge.evaluation.report.kinds import spread_places

    places = spread_places(dataset.manifest.num_rows("samples"), rows)
    start = 0
    for batch in dataset.batches("samples") if places else ():
        for place in range(start, start + batch.num_rows):
            if place in places:
                yield from batch.slice(place - start, 1).to_pylist()
        start += batch.num_rows


def _show_rejects(dataset: "Dataset", reason: str, arguments: Arguments) -> Inspection:
    from eqforge.commands.contact_sheet import draw_items
    from eqforge.commands.rejects import StoredRejects, read_rejects
    from eqforge.evaluation.report.kinds import Whys

    found = read_rejects(dataset, reason)
    few = found[: arguments.rows]
    whys = Whys(dataset, few)
    if arguments.sheet is None:
        print(in_lines(map(whys.words_of, few)))
        if len(few) < len(found):
            print(f"{len(few):,} of {len(found):,} rejects; --rows {len(found)} shows all")
    else:
        stored = StoredRejects(dataset)
        count = draw_items(
            dataset,
            stored.items(few, whys),
            dict(stored.pictures(few)),
            arguments.sheet,
            arguments.boxes,
        )
        lost = f"; {len(few) - count:,} without stored images" if count < len(few) else ""
        more = _more(arguments.rows, len(found))
        print(f"{arguments.sheet}: {count:,} of {len(found):,} rejects{lost}{more}")
    return Inspection(folder=dataset.folder, manifest=dataset.manifest, rejects=tuple(few))


def _more(rows: int, total: int) -> str:
    return f"; --rows {total} draws all" if rows < total else ""


def _show_one(dataset: "Dataset", part: str, arguments: Arguments) -> Inspection:
    from eqforge.commands.contact_sheet import draw_items, draw_sheet
    from eqforge.commands.rejects import StoredRejects
    from eqforge.evaluation.report.kinds import Whys

    name = _whole_id(dataset, part)
    samples = tuple(row for row in dataset.rows("samples") if row["sample_id"] == name)
    rejects = tuple(row for row in dataset.rows("rejects") if row["candidate_id"] == name)
    whys = Whys(dataset, rejects)
    if arguments.sheet is not None and samples:
        draw_sheet(dataset, 1, arguments.boxes, arguments.sheet, name)
        print(f"{arguments.sheet}: {visible(name)}")
    elif arguments.sheet is not None:
        stored = StoredRejects(dataset)
        draw_items(
            dataset, stored.items(rejects, whys), dict(stored.pictures(rejects)), arguments.sheet
        )
        print(in_lines([f"{arguments.sheet}: {whys.words_of(rejects[0])}"]))
    else:
        for row in (*samples, *rejects):
            _print_row(row)
    return Inspection(
        folder=dataset.folder, manifest=dataset.manifest, samples=samples, rejects=rejects
    )


def _whole_id(dataset: "Dataset", part: str) -> str:
    """Return the full id of a sample or reject, given the id or a unique part."""
    columns = {"samples": "sample_id", "rejects": "candidate_id"}
    ids = {row[key]: None for table, key in columns.items() for row in dataset.rows(table, [key])}
    if part in ids:
        return part
    found = [name for name in ids if part in name]
    if not found:
        hint = nearest(part, ids) or "; to see some ids, run eqforge inspect DATASET"
        raise InputError(f"--id {part}: {dataset.folder} has no such sample or reject{hint}")
    if len(found) > 1:
        examples = ", ".join(map(visible, found[:_MOST_IDS]))
        raise InputError(
            f"--id {part} matches {len(found):,} ids; pass a longer part or a whole id, such as "
            f"{examples}{', …' if len(found) > _MOST_IDS else ''}"
        )
    return found[0]


def _print_row(row: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.highlighter import JSONHighlighter

    console = Console(highlight=False, markup=False, emoji=False)
    console.print(JSONHighlighter()(json_text(row, indent=2)), soft_wrap=True)


def _is_short(value: object) -> bool:
    if isinstance(value, list):
        texts = all(isinstance(each, str) for each in value)
        return bool(value) and texts and sum(map(len, value)) <= SHORT_CHARACTERS
    is_long = isinstance(value, str) and len(value) > SHORT_CHARACTERS
    return value is not None and not is_long and not isinstance(value, dict)


main = Command(
    "eqforge inspect",
    Arguments,
    inspect,
    example="eqforge inspect out/eq-video --sheet pairs.png",
    console=DocumentOptions,
    keeps_output=True,
)
