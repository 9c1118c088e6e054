"""Equivariance curves: how far scores are from changing equally with image and caption."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d  # type: ignore[import-untyped]

from eqforge.core.errors import InputError
from eqforge.evaluation.metrics.pairs import group_score
from eqforge.evaluation.metrics.ties import Scores
from eqforge.evaluation.plots.canvas import colour, drawing, words
from eqforge.evaluation.plots.pair_scores import PairScores

Numbers = NDArray[np.float64]

POINTS = 801
TAIL = 0.005
"""Largest share of a model's deviations beyond either end of the plot."""


def deviations(scores: Scores) -> Numbers:
    """Returns both deviations of each pair, with both signs, in the unit of the scores [4 n].

    With s(image, caption) they are (s00 - s01) - (s11 - s10) and (s00 - s10) - (s11 - s01), whose
    squares sum to the equivariance score. Which image of a pair is called 0 decides their signs,
    so each is given with both, and the curve is symmetric.

    Args:
      scores: sample, image, caption [n, 2, 2].
    """
    exact = scores.astype(np.float64)
    matched = exact[:, 0, 0] - exact[:, 1, 1]
    crossed = exact[:, 0, 1] - exact[:, 1, 0]
    both = np.concatenate([matched - crossed, matched + crossed])
    return np.concatenate([both, -both])


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Curve:
    """The density of one model's deviations.

    Attributes:
      model: name of the model.
      group: its group score, in [0, 1].
      at: deviations at which the density is given [points].
      density: the density there, integrating to 1 over all deviations [points].
    """

    model: str
    group: float
    at: Numbers
    density: Numbers


def equivariance_curves(models: Sequence[PairScores]) -> list[Curve]:
    """Returns the curves of some models over a common range.

    Args:
      models: their scores must be of one quantity for deviations to be comparable.

    Raises:
      InputError: the quantities differ.
    """
    quantities = {model.quantity for model in models}
    if len(quantities) > 1:
        named = ", ".join(f"{model.model}: {model.quantity or 'not known'}" for model in models)
        advice = (
            "; say with --quantity what the scores in a file are, or" if None in quantities else ":"
        )
        raise InputError(
            f"the models' scores are different quantities ({named}), whose deviations cannot be "
            f"compared{advice} draw a plot for each quantity"
        )
    values = [deviations(model.scores) for model in models]
    reach = max(float(np.quantile(one, 1 - TAIL)) for one in values)
    at = np.linspace(-1, 1, POINTS) * (reach if reach > 0 else 1.0)
    return [
        Curve(
            model=model.model,
            group=float(group_score(model.scores).mean()),
            at=at,
            density=density(one, at),
        )
        for model, one in zip(models, values, strict=True)
    ]


def density(values: Numbers, at: Numbers) -> Numbers:
    """Returns a Gaussian kernel density estimate with Silverman's bandwidth [points].

    Values are first binned into the cells around the points, so a million take no longer than a
    thousand; the kernel is never narrower than a cell.

    Args:
      values: the values [n].
      at: equally spaced points [points].

    Source: Silverman 1986, "Density Estimation", section 3.4.2.
    """
    step = at[1] - at[0]
    spread = min(values.std(), np.subtract(*np.quantile(values, [0.75, 0.25])) / 1.34)
    width = max(0.9 * spread * len(values) ** -0.2, step)
    margin = int(np.ceil(5 * width / step))
    edges = at[0] + step * (np.arange(-margin, len(at) + margin + 1) - 0.5)
    shares = np.histogram(values, edges)[0] / len(values)
    smooth = gaussian_filter1d(shares / step, width / step, mode="constant", truncate=5)
    return np.asarray(smooth[margin:-margin])


def draw_equivariance(curves: Sequence[Curve], title: str, path: Path) -> None:
    """Draws curves; the narrower the curve, the more equivariant the model.

    Source: EqBen (Wang et al. 2023), figure 6.
    """
    with drawing(path) as axes:
        for place, curve in enumerate(curves):
            label = f"{words(curve.model)} (group {100 * curve.group:.2f})"
            axes.plot(curve.at, curve.density, label=label, linewidth=1.5, **colour(place))
        finish(axes, title, "deviation from equal change of the scores", "density")


def finish(axes: Any, title: str, x: str, y: str) -> None:
    """Sets title and axis labels, and puts the legend below the plot."""
    axes.set_title(words(title), fontsize=9)
    axes.set_xlabel(words(x))
    axes.set_ylabel(words(y))
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        axes.figure.legend(handles, labels, loc="outside lower center", fontsize=7)
