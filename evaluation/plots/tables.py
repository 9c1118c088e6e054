"""Plots of tables that `eqforge metrics` wrote as JSON: perturbation drops, SIMAT's strengths."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files.typed_json import decode, read_bytes
from eqforge.evaluation.plots.canvas import colour, drawing, words
from eqforge.evaluation.plots.equivariance import finish

_STRENGTH = ", lambda "
_NUMERAL = re.compile(r"-?[\d.]+(?:e[-+]?\d+)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Number:
    """One number of a table, with its model, subset, metric and 95 % interval."""

    model: str
    subset: str
    metric: str
    value: float
    low: float
    high: float


def read_numbers(paths: Sequence[Path]) -> list[Number]:
    """Reads the numbers of some tables, in order.

    Args:
      paths: files `metrics.json` of `eqforge metrics --output`.

    Raises:
      InputError: a file is not such a table.
    """
    found: list[_Row] = []
    for path in paths:
        try:
            found += decode(read_bytes(path), _Table, str(path)).measures
        except InputError as error:
            raise InputError(f"expected the metrics.json of eqforge metrics: {error}") from error
    return [
        Number(
            model=row.model,
            subset=row.subset,
            metric=row.metric,
            value=math.nan if row.value is None else row.value,
            low=math.nan if row.low is None else row.low,
            high=math.nan if row.high is None else row.high,
        )
        for row in found
    ]


class _Row(msgspec.Struct):
    model: str
    subset: str
    metric: str
    value: float | None
    low: float | None
    high: float | None


class _Table(msgspec.Struct):
    measures: list[_Row]


def chosen(numbers: Sequence[Number], metric: str) -> list[Number]:
    """Returns the numbers of one metric that have a value.

    Raises:
      InputError: there is none, or several for one model and subset.
    """
    found = [one for one in numbers if one.metric == metric and math.isfinite(one.value)]
    if not found:
        known = ", ".join(dict.fromkeys(one.metric for one in numbers))
        raise InputError(f"--metric {metric}: expected one of {known or 'some; there are none'}")
    places = Counter((one.model, one.subset) for one in found)
    (model, subset), times = places.most_common(1)[0]
    if times > 1:
        raise InputError(
            f"{model}, {subset}: stands {times} times in the tables; draw tables of one dataset "
            "and of different models together"
        )
    return found


def of_subset(numbers: Sequence[Number], subset: str) -> list[Number]:
    """Returns the numbers of one subset of SIMAT, whose rows are named `SUBSET: METHOD`.

    Raises:
      InputError: there is none.
    """
    found = [one for one in numbers if one.subset.startswith(f"{subset}: ")]
    if not found:
        parted = (one.subset.partition(": ") for one in numbers)
        known = ", ".join(dict.fromkeys(name for name, separator, _ in parted if separator))
        raise InputError(f"--subset {subset}: expected one of {known or 'some; there are none'}")
    return found


def draw_drops(numbers: Sequence[Number], title: str, path: Path) -> None:
    """Draws the relative drop under each perturbation, one bar per model, with intervals.

    Args:
      numbers: numbers of one metric; the subset is the perturbation.
      title: title of the plot.
      path: file to write.
    """
    models = list(dict.fromkeys(one.model for one in numbers))
    subsets = list(dict.fromkeys(one.subset for one in numbers))
    cells = {(one.model, one.subset): one for one in numbers}
    height = 0.8 / len(models)
    with drawing(
        path, height_in=max(3.0, 1.5 + 0.25 * len(subsets) * max(1, len(models) / 2))
    ) as axes:
        for place, model in enumerate(models):
            have = [(row, cells[model, s]) for row, s in enumerate(subsets) if (model, s) in cells]
            values = np.array([one.value for _, one in have])
            axes.barh(
                [row + (place - (len(models) - 1) / 2) * height for row, _ in have],
                100 * values,
                height=height,
                xerr=100 * _around([one for _, one in have]),
                error_kw={"elinewidth": 0.8},
                color=colour(place)["color"],
                label=words(model),
            )
        axes.set_yticks(range(len(subsets)), list(map(words, subsets)))
        axes.invert_yaxis()
        axes.axvline(0, color="black", linewidth=0.8)
        finish(axes, title, f"{numbers[0].metric}, per cent", "")


def strengths(numbers: Sequence[Number]) -> dict[tuple[str, str], list[tuple[float, Number]]]:
    """Returns for each model and method its numbers by strength, ascending.

    Raises:
      InputError: no subset names a strength.
    """
    found: dict[tuple[str, str], list[tuple[float, Number]]] = {}
    for one in numbers:
        method, separator, strength = one.subset.rpartition(_STRENGTH)
        if separator and _NUMERAL.fullmatch(strength):
            found.setdefault((one.model, method), []).append((float(strength), one))
    if not found:
        raise InputError("expected a table of SIMAT, whose rows name a lambda; found none")
    return {key: sorted(rows, key=lambda row: row[0]) for key, rows in found.items()}


def draw_strengths(numbers: Sequence[Number], title: str, path: Path) -> None:
    """Draws SIMAT's score over the strength lambda, one line per model and method.

    Args:
      numbers: numbers of one metric; the subset names method and strength.
      title: title of the plot.
      path: file to write.

    Source: SIMAT (Couairon et al. 2022), section 5.
    """
    with drawing(path) as axes:
        for place, ((model, method), rows) in enumerate(strengths(numbers).items()):
            values = [one for _, one in rows]
            axes.errorbar(
                [strength for strength, _ in rows],
                [100 * one.value for one in values],
                yerr=100 * _around(values),
                label=f"{words(model)}, {words(method)}",
                marker="o",
                markersize=3,
                capsize=2,
                linewidth=1.2,
                **colour(place),
            )
        axes.set_ylim(bottom=0)
        finish(axes, title, "strength lambda", f"SIMAT score, {numbers[0].metric}, per cent")


def _around(numbers: Sequence[Number]) -> np.ndarray:
    """Returns the lower and upper error-bar lengths [2, n]; 0 where there is no interval."""
    reach = [[one.value - one.low, one.high - one.value] for one in numbers]
    return np.clip(np.nan_to_num(np.array(reach).reshape(-1, 2).T), 0, None)
