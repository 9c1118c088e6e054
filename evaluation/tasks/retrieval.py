"""Retrieval: R@k in both directions, rsum, DCG_CM, and drops by perturbed captions."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.evaluation.metrics.retrieval import (
    DEPTH,
    KS,
    SHARE_TOTALS,
    Indices,
    Recall,
    ScoreRows,
    Truths,
    chance_of_recall,
    dcg_cm,
    matrix_rows,
    mean_jaccard,
    rank,
    recall_at,
    relative_drop,
    relevance_of,
    share_at,
    spread,
    vector_rows,
)
from eqforge.evaluation.metrics.ties import Flags, Unit
from eqforge.evaluation.statistics.bootstrap import Numbers, percentile_interval, resample_means
from eqforge.evaluation.statistics.shares import NO_INTERVAL, ROUNDING, Share
from eqforge.evaluation.tables.crossed import CrossedScores, What, read_crossed
from eqforge.evaluation.tables.report import (
    DROP,
    Judged,
    Measure,
    Report,
    compare_judged,
    measure,
    model_names,
)
from eqforge.evaluation.tables.samples import EVERYTHING, read_columns
from eqforge.evaluation.tables.settings import MetricsSettings
from eqforge.schemas.dataset.reader import Dataset

Direction = Literal["i2t", "t2i"]
RSUM = "rsum"
DCG = "DCG_CM"
UNITS: Final[Mapping[str, Unit]] = {f"i2t {DCG}": "number", f"t2i {DCG}": "number"}
MOST: Final[Mapping[str, float]] = {f"i2t {RSUM}": len(KS), f"t2i {RSUM}": len(KS)}
RECALL: Final[Mapping[Recall, str]] = {
    "any": "R@k: a query counts where any true candidate is among the first k.",
    "share": "R@k: true candidates among the first k, divided by min(5, k) captions or by 1 image.",
}
IMAGES, CAPTIONS = "all images", "all captions"
"""The subset names of each direction's queries; rsum is over both directions."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Perturbed:
    """The captions of one perturbation.

    Attributes:
      caption_of: which caption each was made from [m].
      texts: the perturbed captions [m].
      changed: whether its words differ from the original's [m].
    """

    caption_of: Indices
    texts: NDArray[Any]
    changed: Flags


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Gallery:
    """The images and captions to retrieve, sorted by id.

    Texts and ids are Python objects: with a fixed width, one long caption would make all long.

    Attributes:
      image_ids: the image of each entry [n], an image with its captions.
      texts: the captions [m].
      entry_of: the entry of each caption [m].
      perturbed: the captions of each perturbation; empty if the dataset has none.
      published_recall: what R@k counts in the authors' evaluation of the dataset. Source:
        `recall_at_k` of mariyahendriksen/evaluating-cmr-in-vl for perturbed captions, a share;
        `itm_eval` of X-VLM, with which VLUE's repository evaluates, for VLUE's, any.
    """

    image_ids: NDArray[Any]
    texts: NDArray[Any]
    entry_of: Indices
    perturbed: dict[str, Perturbed]
    published_recall: Recall


def has_gallery(dataset: Dataset) -> bool:
    """Return True if a dataset is one for retrieval."""
    return _is_vlue(dataset) or {"caption_id", "perturbation"} <= set(dataset.columns("samples"))


def _is_vlue(dataset: Dataset) -> bool:
    """Return True if a retrieval dataset is VLUE's or like it: captions without perturbations."""
    return "retrieval" in dataset.manifest.tables


def read_gallery(dataset: Dataset) -> Gallery:
    """Read entries, captions and perturbed captions.

    Raises:
      InputError: a file is missing or damaged, or an entry has no image.
    """
    if _is_vlue(dataset):
        table, key, entry = "retrieval", "sample_id", "gallery_id"
    else:
        table, key, entry = "captions", "caption_id", "image"
    columns = _sorted(dataset, table, [key, entry, "image_id", "caption"])
    if not len(columns[key]):
        raise InputError(f"{dataset.folder}: has no captions to retrieve")
    if None in columns["image_id"].tolist():
        raise InputError(f"{dataset.folder}: names no images; build it with --images FOLDER")
    _, first, entry_of = np.unique(columns[entry], return_index=True, return_inverse=True)
    return Gallery(
        image_ids=columns["image_id"][first],
        texts=columns["caption"],
        entry_of=entry_of.astype(np.int64),
        perturbed={} if _is_vlue(dataset) else _read_perturbed(dataset, columns[key]),
        published_recall="any" if _is_vlue(dataset) else "share",
    )


