"""Plots of tables that `eqforge metrics` wrote as JSON: bars, drops, SIMAT's strengths."""

import contextlib
import importlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from eqforge.core.errors import InputError, importing
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
        raise InputError(f"--output {path}: expected one of the endings {', '.join(_FORMATS)}")
    with importing("matplotlib", "plots"):
        importlib.import_module("matplotlib")


@contextlib.contextmanager
def drawing(path: Path, title: str, x: str, y: str, height_in: float = 3.5) -> Iterator[Any]:
    """Yield axes to draw on; write the figure at the end of the block."""
    with panels(path, title, [""], x, y, height_in) as (axes,):
        yield axes


@contextlib.contextmanager
def panels(
    path: Path, title: str, names: Sequence[str], x: str, y: str, height_in: float
) -> Iterator[list[Any]]:
    """Yield axes for each name, one below the other; write the figure at the end of the block."""
    # pyplot would look for a display, and keep every figure.
    with importlib.import_module("matplotlib").rc_context(_STYLE):
        figures = importlib.import_module("matplotlib.figure")
        size = (5.5, height_in * len(names))
        figure = figures.Figure(figsize=size, layout="constrained", dpi=150)
        every = [figure.add_subplot(len(names), 1, place + 1) for place in range(len(names))]
        yield every
        for axes, name in zip(every, names, strict=True):
            axes.set_title(words(": ".join(filter(None, (title, name)))), fontsize=9)
            axes.set_ylabel(words(y))
            handles, labels = axes.get_legend_handles_labels()
            if handles and len(every) > 1:
                axes.legend(handles, labels, fontsize=7)
            elif handles:
                figure.legend(handles, labels, loc="outside lower center", fontsize=7)
        every[-1].set_xlabel(words(x))
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


_NUMERAL = re.compile(r"-?[\d.]+(?:e[-+]?\d+)?")


class Number(msgspec.Struct, frozen=True, kw_only=True):
    """One number of a table, with its model, subset, metric and 95% interval."""

    model: str
    subset: str
    metric: str
    value: float | None
    low: float | None
    high: float | None
    chance: float | None = None

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
            raise InputError(
                f"{error}. Pass metrics.json files written by eqforge metrics --output"
            ) from error
    return found


def chosen(numbers: Sequence[Number], metric: str) -> list[Number]:
    found = [one for one in numbers if one.metric == metric and one.value is not None]
    if not found:
        known = ", ".join(dict.fromkeys(one.metric for one in numbers))
        raise InputError(
            f"--metric {metric}: "
            f"{f'expected one of {known}' if known else 'the tables contain no metrics'}"
        )
    places = Counter((one.model, one.subset) for one in found)
    (model, subset), times = places.most_common(1)[0]
    if times > 1:
        raise InputError(
            f"the tables contain {times} rows for the model {model} and the subset {subset}; pass "
            "tables of one dataset, each with different models"
        )
    return found


def of_subset(numbers: Sequence[Number], subset: str) -> list[Number]:
    found = [one for one in numbers if one.subset.startswith(f"{subset}: ")]
    if not found:
        parted = (one.subset.partition(": ") for one in numbers)
        known = ", ".join(dict.fromkeys(name for name, separator, _ in parted if separator))
        raise InputError(
            f"--subset {subset}: "
            f"{f'expected one of {known}' if known else 'the tables contain no subsets'}"
        )
    return found


BARS = (("text", "image", "group"), ("original", "augmented", "brittleness"))
"""Metrics that stand side by side: of pairs, and of hard positives."""


def bars_of(numbers: Sequence[Number], subset: str | None) -> dict[str, list[Number]]:
    known = {one.metric for one in numbers}
    metrics = next((names for names in BARS if known.issuperset(names)), None)
    if metrics is None:
        pairs, positives = (", ".join(names) for names in BARS)
        raise InputError(
            f"the bars plot needs the metrics of pairs ({pairs}) or hard positives ({positives}); "
            f"found {', '.join(dict.fromkeys(one.metric for one in numbers)) or 'none'}"
        )
    found = {metric: chosen(numbers, metric) for metric in metrics}
    subsets = list(dict.fromkeys(one.subset for group in found.values() for one in group))
    if subset is not None and subset not in subsets:
        raise InputError(f"--subset {subset}: expected one of {', '.join(subsets)}")
    shown = subsets if subset is None else [subset]
    parts = {metric: by_subset(found[metric]) for metric in metrics}
    return {
        metric if len(shown) == 1 else f"{part}: {metric}": parts[metric].get(part, [])
        for part in shown
        for metric in metrics
    }


def by_subset(numbers: Sequence[Number]) -> dict[str, list[Number]]:
    subsets = dict.fromkeys(one.subset for one in numbers)
    return {subset: [one for one in numbers if one.subset == subset] for subset in subsets}


def draw_bars(rows: Mapping[str, Sequence[Number]], x: str, title: str, path: Path) -> None:
    """Draw a bar of each model in each row, with intervals and chance."""
    models = list(dict.fromkeys(one.model for bars in rows.values() for one in bars))
    cells = {(one.model, row): one for row, bars in enumerate(rows.values()) for one in bars}
    height = 0.8 / len(models)
    tall = max(3.0, 1.5 + 0.25 * len(rows) * max(1, len(models) / 2))
    with drawing(path, title, x, "", tall) as axes:
        for place, model in enumerate(models):
            have = [row for row in range(len(rows)) if (model, row) in cells]
            values, error = with_error([cells[model, row].ends for row in have])
            axes.barh(
                [row + (place - (len(models) - 1) / 2) * height for row in have],
                100 * values,
                height=height,
                xerr=100 * error,
                error_kw={"elinewidth": 0.8},
                color=colour(place)["color"],
                label=words(model),
            )
        levels = {row: one.chance for (_, row), one in cells.items() if one.chance is not None}
        if levels:
            axes.vlines(
                [100 * level for level in levels.values()],
                [row - 0.45 for row in levels],
                [row + 0.45 for row in levels],
                color="black",
                linestyle=":",
                label="chance",
            )
        axes.set_yticks(range(len(rows)), list(map(words, rows)))
        axes.invert_yaxis()
        axes.axvline(0, color="black", linewidth=0.8)


def strengths(numbers: Sequence[Number]) -> dict[tuple[str, str], list[tuple[float, Number]]]:
    found: dict[tuple[str, str], list[tuple[float, Number]]] = {}
    for one in numbers:
        method, separator, strength = one.subset.rpartition(", lambda ")
        if separator and _NUMERAL.fullmatch(strength):
            found.setdefault((one.model, method), []).append((float(strength), one))
    if not found:
        raise InputError("found no scores by lambda; run eqforge metrics --output on SIMAT scores")
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
    with drawing(path, title, "milliseconds per image-caption pair", front.what) as axes:
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
