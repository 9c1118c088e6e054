"""The out-of-domain gap: each model's loss, and whether models keep their ranking.

Source: VLUE (Zhou et al. 2022), section 4, table 2, and section 5.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from more_itertools import map_reduce

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.files.foreign_tables import csv_rows
from eqforge.core.files.typed_json import decode, read_bytes
from eqforge.core.visible import series
from eqforge.evaluation.metrics.pairs import COSTS
from eqforge.evaluation.metrics.ties import Unit
from eqforge.evaluation.statistics.bootstrap import Numbers
from eqforge.evaluation.statistics.shares import NO_INTERVAL, Interval
from eqforge.evaluation.tables.render import DROP, Measure, Report
from eqforge.evaluation.tables.samples import EVERYTHING, MACRO
from eqforge.evaluation.tables.settings import MetricsSettings
from eqforge.evaluation.tasks.eqben import KUBRIC, PAPER_AVERAGE

MODELS = "all models"
POOLED = "all tasks"
AVERAGES = (EVERYTHING, MACRO, "micro average", KUBRIC, PAPER_AVERAGE)
_Z = 1.959964
"""Half the width of a 95% interval, in standard errors."""


def pearson(inside: Numbers, outside: Numbers) -> float:
    """Return Pearson's correlation of scores; NaN for fewer than three models, or equal scores."""
    if len(inside) < 3 or not np.ptp(inside) or not np.ptp(outside):
        return math.nan
    return float(np.corrcoef(inside, outside)[0, 1])


def fisher_interval(correlation: float, models: int) -> Interval:
    """Return a correlation's 95% interval by Fisher's z; NaN for fewer than four models."""
    if models < 4 or not np.isfinite(correlation) or abs(correlation) >= 1:
        return NO_INTERVAL
    z, error = np.arctanh(correlation), 1 / np.sqrt(models - 3)
    return float(np.tanh(z - _Z * error)), float(np.tanh(z + _Z * error))


class Number(msgspec.Struct):
    """The fields read from a Measure; null stands for a non-finite value."""

    model: str
    metric: str
    value: float | None = None
    subset: str = EVERYTHING
    unit: Unit = "share"
    low: float | None = None
    high: float | None = None
    expected: int | None = None
    scored: int | None = None
    missing: int | None = None

    @property
    def bounds(self) -> tuple[float, float, float]:
        value, low, high = (
            math.nan if bound is None else bound for bound in (self.value, self.low, self.high)
        )
        return value, low, high

    @property
    def task(self) -> str:
        return f"{self.subset}: {self.metric}"

    @property
    def part(self) -> str:
        """Subset, without the method that SIMAT's subsets name."""
        return self.subset.partition(": ")[0]


class _Table(msgspec.Struct):
    measures: list[Number]


_Pair = tuple[Number, Number]


def gap_report(paths: Sequence[Path], settings: MetricsSettings) -> Report:
    """Return every model's in-domain and out-of-domain score and gap, and their correlation.

    Args:
      paths: metrics.json or metrics.csv of in-domain data, then of out-of-domain data. Models,
        subsets and metrics are matched by name; unmatched ones are left out.
    """
    del settings
    if len(paths) != 2:
        raise InputError(
            "--format gap needs two metrics.json or metrics.csv files: first in-domain, then "
            "out-of-domain"
        )
    first, second = map(read_numbers, paths)
    shared = [(first[key], second[key]) for key in first if key in second]
    if not shared:
        raise InputError(
            f"no row of {paths[0]} has the same model, subset and metric as a row of {paths[1]}"
        )
    return Report(
        title=f"Generalisation gap: {paths[0]} minus {paths[1]}",
        rules=None,
        measures=(*(one for pair in shared for one in _gaps(*pair)), *_correlations(shared)),
        notes=(
            "The interval of a gap treats the two tables as independent. A task's correlation has",
            "Fisher's interval. The row 'all tasks' uses all fractions for which higher is better,",
            "except averages. Its correlation has no interval, because a model's tasks are not",
            "independent.",
            f"{len(first.keys() ^ second.keys()):,} numbers appear in only one table and are "
            "left out.",
        ),
    )