def _sorted(dataset: Dataset, table: str, names: list[str]) -> dict[str, NDArray[Any]]:
    """Read columns of a table, its rows sorted by the first column."""
    found = read_columns(dataset, table, names)
    columns = {name: np.array(values, dtype=object) for name, values in found.items()}
    order = np.argsort(columns[names[0]])
    return {name: values[order] for name, values in columns.items()}


def _read_perturbed(dataset: Dataset, captions: NDArray[Any]) -> dict[str, Perturbed]:
    told = "words_changed" in dataset.columns("samples")
    changed = "words_changed" if told else "applied"  # all that earlier versions wrote
    names = ["sample_id", "caption_id", "perturbation", "perturbed_caption", changed]
    columns = _sorted(dataset, "samples", names)
    places = np.searchsorted(captions, columns["caption_id"]).clip(max=len(captions) - 1)
    if (captions[places] != columns["caption_id"]).any():
        raise InputError(f"{dataset.folder}: a perturbed caption is of no caption in the dataset")
    found = {}
    for name in np.unique(columns["perturbation"]):
        of_it = columns["perturbation"] == name
        found[str(name)] = Perturbed(
            caption_of=places[of_it].astype(np.int64),
            texts=columns["perturbed_caption"][of_it],
            changed=columns[changed][of_it].astype(bool),
        )
    return found


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Side:
    """Queries or candidates.

    Attributes:
      keys: ids of images or texts of captions [n].
      entries: the entry of the gallery that each belongs to [n]; a candidate is true for the
        queries of its entry.
    """

    keys: NDArray[Any]
    entries: Indices


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Retrieved:
    """The credits of each query.

    Attributes:
      credits: credits of R@1, R@5, R@10 and their sum, and of DCG_CM if a relevance is given [q].
      chance: chance level of each metric that has one.
      tied: a false candidate ties with the best true one [q]; false if no true one has a score.
      lost: no true candidate has a score [q], as when a fusion encoder scored only some pairs;
        such a query counts 0.
    """

    credits: dict[str, Numbers]
    chance: dict[str, float]
    tied: Flags
    lost: Flags


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Damaged:
    """Results of text-to-image retrieval with the captions of one perturbation.

    Attributes:
      queries: the perturbed captions that are judged.
      of: index in the gallery of the caption that each was made from [queries].
      found: their credits.
      expected: number of them, scored or not.
    """

    queries: Side
    of: Indices
    found: Retrieved
    expected: int


