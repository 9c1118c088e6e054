"""The table of the out-of-domain gap: each model's loss, and correlations between models."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.files.typed_json import decode, read_bytes
from eqforge.evaluation.metrics.generalisation import (
    fisher_interval,
    generalisation_gap,
    pearson,
)
from eqforge.evaluation.tables.eqben_averages import KUBRIC, PAPER_AVERAGE
from eqforge.evaluation.tables.report import DROP, Measure, Report, Unit
from eqforge.evaluation.tables.sample_tasks import MACRO
from eqforge.evaluation.tables.samples import EVERYTHING

MODELS = "all models"
POOLED = "all tasks"
AVERAGES = (EVERYTHING, MACRO, "micro average", KUBRIC, PAPER_AVERAGE)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Number:
    model: str
    subset: str
    metric: str
    unit: Unit
    value: float | None
    low: float | None
    high: float | None
    expected: int
    scored: int
    missing: int


class _Table(msgspec.Struct):
    measures: list[_Number]


def gap_report(inside: Path, outside: Path) -> Report:
    """Returns every model's in-domain and out-of-domain score and gap, and their correlation.

    Models, subsets and metrics are matched by name; those in only one table are left out.

    Args:
      inside: `metrics.json` of the models on in-domain data.
      outside: `metrics.json` of the same models on out-of-domain data.

    Raises:
      InputError: a file is not such a table, or they have nothing in common.
    """
    first, second = _read(inside), _read(outside)
    shared = [key for key in first if key in second]
    if not shared:
        raise InputError(f"{inside} and {outside}: no model, subset and metric stand in both")
    return Report(
        title=f"Generalisation gap: {inside} less {outside}",
        rules=None,
        measures=(
            *(one for key in shared for one in _gaps(first[key], second[key])),
            *_correlations([(first[key], second[key]) for key in shared]),
        ),
        notes=(
            "A gap's interval takes the two tables for independent; a task's correlation has",
            "Fisher's. All tasks together are shares of which more is better, averages left out;",
            "their correlation has no interval, for a model's tasks are not independent.",
            f"{len(first.keys() ^ second.keys()):,} numbers stand in one table alone: left out.",
        ),
    )


def _read(path: Path) -> dict[tuple[str, str, str], _Number]:
    table = decode(read_bytes(path), _Table, str(path))
    return {(m.model, m.subset, m.metric): m for m in table.measures if m.value is not None}


def _gaps(inside: _Number, outside: _Number) -> Iterator[Measure]:
    subset = f"{inside.subset}: {inside.metric}"
    gap = generalisation_gap(_values(inside), _values(outside))
    numbers = {"inside": _bounds(inside), "outside": _bounds(outside)}
    (value, low, high), (other, other_low, other_high) = numbers.values()
    below, above = (
        math.hypot(value - low, other_high - other),
        math.hypot(high - value, other - other_low),
    )
    numbers["gap"] = (float(gap[0]), float(gap[0] - below), float(gap[0] + above))
    for metric, (value, low, high) in numbers.items():
        yield Measure(
            model=inside.model,
            subset=subset,
            metric=metric,
            unit=inside.unit,
            value=value,
            low=low,
            high=high,
            chance=None,
            expected=inside.expected + outside.expected,
            scored=inside.scored + outside.scored,
            missing=inside.missing + outside.missing,
            clusters=0,
            ties=None,
        )


def _values(number: _Number) -> NDArray[np.float64]:
    return np.array([np.nan if number.value is None else number.value])


def _bounds(number: _Number) -> tuple[float, float, float]:
    value, low, high = (
        float("nan") if bound is None else bound
        for bound in (number.value, number.low, number.high)
    )
    return value, low, high


def _correlations(pairs: Sequence[tuple[_Number, _Number]]) -> Iterator[Measure]:
    tasks: dict[str, list[tuple[_Number, _Number]]] = {}
    for inside, outside in pairs:
        tasks.setdefault(f"{inside.subset}: {inside.metric}", []).append((inside, outside))
    for task, found in tasks.items():
        correlation = _correlation(found)
        yield _pearson(task, correlation, fisher_interval(correlation, len(found)), len(found))
    pooled = _pooled(pairs)
    yield _pearson(POOLED, _correlation(pooled), (math.nan, math.nan), len(pooled))


def _pooled(pairs: Sequence[tuple[_Number, _Number]]) -> list[tuple[_Number, _Number]]:
    """Returns the numbers that may enter one correlation.

    They are shares for which higher is better, without averages. Rows over all samples count as
    averages if other subsets have the same metric.
    """
    shares = [pair for pair in pairs if pair[0].unit == "share" and _is_comparable(pair[0])]
    parts = {(one.model, one.metric) for one, _ in shares if _part(one) not in AVERAGES}
    return [
        (one, other)
        for one, other in shares
        if _part(one) not in AVERAGES
        or (_part(one) == EVERYTHING and (one.model, one.metric) not in parts)
    ]


def _part(number: _Number) -> str:
    return number.subset.partition(": ")[0]


def _is_comparable(number: _Number) -> bool:
    """Tells whether a number is a share, higher is better, and it is not an average of others."""
    return not (
        number.metric in ("brittleness", "mean", "consistent", "1;2", "not read")
        or number.metric.startswith(DROP)
        or number.metric.endswith("rsum")  # a sum of shares
    )


def _correlation(pairs: Sequence[tuple[_Number, _Number]]) -> float:
    values = np.array([[_bounds(a)[0], _bounds(b)[0]] for a, b in pairs]).reshape(-1, 2)
    return pearson(values[:, 0], values[:, 1])


def _pearson(task: str, value: float, interval: tuple[float, float], pairs: int) -> Measure:
    low, high = interval
    return Measure(
        model=MODELS,
        subset=task,
        metric="Pearson",
        unit="number",
        value=value,
        low=low,
        high=high,
        chance=None,
        expected=pairs,
        scored=pairs,
        missing=0,
        clusters=pairs,
        ties=None,
    )
