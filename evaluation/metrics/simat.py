"""SIMAT: image embeddings moved by the difference of two words, and their nearest neighbours.

A query is an image and a word to replace. SIMAT moves the embedding of the image and retrieves the
nearest other image in the gallery. The query succeeds if the retrieved image matches the target
caption. All vectors are in the same space. Image and caption vectors have unit length.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqforge.evaluation.metrics.retrieval import Indices, ScoreRows, Truths, rank, recall_at
from eqforge.evaluation.metrics.ties import Credits, Flags, TieRule
from eqforge.evaluation.statistics.bootstrap import Numbers

SUCCESS = 0.5
"""The oracle's P(match) with the target caption has to be above this value."""
SAME_CROP_IOU = 0.5
NEIGHBOURS = (1, 5)


def moved(
    images: NDArray[np.float32],
    source_words: NDArray[np.float32],
    target_words: NDArray[np.float32],
    strength: float,
) -> NDArray[np.float32]:
    """Return image + strength * (target word - source word) for each query [queries, d].

    The result is not normalised, because scaling does not change its nearest neighbours.
    `images` are unit vectors [queries, d], or zeros for the bare difference.

    Source: SIMAT (Couairon et al. 2022), section 4.2, equation 2; `eval.py` of its repository.
    """
    return images + np.float32(strength) * (target_words - source_words)


def sentence_deltas(
    triplets: Sequence[tuple[str, str, str]],
    vectors: NDArray[np.float32],
    exchanges: Sequence[tuple[int, str, str]],
) -> dict[tuple[int, str, str], NDArray[np.float32]]:
    """Return the mean difference [d] of caption pairs that differ in one exchanged word.

    Exchanges without a pair of captions are omitted.

    Args:
      triplets: subject, relation and object of each caption [captions].
      exchanges: position in the triplet (0 to 2), word at this position, and its replacement.

    Source: SIMAT, section 5.4, "sentence average delta".
    """
    place_of = {triplet: number for number, triplet in enumerate(triplets)}
    found = {}
    for place, source, target in dict.fromkeys(exchanges):
        pairs = [
            (number, place_of[changed])
            for triplet, number in place_of.items()
            if triplet[place] == source
            and (changed := (*triplet[:place], target, *triplet[place + 1 :])) in place_of
        ]
        if pairs:
            before, after = np.array(pairs).T
            found[place, source, target] = (vectors[after] - vectors[before]).mean(axis=0)
    return found


def nearest(points: NDArray[np.float32], candidates: NDArray[np.float32]) -> Indices:
    """Return the nearest candidate of each point, or the first if several tie [points]."""
    return (points @ candidates.T).argmax(axis=1).astype(np.int64)


def same_crops(
    sources: NDArray[Any], boxes: NDArray[np.floating[Any]], limit: float = SAME_CROP_IOU
) -> Truths:
    """Return each region and its duplicates: crops of the same image with an IoU above a limit.

    `boxes` are x0, y0, x1, y1 in pixels [regions, 4].
    """
    order = np.argsort(sources, kind="stable")
    starts = np.flatnonzero(np.r_[True, sources[order][1:] != sources[order][:-1], True])
    pairs = []
    for first, last in itertools.pairwise(starts):
        members = order[first:last]
        same = intersection_over_union(boxes[members][:, None], boxes[members][None]) > limit
        np.fill_diagonal(same, True)
        rows, columns = np.nonzero(same)
        pairs.append(np.column_stack([members[rows], members[columns]]))
    queries, found = np.concatenate(pairs).T
    return Truths.of_pairs(queries, found, len(sources))


def intersection_over_union(
    first: NDArray[np.floating[Any]], second: NDArray[np.floating[Any]]
) -> NDArray[np.float64]:
    """Return the IoU of boxes, in [0, 1], or 0 if both boxes are empty.

    The last axis contains x0, y0, x1, y1. x1 and y1 are beyond the last pixel. Shapes broadcast.
    """
    a, b = first.astype(np.float64), second.astype(np.float64)
    sides = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])
    shared = sides.clip(0).prod(axis=-1)
    areas = [(box[..., 2:] - box[..., :2]).clip(0).prod(axis=-1) for box in (a, b)]
    union = areas[0] + areas[1] - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)


def judge_queries(
    points: NDArray[np.float32],
    gallery: NDArray[np.float32],
    truths: Mapping[int, Indices],
    excluded: Truths,
    rule: TieRule = "strict",
) -> tuple[dict[str, Credits], Flags]:
    """Return the credits for n = 1 and 5 [queries], and flags of queries with ties [queries].

    Args:
      points: moved queries [queries, d]; they need not have unit length.
      gallery: unit vectors [regions, d].
      truths: matching regions of each query that can succeed, without excluded regions.
      excluded: regions that each query must not retrieve.
      rule: credit if a wrong region is as near as the nearest matching region.

    Source: SIMAT, section 3.3 and table 1. For n = 5, the best of five neighbours counts.
    """
    asking = np.array(sorted(truths), dtype=np.int64)
    credits = {f"n = {n}": np.zeros(len(points)) for n in NEIGHBOURS}
    tied = np.zeros(len(points), dtype=bool)
    if not len(asking):
        return credits, tied
    right = [truths[query] for query in asking]
    rows = np.repeat(np.arange(len(right)), [len(found) for found in right])
    banned = excluded.of(asking)

    def scores(start: int, stop: int) -> NDArray[np.float32]:
        found = points[asking[start:stop]] @ gallery.T
        bounds = banned.start[start : stop + 1]
        within = np.repeat(np.arange(stop - start), np.diff(bounds))
        found[within, banned.index[bounds[0] : bounds[-1]]] = -np.inf
        return found

    ranking = rank(
        ScoreRows(len(asking), len(gallery), scores),
        Truths.of_pairs(rows, np.concatenate(right), len(asking)),
        depth=0,
    )
    for n in NEIGHBOURS:
        credits[f"n = {n}"][asking] = recall_at(ranking, n, rule)
    tied[asking] = ranking.level > 0
    return credits, tied


def chance(
    truths: Mapping[int, Indices], excluded: Truths, regions: int, weights: Numbers
) -> dict[str, float]:
    """Return the score of random neighbours for n = 1 and 5, weighted over queries."""
    right = np.array([len(truths.get(query, ())) for query in range(len(weights))])
    allowed = regions - np.diff(excluded.start)
    found = {}
    for n in NEIGHBOURS:
        missed = np.ones(len(weights))
        for place in range(n):
            missed *= np.maximum(allowed - right - place, 0) / np.maximum(allowed - place, 1)
        found[f"n = {n}"] = float(np.average(1 - missed, weights=weights))
    return found
