"""Retrieval: R@k in both directions, rsum, DCG_CM, and drops by perturbed captions."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from eqforge.core.visible import counted
from eqforge.evaluation.metrics.retrieval import KS, Recall, mean_jaccard, relative_drop
from eqforge.evaluation.metrics.ties import Unit
from eqforge.evaluation.statistics.bootstrap import Numbers, percentile_interval, resample_means
from eqforge.evaluation.statistics.shares import NO_INTERVAL, ROUNDING, Share
from eqforge.evaluation.tables.crossed import CrossedScores, read_crossed
from eqforge.evaluation.tables.render import DROP, Measure, Report
from eqforge.evaluation.tables.report import Judged, compare_judged, measure, model_names
from eqforge.evaluation.tables.samples import EVERYTHING
from eqforge.evaluation.tables.settings import MetricsSettings
from eqforge.evaluation.tasks.gallery import (
    DCG,
    RSUM,
    Contest,
    Damaged,
    Retrieved,
    Side,
    is_vlue,
    read_gallery,
)
from eqforge.schemas.dataset.reader import Dataset

UNITS: Final[Mapping[str, Unit]] = {f"i2t {DCG}": "number", f"t2i {DCG}": "number"}
MOST: Final[Mapping[str, float]] = {f"i2t {RSUM}": len(KS), f"t2i {RSUM}": len(KS)}
RECALL: Final[Mapping[Recall, str]] = {
    "any": "R@k: a query counts if any true candidate is among the first k.",
    "share": "R@k: true candidates among the first k, divided by min(5, k) for captions and 1 for "
    "images.",
}
IMAGES, CAPTIONS = "all images", "all captions"
"""Subset names of each direction's queries; rsum covers both directions."""


def retrieval_report(dataset: Dataset, paths: Sequence[Path], settings: MetricsSettings) -> Report:
    published = "VLUE's retrieval" if is_vlue(dataset) else "paper's retrieval"
    settings.check_read("retrieval" if settings.mode == "corrected" else published)
    if settings.mode == "paper":
        settings = replace(settings, ties="strict")
    gallery = read_gallery(dataset)
    relevance = settings.relevance
    judge = None if relevance is None else read_crossed(str(relevance), dataset)
    scores = [read_crossed(str(path), dataset) for path in paths]
    names = model_names([found.model for found in scores], paths)
    contests = [
        Contest(name, gallery, model_scores, judge, settings)
        for name, model_scores in zip(names, scores, strict=True)
    ]
    measures = [
        one for contest in contests for one in (*_both_ways(contest), *drop_measures(contest))
    ]
    # Models are compared without perturbation, on the images and captions that both have.
    to_text, to_image = {}, {}
    for one in contests:
        to_text[one.model] = {IMAGES: _judged(one.to_text, one.images)}
        to_image[one.model] = {CAPTIONS: _judged(one.to_image, one.captions)}
    rules = settings.rules
    return Report(
        title=f"{dataset.manifest.dataset}: retrieval among {len(gallery.image_ids):,} images and "
        f"{len(gallery.texts):,} captions, {settings.mode} mode, in per cent",
        rules=rules,
        measures=tuple(measures),
        comparisons=(*compare_judged(to_text, rules), *compare_judged(to_image, rules)),
        notes=tuple(_notes(contests, judge)),
    )


def _judged(found: Retrieved, queries: Side) -> Judged:
    return Judged(
        credits=found.credits,
        chance=found.chance,
        tied=found.tied,
        clusters=queries.entries,
        expected=len(queries.places),
        units=UNITS,
        most=MOST,
        keys=queries.places,
    )


def _both_ways(contest: Contest) -> Iterator[Measure]:
    """Yield both directions and rsum; an image and its captions are resampled together."""
    directions = ((IMAGES, contest.to_text), (CAPTIONS, contest.to_image))
    expected = (len(contest.gallery.image_ids), len(contest.scored))
    rows = len(contest.images.keys), len(contest.captions.keys)
    # Queries of both directions, weighted only in their own direction's metrics.
    credits, weights = {}, []
    for place, (_, retrieved) in enumerate(directions):
        for name, values in retrieved.credits.items():
            parts = [np.zeros(rows[0]), np.zeros(rows[1])]
            parts[place] = values
            credits[name] = np.concatenate(parts)
            weights.append(np.repeat([1.0 - place, float(place)], rows))
    judged = Judged(
        credits=credits,
        chance=contest.to_text.chance | contest.to_image.chance,
        tied=np.concatenate([contest.to_text.tied, contest.to_image.tied]),
        clusters=np.concatenate([contest.images.entries, contest.captions.entries]),
        expected=sum(expected),
        weights=np.column_stack(weights),
        units=UNITS,
        most=MOST,
    )
    found, measures = measure(contest.model, EVERYTHING, judged, contest.settings.rules)
    first = len(contest.to_text.credits)
    for place, one in enumerate(measures):
        side = int(place >= first)
        subset, retrieved = directions[side]
        yield replace(
            one,
            subset=subset,
            expected=expected[side],
            scored=rows[side],
            missing=expected[side] - rows[side],
            ties=float(retrieved.tied.mean()),
        )
    columns = [place for place, each in enumerate(measures) if each.metric.endswith(RSUM)]
    sums, most = found.draws[:, columns].sum(axis=1), sum(MOST.values())
    value, clusters = float(found.values[columns].sum()), found.even_clusters[columns].min()
    both = Share(value=value / most, draws=sums / most, clusters=float(clusters))
    low, high = NO_INTERVAL if found.clusters == 1 else both.interval()
    like = measures[columns[0]]
    yield replace(like, metric=RSUM, value=value, low=most * low, high=most * high, chance=None)


