"""The command `eqforge plot`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from eqforge.core.errors import InputError
from eqforge.core.shell import Command
from eqforge.evaluation.metrics.ties import TieRule
from eqforge.evaluation.statistics.bootstrap import RESAMPLES
from eqforge.evaluation.tables.render import Rules
from eqforge.evaluation.tables.report import labels_of
from eqforge.evaluation.tables.settings import reject_unread

if TYPE_CHECKING:
    from eqforge.evaluation.plots.tables import Number

Kind = Literal["equivariance", "minimality", "bars", "drops", "lambdas", "pareto"]
_ALWAYS = ("kind", "inputs", "output", "labels", "title")
READ: dict[str, tuple[str, ...]] = {
    "equivariance": ("allow_missing", "quantity", "by"),
    "minimality": ("metric", "measure", "bins", "ties", "allow_missing", "seed", "resamples"),
    "bars": ("subset",),
    "drops": ("metric",),
    "lambdas": ("metric", "subset"),
    "pareto": (),
}

_METRICS = {"minimality": "group", "drops": "drop t2i rsum", "lambdas": "n = 1"}
_TABLES = {"drops": "perturbed captions", "lambdas": "SIMAT"}


@dataclass(frozen=True, kw_only=True, slots=True)
class PlotSettings:
    """Plot scores, tables and Pareto fronts."""

    kind: tyro.conf.Positional[Kind]
    """Plot to draw. `equivariance` shows whether scores respond equally to changes in the image and
    in the caption. `minimality` groups pairs by how much their images differ, and shows the scores
    of each group. `bars` shows text, image and group scores with intervals. `drops` shows how much
    each perturbation lowers a metric. `lambdas` shows the SIMAT score for each lambda. `pareto`
    plots scores against time."""

    inputs: tyro.conf.Positional[tuple[Path, ...]]
    """Files to plot. For `equivariance` and `minimality`, pass a dataset of pairs, then model
    scores. For `bars`, `drops` and `lambdas`, pass the metrics.json file that `eqforge metrics`
    wrote. For `pareto`, pass the file that `eqforge pareto` wrote."""

    output: Path
    """File to write. Its name must end in .svg, .png or .pdf."""

    metric: str | None = None
    """Metric to plot. For `minimality`, choose text, image or group (default). For `drops` and
    `lambdas`, choose a metric from your metrics.json file. The default is "drop t2i rsum" for
    `drops`, and "n = 1" for `lambdas`."""

    quantity: Literal["probability", "logit", "cosine"] | None = None
    """Type of scores in your files. Applies only to `equivariance`."""

    by: str | None = None
    """Plot a separate panel for each value in this column of the samples table. Examples are subset
    and kind. Applies only to `equivariance`."""

    subset: str | None = None
    """Subset to plot, such as test (default: all). Applies only to `bars` and `lambdas`."""

    measure: str = "ssim"
    """Group the pairs by this numeric column. Applies only to `minimality`."""

    bins: int = 5
    """Number of bins, each with about the same number of pairs. Applies only to `minimality`."""

    labels: tuple[str, ...] = ()
    """Names to show in the plot instead of the model names, in the same order."""

    title: str | None = None
    """Title of the plot."""

    ties: TieRule = "strict"
    """Credit for a tie, as in `eqforge metrics`. Applies only to `minimality`."""

    allow_missing: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Skip samples without a score. Applies only to `equivariance` and `minimality`."""

    seed: int = 0
    """Random seed for the bootstrap. Applies only to `minimality`."""

    resamples: int = RESAMPLES
    """Number of bootstrap resamples. Applies only to `minimality`."""


def plot_command(settings: PlotSettings) -> None:
    from eqforge.evaluation.plots.tables import check_output

    check_output(settings.output)
    reject_unread(settings, (*_ALWAYS, *READ[settings.kind]), f"the {settings.kind} plot")
    if not settings.inputs:
        raise InputError("pass at least one input")
    if settings.bins < 1 or settings.resamples < 1:
        raise InputError("--bins and --resamples must be at least 1")
    if settings.seed < 0:
        raise InputError("--seed must be at least 0")
    if settings.kind in ("equivariance", "minimality"):
        _draw_pairs(settings)
    elif settings.kind == "pareto":
        _draw_front(settings)
    else:
        _draw_table(settings)
    print(settings.output)