def read_numbers(path: Path) -> dict[tuple[str, str, str], Number]:
    """Read metrics.json or metrics.csv by model, subset and metric, without empty numbers.

    A CSV needs only the columns `model`, `metric` and `value`.
    """
    if path.suffix == ".csv":
        measures = list(_of_csv(path))
    else:
        measures = decode(read_bytes(path), _Table, str(path)).measures
    found: dict[tuple[str, str, str], Number] = {}
    for one in measures:
        if math.isnan(one.bounds[0]):
            continue
        key = one.model, one.subset, one.metric
        if key in found:
            raise InputError(f"{path}: the row with {named(*key)} appears twice; keep one")
        found[key] = one
    return found


def named(model: str, subset: str, metric: str | None = None) -> str:
    """Return the names of a row for a message."""
    names = {"model": model, "subset": subset, "metric": metric}
    return series(f"{name} {shown(value)}" for name, value in names.items() if value is not None)


def _of_csv(path: Path) -> Iterator[Number]:
    for line, row in enumerate(csv_rows(path), start=2):
        values = {name: value for name, value in row.items() if value not in ("", None)}
        try:
            yield msgspec.convert(values, Number, strict=False)
        except msgspec.ValidationError as error:
            what = str(error).replace("Object missing required field", "missing or empty column")
            raise InputError(
                f"{path}: line {line}: {what}. Required columns: model, metric and value. "
                "Optional columns: subset, unit, low and high"
            ) from error


def _gaps(inside: Number, outside: Number) -> Iterator[Measure]:
    (value, low, high), (other, other_low, other_high) = inside.bounds, outside.bounds
    gap = value - other
    bounds = (
        gap - math.hypot(value - low, other_high - other),
        gap + math.hypot(high - value, other - other_low),
    )
    numbers = {"inside": inside.bounds, "outside": outside.bounds, "gap": (gap, *bounds)}
    for metric, (value, low, high) in numbers.items():
        yield Measure(
            model=inside.model,
            subset=inside.task,
            metric=metric,
            unit=inside.unit,
            value=value,
            low=low,
            high=high,
            expected=_sum(inside.expected, outside.expected),
            scored=_sum(inside.scored, outside.scored),
            missing=_sum(inside.missing, outside.missing),
            clusters=None,
        )


def _sum(count: int | None, other: int | None) -> int | None:
    return None if count is None or other is None else count + other


def _correlations(pairs: Sequence[_Pair]) -> Iterator[Measure]:
    tasks = map_reduce(pairs, lambda pair: pair[0].task)
    for task, found in (*tasks.items(), (POOLED, _pooled(pairs))):
        values = np.array([[a.bounds[0], b.bounds[0]] for a, b in found]).reshape(-1, 2)
        correlation = pearson(values[:, 0], values[:, 1])
        low, high = NO_INTERVAL if task == POOLED else fisher_interval(correlation, len(found))
        yield Measure(
            model=MODELS,
            subset=task,
            metric="Pearson",
            unit="number",
            value=correlation,
            low=low,
            high=high,
            expected=len(found),
            scored=len(found),
            clusters=len(found),
        )


def _pooled(pairs: Sequence[_Pair]) -> list[_Pair]:
    """Return the shares for which higher is better, without averages.

    Rows over all samples count as averages if other subsets have the same metric.
    """
    shares = [pair for pair in pairs if pair[0].unit == "share" and _is_comparable(pair[0])]
    parts = {(one.model, one.metric) for one, _ in shares if one.part not in AVERAGES}
    return [
        (one, other)
        for one, other in shares
        if one.part not in AVERAGES
        or (one.part == EVERYTHING and (one.model, one.metric) not in parts)
    ]


def _is_comparable(number: Number) -> bool:
    return not (
        number.metric in COSTS
        or number.metric in ("mean", "consistent", "1;2", "not read", "CIDEr")
        or number.metric.startswith(DROP)
        or number.metric.endswith("rsum")  # a sum of shares
    )
