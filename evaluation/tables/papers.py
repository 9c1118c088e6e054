"""The command `eqforge tables`: your numbers in the layout of a paper's tables, beside its own."""

import math
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import tyro

from eqforge.core.errors import InputError
from eqforge.core.files.typed_json import decode, read_bytes
from eqforge.core.shell import Command
from eqforge.core.visible import in_latex, in_lines, visible
from eqforge.evaluation.tables.command import metrics_report
from eqforge.evaluation.tables.render import aligned, as_json, latex_row, narrow
from eqforge.evaluation.tables.report import labels_of
from eqforge.evaluation.tables.settings import MetricsSettings
from eqforge.schemas.dataset.manifest import FILE_NAME as MANIFEST

T = TypeVar("T")
PRINTED = Path(__file__).parent / "printed"
ROUNDING = 0.011
"""A mean of printed numbers differs from the printed mean by less, unless a number is wrong."""

DIFFERENCE, INTERVAL, SAMPLES, CHANCE = "difference", "95 % interval", "samples", "chance"


@dataclass(frozen=True, kw_only=True, slots=True)
class TablesSettings:
    """Print your numbers in the layout of a paper's tables, with its numbers and the difference."""

    paths: tyro.conf.Positional[tuple[str, ...]]
    """Folders that `eqforge metrics --output` wrote, or a dataset and its scores. If a table
    needs several datasets, name each one, for example REPLACE=out/replace SWAP=out/swap. For the
    detail of captions, folders of retrieval-perturbations, such as MS-COCO=out/perturbed."""

    paper: Literal["eqben", "vlue", "hard-positives", "brittleness", "simat"]
    """Paper whose tables to print."""

    labels: tuple[str, ...] = ()
    """Model names to show, in order. A name of a printed row adds each difference from that row."""

    columns: tuple[str, ...] = ()
    """Columns of the paper's tables to show: a heading such as Eq-SD, or "Eq-SD Text"."""

    digits: int | None = None
    """Number of decimals (default: as printed)."""

    intervals: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Add a row of 95 % confidence intervals below each of your models. Text always has a row with
    the number of your samples in each column."""

    show: Literal["text", "latex"] = "text"
    """Output format. LaTeX needs the package booktabs and has the best numbers in bold."""


class _Number(msgspec.Struct, frozen=True):
    model: str
    subset: str
    metric: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    scored: int | None = None


class _Measured(msgspec.Struct):
    title: str
    measures: list[_Number]


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a printed table.

    Attributes:
      find: `DATASET|SUBSET|METRIC` of `eqforge metrics`, the first that exists; any dataset if
        empty.
      scale: the printed number for a value of 1.
      lower: True if lower is better.
      mean: True if the column is the mean of the others.
    """

    group: str
    name: str
    find: list[str]
    scale: float = 100.0
    lower: bool = False
    mean: bool = False


class Table(msgspec.Struct, kw_only=True):
    """A printed table; rows named in `apart` are no models.

    Attributes:
      by: what the rows are. The numbers of a dataset are means over its models.
      note: what a reader must know to compare.
    """

    name: str
    digits: int
    columns: list[Column]
    rows: dict[str, list[float]]
    apart: list[str] = []
    by: Literal["model", "dataset"] = "model"
    note: str = ""


class Paper(msgspec.Struct):
    """A paper's tables, with numbers as printed; NaN where none is printed."""

    paper: str
    tables: list[Table]


class Row(msgspec.Struct):
    """A row of a table: a model's numbers, or texts that belong to the row above."""

    name: str
    values: Sequence[float]
    texts: Sequence[str]
    is_model: bool = True


_Numbers = dict[tuple[str, str, str], _Number]
"""A model's numbers by dataset, subset and metric."""


def read_paper(name: str) -> Paper:
    return msgspec.convert(tomllib.loads((PRINTED / f"{name}.toml").read_text("utf-8")), Paper)