def _draw_pairs(settings: PlotSettings) -> None:
    from eqforge.evaluation.metrics.pairs import WINOGROUND
    from eqforge.evaluation.plots import pairs
    from eqforge.schemas.dataset.reader import open_dataset

    dataset = open_dataset(str(settings.inputs[0]))
    found = pairs.read_pair_scores(
        dataset,
        settings.inputs[1:],
        settings.measure if settings.kind == "minimality" else None,
        allow_missing=settings.allow_missing,
        quantity=settings.quantity,
        by=settings.by,
    )
    names = labels_of([model.model for model in found], settings.labels)
    models = [replace(model, model=names[model.model]) for model in found]
    title = settings.title or f"{settings.kind.capitalize()} on {dataset.manifest.dataset}"
    if settings.kind == "equivariance":
        pairs.draw_equivariance(models, title, settings.output)
        return
    metric = settings.metric or _METRICS["minimality"]
    if metric not in WINOGROUND:
        raise InputError(f"--metric {metric}: expected one of {', '.join(WINOGROUND)}")
    rules = Rules(ties=settings.ties, seed=settings.seed, resamples=settings.resamples)
    binned = [(model.model, pairs.bins_of(model, metric, settings.bins, rules)) for model in models]
    pairs.draw_minimality(binned, metric, settings.measure, title, settings.output)


def _draw_front(settings: PlotSettings) -> None:
    from eqforge.evaluation.efficiency.pareto_command import read_front
    from eqforge.evaluation.plots.tables import draw_front

    if len(settings.inputs) > 1:
        raise InputError("the pareto plot reads one file, written by eqforge pareto --output")
    front = read_front(settings.inputs[0])
    names = labels_of([one.model for one in front.models], settings.labels)
    models = [replace(one, model=names[one.model]) for one in front.models]
    title = settings.title or "Score against time"
    draw_front(replace(front, models=models), title, settings.output)


def _draw_table(settings: PlotSettings) -> None:
    from eqforge.evaluation.plots import tables

    numbers = tables.read_numbers(settings.inputs)
    if settings.kind == "bars":
        rows = tables.bars_of(_labelled(numbers, settings), settings.subset)
        tables.draw_bars(rows, "per cent", settings.title or "Scores", settings.output)
        return
    metric = settings.metric or _METRICS[settings.kind]
    if settings.metric is None and metric not in {one.metric for one in numbers}:
        known = ", ".join(dict.fromkeys(one.metric for one in numbers)) or "none"
        raise InputError(
            f"the {settings.kind} plot needs the metric {metric!r}, but the tables have {known}; "
            f"run eqforge metrics --output on {_TABLES[settings.kind]}"
        )
    numbers = _labelled(tables.chosen(numbers, metric), settings)
    if settings.kind == "drops":
        title = settings.title or "Drops caused by perturbations"
        rows = tables.by_subset(numbers)
        tables.draw_bars(rows, f"{metric}, per cent", title, settings.output)
        return
    if settings.subset is not None:
        numbers = tables.of_subset(numbers, settings.subset)
    tables.draw_strengths(numbers, settings.title or "SIMAT", settings.output)


def _labelled(numbers: "Sequence[Number]", settings: PlotSettings) -> "list[Number]":
    from msgspec import structs

    names = labels_of(list(dict.fromkeys(one.model for one in numbers)), settings.labels)
    return [structs.replace(one, model=names[one.model]) for one in numbers]


main = Command(
    "eqforge plot",
    PlotSettings,
    plot_command,
    example="eqforge plot pareto front.json --output front.svg",
    basics=("metric", "measure", "bins", "by", "subset", "labels", "title"),
)
