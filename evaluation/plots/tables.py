"""Plots of tables that `eqforge metrics` wrote as JSON: perturbation drops, SIMAT's strengths."""

import contextlib
import importlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from eqforge.core.errors import InputError, MissingExtra
from eqforge.core.files import storage
from eqforge.core.files.typed_json import decode, read_bytes
from eqforge.core.visible import shortened
from eqforge.evaluation.efficiency.pareto_command import Front

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
"""A palette safe for colour-blind readers. Source: Okabe and Ito 2008."""
LINES = ("-", "--", "-.", ":")
_FORMATS: dict[str, dict[str, None]] = {
    ".svg": {"Date": None, "Creator": None},
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""Supported file extensions, with metadata to omit: dates and versions."""
_STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 9.0,
    "text.parse_math": False,  # a name with two dollar signs is not a formula
    "svg.hashsalt": "eqforge",
    "svg.fonttype": "path",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
}


def check_output(path: Path) -> None:
    if path.suffix not in _FORMATS:
        raise InputError(f"--output {path}: expected a name that ends in {', '.join(_FORMATS)}")
    try:
        importlib.import_module("matplotlib")
    except ImportError as error:
        raise MissingExtra("matplotlib", "plots") from error


@contextlib.contextmanager
def drawing(path: Path, title: str, x: str, y: str, height_in: float = 3.5) -> Iterator[Any]:
    """Yield axes to draw on; write the figure at the end of the block."""
    # pyplot would look for a display, and keep every figure.
    with importlib.import_module("matplotlib").rc_context(_STYLE):
        figures = importlib.import_module("matplotlib.figure")
        figure = figures.Figure(figsize=(5.5, height_in), layout="constrained", dpi=150)
        axes = figure.add_subplot()
        yield axes
        axes.set_title(words(title), fontsize=9)
        axes.set_xlabel(words(x))
        axes.set_ylabel(words(y))
        handles, labels = axes.get_legend_handles_labels()
        if handles:
            axes.figure.legend(handles, labels, loc="outside lower center", fontsize=7)
        with storage.open_atomic(str(path)) as stream:
            metadata = _FORMATS[path.suffix]
            figure.savefig(stream, format=path.suffix[1:], metadata=metadata)


def draw_line(axes: Any, at: Any, shares: Any, label: str, place: int) -> None:
    """Draw the n-th line, in per cent; `shares` [n, 3] are values with their intervals."""
    values, error = with_error(shares)
    axes.errorbar(
        at,
        100 * values,
        yerr=100 * error,
        label=label,
        marker="o",
        markersize=3,
        capsize=2,
        linewidth=1.2,
        **colour(place),
    )


def with_error(ends: Any) -> tuple[Any, Any]:
    """Split values with their intervals [n, 3] into values [n] and error bars [2, n], 0 if NaN."""
    value, low, high = np.array(ends, dtype=np.float64).reshape(-1, 3).T
    return value, np.clip(np.nan_to_num(np.stack([value - low, high - value])), 0, None)


def words(text: str) -> str:
    """Shorten a title or name, and make names that start with `_` visible."""
    shown = shortened(text, 120)
    return f" {shown}" if shown.startswith("_") else shown  # legends omit "_" labels


def colour(place: int) -> dict[str, str]:
    line = LINES[place // len(COLOURS) % len(LINES)]
    return {"color": COLOURS[place % len(COLOURS)], "linestyle": line}


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

    @property
    def ends(self) -> tuple[float | None, float | None, float | None]:
        return self.value, self.low, self.high


class _Table(msgspec.Struct):
    measures: list[Number]


def read_numbers(paths: Sequence[Path]) -> list[Number]:
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
            f"{model}, {subset}: appears {times} times in the tables; pass only tables of one "
            "dataset, each with different models"
        )
    return found


def of_subset(numbers: Sequence[Number], subset: str) -> list[Number]:
    found = [one for one in numbers if one.subset.startswith(f"{subset}: ")]
    if not found:
        parted = (one.subset.partition(": ") for one in numbers)
        known = ", ".join(dict.fromkeys(name for name, separator, _ in parted if separator))
        raise InputError(f"--subset {subset}: expected one of {known or 'some; there are none'}")
    return found


def draw_drops(numbers: Sequence[Number], title: str, path: Path) -> None:
    models = list(dict.fromkeys(one.model for one in numbers))
    subsets = list(dict.fromkeys(one.subset for one in numbers))
    cells = {(one.model, one.subset): one for one in numbers}
    height = 0.8 / len(models)
    tall = max(3.0, 1.5 + 0.25 * len(subsets) * max(1, len(models) / 2))
    with drawing(path, title, f"{numbers[0].metric}, per cent", "", tall) as axes:
        for place, model in enumerate(models):
            have = [(row, cells[model, s]) for row, s in enumerate(subsets) if (model, s) in cells]
            values, error = with_error([one.ends for _, one in have])
            axes.barh(
                [row + (place - (len(models) - 1) / 2) * height for row, _ in have],
                100 * values,
                height=height,
                xerr=100 * error,
                error_kw={"elinewidth": 0.8},
                color=colour(place)["color"],
                label=words(model),
            )
        axes.set_yticks(range(len(subsets)), list(map(words, subsets)))
        axes.invert_yaxis()
        axes.axvline(0, color="black", linewidth=0.8)


def strengths(numbers: Sequence[Number]) -> dict[tuple[str, str], list[tuple[float, Number]]]:
    found: dict[tuple[str, str], list[tuple[float, Number]]] = {}
    for one in numbers:
        method, separator, strength = one.subset.rpartition(_STRENGTH)
        if separator and _NUMERAL.fullmatch(strength):
            found.setdefault((one.model, method), []).append((float(strength), one))
    if not found:
        raise InputError("expected a table of SIMAT scores with a lambda in each row; found none")
    return {key: sorted(rows, key=lambda row: row[0]) for key, rows in found.items()}


def draw_strengths(numbers: Sequence[Number], title: str, path: Path) -> None:
    """Draw SIMAT's score over the strength lambda, one line per model and method.

    Source: SIMAT (Couairon et al. 2022), section 5.
    """
    y = f"SIMAT score, {numbers[0].metric}, per cent"
    with drawing(path, title, "strength lambda", y) as axes:
        for place, ((model, method), rows) in enumerate(strengths(numbers).items()):
            at, shares = zip(*((strength, one.ends) for strength, one in rows), strict=True)
            draw_line(axes, at, shares, f"{words(model)}, {words(method)}", place)
        axes.set_ylim(bottom=0)


def draw_front(front: Front, title: str, path: Path) -> None:
    """Draw models with their intervals and probabilities, and the front as a staircase.

    Source: VLUE (Zhou et al. 2022), figure 2.
    """
    on = sorted((m for m in front.models if m.on_front), key=lambda m: (m.seconds, m.score))
    with drawing(path, title, "milliseconds per image with a caption", front.what) as axes:
        axes.step(
            [1000 * model.seconds for model in on],
            [model.score for model in on],
            where="post",
            color="#999999",
            linewidth=1,
            zorder=1,
        )
        for place, model in enumerate(front.models):
            x, x_error = with_error([model.seconds, model.seconds_low, model.seconds_high])
            y, y_error = with_error([model.score, model.score_low, model.score_high])
            axes.errorbar(
                1000 * x,
                y,
                xerr=1000 * x_error,
                yerr=y_error,
                marker="o" if model.on_front else "x",
                color=COLOURS[0] if model.on_front else COLOURS[1],
                markersize=5,
                elinewidth=0.8,
                linestyle="none",
            )
            axes.annotate(
                f"{words(model.model)} ({model.probability:.2f})",
                (1000 * model.seconds, model.score),
                textcoords="offset points",
                xytext=(5, -9 if place % 2 else 4),  # labels of neighbours alternate in height
                fontsize=7,
            )
        axes.margins(x=0.25, y=0.12)