class Contest:
    """One model on a gallery: images that retrieve captions, and captions that retrieve images.

    Attributes:
      scored: which captions have scores and images that have [captions].
      images, captions: the entries with a scored caption, and these captions.
      to_text, to_image: what was retrieved in either direction.
      damaged: what was retrieved with the captions of each perturbation.
    """

    def __init__(
        self,
        model: str,
        gallery: Gallery,
        scores: CrossedScores,
        relevance: CrossedScores | None,
        settings: MetricsSettings,
    ) -> None:
        """Retrieve.

        Raises:
          InputError: scores are missing though not allowed to be, or there are none.
        """
        self.model, self.gallery, self.scores, self.settings = model, gallery, scores, settings
        self._relevance = relevance
        self.recall: Recall = gallery.published_recall if settings.mode == "paper" else "any"
        pictured = (scores.places("images", gallery.image_ids) >= 0)[gallery.entry_of]
        self.scored = (scores.places("captions", gallery.texts) >= 0) & pictured
        missing = int((~self.scored).sum())
        if not self.scored.any() or (missing and not settings.allow_missing):
            raise InputError(
                f"{model}: {missing:,} of {len(self.scored):,} captions have no score with their "
                f"image{scores.why}; --allow-missing leaves them out"
            )
        entries = np.unique(gallery.entry_of[self.scored])
        self.images = Side(keys=gallery.image_ids[entries], entries=entries)
        self.captions = Side(keys=gallery.texts[self.scored], entries=gallery.entry_of[self.scored])
        self.to_text = self._retrieve("i2t", self.images, self.captions)
        self.to_image = self._retrieve("t2i", self.captions, self.images)
        self.damaged = dict(self._damage())

    def _damage(self) -> Iterator[tuple[str, _Damaged]]:
        """Judge the captions of each perturbation against the unperturbed gallery."""
        for name, perturbed in self.gallery.perturbed.items():
            kept = perturbed.changed | (self.settings.mode == "paper")
            scored = self.scores.places("captions", perturbed.texts) >= 0
            expected = kept & self.scored[perturbed.caption_of]
            missing = int((expected & ~scored).sum())
            if missing and not self.settings.allow_missing:
                raise InputError(
                    f"{self.model}: {missing:,} perturbed captions have no score; --allow-missing "
                    "leaves them out"
                )
            chosen = np.flatnonzero(expected & scored)
            of = perturbed.caption_of[chosen]
            queries = Side(keys=perturbed.texts[chosen], entries=self.gallery.entry_of[of])
            if len(of):
                found = self._retrieve("t2i", queries, self.images)
                yield (
                    name,
                    _Damaged(queries=queries, of=of, found=found, expected=int(kept.sum())),
                )

    def _retrieve(self, direction: Direction, queries: Side, candidates: Side) -> Retrieved:
        """Rank all candidates for all queries and judge where the true ones stand.

        In a share and in DCG_CM ties always lose: there false candidates rank above true ones of
        equal score.
        """
        truths = _truths(queries, candidates)
        deep = self.recall == "share" or self._relevance is not None
        rows = _rows(direction, self.scores, queries, candidates)
        ranking = rank(rows, truths, depth=DEPTH if deep else 0)
        total, size = SHARE_TOTALS[direction], len(candidates.keys)
        credits, chance = {}, {}
        for k in KS:
            name = f"{direction} R@{k}"
            if self.recall == "share":
                depth = min(k, ranking.top.shape[1])
                credits[name] = share_at(ranking, depth, total)
                expected = depth * np.diff(truths.start) / size / min(total, depth)
            else:
                credits[name] = recall_at(ranking, k, self.settings.ties)
                expected = chance_of_recall(truths, size, k)
            chance[name] = float(expected.mean())
        credits[f"{direction} {RSUM}"] = np.sum(list(credits.values()), axis=0)
        chance[f"{direction} {RSUM}"] = sum(chance.values())
        if (judge := self._relevance) is not None:
            if judge.grid is not None:
                raise InputError(f"{judge.model}: the relevance of {DCG} is read from vectors")
            vectors = (
                judge.vectors[what][_found(judge, what, side.keys)]
                for what, side in zip(_SIDES[direction], (queries, candidates), strict=True)
            )
            credits[f"{direction} {DCG}"] = dcg_cm(ranking, relevance_of(ranking, *vectors))
        return Retrieved(
            credits=credits, chance=chance, tied=ranking.level > 0, lost=~ranking.scored
        )


def _truths(queries: Side, candidates: Side) -> Truths:
    order = np.argsort(candidates.entries, kind="stable")
    entries = candidates.entries[order]
    first, last = (np.searchsorted(entries, queries.entries, side) for side in ("left", "right"))
    asking, within = spread(last - first)
    return Truths.of_pairs(asking, order[first[asking] + within], len(queries.entries))


_SIDES: Final[Mapping[Direction, tuple[What, What]]] = {
    "i2t": ("images", "captions"),
    "t2i": ("captions", "images"),
}


def _rows(
    direction: Direction, scores: CrossedScores, queries: Side, candidates: Side
) -> ScoreRows:
    asking, answering = _SIDES[direction]
    query_of = _found(scores, asking, queries.keys)
    candidate_of = _found(scores, answering, candidates.keys)
    if scores.grid is not None:
        matrix = scores.grid if direction == "i2t" else scores.grid.T
        return matrix_rows(matrix, query_of, candidate_of)
    distinct, of = np.unique(candidate_of, return_inverse=True)
    shared = len(distinct) < len(of)
    vectors = scores.vectors[answering][distinct if shared else candidate_of]
    own = of.astype(np.int64) if shared else None
    return vector_rows(scores.vectors[asking], vectors, query_of, own)


def _found(scores: CrossedScores, what: What, keys: NDArray[Any]) -> Indices:
    places = scores.places(what, keys)
    lost = np.flatnonzero(places < 0)
    if len(lost):
        raise InputError(
            f"{scores.model}: {len(lost):,} of {len(keys):,} {what} have no score, such as "
            f"{str(keys[lost[0]])!r}"
        )
    return places


