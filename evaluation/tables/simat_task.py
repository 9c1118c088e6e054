"""SIMAT's table: the score of moved images for several strengths, and of the baselines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.evaluation.metrics.score_rows import Indices, Truths
from eqforge.evaluation.metrics.simat import (
    chance,
    judge_queries,
    moved,
    nearest,
    same_crops,
    sentence_deltas,
)
from eqforge.evaluation.tables.crossed_scores import CrossedScores, read_crossed
from eqforge.evaluation.tables.report import Judged, Measure, Report, measure
from eqforge.evaluation.tables.retrieval_contest import RetrievalRules
from eqforge.evaluation.tables.sample_tasks import model_names
from eqforge.evaluation.tables.settings import LAMBDAS
from eqforge.evaluation.tables.several import compare_judged
from eqforge.evaluation.tables.simat_data import (
    PARTS,
    Simat,
    by_annotation,
    by_oracle,
    column_of,
    read_simat,
    splits_of,
)
from eqforge.schemas.dataset.reader import Dataset


@dataclass(frozen=True, kw_only=True, slots=True)
class SimatRules:
    """How SIMAT is judged.

    Attributes:
      how: ties, seed, resamples and whether scores may be missing; in paper mode a query excludes
        only its own region, otherwise also crops of the same image with an IoU above 0.5.
      lambdas: strengths of the move.
      oracle: decides which regions match; see by_oracle. None uses the annotation.
      by: the queries' column that names subsets.
      cluster: the queries' column that names clusters.
    """

    how: RetrievalRules
    lambdas: tuple[float, ...] = LAMBDAS
    oracle: str | None = None
    by: str = "split"
    cluster: str = "source_id"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Space:
    """One model's vectors of a dataset; items without one are left out.

    Attributes:
      regions: the regions that have a vector.
      queries: the queries that have all their vectors.
      gallery: vectors of those regions.
      captions: vectors of all captions.
      images, source, target, aim: vectors of the queries' image, two words and target caption.
    """

    regions: Indices
    queries: Indices
    gallery: NDArray[np.float32]
    captions: NDArray[np.float32]
    images: NDArray[np.float32]
    source: NDArray[np.float32]
    target: NDArray[np.float32]
    aim: NDArray[np.float32]


def simat_report(dataset: Dataset, paths: Sequence[Path], settings: SimatRules) -> Report:
    """Returns SIMAT's table of some models.

    Args:
      dataset: the scored dataset.
      paths: a folder of vectors for each model.
      settings: how it is judged.

    Raises:
      InputError: the scores are not of this dataset, or some are missing though not allowed to be.
    """
    simat = read_simat(dataset)
    matched, judge = by_annotation(simat), "the annotation"
    if settings.oracle is not None:
        matched, judge = by_oracle(simat, dataset, settings.oracle)
    scores = [read_crossed(str(path), dataset) for path in paths]
    names = model_names([found.model for found in scores], paths)
    judged = {
        name: dict(_judge(simat, matched, _space(simat, found, settings), settings))
        for name, found in zip(names, scores, strict=True)
    }
    rules = settings.how.rules
    excluded = "its own region" if settings.how.mode == "paper" else "itself and crops like it"
    return Report(
        title=f"{dataset.manifest.dataset}: SIMAT score, {len(simat.region_of):,} queries, "
        f"{len(simat.regions):,} regions, in per cent",
        rules=rules,
        measures=tuple(
            m for model, found in judged.items() for m in _table(model, found, settings)
        ),
        comparisons=compare_judged(judged, rules),
        notes=(
            f"What a region shows is said by {judge}; a query never finds {excluded}.",
            *(
                f"{n}: {warning}"
                for n, s in zip(names, scores, strict=True)
                for warning in s.warnings
            ),
        ),
    )


def _space(simat: Simat, scores: CrossedScores, settings: SimatRules) -> _Space:
    if scores.images is None or scores.captions is None:
        raise InputError(f"{scores.model}: SIMAT moves vectors; a grid of scores has none")
    pictures, texts = scores.images.vectors, scores.captions.vectors
    of_regions = scores.images.places(simat.image_ids)
    of_captions = scores.captions.places(simat.texts)
    of_words = [
        scores.captions.places(simat.queries[f"{end}_word"]) for end in ("source", "target")
    ]
    complete = (of_regions[simat.region_of] >= 0) & (of_words[0] >= 0) & (of_words[1] >= 0)
    missing = int((~complete).sum() + (of_captions < 0).sum() + (of_regions < 0).sum())
    if missing and not settings.how.allow_missing:
        why = ", ".join(f"{count:,} {reason}" for reason, count in scores.failures.items())
        raise InputError(
            f"{scores.model}: {int((~complete).sum()):,} queries, {int((of_captions < 0).sum()):,} "
            f"captions and {int((of_regions < 0).sum()):,} regions lack a vector"
            f"{f' ({why})' if why else ''}; --allow-missing leaves regions and queries out"
        )
    if (of_captions < 0).any():
        raise InputError(f"{scores.model}: the baselines need vectors of all captions")
    queries, regions = np.flatnonzero(complete), np.flatnonzero(of_regions >= 0)
    return _Space(
        regions=regions,
        queries=queries,
        gallery=pictures[of_regions[regions]],
        captions=texts[of_captions],
        images=pictures[of_regions[simat.region_of[queries]]],
        source=texts[of_words[0][queries]],
        target=texts[of_words[1][queries]],
        aim=texts[of_captions[simat.target_of[queries]]],
    )


def _points(
    simat: Simat, space: _Space, lambdas: Sequence[float]
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yields each method and its moved queries [queries, d]."""
    for strength in lambdas:
        yield (
            f"delta, lambda {strength:g}",
            moved(space.images, space.source, space.target, strength),
        )
    places = [PARTS.index(str(part)) for part in simat.queries["part"][space.queries]]
    words = [simat.queries[f"{end}_word"][space.queries].tolist() for end in ("source", "target")]
    exchanges = list(zip(places, *words, strict=True))
    deltas = sentence_deltas(simat.triplets, space.captions, exchanges)
    nothing = np.zeros(space.images.shape[1], dtype=np.float32)
    steps = np.stack([deltas.get(exchange, nothing) for exchange in exchanges])
    for strength in lambdas:
        yield f"sentence average, lambda {strength:g}", space.images + np.float32(strength) * steps
    texts = space.captions[nearest(space.images, space.captions)]
    yield "image to text to image", moved(texts, space.source, space.target, 1.0)
    yield "text to image", space.aim
    yield "bare delta", moved(np.zeros_like(space.images), space.source, space.target, 1.0)


