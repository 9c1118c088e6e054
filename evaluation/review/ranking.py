"""Rankings of images for a text, by people and by models.

Source: Wang et al. 2023 (EqBen), figure 1(a) and appendix A.1: five people rank 25 images for a
  text, and models are compared with them.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.files.foreign_tables import csv_rows
from eqforge.evaluation.report.items import Item
from eqforge.evaluation.review.forms import Vote
from eqforge.evaluation.statistics.bootstrap import percentile_interval
from eqforge.evaluation.statistics.shares import NO_INTERVAL, Interval
from eqforge.evaluation.tables.crossed import CrossedScores, read_crossed
from eqforge.evaluation.tables.report import model_names
from eqforge.schemas.dataset.reader import Dataset

_RESAMPLES: Final = 1_000
_COLUMNS: Final = ("query", "image_id", "score")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Ranked:
    """The images of a query [n], by sorted ids, with the ranks that people gave them [r, n]."""

    id: str
    text: str
    images: tuple[str, ...]
    reviewers: tuple[str, ...]
    ranks: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Correlation:
    """How closely a model's or reviewer's image rankings match people's, averaged over queries.

    Attributes:
      name: name of the model or reviewer.
      spearman: rank correlation with people's mean ranks, in [-1, 1], or 0 if all ranks are equal.
      spearman_interval: 95% interval, found by resampling people and queries, or NaN if there is
        only one person and one query.
      kendall: Kendall's tau-b, in [-1, 1].
    """

    name: str
    queries: int
    spearman: float
    spearman_interval: Interval
    kendall: float
    kendall_interval: Interval


def ranked_by(votes: Mapping[str, Mapping[str, Vote]], items: Mapping[str, Item]) -> list[Ranked]:
    found = []
    for name, item_votes in votes.items():
        images = sorted(pane.image_id for pane in items[name].panes if pane.image_id is not None)
        orders = {reviewer: vote.order for reviewer, vote in item_votes.items() if vote.is_given}
        for reviewer, order in orders.items():
            if sorted(order) != images:
                raise InputError(
                    f"{name}: the vote of {reviewer!r} does not rank exactly the images of the task"
                )
        if orders:
            ranks = [[1 + order.index(image) for image in images] for order in orders.values()]
            found.append(
                Ranked(
                    id=name,
                    text=items[name].texts[0].plain,
                    images=tuple(images),
                    reviewers=tuple(orders),
                    ranks=np.array(ranks, dtype=np.float64),
                )
            )
    return found


def ranking_lines(queries: Sequence[Ranked]) -> Iterator[dict[str, Any]]:
    for query in queries:
        order = sorted(zip(query.ranks.mean(axis=0).tolist(), query.images, strict=True))
        yield {
            "id": query.id,
            "text": query.text,
            "people": len(query.reviewers),
            "images": [{"image_id": image, "mean_rank": mean} for mean, image in order],
        }


def among_people(queries: Sequence[Ranked]) -> list[Correlation]:
    """Correlate each reviewer with the others, by name; skip queries with a single reviewer."""
    found = []
    for name in sorted({name for query in queries for name in query.reviewers}):
        scores, ranks = [], []
        for query in queries:
            if name in query.reviewers and len(query.reviewers) > 1:
                place = query.reviewers.index(name)
                scores.append(-query.ranks[place])
                ranks.append(np.delete(query.ranks, place, axis=0))
        if scores:
            found.append(_correlation(name, scores, ranks))
    return found


def with_models(
    queries: Sequence[Ranked], paths: Sequence[Path], dataset: Dataset
) -> list[Correlation]:
    """Correlate model rankings with human rankings.

    Each path is an `eqforge score` folder of all images with all captions, or a CSV file with the
    columns query, image_id and score.
    """
    models = [_model(path, dataset, queries) for path in paths]
    names = model_names([name for name, _ in models], paths)
    ranks = [query.ranks for query in queries]
    return [
        _correlation(name, scores, ranks) for name, (_, scores) in zip(names, models, strict=True)
    ]


def _model(
    path: Path, dataset: Dataset, queries: Sequence[Ranked]
) -> tuple[str, list[NDArray[np.float64]]]:
    """Return a model's name and its scores of each query's images; higher is better."""
    if path.is_dir():
        crossed = read_crossed(str(path), dataset)
        name, scores = crossed.model, [_crossed(crossed, query) for query in queries]
    else:
        table = _of_file(path)
        name = path.stem
        scores = [
            np.array([table.get((query.id, image), np.nan) for image in query.images])
            for query in queries
        ]
    for query, found in zip(queries, scores, strict=True):
        if lost := [i for i, value in zip(query.images, found, strict=True) if np.isnan(value)]:
            raise InputError(f"{path} has no score for image {lost[0]} and query {query.id!r}")
    return name, scores


def _crossed(crossed: CrossedScores, query: Ranked) -> NDArray[np.float64]:
    """Return the scores of a query's images; NaN for missing ones."""
    images = np.array(query.images, dtype=object)
    text = np.array([query.text], dtype=object)
    rows, place = crossed.places("images", images), crossed.places("captions", text)[0]
    if crossed.grid is not None:
        found = crossed.grid[rows, place].astype(np.float64)
    else:
        vectors = crossed.vectors
        found = vectors["images"][rows].astype(np.float64) @ vectors["captions"][place]
    return np.where((rows < 0) | (place < 0) | np.isinf(found), np.nan, found)


