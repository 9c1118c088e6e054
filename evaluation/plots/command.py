"""The command `eqforge plot`."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast, get_args

import tyro

from eqforge.core.errors import InputError
from eqforge.core.shell import shell
from eqforge.evaluation.metrics.ties import TieRule
from eqforge.evaluation.plots.canvas import check_output
from eqforge.evaluation.statistics.bootstrap import RESAMPLES
from eqforge.evaluation.tables.render import Rules
from eqforge.evaluation.tables.report import labels_of
from eqforge.evaluation.tables.settings import refuse_unread

if TYPE_CHECKING:
    from eqforge.evaluation.plots.minimality import PairMetric

Kind = Literal["equivariance", "minimality", "drops", "lambdas", "pareto"]
_ALWAYS = ("kind", "inputs", "output", "labels", "title")
_BINNED = ("metric", "measure", "bins", "ties", "allow_missing", "seed", "resamples")
READ: dict[str, tuple[str, ...]] = {
    "equivariance": ("allow_missing", "quantity"),
    "minimality": _BINNED,
    "drops": ("metric",),
    "lambdas": ("metric", "subset"),
    "pareto": (),
}
"""The settings that each kind of plot depends on."""

_METRICS = {"minimality": "group", "drops": "drop t2i rsum", "lambdas": "n = 1"}
_TABLES = {"drops": "perturbed captions", "lambdas": "SIMAT"}


@dataclass(frozen=True, kw_only=True, slots=True)
class PlotSettings:
    """Draw scores, tables and fronts."""

    kind: tyro.conf.Positional[Kind]
    """equivariance: how far scores are from changing alike with image and caption. minimality:
    scores of pairs that differ more or less. drops: what perturbations take away. lambdas: SIMAT's
    score over the strength. pareto: score against time."""

    inputs: tyro.conf.Positional[tuple[Path, ...]]
    """For equivariance and minimality a dataset of pairs, and scores of it by one or more models;
    for drops and lambdas files metrics.json of eqforge metrics; for pareto a file of eqforge
    pareto."""

    output: Path
    """File to write, .svg, .png or .pdf."""

    metric: str | None = None
    """What is drawn: for minimality text, image or group (the default); for drops and lambdas a
    metric of the table, by default "drop t2i rsum" and "n = 1"."""

    quantity: Literal["probability", "logit", "cosine"] | None = None
    """For equivariance: what a score in a file of yours is."""

    subset: str | None = None
    """For lambdas: draw rows of this subset alone, such as test."""

    measure: str = "ssim"
    """For minimality: the column of the samples, such as ssim or changed_area_fraction."""

    bins: int = 5
    """For minimality: how many bins, with about as many pairs each."""

    labels: tuple[str, ...] = ()
    """Names for the models, in their order."""

    title: str | None = None
    """Title of the plot."""

    ties: TieRule = "strict"
    """For minimality: what a tie counts."""

    allow_missing: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """For equivariance and minimality: leave samples out that have no score; otherwise one missing
    score is an error."""

    seed: int = 0
    """For minimality: seed of the bootstrap."""

    resamples: int = RESAMPLES
    """For minimality: how often the bootstrap draws."""


def plot_command(settings: PlotSettings) -> int:
    """Draws one plot into its file and prints the path; returns 0.

    Raises:
      EqforgeError: the input cannot be drawn, or matplotlib is not installed.
    """
    from eqforge.evaluation.efficiency.pareto_command import read_front
    from eqforge.evaluation.plots.front import draw_front

    check_output(settings.output)
    refuse_unread(settings, (*_ALWAYS, *READ[settings.kind]), f"the plot of {settings.kind}")
    if not settings.inputs or settings.bins < 1 or settings.resamples < 1:
        raise InputError("expected inputs, and --bins and --resamples of at least 1")
    if settings.seed < 0:
        raise InputError("expected --seed of at least 0")
    if settings.kind in ("equivariance", "minimality"):
        _draw_pairs(settings)
    elif settings.kind == "pareto":
        if len(settings.inputs) > 1:
            raise InputError("pareto: expected one file of eqforge pareto --output")
        front = read_front(settings.inputs[0])
        names = labels_of([one.model for one in front.models], settings.labels)
        models = [replace(one, model=names[one.model]) for one in front.models]
        front = replace(front, models=models)
        draw_front(front, settings.title or "Score against time", settings.output)
    else:
        _draw_table(settings)
    print(settings.output)
    return 0


def _draw_pairs(settings: PlotSettings) -> None:
    from eqforge.evaluation.plots.equivariance import draw_equivariance, equivariance_curves
    from eqforge.evaluation.plots.minimality import bins_of, draw_minimality
    from eqforge.evaluation.plots.pair_scores import read_pair_scores
    from eqforge.schemas.dataset.reader import open_dataset

    dataset = open_dataset(str(settings.inputs[0]))
    column = settings.measure if settings.kind == "minimality" else None
    found = read_pair_scores(
        dataset,
        settings.inputs[1:],
        column,
        allow_missing=settings.allow_missing,
        quantity=settings.quantity,
    )
    names = labels_of([model.model for model in found], settings.labels)
    models = [replace(model, model=names[model.model]) for model in found]
    if settings.kind == "equivariance":
        title = settings.title or f"Equivariance on {dataset.manifest.dataset}"
        draw_equivariance(equivariance_curves(models), title, settings.output)
        return
    metric = _pair_metric(settings.metric or _METRICS["minimality"])
    rules = Rules(ties=settings.ties, seed=settings.seed, resamples=settings.resamples)
    binned = [(model.model, bins_of(model, metric, settings.bins, rules)) for model in models]
    title = settings.title or f"Minimality on {dataset.manifest.dataset}"
    draw_minimality(binned, metric, settings.measure, title, settings.output)


def _draw_table(settings: PlotSettings) -> None:
    from eqforge.evaluation.plots.tables import (
        chosen,
        draw_drops,
        draw_strengths,
        of_subset,
        read_numbers,
    )

    numbers = read_numbers(settings.inputs)
    metric = settings.metric or _METRICS[settings.kind]
    if settings.metric is None and metric not in {one.metric for one in numbers}:
        known = ", ".join(dict.fromkeys(one.metric for one in numbers)) or "none"
        raise InputError(
            f"{settings.kind} takes a table of {_TABLES[settings.kind]}, as eqforge metrics "
            f"--output writes it, with the metric {metric!r}; found {known}"
        )
    numbers = chosen(numbers, metric)
    names = labels_of(list(dict.fromkeys(one.model for one in numbers)), settings.labels)
    numbers = [replace(one, model=names[one.model]) for one in numbers]
    if settings.kind == "drops":
        draw_drops(numbers, settings.title or "What perturbations take away", settings.output)
        return
    if settings.subset is not None:
        numbers = of_subset(numbers, settings.subset)
    draw_strengths(numbers, settings.title or "SIMAT", settings.output)


def _pair_metric(name: str) -> "PairMetric":
    from eqforge.evaluation.plots.minimality import PairMetric

    for known in get_args(PairMetric):
        if name == known:
            return cast(PairMetric, known)
    raise InputError(f"--metric {name}: expected one of {', '.join(get_args(PairMetric))}")


main = shell("eqforge plot", PlotSettings, plot_command)
"""Draws what a command line names."""

if __name__ == "__main__":
    sys.exit(main())
