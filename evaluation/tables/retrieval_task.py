"""The retrieval tables: R@k in both directions, rsum, DCG_CM, and drops by perturbations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eqforge.evaluation.metrics.retrieval import Recall
from eqforge.evaluation.statistics.shares import NO_INTERVAL, Share
from eqforge.evaluation.tables.crossed_scores import CrossedScores, read_crossed
from eqforge.evaluation.tables.gallery import read_gallery
from eqforge.evaluation.tables.report import (
    Judged,
    Measure,
    ModelComparison,
    Report,
    Rules,
    measure,
)
from eqforge.evaluation.tables.retrieval_contest import (
    MOST,
    UNITS,
    Contest,
    RetrievalRules,
    enter,
)
from eqforge.evaluation.tables.retrieval_drops import Damaged, damage, drop_measures
from eqforge.evaluation.tables.retrieval_judge import DCG, RSUM, Retrieved
from eqforge.evaluation.tables.sample_tasks import model_names
from eqforge.evaluation.tables.samples import EVERYTHING
from eqforge.evaluation.tables.several import compare_judged
from eqforge.schemas.dataset.reader import Dataset

RECALL: Mapping[Recall, str] = {
    "any": "R@k: a query counts where any true candidate is among the first k.",
    "share": "R@k: true candidates among the first k, divided by min(5, k) captions or by 1 image.",
}
IMAGES, CAPTIONS = "all images", "all captions"
"""The subset names of each direction's queries; rsum is over both directions."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Found:
    """One model's retrieval results: i2t, t2i, and t2i with perturbed captions."""

    contest: Contest
    to_text: Retrieved
    to_image: Retrieved
    damaged: tuple[Damaged, ...]


def retrieval_report(
    dataset: Dataset,
    paths: Sequence[Path],
    settings: RetrievalRules,
    relevance: Path | None = None,
) -> Report:
    """Returns the table of some models' retrieval.

    Args:
      dataset: the scored dataset.
      paths: a folder of scores for each model.
      settings: how it is judged; in paper mode ties always lose.
      relevance: folder of vectors whose model measures the similarity of a query and a false
        candidate; None leaves DCG_CM out.

    Raises:
      InputError: the scores are not of this dataset, or some are missing though not allowed to be.
    """
    if settings.mode == "paper":
        settings = replace(settings, rules=replace(settings.rules, ties="strict"))
    gallery = read_gallery(dataset)
    judge = None if relevance is None else read_crossed(str(relevance), dataset)
    scores = [read_crossed(str(path), dataset) for path in paths]
    names = model_names([found.model for found in scores], paths)
    found = [
        _find(enter(name, gallery, own, judge, settings))
        for name, own in zip(names, scores, strict=True)
    ]
    return Report(
        title=f"{dataset.manifest.dataset}: retrieval among {len(gallery.entries):,} images and "
        f"{len(gallery.texts):,} captions, {settings.mode} mode, in per cent",
        rules=settings.rules,
        measures=tuple(measure for one in found for measure in _measures(one)),
        comparisons=tuple(_comparisons(found, settings.rules)),
        notes=tuple(_notes(found, judge)),
    )


def _find(contest: Contest) -> _Found:
    images, captions = contest.images, contest.captions
    return _Found(
        contest=contest,
        to_text=contest.retrieve("i2t", images, captions),
        to_image=contest.retrieve("t2i", captions, images),
        damaged=tuple(damage(contest)),
    )


def _comparisons(found: Sequence[_Found], rules: Rules) -> Iterator[ModelComparison]:
    """Compares the models without perturbation, on the images and captions that both have."""
    to_text, to_image = {}, {}
    for one in found:
        model, contest = one.contest.model, one.contest
        entries, captions = contest.images.entries, np.flatnonzero(contest.scored)
        to_text[model] = {IMAGES: _alone(one.to_text, entries, entries)}
        to_image[model] = {CAPTIONS: _alone(one.to_image, captions, contest.captions.entries)}
    yield from compare_judged(to_text, rules)
    yield from compare_judged(to_image, rules)


def _alone(found: Retrieved, keys: NDArray[np.int64], entries: NDArray[np.int64]) -> Judged:
    return Judged(
        credits=found.credits,
        chance=found.chance,
        tied=found.tied,
        clusters=entries,
        expected=len(keys),
        units=UNITS,
        most=MOST,
        keys=keys,
    )


