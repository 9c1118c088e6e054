"""The command `eqforge tables`: your numbers in the layout of a paper's tables, beside its own."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import tyro

from eqforge.core.errors import InputError
from eqforge.core.files.typed_json import decode, read_bytes
from eqforge.core.shell import Command
from eqforge.evaluation.tables.command import metrics_report
from eqforge.evaluation.tables.paper_layout import (
    Layout,
    Number,
    Numbers,
    Paper,
    Table,
    as_latex,
    as_text,
    mean_of,
    of_columns,
    own_notes,
    places_of,
    wrong_means,
)
from eqforge.evaluation.tables.render import as_json
from eqforge.evaluation.tables.report import labels_of
from eqforge.evaluation.tables.settings import MetricsSettings
from eqforge.schemas.dataset.manifest import FILE_NAME as MANIFEST

PRINTED = Path(__file__).parent / "printed"


@dataclass(frozen=True, kw_only=True, slots=True)
class TablesSettings:
    """Print your numbers in the layout of a paper's table, next to the paper's numbers."""

    paths: tyro.conf.Positional[tuple[str, ...]]
    """Folders written by `eqforge metrics --output`, or first a dataset, then its scores. If a
    table needs several datasets, label each one, as in REPLACE=out/replace SWAP=out/swap. For the
    caption-detail table, pass datasets from `eqforge build retrieval-perturbations`, such as
    MS-COCO=out/perturbed."""

    paper: Literal["eqben", "vlue", "hard-positives", "brittleness", "simat"]
    """Print the tables of this paper."""

    labels: tuple[str, ...] = ()
    """Names to show instead of the model names, in the same order. If a name matches a row of the
    paper's table, the table also shows the differences from that row."""

    columns: tuple[str, ...] = ()
    """Headings of the table columns to show, such as Eq-SD or "Eq-SD Text"."""

    digits: int | None = None
    """Number of decimal places (default: as in the paper)."""

    intervals: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Add a row of 95% confidence intervals below each of your models. Text output also shows your
    sample counts, if known."""

    show: Literal["text", "latex"] = "text"
    """Output format. LaTeX output needs the booktabs package and shows the best numbers in bold."""


class _Measured(msgspec.Struct):
    title: str
    measures: list[Number]


def read_paper(name: str) -> Paper:
    return msgspec.convert(tomllib.loads((PRINTED / f"{name}.toml").read_text("utf-8")), Paper)


def read_measured(paths: Sequence[str]) -> dict[str, Numbers]:
    """Return each model's numbers from metrics.json files, or from a dataset and its scores."""
    found: dict[str, Numbers] = {}
    for name, measured in _measured(paths):
        for one in measured.measures:
            key = name or measured.title.partition(":")[0], one.subset, one.metric
            if key in found.setdefault(one.model, {}):
                raise InputError(
                    f"{one.model}: the number for dataset {key[0]!r}, subset {key[1]!r} and metric "
                    f"{key[2]!r} appears twice; name each folder's dataset, such as SWAP=out/swap"
                )
            found[one.model][key] = one
    return found


def _measured(paths: Sequence[str]) -> Iterator[tuple[str, _Measured]]:
    parted = [path.rpartition("=") for path in paths]
    files = [
        Path(path) / "metrics.json" if Path(path).is_dir() else Path(path) for *_, path in parted
    ]
    if len(paths) > 1 and not parted[0][0] and not files[0].is_file():
        report = as_json(metrics_report(MetricsSettings(paths=tuple(map(Path, paths)))))
        yield "", decode(report.encode(), _Measured, paths[0])
        return
    for (name, _, path), file in zip(parted, files, strict=True):
        if (Path(path) / MANIFEST).is_file():
            yield name, _features(path)
            continue
        if not file.is_file():
            raise InputError(f"{path}: expected a folder written by eqforge metrics --output")
        yield name, decode(read_bytes(file), _Measured, str(file))


