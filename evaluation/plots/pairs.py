"""Plots of scores of minimal pairs: equivariance curves, and scores against measured minimality."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d  # type: ignore[import-untyped]

from eqforge.core.errors import InputError
from eqforge.evaluation.metrics.pairs import WINOGROUND, group_score
from eqforge.evaluation.metrics.ties import Flags, Scores
from eqforge.evaluation.plots.tables import colour, draw_line, drawing, panels, words
from eqforge.evaluation.statistics.bootstrap import resample_means
from eqforge.evaluation.tables.render import Rules
from eqforge.evaluation.tables.report import model_names
from eqforge.evaluation.tables.samples import check_label_column, read_columns, text_array
from eqforge.evaluation.tables.scores import places_of
from eqforge.evaluation.tasks.samples import TASKS
from eqforge.schemas.dataset.reader import Dataset

PAIRS = TASKS["pairs"]
POINTS = 801
TAIL = 0.005
"""Maximum share of a model's deviations beyond either end of the plot."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PairScores:
    """One model's scores of the pairs it has scored.

    Attributes:
      scores: sample, image, caption [n, 2, 2].
      clusters: the source of each sample [n].
      measured: a column of the dataset [n], NaN for null.
      subsets: the subset of each sample [n]; empty texts if there is one.
    """

    model: str
    scores: NDArray[np.floating[Any]]
    clusters: NDArray[Any]
    measured: Numbers
    subsets: NDArray[Any]
    quantity: str | None


def read_pair_scores(
    dataset: Dataset,
    paths: Sequence[Path],
    column: str | None,
    *,
    allow_missing: bool,
    quantity: str | None = None,
    by: str | None = None,
) -> list[PairScores]:
    """Read each model's scores; `quantity` is that of files, as folders record their own."""
    names = dataset.columns("samples")
    wanted = ["sample_id", PAIRS.cluster, *filter(None, (column, by))]
    for name in (*PAIRS.images, *PAIRS.captions, *wanted):
        if name not in names:
            raise InputError(
                f"{dataset.folder}: its samples have no column {name!r}; the columns are "
                f"{', '.join(names) or 'none'}"
            )
    if not paths:
        raise InputError(
            f"{dataset.folder}: pass scores after the dataset. To compute scores, run eqforge score"
        )
    if by is not None:
        check_label_column(dataset.schema("samples"), by, dataset.folder)
    rows = read_columns(dataset, "samples", list(dict.fromkeys(wanted)))
    keys = text_array(rows["sample_id"])
    measured = np.full(len(keys), np.nan)
    try:
        for place, value in enumerate(rows[column] if column else ()):
            measured[place] = np.nan if value is None else value
    except (TypeError, ValueError) as error:
        raise InputError(f"--measure {column}: expected a column of numbers: {error}") from error
    subsets = text_array(
        ["(none)" if value is None else str(value) for value in rows[by]]
        if by
        else [""] * len(keys)
    )
    found = [PAIRS.read(path, dataset, quantity) for path in paths]
    models = model_names([scores.model for scores in found], list(paths))
    read = []
    for path, name, scores in zip(paths, models, found, strict=True):
        places = places_of(keys, scores, str(path), allow_missing=allow_missing)
        has: Flags = places >= 0
        read.append(
            PairScores(
                model=name,
                scores=scores.values[places[has]].reshape(-1, 2, 2),
                clusters=text_array(rows[PAIRS.cluster])[has],
                measured=measured[has],
                subsets=subsets[has],
                quantity=scores.quantity,
            )
        )
    return read


def deviations(scores: Scores) -> Numbers:
    """Return both deviations of each pair, with both signs, in the unit of the scores [4 n].

    With s(image, caption) they are (s00 - s01) - (s11 - s10) and (s00 - s10) - (s11 - s01), whose
    squares sum to the equivariance score. Which image of a pair is 0 is arbitrary, so both signs
    are kept, and the curve is symmetric.
    """
    exact = scores.astype(np.float64)
    matched = exact[:, 0, 0] - exact[:, 1, 1]
    crossed = exact[:, 0, 1] - exact[:, 1, 0]
    both = np.concatenate([matched - crossed, matched + crossed])
    return np.concatenate([both, -both])


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Curve:
    """The density [points] of one model's deviations, and its group score in [0, 1]."""

    model: str
    group: float
    at: Numbers
    density: Numbers