def retrieval_report(dataset: Dataset, paths: Sequence[Path], settings: MetricsSettings) -> Report:
    """Return the table of some models' retrieval.

    Args:
      dataset: the scored dataset.
      paths: a folder of scores for each model.
      settings: how it is judged; in paper mode ties always lose. `relevance` is a folder of vectors
        whose model measures the similarity of a query and a false candidate, for DCG_CM.

    Raises:
      InputError: the scores are not of this dataset, or some are missing though not allowed to be.
    """
    published = "VLUE's retrieval" if _is_vlue(dataset) else "paper's retrieval"
    settings.check_read("retrieval" if settings.mode == "corrected" else published)
    if settings.mode == "paper":
        settings = replace(settings, ties="strict")
    gallery = read_gallery(dataset)
    relevance = settings.relevance
    judge = None if relevance is None else read_crossed(str(relevance), dataset)
    scores = [read_crossed(str(path), dataset) for path in paths]
    names = model_names([found.model for found in scores], paths)
    contests = [
        Contest(name, gallery, own, judge, settings)
        for name, own in zip(names, scores, strict=True)
    ]
    measures = [
        one for contest in contests for one in (*_both_ways(contest), *drop_measures(contest))
    ]
    # Models are compared without perturbation, on the images and captions that both have.
    to_text, to_image = {}, {}
    for one in contests:
        entries, captions = one.images.entries, np.flatnonzero(one.scored)
        to_text[one.model] = {IMAGES: _judged(one.to_text, entries, entries)}
        to_image[one.model] = {CAPTIONS: _judged(one.to_image, captions, one.captions.entries)}
    rules = settings.rules
    return Report(
        title=f"{dataset.manifest.dataset}: retrieval among {len(gallery.image_ids):,} images and "
        f"{len(gallery.texts):,} captions, {settings.mode} mode, in per cent",
        rules=rules,
        measures=tuple(measures),
        comparisons=(*compare_judged(to_text, rules), *compare_judged(to_image, rules)),
        notes=tuple(_notes(contests, judge)),
    )


def _judged(found: Retrieved, keys: Indices, entries: Indices) -> Judged:
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
    columns = [place for place, own in enumerate(measures) if own.metric.endswith(RSUM)]
    sums, most = found.draws[:, columns].sum(axis=1), sum(MOST.values())
    value, clusters = float(found.values[columns].sum()), found.even_clusters[columns].min()
    both = Share(value=value / most, draws=sums / most, clusters=float(clusters))
    low, high = NO_INTERVAL if found.clusters == 1 else both.interval()
    like = measures[columns[0]]
    yield replace(like, metric=RSUM, value=value, low=most * low, high=most * high, chance=None)


def _notes(contests: Sequence[Contest], judge: CrossedScores | None) -> Iterator[str]:
    yield from (RECALL[one.recall] for one in contests[:1])
    if judge is None:
        yield f"{DCG} is left out: --relevance SCORES names the model that says what is similar."
    else:
        yield f"{DCG}: {judge.model} says how similar a query and a false candidate are."
    for one in contests[:1]:
        left = "kept, as published" if one.settings.mode == "paper" else "left out"
        for name, perturbed in one.gallery.perturbed.items():
            if unchanged := int((~perturbed.changed).sum()):
                yield f"{name}: {unchanged:,} captions whose words it did not change are {left}."
    for one in contests:
        damaged = {name: each.found for name, each in one.damaged.items()}
        parts = {IMAGES: one.to_text, CAPTIONS: one.to_image} | damaged
        for subset, retrieved in parts.items():
            if lost := int(retrieved.lost.sum()):
                yield (
                    f"{one.model}, {subset}: {lost:,} of {len(retrieved.lost):,} queries have "
                    "no score with any true candidate; they count 0."
                )
        for reason, count in one.scores.failures.items():
            yield f"{one.model}: {count:,} were not scored: {reason}"
        yield from (f"{one.model}: {warning}" for warning in one.scores.warnings)


def drop_measures(contest: Contest) -> Iterator[Measure]:
    """Yield each perturbation's scores and drops, and the overlap of the captions they harm."""
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
    contest: Contest, name: str, one: _Damaged, before: Mapping[str, Numbers]
) -> Iterator[Measure]:
    """Yield a perturbation's scores, and their relative drops."""
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

    It has no interval if the number is not finite, there is a single cluster, or fewer than half of
    the draws are finite.

    Args:
      like: a measure of the same queries.
      metric: its name.
      value: the number.
      draws: the number in each resample [resamples]; non-finite ones are ignored.
    """
    low, high = NO_INTERVAL
    if np.isfinite(value) and like.clusters > 1:
        low, high = percentile_interval(np.where(np.isfinite(draws), draws, np.nan))
    return replace(like, metric=metric, value=value, low=low, high=high, chance=None)


def _around_constant(drop: Measure, judged: Judged, metric: str) -> Measure:
    """Return a drop that is equal in all draws, such as 0 or 1, with bounds.

    A loss is a share of the score before; a gain, a share of what could be gained.
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