def read_measured(paths: Sequence[str]) -> dict[str, _Numbers]:
    """Return each model's numbers from metrics.json files, or from a dataset and its scores."""
    found: dict[str, _Numbers] = {}
    for name, measured in _measured(paths):
        for one in measured.measures:
            key = name or measured.title.partition(":")[0], one.subset, one.metric
            if key in found.setdefault(one.model, {}):
                raise InputError(
                    f"{one.model}: {', '.join(key)} appears twice; name the dataset of each "
                    "folder, such as SWAP=out/swap"
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
            raise InputError(f"{path}: expected a folder that eqforge metrics --output wrote")
        yield name, decode(read_bytes(file), _Measured, str(file))


def _features(path: str) -> _Measured:
    from eqforge.evaluation.tables.features import FEATURES, feature_means
    from eqforge.schemas.dataset.reader import open_dataset

    dataset = open_dataset(path)
    if not {*FEATURES} <= {*dataset.columns("captions")}:
        raise InputError(f"{path}: a dataset without the detail of captions; add your scores")
    measures = [
        _Number("captions", "captions", one.name, one.mean, one.low, one.high)
        for one in feature_means(dataset)
        if one.captions
    ]
    return _Measured(Path(path).name, measures)


def of_datasets(measured: Mapping[str, _Numbers]) -> dict[str, _Numbers]:
    """Return each dataset's numbers: the means over the models that have them."""
    groups: dict[str, dict[tuple[str, str, str], list[_Number]]] = {}
    for numbers in measured.values():
        for (dataset, *key), one in numbers.items():
            if one.value is not None:
                groups.setdefault(dataset, {}).setdefault(("", key[0], key[1]), []).append(one)
    return {
        dataset: {
            key: some[0]
            if len(some) == 1
            else _Number(dataset, *key[1:], fmean(one.value or 0.0 for one in some))
            for key, some in group.items()
        }
        for dataset, group in groups.items()
    }


def of_columns(
    columns: Sequence[Column], numbers: _Numbers, named: Collection[str] = ()
) -> list[_Number | None]:
    """Return a model's number of each column; a mean that was not measured is computed.

    Args:
      named: datasets that stand only in columns that name them.
    """
    found: list[_Number | None] = []
    for column in columns:
        sought = [find.split("|") for find in column.find]
        matches = (
            one
            for dataset, subset, metric in sought
            for key, one in numbers.items()
            if (dataset == key[0] or (not dataset and key[0] not in named))
            and key[1:] == (subset, metric)
            and one.value is not None
        )
        found.append(next(matches, None))
    parts = [one for one, column in zip(found, columns, strict=True) if not column.mean]
    for place, column in enumerate(columns):
        if column.mean and found[place] is None and None not in parts:
            known = [one for one in parts if one is not None]
            value, chance = (
                sum(getattr(one, name) or 0.0 for one in known) / len(known)
                for name in ("value", "chance")
            )
            found[place] = _Number(known[0].model, "", column.name, value, chance=chance)
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """How to show a table.

    Attributes:
      places: the columns to show.
      intervals, sizes: add rows of intervals, and of numbers of samples, below each of your models.
    """

    table: Table
    places: Sequence[int]
    digits: int
    intervals: bool
    sizes: bool

    def rows(self, measured: Mapping[str, _Numbers], named: Collection[str]) -> list[Row]:
        """Return the printed rows, each followed by your model of its name, then other models.

        No rows are returned if none of your models has a number in the shown columns.

        Args:
          named: datasets that stand only in columns that name them.
        """
        table = self.table
        numbers = {m: of_columns(table.columns, one, named) for m, one in measured.items()}
        found = {m: shown for m, one in numbers.items() if any(shown := self._shown(one))}
        if not found:
            return []
        rows: list[Row] = []
        for name, values in table.rows.items():
            printed = self._shown(values)
            rows.append(self._row(name, printed, is_model=name not in table.apart))
            rows += self._own_rows(name, found[name], printed) if name in found else ()
        for model in (name for name in found if name not in table.rows):
            rows += self._own_rows(model, found[model], None)
        levels = self._scaled(next(iter(found.values())), "chance")
        if not table.apart and not all(map(math.isnan, levels)):
            rows.append(self._row(CHANCE, levels, is_model=False))
        return rows

    def _own_rows(
        self, model: str, numbers: Sequence[_Number | None], printed: Sequence[float] | None
    ) -> Iterator[Row]:
        values = self._scaled(numbers, "value")
        yield self._row(model if printed is None else f"{model} (yours)", values)
        if printed is not None:
            gains = [own - theirs for own, theirs in zip(values, printed, strict=True)]
            yield self._row(DIFFERENCE, gains, "+", is_model=False)
        if self.intervals:
            low, high = (self._texts(self._scaled(numbers, end)) for end in ("low", "high"))
            ends = ["-" if a == "-" else f"[{a}, {b}]" for a, b in zip(low, high, strict=True)]
            yield Row(INTERVAL, [], ends, is_model=False)
        counts = [one and one.scored for one in numbers]
        if self.sizes and any(counts):
            texts = ["" if count is None else f"{count:,}" for count in counts]
            yield Row(SAMPLES, [], texts, is_model=False)

    def _shown(self, values: Sequence[T]) -> list[T]:
        return [values[place] for place in self.places]

    def _scaled(self, numbers: Sequence[_Number | None], name: str) -> list[float]:
        values = [None if one is None else getattr(one, name) for one in numbers]
        scales = [column.scale for column in self._shown(self.table.columns)]
        pairs = zip(values, scales, strict=True)
        return [math.nan if value is None else value * scale for value, scale in pairs]

    def _texts(self, values: Sequence[float], sign: str = "") -> list[str]:
        return ["-" if math.isnan(v) else f"{v:{sign}.{self.digits}f}" for v in values]

    def _row(
        self, name: str, values: Sequence[float], sign: str = "", *, is_model: bool = True
    ) -> Row:
        return Row(name, values, self._texts(values, sign), is_model=is_model)


def wrong_means(table: Table) -> Iterator[str]:
    """Say which printed means are not the means of their printed row."""
    for place, column in enumerate(table.columns):
        for name, values in table.rows.items() if column.mean else ():
            others = [v for v, other in zip(values, table.columns, strict=True) if not other.mean]
            mean = sum(others) / len(others)
            if abs(mean - values[place]) > ROUNDING:
                yield (
                    f"{name}: the paper prints {values[place]:.{table.digits}f} as the mean; its "
                    f"row gives {mean:.{table.digits}f}."
                )


def places_of(table: Table, wanted: Sequence[str]) -> list[int]:
    """Return the places of the columns to show, by heading, or by heading and name."""
    names = [{column.group, f"{column.group} {column.name}"} for column in table.columns]
    return [place for place, known in enumerate(names) if not wanted or known & {*wanted}]


def as_text(title: str, columns: Sequence[Column], rows: Sequence[Row], notes: list[str]) -> str:
    groups = [list(some) for _, some in groupby(columns, key=lambda column: column.group)]
    head = [text for some in groups for text in (some[0].group, *[""] * (len(some) - 1))]
    grid = [["", *head], ["model", *(column.name for column in columns)]]
    grid += [[visible(row.name) if row.is_model else f"  {row.name}", *row.texts] for row in rows]
    parts = [aligned(part) for part in narrow(grid)]
    return in_lines([title, "", *(line for part in parts for line in (*part, "")), *notes])


def as_latex(title: str, columns: Sequence[Column], rows: Sequence[Row], notes: list[str]) -> str:
    best = [_best(column, place, rows) for place, column in enumerate(columns)]
    head, lines, start = [""], [], 2
    for group, some in groupby(columns, key=lambda column: column.group):
        width = len(list(some))
        head.append(rf"\multicolumn{{{width}}}{{c}}{{{in_latex(group)}}}")
        lines.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
        start += width
    body: list[str] = []
    for row in rows:
        texts = [in_latex(text) for text in row.texts]
        if row.is_model:
            texts = [
                rf"\textbf{{{text}}}" if shown == top else text
                for text, shown, top in zip(texts, row.texts, best, strict=True)
            ]
        body += [r"\midrule"] if row.name == CHANCE else []
        body.append(latex_row([in_latex(row.name), *texts]))
    return "\n".join(
        [
            *(f"% {visible(line)}" for line in (title, *notes)),
            rf"\begin{{tabular}}{{l{'r' * len(columns)}}}",
            r"\toprule",
            latex_row(head),
            " ".join(lines),
            latex_row(["", *(in_latex(column.name) for column in columns)]),
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def _best(column: Column, place: int, rows: Sequence[Row]) -> str:
    """Return the best number of a column as it is shown."""
    shown = [row.texts[place] for row in rows if row.is_model and row.texts[place] != "-"]
    return (min if column.lower else max)(shown, key=float, default="")


def tables_command(settings: TablesSettings) -> int:
    if settings.digits is not None and not 0 <= settings.digits <= 6:
        raise InputError(f"--digits {settings.digits}: expected 0 to 6")
    paper, measured = read_paper(settings.paper), read_measured(settings.paths)
    named = labels_of(list(measured), settings.labels)
    ours = {named[model]: numbers for model, numbers in measured.items()}
    by: dict[str, dict[str, _Numbers]] = {"model": ours, "dataset": of_datasets(ours)}
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
        rows = layout.rows(by[table.by], claimed)
        if not rows:
            continue
        shown += 1
        notes = list(wrong_means(table)) if any(column.mean for column in columns) else []
        notes += [table.note] if table.note else []
        if not by[table.by].keys() & table.rows.keys():
            name = _words(table)
            advice = f"--labels {name}" if table.by == "model" else f"{name}=FOLDER"
            notes.append(f"For differences, name your {table.by} as a row: {advice}")
        write: dict[str, Any] = {"text": as_text, "latex": as_latex}
        print(write[settings.show](f"{paper.paper}, {table.name}", columns, rows, notes))
    if not shown:
        known = [column for table in paper.tables for column in table.columns]
        raise InputError(
            f"{', '.join(settings.paths)}: no number of the columns "
            f"{', '.join(settings.columns) or 'of ' + settings.paper}; there are "
            f"{', '.join(dict.fromkeys(column.group for column in known))}, from "
            f"DATASET|SUBSET|METRIC such as {known[0].find[-1]}"
        )
    return 0


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

if __name__ == "__main__":
    sys.exit(main())