def _measures(one: _Found) -> Iterator[Measure]:
    yield from _both_ways(one)
    yield from drop_measures(one.contest, one.to_image, one.damaged)


def _both_ways(one: _Found) -> Iterator[Measure]:
    """Yields both directions and rsum; an image and its captions are resampled together."""
    contest = one.contest
    expected = len(contest.gallery.entries), len(contest.scored)
    found, measures = measure(contest.model, EVERYTHING, _joint(one), contest.settings.rules)
    first = len(one.to_text.credits)
    for measured in measures[:first]:
        yield _of_queries(measured, IMAGES, one.to_text, expected[0])
    for measured in measures[first:]:
        yield _of_queries(measured, CAPTIONS, one.to_image, expected[1])
    columns = [place for place, own in enumerate(measures) if own.metric.endswith(RSUM)]
    sums, most = found.draws[:, columns].sum(axis=1), sum(MOST.values())
    value, clusters = float(found.values[columns].sum()), found.even_clusters[columns].min()
    both = Share(value=value / most, draws=sums / most, clusters=float(clusters))
    low, high = NO_INTERVAL if found.clusters == 1 else both.interval()
    like = measures[columns[0]]
    yield replace(like, metric=RSUM, value=value, low=most * low, high=most * high, chance=None)


def _joint(one: _Found) -> Judged:
    """Returns the queries of both directions, weighted only in their own direction's metrics."""
    images, captions = one.contest.images, one.contest.captions
    rows = len(images.keys), len(captions.keys)
    credits, weights = {}, []
    for place, retrieved in enumerate((one.to_text, one.to_image)):
        for name, values in retrieved.credits.items():
            parts = [np.zeros(rows[0]), np.zeros(rows[1])]
            parts[place] = values
            credits[name] = np.concatenate(parts)
            weights.append(np.repeat([1.0 - place, float(place)], rows))
    return Judged(
        credits=credits,
        chance=one.to_text.chance | one.to_image.chance,
        tied=np.concatenate([one.to_text.tied, one.to_image.tied]),
        clusters=np.concatenate([images.entries, captions.entries]),
        expected=len(one.contest.gallery.entries) + len(one.contest.scored),
        weights=np.column_stack(weights),
        units=UNITS,
        most=MOST,
    )


def _of_queries(measured: Measure, subset: str, found: Retrieved, expected: int) -> Measure:
    """Returns a measure of both directions as one of the queries of its own direction."""
    scored = len(found.tied)
    return replace(
        measured,
        subset=subset,
        expected=expected,
        scored=scored,
        missing=expected - scored,
        ties=float(found.tied.mean()),
    )


def _notes(found: Sequence[_Found], judge: CrossedScores | None) -> Iterator[str]:
    yield from (RECALL[one.contest.recall] for one in found[:1])
    if judge is None:
        yield f"{DCG} is left out: --relevance SCORES names the model that says what is similar."
    else:
        yield f"{DCG}: {judge.model} says how similar a query and a false candidate are."
    if found:
        yield from _unchanged(found[0].contest)
    for one in found:
        model, scores = one.contest.model, one.contest.scores
        yield from _lost(one)
        for reason, count in scores.failures.items():
            yield f"{model}: {count:,} were not scored: {reason}"
        yield from (f"{model}: {warning}" for warning in scores.warnings)


def _unchanged(contest: Contest) -> Iterator[str]:
    left = "kept, as published" if contest.settings.mode == "paper" else "left out"
    for name, perturbed in contest.gallery.perturbed.items():
        unchanged = int((~perturbed.changed).sum())
        if unchanged:
            yield f"{name}: {unchanged:,} captions whose words it did not change are {left}."


def _lost(one: _Found) -> Iterator[str]:
    parts = {IMAGES: one.to_text, CAPTIONS: one.to_image} | {d.name: d.found for d in one.damaged}
    for subset, retrieved in parts.items():
        lost = int(retrieved.lost.sum())
        if lost:
            yield (
                f"{one.contest.model}, {subset}: {lost:,} of {len(retrieved.lost):,} queries have "
                "no score with any true candidate; they count 0."
            )