def _of_file(path: Path) -> dict[tuple[str, str], float]:
    if path.suffix != ".csv":
        raise InputError(
            f"{path}: expected a folder written by eqforge score, or a CSV file with the columns "
            f"{', '.join(_COLUMNS)}"
        )
    found: dict[tuple[str, str], float] = {}
    for line, row in enumerate(csv_rows(path), start=2):
        where = f"{path}: line {line}"
        if lost := [name for name in _COLUMNS if row.get(name) is None]:
            raise InputError(f"{where}: the column {lost[0]} is missing")
        key = row["query"], row["image_id"]
        if key in found:
            raise InputError(f"{where}: query {key[0]!r} has two scores for {key[1]!r}; keep one")
        with contextlib.suppress(ValueError):
            found[key] = float(row["score"])
        if not math.isfinite(found.get(key, math.nan)):
            raise InputError(f"{where}: score: expected a number, found {row['score']}")
    return found


def _correlation(
    name: str, scores: Sequence[NDArray[np.float64]], ranks: Sequence[NDArray[np.float64]]
) -> Correlation:
    """Correlate scores, higher is better, with mean ranks, lower is better."""
    of_each = [_correlated(a, b.mean(axis=0)[None])[0] for a, b in zip(scores, ranks, strict=True)]
    spearman, kendall = np.mean(of_each, axis=0)
    intervals = [NO_INTERVAL, NO_INTERVAL]
    if len(scores) > 1 or len(ranks[0]) > 1:
        intervals = [percentile_interval(draws) for draws in _resampled(scores, ranks).T]
    return Correlation(
        name=name,
        queries=len(scores),
        spearman=float(spearman),
        spearman_interval=intervals[0],
        kendall=float(kendall),
        kendall_interval=intervals[1],
    )


def _resampled(
    query_scores: Sequence[NDArray[np.float64]], ranks: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Resample queries, and people within each: mean rho and tau per resample [_RESAMPLES, 2]."""
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, len(query_scores), (_RESAMPLES, len(query_scores)))
    found = np.empty((*chosen.shape, 2))
    for place, (scores, query_ranks) in enumerate(zip(query_scores, ranks, strict=True)):
        is_here = chosen == place
        people = rng.integers(0, len(query_ranks), (int(is_here.sum()), len(query_ranks)))
        found[is_here] = _correlated(scores, query_ranks[people].mean(axis=1))
    return found.mean(axis=1)


def _correlated(scores: NDArray[np.float64], means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Spearman's rho and Kendall's tau-b of scores [n] with mean ranks [m, n], as [m, 2].

    Vectorized form of scipy's `spearmanr` and `kendalltau`; 0 if all values tie.
    Higher scores and lower ranks are better.
    """
    from scipy.stats import rankdata  # type: ignore[import-untyped]

    centre = (len(scores) + 1) / 2
    first, second = np.triu_indices(len(scores), 1)
    spearman = _cosines(rankdata(scores) - centre, rankdata(-means, axis=1) - centre)
    kendall = _cosines(
        np.sign(scores[first] - scores[second]), np.sign(means[:, second] - means[:, first])
    )
    return np.stack([spearman, kendall], axis=1)


def _cosines(one: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.sqrt((one**2).sum() * (others**2).sum(axis=1))
    return np.divide(others @ one, lengths, out=np.zeros(len(others)), where=lengths > 0)
