"""Draws without a display, and writes the same bytes for the same numbers."""

import contextlib
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eqforge.core.errors import InputError, MissingExtra
from eqforge.core.files import storage
from eqforge.core.visible import shortened

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
"""A palette safe for colour-blind readers. Source: Okabe and Ito 2008."""
LINES = ("-", "--", "-.", ":")
MAX_WORDS_CHARS = 120
_FORMATS: dict[str, dict[str, None]] = {
    ".svg": {"Date": None, "Creator": None},
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""Supported file extensions, with metadata to leave out: dates and versions."""
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
    _matplotlib()


def _matplotlib() -> Any:
    try:
        return importlib.import_module("matplotlib")
    except ImportError as error:
        raise MissingExtra("matplotlib", "plots") from error


@contextlib.contextmanager
def drawing(path: Path, title: str, x: str, y: str, height_in: float = 3.5) -> Iterator[Any]:
    """Yield axes to draw on, and write the figure at the end of the block."""
    matplotlib = _matplotlib()
    figures = importlib.import_module("matplotlib.figure")
    # No pyplot: it would look for a display, and keep every figure.
    with matplotlib.rc_context(_STYLE):
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


def draw_line(axes: Any, at: Any, values: Any, around: Any, label: str, place: int) -> None:
    """Draw the n-th line through values with error bars, in per cent of shares."""
    axes.errorbar(
        at,
        100 * values,
        yerr=100 * around,
        label=label,
        marker="o",
        markersize=3,
        capsize=2,
        linewidth=1.2,
        **colour(place),
    )


def words(text: str) -> str:
    """Return a title or a name with visible characters only and of bounded length."""
    shown = shortened(text, MAX_WORDS_CHARS)
    return f" {shown}" if shown.startswith("_") else shown  # legends omit "_" labels


def colour(place: int) -> dict[str, str]:
    """Return colour and line style of the n-th model; styles differ when colours run out."""
    line = LINES[place // len(COLOURS) % len(LINES)]
    return {"color": COLOURS[place % len(COLOURS)], "linestyle": line}
