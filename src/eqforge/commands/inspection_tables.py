"""The tables that `eqforge inspect` prints of a finished dataset."""

import dataclasses

from rich.table import Table

from eqforge.core.visible import visible
from eqforge.schemas.dataset.reader import Dataset


def tables(dataset: Dataset) -> Table:
    """Returns the tables with their rows, files and bytes."""
    shown = _table("table", "rows", "files", "size")
    for name, files in dataset.manifest.tables.items():
        size = _size(sum(file.num_bytes for file in files))
        rows = f"{dataset.manifest.num_rows(name):,}"
        if name == "samples" and dataset.manifest.unchanged:
            rows += f" ({dataset.manifest.unchanged:,} unchanged)"
        _add(shown, name, rows, str(len(files)), size)
    return shown


def _size(num_bytes: int) -> str:
    """Returns a number of bytes in the unit in which it has one to three digits."""
    if num_bytes < 1_000:
        return f"{num_bytes} B"
    units = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
    return next(f"{num_bytes / size:,.1f} {name}" for name, size in units if num_bytes >= size)


def books(dataset: Dataset) -> Table:
    """Returns the books by stage."""
    shown = _table("stage", "candidates", "kept", "rejected")
    for stage, entry in dataset.manifest.stages.items():
        _add(shown, stage, f"{entry.candidates:,}", f"{entry.kept:,}", f"{entry.rejected:,}")
    return shown


def reasons(dataset: Dataset) -> Table:
    """Returns the reasons of the rejects, with what they mean."""
    from eqforge.pipelines.base.registry import stage_of

    shown = _table("stage", "reason", "rejected", "meaning")
    for stage, entry in dataset.manifest.stages.items():
        known = stage_of(dataset.manifest, stage)
        meanings = {} if known is None else known.reasons
        for reason, count in entry.reasons.items():
            meaning = meanings.get(reason, "an exception on this record")
            _add(shown, stage, reason, f"{count:,}", meaning)
    return shown


def findings(dataset: Dataset) -> Table:
    """Returns the breaches of the annotation rules by rule; nothing was dropped for them."""
    from eqforge.transforms.vlue.lints import RULES

    shown = _table("task", "rule", "findings", "meaning")
    for task, counts in dataset.manifest.findings.items():
        for rule, count in counts.items():
            _add(shown, task, rule, f"{count:,}", RULES.get(rule, ""))
    return shown


def granularity(dataset: Dataset) -> Table:
    """Returns the mean granularity of the captions, with 95 % bootstrap intervals over images."""
    from eqforge.core.identity import picture_key
    from eqforge.generators.text.granularity import Granularity, summarise_granularity

    names = [field.name for field in dataclasses.fields(Granularity)]
    measured = (
        (picture_key(row.pop("image"), row.pop("caption_id")), Granularity(**row))
        for row in dataset.rows("captions", ["image", "caption_id", *names])
    )
    shown = _table("feature", "captions", "mean", "from", "to")
    for summary in summarise_granularity(measured, seed=0):
        bounds = (summary.mean, summary.low, summary.high)
        _add(shown, summary.feature, f"{summary.captions:,}", *map(_rounded, bounds))
    return shown


def _rounded(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def columns(dataset: Dataset) -> Table:
    """Returns the columns of every table."""
    shown = _table("table", "column", "type")
    for name in dataset.manifest.tables:
        for field in dataset.schema(name):
            _add(shown, name, field.name, _short(str(field.type)))
    return shown


def _table(*headings: str) -> Table:
    from rich.table import Table

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, justify="right" if heading in _NUMBERS else "left")
    return table


def _add(table: Table, *cells: str) -> None:
    table.add_row(*map(visible, cells))


_NUMBERS = (
    "captions",
    "mean",
    "from",
    "to",
    "rows",
    "files",
    "size",
    "candidates",
    "kept",
    "rejected",
    "findings",
)


def _short(kind: str) -> str:
    plain = kind.replace(" not null", "").replace("item: ", "")
    return plain if len(plain) <= 60 else plain[:57] + "..."