def equivariance_curves(models: Sequence[PairScores], subset: str = "") -> list[Curve]:
    quantities = {model.quantity for model in models}
    if len(quantities) > 1:
        named = ", ".join(f"{model.model}: {model.quantity or 'unknown'}" for model in models)
        advice = ", or pass the score type with --quantity" if None in quantities else ""
        raise InputError(
            f"the models have different score types ({named}); draw a separate plot for each "
            f"type{advice}"
        )
    scores = [model.scores[model.subsets == subset] for model in models]
    if not all(map(len, scores)):
        name = next(m.model for m, found in zip(models, scores, strict=True) if not len(found))
        raise InputError(f"{name} has no scored pairs in the subset {subset!r}")
    values = [deviations(each) for each in scores]
    reach = max(float(np.quantile(one, 1 - TAIL)) for one in values)
    at = np.linspace(-1, 1, POINTS) * (reach if reach > 0 else 1.0)
    return [
        Curve(
            model=model.model,
            group=float(group_score(each).mean()),
            at=at,
            density=density(one, at),
        )
        for model, each, one in zip(models, scores, values, strict=True)
    ]


def density(values: Numbers, at: Numbers) -> Numbers:
    """Estimate a density at equally spaced points by a Gaussian kernel of Silverman's bandwidth.

    Values are binned first, so that a million take no longer than a thousand; the kernel is never
    narrower than a bin.

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


def draw_equivariance(models: Sequence[PairScores], title: str, path: Path) -> None:
    """Draw a panel of curves for each subset; the narrower, the more equivariant the model.

    Source: EqBen (Wang et al. 2023), figures 6 and 13.
    """
    names = sorted({str(name) for model in models for name in model.subsets})
    height_in = 3.5 if len(names) == 1 else 2.2
    x = "deviation from equal change of the scores"
    with panels(path, title, names, x, "density", height_in) as every:
        for axes, name in zip(every, names, strict=True):
            for place, curve in enumerate(equivariance_curves(models, name)):
                label = f"{words(curve.model)} (group {100 * curve.group:.2f})"
                axes.plot(curve.at, curve.density, label=label, linewidth=1.5, **colour(place))


@dataclass(frozen=True, kw_only=True, slots=True)
class Bin:
    """Pairs of similar minimality: range and median of the measure, and score with its interval."""

    low: float
    high: float
    middle: float
    pairs: int
    score: float
    score_low: float
    score_high: float


def bins_of(model: PairScores, metric: str, count: int, rules: Rules) -> list[Bin]:
    """Return a model's score in up to `count` bins of similar size; equal measures share a bin."""
    known = np.isfinite(model.measured)
    if not known.any():
        raise InputError(f"{model.model}: the --measure column has no value for any scored pair")
    measured, clusters = model.measured[known], model.clusters[known]
    credits = WINOGROUND[metric].of(model.scores[known], rules.ties)
    found = []
    inner = np.unique(np.quantile(measured, np.arange(1, count) / count, method="higher"))
    places = np.searchsorted(inner, measured, side="right")
    for number, place in enumerate(np.unique(places)):
        members = places == place
        means = resample_means(
            credits[members],
            clusters[members],
            seed=(rules.seed, number),
            resamples=rules.resamples,
        )
        low, high = means.share_interval()
        found.append(
            Bin(
                low=float(measured[members].min()),
                high=float(measured[members].max()),
                middle=float(np.median(measured[members])),
                pairs=int(members.sum()),
                score=float(means.values[0]),
                score_low=low,
                score_high=high,
            )
        )
    return found


def draw_minimality(
    models: Sequence[tuple[str, Sequence[Bin]]],
    metric: str,
    measure: str,
    title: str,
    path: Path,
) -> None:
    with drawing(path, title, measure.replace("_", " "), f"{metric} score, per cent") as axes:
        for place, (name, bins) in enumerate(models):
            shares = [(one.score, one.score_low, one.score_high) for one in bins]
            draw_line(axes, [one.middle for one in bins], shares, words(name), place)
        axes.axhline(
            100 * (WINOGROUND[metric].chance or 0.0), color="#999999", linestyle=":", label="chance"
        )
        axes.set_ylim(bottom=0)
