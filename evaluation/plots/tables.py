"""Plots of tables that `eqforge metrics` wrote as JSON: perturbation drops, SIMAT's strengths."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files.typed_json import decode, read_bytes
from eqforge.evaluation.efficiency.pareto_command import Front
from eqforge.evaluation.plots.canvas import COLOURS, colour, draw_line, drawing, words

_STRENGTH = ", lambda "
_NUMERAL = re.compile(r"-?[\d.]+(?:e[-+]?\d+)?")


class Number(msgspec.Struct, frozen=True, kw_only=True):
    """One number of a table, with its model, subset, metric and 95 % interval."""

    model: str
    subset: str
    metric: str
    value: float | None
    low: float | None
    high: float | None


class _Table(msgspec.Struct):
    measures: list[Number]


def read_numbers(paths: Sequence[Path]) -> list[Number]:
    """Read the numbers of some files `metrics.json` of `eqforge metrics --output`, in order."""
    found: list[Number] = []
    for path in paths:
        try:
            found += decode(read_bytes(path), _Table, str(path)).measures
        except InputError as error:
            raise InputError(f"expected the metrics.json of eqforge metrics: {error}") from error
    return found


def chosen(numbers: Sequence[Number], metric: str) -> list[Number]:
    found = [one for one in numbers if one.metric == metric and one.value is not None]
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
    """Return the numbers of one subset of SIMAT, whose rows are named `SUBSET: METHOD`."""
    found = [one for one in numbers if one.subset.startswith(f"{subset}: ")]
    if not found:
        parted = (one.subset.partition(": ") for one in numbers)
        known = ", ".join(dict.fromkeys(name for name, separator, _ in parted if separator))
        raise InputError(f"--subset {subset}: expected one of {known or 'some; there are none'}")
    return found


def draw_drops(numbers: Sequence[Number], title: str, path: Path) -> None:
    """Draw the relative drop under each perturbation, one bar per model, with intervals."""
    models = list(dict.fromkeys(one.model for one in numbers))
    subsets = list(dict.fromkeys(one.subset for one in numbers))
    cells = {(one.model, one.subset): one for one in numbers}
    height = 0.8 / len(models)
    tall = max(3.0, 1.5 + 0.25 * len(subsets) * max(1, len(models) / 2))
    with drawing(path, title, f"{numbers[0].metric}, per cent", "", tall) as axes:
        for place, model in enumerate(models):
            have = [(row, cells[model, s]) for row, s in enumerate(subsets) if (model, s) in cells]
            values, around = _with_ends([one for _, one in have])
            axes.barh(
                [row + (place - (len(models) - 1) / 2) * height for row, _ in have],
                100 * values,
                height=height,
                xerr=100 * around,
                error_kw={"elinewidth": 0.8},
                color=colour(place)["color"],
                label=words(model),
            )
        axes.set_yticks(range(len(subsets)), list(map(words, subsets)))
        axes.invert_yaxis()
        axes.axvline(0, color="black", linewidth=0.8)


def strengths(numbers: Sequence[Number]) -> dict[tuple[str, str], list[tuple[float, Number]]]:
    """Return for each model and method its numbers by strength, ascending."""
    found: dict[tuple[str, str], list[tuple[float, Number]]] = {}
    for one in numbers:
        method, separator, strength = one.subset.rpartition(_STRENGTH)
        if separator and _NUMERAL.fullmatch(strength):
            found.setdefault((one.model, method), []).append((float(strength), one))
    if not found:
        raise InputError("expected a table of SIMAT, whose rows name a lambda; found none")
    return {key: sorted(rows, key=lambda row: row[0]) for key, rows in found.items()}


def draw_strengths(numbers: Sequence[Number], title: str, path: Path) -> None:
    """Draw SIMAT's score over the strength lambda, one line per model and method.

    Source: SIMAT (Couairon et al. 2022), section 5.
    """
    y = f"SIMAT score, {numbers[0].metric}, per cent"
    with drawing(path, title, "strength lambda", y) as axes:
        for place, ((model, method), rows) in enumerate(strengths(numbers).items()):
            values, around = _with_ends([one for _, one in rows])
            at = [strength for strength, _ in rows]
            draw_line(axes, at, values, around, f"{words(model)}, {words(method)}", place)
        axes.set_ylim(bottom=0)


def _with_ends(numbers: Sequence[Number]) -> tuple[np.ndarray, np.ndarray]:
    """Return values [n] and the lengths of their error bars [2, n]; 0 without an interval."""
    columns = [[one.value, one.low, one.high] for one in numbers]
    value, low, high = np.array(columns, dtype=np.float64).reshape(-1, 3).T
    return value, np.clip(np.nan_to_num(np.stack([value - low, high - value])), 0, None)


def draw_front(front: Front, title: str, path: Path) -> None:
    """Draw models with their intervals and probabilities, and the front as a staircase.

    Source: VLUE (Zhou et al. 2022), figure 2.
    """
    on = sorted((m for m in front.models if m.on_front), key=lambda m: (m.seconds, m.score))
    with drawing(path, title, "milliseconds for an image with a caption", front.what) as axes:
        axes.step(
            [1000 * model.seconds for model in on],
            [model.score for model in on],
            where="post",
            color="#999999",
            linewidth=1,
            zorder=1,
        )
        for place, model in enumerate(front.models):
            x, y = 1000 * model.seconds, model.score
            axes.errorbar(
                x,
                y,
                xerr=[
                    [max(0, x - 1000 * model.seconds_low)],
                    [max(0, 1000 * model.seconds_high - x)],
                ],
                yerr=[[max(0, y - model.score_low)], [max(0, model.score_high - y)]],
                marker="o" if model.on_front else "x",
                color=COLOURS[0] if model.on_front else COLOURS[1],
                markersize=5,
                elinewidth=0.8,
                linestyle="none",
            )
            axes.annotate(
                f"{words(model.model)} ({model.probability:.2f})",
                (x, y),
                textcoords="offset points",
                xytext=(5, -9 if place % 2 else 4),  # labels of neighbours alternate in height
                fontsize=7,
            )
        axes.margins(x=0.25, y=0.12)