def _judge(
    simat: Simat, matched: NDArray[np.bool_], space: _Space, settings: SimatRules
) -> Iterator[tuple[str, Judged]]:
    excluded = _excluded(simat, space, settings)
    truths = dict(_truths(simat, matched, space, excluded))
    weights = simat.queries["weight"].astype(np.float64)
    clusters = column_of(simat, settings.cluster)
    subsets = [
        (name, members[space.queries], int(members.sum()))
        for name, members in splits_of(simat, settings.by)
    ]
    chances = {
        name: _chance(truths, excluded, len(space.regions), weights[space.queries], members)
        for name, members, _ in subsets
    }
    for method, points in _points(simat, space, settings.lambdas):
        credits, tied = judge_queries(
            points, space.gallery, truths, excluded, settings.how.rules.ties
        )
        for name, members, expected in subsets:
            yield (
                f"{name}: {method}",
                Judged(
                    credits={metric: found[members] for metric, found in credits.items()},
                    chance=chances[name],
                    tied=tied[members],
                    clusters=clusters[space.queries][members],
                    expected=expected,
                    weights=weights[space.queries][members],
                    keys=simat.queries["sample_id"][space.queries][members],
                ),
            )


def _chance(
    truths: dict[int, Indices],
    excluded: Truths,
    regions: int,
    weights: NDArray[np.float64],
    members: NDArray[np.bool_],
) -> dict[str, float]:
    if not members.any():
        return {}
    return chance(truths, excluded, regions, np.where(members, weights, 0.0))


def _excluded(simat: Simat, space: _Space, settings: SimatRules) -> Truths:
    """Returns the regions each query must not retrieve, by index in the space."""
    place_of = np.full(len(simat.regions), -1)
    place_of[space.regions] = np.arange(len(space.regions))
    own = place_of[simat.region_of[space.queries]]
    if settings.how.mode == "paper":
        return Truths.of_pairs(np.arange(len(own)), own, len(own))
    same = same_crops(simat.sources[space.regions], simat.boxes[space.regions])
    counts = np.diff(same.start)[own]
    queries = np.repeat(np.arange(len(own)), counts)
    within = np.arange(len(queries)) - np.repeat(np.cumsum(counts) - counts, counts)
    return Truths.of_pairs(queries, same.index[same.start[own][queries] + within], len(own))


def _truths(
    simat: Simat, matched: NDArray[np.bool_], space: _Space, excluded: Truths
) -> Iterator[tuple[int, Indices]]:
    right = {
        int(target): np.flatnonzero(matched[space.regions, target])
        for target in np.unique(simat.target_of[space.queries])
    }
    for query, target in enumerate(simat.target_of[space.queries]):
        banned = excluded.index[excluded.start[query] : excluded.start[query + 1]]
        found = right[int(target)]
        allowed = found[~np.isin(found, banned)]
        if len(allowed):
            yield query, allowed


def _table(model: str, found: dict[str, Judged], settings: SimatRules) -> Iterator[Measure]:
    # Sorting keeps the methods in their order within a split.
    for subset in sorted(found, key=lambda name: name.partition(": ")[0]):
        yield from measure(model, subset, found[subset], settings.how.rules)[1]