def _notes(contests: Sequence[Contest], judge: CrossedScores | None) -> Iterator[str]:
    yield from (RECALL[one.recall] for one in contests[:1])
    if judge is None:
        yield f"{DCG} is left out. To compute it, pass --relevance SCORES."
    else:
        yield f"{DCG}: {judge.model} measures how similar false candidates are to the query."
    for one in contests[:1]:
        end = "kept, as published" if one.settings.mode == "paper" else "left out"
        for name, perturbed in one.gallery.perturbed.items():
            if unchanged := int((~perturbed.changed).sum()):
                yield f"{name}: {counted(unchanged, 'captions')} with unchanged words: {end}."
    for one in contests:
        if shared := one.to_image.shared:
            yield (
                f"{one.model}: {shared:,} captions describe several images, because another image "
                "has the same caption or the same bytes. Each of these images counts as true."
            )
        damaged = {name: each.found for name, each in one.damaged.items()}
        parts = {IMAGES: one.to_text, CAPTIONS: one.to_image} | damaged
        for subset, retrieved in parts.items():
            if lost := int(retrieved.lost.sum()):
                yield (
                    f"{one.model}, {subset}: {lost:,} of {len(retrieved.lost):,} queries count as "
                    "0, because none of their true candidates has a score."
                )
        for reason, count in one.scores.failures.items():
            yield f"{one.model}: {count:,} images or captions were not scored: {reason}"
        yield from (f"{one.model}: {warning}" for warning in one.scores.warnings)


def drop_measures(contest: Contest) -> Iterator[Measure]:
    before = {}
    for metric, credits in contest.to_image.credits.items():
        before[metric] = np.full(len(contest.scored), np.nan)  # by index in the gallery
        before[metric][contest.scored] = credits
    for name, one in contest.damaged.items():
        yield from _drops(contest, name, one, {m: found[one.of] for m, found in before.items()})
    if len(contest.damaged) > 1:
        rsums = {name: np.full(len(contest.scored), np.nan) for name in contest.damaged}
        for name, one in contest.damaged.items():
            rsums[name][one.of] = one.found.credits[f"t2i {RSUM}"]
        for group, value in mean_jaccard(before[f"t2i {RSUM}"], rsums).items():
            yield Measure(
                model=contest.model,
                subset="Jaccard",
                metric=group,
                unit="number",
                value=value,
                expected=len(contest.scored),
                scored=int(contest.scored.sum()),
                missing=int((~contest.scored).sum()),
                clusters=len(contest.images.keys),
            )


def _drops(
    contest: Contest, name: str, one: Damaged, before: Mapping[str, Numbers]
) -> Iterator[Measure]:
    after = one.found
    metrics = list(after.credits)
    judged = Judged(
        credits=after.credits | {f"before {metric}": before[metric] for metric in metrics},
        chance=after.chance,
        tied=after.tied,
        clusters=one.queries.entries,
        expected=one.expected,
        units={**UNITS} | {f"before {metric}": unit for metric, unit in UNITS.items()},
        most={**MOST} | {f"before {metric}": most for metric, most in MOST.items()},
    )
    found, measures = measure(contest.model, name, judged, contest.settings.rules)
    yield from measures[: len(metrics)]
    rows = np.vstack([found.values, found.draws])
    drops = relative_drop(rows[:, len(metrics) :], rows[:, : len(metrics)])
    for place, metric in enumerate(metrics):
        column = drops[:, place]
        like = replace(measures[place], unit="share", chance=None)
        constant = judged.most_of(metric) is not None and np.ptp(column) < ROUNDING
        drop = derived(like, f"{DROP}{metric}", float(column[0]), column[1:])
        yield _around_constant(drop, judged, metric) if constant else drop


def derived(like: Measure, metric: str, value: float, draws: Numbers) -> Measure:
    """Return a measure computed from others, draw by draw.

    It has no interval if the value is not finite, there is a single cluster, or fewer than half of
    the draws [resamples] are finite. Other non-finite draws are ignored.
    """
    low, high = NO_INTERVAL
    if np.isfinite(value) and like.clusters is not None and like.clusters > 1:
        low, high = percentile_interval(
            np.where(np.isfinite(draws), draws, np.nan), clusters=like.clusters
        )
    return replace(like, metric=metric, value=value, low=low, high=high, chance=None)


def _around_constant(drop: Measure, judged: Judged, metric: str) -> Measure:
    """Return bounds of a drop that is equal in all draws, such as 0 or 1.

    A loss is relative to the score before; a gain is relative to the possible gain.
    """
    before, after = judged.credits[f"before {metric}"], judged.credits[metric]
    assert judged.clusters is not None
    had, most = before > 0, judged.most_of(metric) or 1.0
    share = np.maximum(before - after, 0)[had] / before[had]
    lost = resample_means(share, judged.clusters[had], weights=before[had], resamples=1)
    gained = resample_means(np.maximum(after - before, 0), judged.clusters, resamples=1)
    below, above = lost.share_interval()
    least, highest = (bound / before.mean() for bound in gained.share_interval(most=most))
    won = gained.values[0] / before.mean()
    return replace(
        drop,
        low=drop.value - math.hypot(lost.values[0] - below, highest - won),
        high=drop.value + math.hypot(above - lost.values[0], won - least),
    )
