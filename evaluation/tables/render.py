"""A table of scores, rendered as text, JSON, CSV or LaTeX."""

import csv
import dataclasses
import io
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eqforge.core.visible import in_csv, in_latex, in_lines, json_text, visible
from eqforge.evaluation.metrics.ties import TIE_RULES, TieRule, Unit
from eqforge.evaluation.statistics.bootstrap import ENOUGH_CLUSTERS, RESAMPLES, Comparison

DROP = "drop "

VERSION = 2
"""Version of how numbers and intervals are computed; 2 has exact intervals of shares."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """How scores become numbers: the credit of a tie, and the settings of the bootstrap."""

    ties: TieRule = "strict"
    seed: int = 0
    resamples: int = RESAMPLES


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """One number of a table.

    Attributes:
      unit: `share` for numbers that are printed times 100. Most are between 0 and 1; rsum is up to
        3 in one direction or 6 in both, CIDEr up to 10, and a relative drop can be negative.
      value, low, high: the number and its 95% interval; NaN where there is none.
      chance: expected value for random scores; None if undefined.
      expected, scored, missing: numbers of samples; None if unknown.
      clusters: number of independent clusters resampled for the interval; None if unknown.
      ties: share of samples in which a comparison ties; None if nothing is compared.
    """

    model: str
    subset: str
    metric: str
    unit: Unit = "share"
    value: float
    low: float = float("nan")
    high: float = float("nan")
    chance: float | None = None
    expected: int | None
    scored: int | None
    missing: int | None = 0
    clusters: int | None
    ties: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelComparison:
    """A model compared with another on one metric of one subset, in the unit of the metric."""

    model: str
    against: str
    subset: str
    metric: str
    unit: Unit = "share"
    found: Comparison


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """A table.

    Attributes:
      rules: how scores became numbers; None if nothing is judged or drawn.
      paper_columns: subset and metric of each column of the paper's own table; empty where the
        table is set with a row for each subset.
    """

    title: str
    rules: Rules | None
    measures: tuple[Measure, ...]
    comparisons: tuple[ModelComparison, ...] = ()
    notes: tuple[str, ...] = ()
    paper_columns: tuple[tuple[str, str], ...] = ()
    version: int = VERSION

    def __str__(self) -> str:
        return as_text(self)


WIDTH = 120
_COUNTS = ("subset", "n", "missing", "clusters", "ties")


def models_of(report: Report) -> Sequence[str]:
    return list(dict.fromkeys(measure.model for measure in report.measures))


def as_text(report: Report) -> str:
    """Render a block per model, a row per subset and a column per metric."""
    lines = [report.title, ""]
    for model in models_of(report):
        lines.append(model)
        grid = [[visible(cell) for cell in row] for row in _grid(report, model)]
        for part in narrow(grid):
            lines += [*aligned(part), ""]
    lines += [_in_words(found) for found in report.comparisons]
    lines += [""] if report.comparisons else []
    return in_lines([*lines, *_method(report), *report.notes])


def as_json(report: Report) -> str:
    """Render everything as one JSON object; NaN becomes null."""
    return json_text(_plain(dataclasses.asdict(report)), indent=2) + "\n"


def as_csv(report: Report) -> str:
    """Render one row per number: the fields of Measure and the tie rule."""
    names = [field.name for field in dataclasses.fields(Measure)]
    rule = "" if report.rules is None else report.rules.ties
    rows = ([*(getattr(one, name) for name in names), rule] for one in report.measures)
    return _csv([*names, "tie_rule"], rows)


def as_comparisons(report: Report) -> str:
    """Render one row per comparison of two models; differences of shares are in [-1, 1]."""
    names = ("model", "against", "subset", "metric", "unit")
    found = [field.name for field in dataclasses.fields(Comparison)]
    rows = (
        [*(getattr(one, name) for name in names), *(getattr(one.found, name) for name in found)]
        for one in report.comparisons
    )
    return _csv([*names, *found], rows)


def _csv(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow(["" if _plain(value) is None else in_csv(value) for value in row])
    return stream.getvalue()


def as_latex(report: Report) -> str:
    """Render a booktabs `tabular`, in the paper's layout if there is one."""
    rows = _paper_rows(report) if report.paper_columns else _subset_rows(report)
    head, *body = ([in_latex(cell) for cell in row] for row in rows)
    labels = 1 if report.paper_columns else 2
    compared = map(_in_words, report.comparisons)
    comments = [report.title, *_method(report), *report.notes, *compared]
    lines = [
        *(f"% {visible(line)}" for line in comments),
        rf"\begin{{tabular}}{{{'l' * labels}{'r' * (len(head) - labels)}}}",
        r"\toprule",
        latex_row(head),
        r"\midrule",
        *map(latex_row, body),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


FORMATS = {"text": as_text, "json": as_json, "csv": as_csv, "latex": as_latex}
FILES = {
    "metrics.json": as_json,
    "metrics.csv": as_csv,
    "comparisons.csv": as_comparisons,
    "metrics.tex": as_latex,
    "metrics.txt": as_text,
}


def number(measure: Measure, value: float | None) -> str:
    """Format a value, which may be infinite: two decimals for percentages, four for others."""
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value):
        return "step" if measure.metric.endswith("slope") else "not reached"
    # Adding zero turns a rounded -0.0 into 0.0.
    if measure.unit == "share":
        return f"{round(100 * value, 2) + 0.0:.2f}"
    return f"{round(value, 4) + 0.0:.4f}"


