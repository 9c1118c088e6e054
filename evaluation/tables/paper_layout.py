"""A paper's printed tables, and your numbers in their layout, as text and as LaTeX."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean
from typing import Literal, TypeVar

import msgspec

from eqforge.core.visible import in_latex, in_lines, visible
from eqforge.evaluation.tables.render import aligned, latex_row, narrow

ROUNDING = 0.011
"""A mean of printed numbers differs from the printed mean by less, unless a number is wrong."""

DIFFERENCE, INTERVAL, SAMPLES, CHANCE = "difference", "95% interval", "samples", "chance"
T = TypeVar("T")


class Number(msgspec.Struct, frozen=True):
    """A measured number, in the form of metrics.json."""

    model: str
    subset: str
    metric: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    scored: int | None = None


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a printed table.

    Attributes:
      find: `DATASET|SUBSET|METRIC` of `eqforge metrics`, the first that exists; any dataset if
        empty. For SUBSET+SUBSET, the mean of these subsets.
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


Numbers = dict[tuple[str, str, str], Number]
"""A model's numbers by dataset, subset and metric."""


def of_columns(
    columns: Sequence[Column], numbers: Numbers, named: Collection[str] = ()
) -> list[Number | None]:
    """Return a model's number of each column; a mean that was not measured is computed.

    Args:
      named: datasets that stand only in columns that name them.
    """
    found = [
        next(filter(None, (_of_find(find, numbers, named) for find in column.find)), None)
        for column in columns
    ]
    parts = [one for one, column in zip(found, columns, strict=True) if not column.mean]
    for place, column in enumerate(columns):
        if column.mean and found[place] is None and None not in parts:
            found[place] = mean_of([one for one in parts if one is not None])
    return found


def _of_find(find: str, numbers: Numbers, named: Collection[str]) -> Number | None:
    dataset, subsets, metric = find.split("|")
    of_dataset = {
        key[1:]: one
        for key, one in reversed(numbers.items())
        if (dataset == key[0] or (not dataset and key[0] not in named)) and one.value is not None
    }
    found = [of_dataset.get((subset, metric)) for subset in subsets.split("+")]
    parts = [one for one in found if one is not None]
    return mean_of(parts, sum) if len(parts) == len(found) else None


def mean_of(parts: Sequence[Number], count: Callable[[list[int]], int] | None = None) -> Number:
    """Return the mean of numbers, without an interval; a single number is returned unchanged."""
    if len(parts) == 1:
        return parts[0]
    levels = [one.chance for one in parts if one.chance is not None]
    counts = [one.scored for one in parts if one.scored is not None]
    return msgspec.structs.replace(
        parts[0],
        value=fmean(one.value or 0.0 for one in parts),
        low=None,
        high=None,
        chance=fmean(levels) if len(levels) == len(parts) else None,
        scored=count(counts) if count and len(counts) == len(parts) else None,
    )


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

    def rows(self, numbers: Mapping[str, Sequence[Number | None]]) -> list[Row]:
        """Return the printed rows, each followed by your model of its name, then other models.

        No rows are returned if none of your models has a number in the shown columns.

        Args:
          numbers: each model's numbers of all columns of the table.
        """
        table = self.table
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
        self, model: str, numbers: Sequence[Number | None], printed: Sequence[float] | None
    ) -> Iterator[Row]:
        values = self._scaled(numbers, "value")
        yield self._row(model if printed is None else f"{model} (yours)", values)
        if printed is not None:
            gains = [value - theirs for value, theirs in zip(values, printed, strict=True)]
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

    def _scaled(self, numbers: Sequence[Number | None], name: str) -> list[float]:
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
            terms = [v for v, other in zip(values, table.columns, strict=True) if not other.mean]
            mean = sum(terms) / len(terms)
            if abs(mean - values[place]) > ROUNDING:
                yield (
                    f"{name}: the paper prints {values[place]:.{table.digits}f} as the mean, but "
                    f"the mean of its row is {mean:.{table.digits}f}."
                )


def own_notes(
    columns: Sequence[Column], places: Sequence[int], own: Mapping[str, Sequence[Number | None]]
) -> Iterator[str]:
    """Name the split of your numbers, and say why your model has no mean."""
    shown = (row[place] for row in own.values() for place in places)
    subsets = [one.subset.partition(": ") for one in shown if one is not None]
    if splits := dict.fromkeys(split for split, colon, _ in subsets if colon):
        names = ("all splits" if split == "all" else f"the split {split}" for split in splits)
        yield f"Your numbers are for {' or '.join(names)}."
    for place in (place for place in places if columns[place].mean):
        for model, row in own.items():
            lacking = [column for column, one in zip(columns, row, strict=True) if one is None]
            if row[place] is None and any(row):
                finds = [f"*{find}" * find.startswith("|") or find for find in lacking[0].find]
                yield (
                    f"{model}: {columns[place].group} needs all columns, but "
                    f"{lacking[0].group} {lacking[0].name} was not found. It is read from "
                    f"DATASET|SUBSET|METRIC: {' or '.join(finds)}."
                )


def places_of(table: Table, wanted: Sequence[str]) -> list[int]:
    """Return the places of the columns to show, by heading, or by heading and name."""
    names = [{column.group, f"{column.group} {column.name}"} for column in table.columns]
    return [place for place, known in enumerate(names) if not wanted or known & {*wanted}]


def as_text(title: str, columns: Sequence[Column], rows: Sequence[Row], notes: list[str]) -> str:
    groups = [list(group) for _, group in groupby(columns, key=lambda column: column.group)]
    head = [text for group in groups for text in (group[0].group, *[""] * (len(group) - 1))]
    grid = [["", *head], ["model", *(column.name for column in columns)]]
    grid += [[visible(row.name) if row.is_model else f"  {row.name}", *row.texts] for row in rows]
    parts = [aligned(part) for part in narrow(grid)]
    return in_lines([title, "", *(line for part in parts for line in (*part, "")), *notes])


def as_latex(title: str, columns: Sequence[Column], rows: Sequence[Row], notes: list[str]) -> str:
    best = [_best(column, place, rows) for place, column in enumerate(columns)]
    head, lines, start = [""], [], 2
    for group, members in groupby(columns, key=lambda column: column.group):
        width = len(list(members))
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
    shown = [row.texts[place] for row in rows if row.is_model and row.texts[place] != "-"]
    return (min if column.lower else max)(shown, key=float, default="")