def _features(path: str) -> _Measured:
    from eqforge.evaluation.tables.features import FEATURES, feature_means
    from eqforge.schemas.dataset.reader import open_dataset

    dataset = open_dataset(path)
    if not {*FEATURES} <= {*dataset.columns("captions")}:
        raise InputError(
            f"{path}: only retrieval-perturbations datasets have caption features; for other "
            "datasets, pass a folder written by eqforge metrics --output"
        )
    measures = [
        Number(
            *("captions", "captions", one.name, one.mean, one.low, one.high), scored=one.captions
        )
        for one in feature_means(dataset)
        if one.captions
    ]
    return _Measured(Path(path).name, measures)


def of_datasets(measured: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Return each dataset's numbers: the means over the models that have them."""
    groups: dict[str, dict[tuple[str, str, str], list[Number]]] = {}
    for numbers in measured.values():
        for (dataset, *key), one in numbers.items():
            if one.value is not None:
                groups.setdefault(dataset, {}).setdefault(("", key[0], key[1]), []).append(one)
    return {
        dataset: {key: mean_of(cells, min) for key, cells in group.items()}
        for dataset, group in groups.items()
    }


def tables_command(settings: TablesSettings) -> None:
    if settings.digits is not None and not 0 <= settings.digits <= 6:
        raise InputError(f"--digits {settings.digits}: expected 0 to 6")
    paper = read_paper(settings.paper)
    if unknown := [c for c in settings.columns if not any(places_of(t, [c]) for t in paper.tables)]:
        raise InputError(
            f"--columns {unknown[0]}: no such heading. Known headings: {_headings(paper)}. For a "
            "single column, pass 'HEADING NAME', with a NAME from the parentheses"
        )
    measured = read_measured(settings.paths)
    named = labels_of(list(measured), settings.labels)
    ours = {named[model]: numbers for model, numbers in measured.items()}
    by: dict[str, dict[str, Numbers]] = {"model": ours, "dataset": of_datasets(ours)}
    finds = (find for table in paper.tables for column in table.columns for find in column.find)
    claimed = {find.partition("|")[0] for find in finds} - {""}
    shown = 0
    for table in paper.tables:
        places = places_of(table, settings.columns)
        columns = [table.columns[place] for place in places]
        digits = table.digits if settings.digits is None else settings.digits
        layout = Layout(
            table=table,
            places=places,
            digits=digits,
            intervals=settings.intervals,
            sizes=settings.show == "text",
        )
        own = {m: of_columns(table.columns, one, claimed) for m, one in by[table.by].items()}
        rows = layout.rows(own)
        if not rows:
            continue
        shown += 1
        notes = list(wrong_means(table)) if any(column.mean for column in columns) else []
        notes += own_notes(table.columns, places, own)
        notes += [table.note] if table.note else []
        if not by[table.by].keys() & table.rows.keys():
            name = _words(table)
            advice = f"--labels {name}" if table.by == "model" else f"{name}=FOLDER"
            notes.append(f"To see differences, give your {table.by} the name of a row: {advice}")
        write: dict[str, Any] = {"text": as_text, "latex": as_latex}
        print(write[settings.show](f"{paper.paper}, {table.name}", columns, rows, notes))
    if not shown:
        raise InputError(
            f"{', '.join(settings.paths)}: found no numbers for the columns "
            f"{', '.join(settings.columns) or 'of ' + settings.paper}. Known headings: "
            f"{_headings(paper)}. eqforge looks for numbers named DATASET|SUBSET|METRIC, such as "
            f"{paper.tables[0].columns[0].find[-1]!r}"
        )


def _headings(paper: Paper) -> str:
    names: dict[str, dict[str, None]] = {}
    for column in (column for table in paper.tables for column in table.columns):
        names.setdefault(column.group, {})[column.name] = None
    return "; ".join(f'"{group}" ({", ".join(found)})' for group, found in names.items())


def _words(table: Table) -> str:
    name = next(iter(table.rows))
    return f'"{name}"' if " " in name else name


main = Command(
    "eqforge tables",
    TablesSettings,
    tables_command,
    example="eqforge tables out/tables --paper eqben --labels FIBER",
    basics=("paper", "labels", "columns", "digits", "intervals", "show"),
)