def _grid(report: Report, model: str) -> list[list[str]]:
    measures = [found for found in report.measures if found.model == model]
    metrics = list(dict.fromkeys(found.metric for found in measures))
    chance = {metric: _chance([m for m in measures if m.metric == metric]) for metric in metrics}
    rows = [[*_COUNTS, *metrics], ["(chance)", "", "", "", "", *chance.values()]]
    for subset in dict.fromkeys(found.subset for found in measures):
        cells = {found.metric: found for found in measures if found.subset == subset}
        one = next(iter(cells.values()))
        counts = map(_count, (one.expected, one.missing, one.clusters))
        values = []
        for found in (cells.get(name) for name in metrics):
            interval = "" if found is None or _interval(found) == "-" else f" {_interval(found)}"
            values.append("" if found is None else number(found, found.value) + interval)
        rows.append([subset, *counts, _ties(one), *values])
    return rows


def _chance(measures: Sequence[Measure]) -> str:
    """Return a column's chance level, as a range if subsets differ."""
    known = [found for found in measures if found.chance is not None]
    ends = sorted(known, key=lambda found: found.chance or 0.0)[:: max(1, len(known) - 1)]
    return " to ".join(dict.fromkeys(number(found, found.chance) for found in ends)) or "-"


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _ties(measure: Measure) -> str:
    return "-" if measure.ties is None else f"{measure.ties:.2%}"


def _interval(measure: Measure) -> str:
    low, high = number(measure, measure.low), number(measure, measure.high)
    return "-" if low == "-" else f"[{low}, {high}]"


def narrow(rows: list[list[str]]) -> Iterator[list[list[str]]]:
    """Yield the table in parts of at most WIDTH characters, each with the row names.

    A part holds adjacent columns that are filled in the same rows, and only those rows.
    """
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) + 2 for column in columns]
    filled = [[bool(cell) for cell in column[2:]] for column in columns]  # the head has two rows
    start = 1
    while start < len(columns):
        stop = start + 1
        while (
            stop < len(columns)
            and filled[stop] == filled[start]
            and sum(widths[start : stop + 1]) + widths[0] < WIDTH
        ):
            stop += 1
        kept = [True, any(columns[k][1] for k in range(start, stop)), *filled[start]]
        yield [[row[0], *row[start:stop]] for row, keep in zip(rows, kept, strict=True) if keep]
        start = stop


def aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [
                f"  {row[0]:<{widths[0]}}",
                *(f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)),
            ]
        ).rstrip()
        for row in rows
    ]


def _in_words(compared: ModelComparison) -> str:
    found = compared.found
    bounds = (found.difference, found.low, found.high)
    percent = compared.unit == "share"
    gain, low, high = (f"{100 * x:+.2f}" if percent else f"{x:+.4f}" for x in bounds)
    interval = f" [{low}, {high}]" if math.isfinite(found.low) else ""
    return (
        f"{compared.subset}, {compared.metric}: {compared.model} against {compared.against}: "
        f"{gain}{interval}, higher for {found.better:,} and lower for {found.worse:,} of "
        f"{found.samples:,} samples, p = {found.p_value:.4f}"
    )


def _method(report: Report) -> list[str]:
    rules = report.rules
    if rules is None:
        return ["n = scored + missing."]
    lines = [
        f"Ties, {rules.ties}: {TIE_RULES[rules.ties]}. n = scored + missing.",
        "All intervals are 95% confidence intervals. Intervals of fractions are exact",
        "(Clopper-Pearson). Their number of trials matches the variance of a bootstrap over",
        "clusters (Korn and Graubard 1998). Without variance, or with one sample per cluster, it",
        "is the number of clusters. All other intervals are bootstrap percentiles (Hesterberg",
        f"2015; seed {rules.seed}, {rules.resamples:,} resamples). Both kinds are wider if there",
        "are few clusters.",
    ]
    resampled = (
        one for one in report.measures if one.unit != "share" or one.metric.startswith(DROP)
    )
    counts = [measure.clusters or 0 for measure in resampled]
    counts += [compared.found.clusters for compared in report.comparisons]
    if any(1 < count < ENOUGH_CLUSTERS for count in counts):
        lines += [
            "Percentile intervals and intervals of differences may be too narrow if there are",
            f"fewer than {ENOUGH_CLUSTERS} clusters.",
        ]
    return lines


def _paper_rows(report: Report) -> list[list[str]]:
    """Return a column for each number of the paper: n and chance, then four rows per model."""
    cells = {(m.model, m.subset, m.metric): m for m in report.measures}
    rows = [["model", *(f"{subset} {metric}" for subset, metric in report.paper_columns)]]
    models = models_of(report)
    for model in models:
        found = [cells.get((model, *column)) for column in report.paper_columns]
        if model == models[0]:
            rows.append(["n", *_each(found, lambda m: _count(m.expected))])
            rows.append(["chance", *_each(found, lambda m: number(m, m.chance))])
        rows.append([model, *_each(found, lambda m: number(m, m.value))])
        rows.append(["95% interval", *_each(found, _interval)])
        rows.append(["missing", *_each(found, lambda m: _count(m.missing))])
        rows.append(["ties", *_each(found, _ties)])
    return rows


def _each(found: Sequence[Measure | None], write: Callable[[Measure], str]) -> list[str]:
    return ["-" if one is None else write(one) for one in found]


def _subset_rows(report: Report) -> list[list[str]]:
    metrics = list(dict.fromkeys(found.metric for found in report.measures))
    shown = (*_COUNTS, *metrics)
    rows = [["model", *shown]]
    for model in models_of(report):
        names, *grid = _grid(report, model)
        for row in grid:
            cells = dict(zip(names, row, strict=True))
            rows.append([model, *(cells.get(name, "") for name in shown)])
    return rows


def latex_row(cells: Sequence[str]) -> str:
    row = " & ".join(cells) + r" \\"
    # After the end of a row, a bracket or a star would be parsed as its argument.
    return f"{{}}{row}" if row.startswith(("[", "*")) else row


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
