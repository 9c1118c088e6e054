"""Judges queries against a gallery: the keys to compare, the true candidates, and the credits."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.evaluation.metrics.retrieval import (
    DEPTH,
    KS,
    SHARE_TOTALS,
    Recall,
    chance_of_recall,
    dcg_cm,
    rank,
    recall_at,
    relevance_of,
    share_at,
)
from eqforge.evaluation.metrics.score_rows import Indices, MatrixRows, ScoreRows, Truths, VectorRows
from eqforge.evaluation.metrics.ties import TieRule
from eqforge.evaluation.statistics.bootstrap import Numbers
from eqforge.evaluation.tables.crossed_scores import CrossedScores, Keyed

Direction = Literal["i2t", "t2i"]
RSUM = "rsum"
DCG = "DCG_CM"


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

    def only(self, chosen: NDArray[Any]) -> "Side":
        """Returns the chosen ones."""
        return Side(keys=self.keys[chosen], entries=self.entries[chosen])


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
    tied: NDArray[np.bool_]
    lost: NDArray[np.bool_]


def is_scored(scores: CrossedScores, what: Literal["images", "captions"], keys: Any) -> Any:
    """Tells which images or captions have scores."""
    return _places(scores, what, keys) >= 0


def retrieve(
    direction: Direction,
    scores: CrossedScores,
    queries: Side,
    candidates: Side,
    *,
    relevance: CrossedScores | None = None,
    ties: TieRule = "strict",
    recall: Recall = "any",
) -> Retrieved:
    """Ranks all candidates for all queries and judges where the true ones stand.

    Args:
      direction: `i2t`, images retrieve captions, or `t2i`.
      scores: scores of the judged model, of all queries and candidates.
      queries: at least one, each with a true candidate.
      candidates: at least one.
      relevance: vectors of the model that measures the similarity of false candidates.
      ties: the credit of ties in R@k. In a share and in DCG_CM they always lose: there false
        candidates rank above true ones of equal score.
      recall: what R@k counts.
    """
    truths = _truths(queries, candidates)
    deep = recall == "share" or relevance is not None
    ranking = rank(
        _rows(direction, scores, queries, candidates), truths, depth=DEPTH if deep else 0
    )
    total = SHARE_TOTALS[direction]
    size = len(candidates.keys)
    credits, chance = {}, {}
    for k in KS:
        name = f"{direction} R@{k}"
        if recall == "share":
            depth = min(k, ranking.top.shape[1])
            credits[name] = share_at(ranking, depth, total)
            expected = depth * np.diff(truths.start) / size / min(total, depth)
        else:
            credits[name] = recall_at(ranking, k, ties)
            expected = chance_of_recall(truths, size, k)
        chance[name] = float(expected.mean())
    credits[f"{direction} {RSUM}"] = np.sum(list(credits.values()), axis=0)
    chance[f"{direction} {RSUM}"] = sum(chance.values())
    if relevance is not None:
        rows = _rows(direction, relevance, queries, candidates)
        if not isinstance(rows, VectorRows):
            raise InputError(f"{relevance.model}: the relevance of {DCG} is read from vectors")
        similar = relevance_of(ranking, rows.all_queries(), rows.all_candidates())
        credits[f"{direction} {DCG}"] = dcg_cm(ranking, similar)
    return Retrieved(credits=credits, chance=chance, tied=ranking.level > 0, lost=~ranking.scored)


def _truths(queries: Side, candidates: Side) -> Truths:
    order = np.argsort(candidates.entries, kind="stable")
    entries = candidates.entries[order]
    first, last = (np.searchsorted(entries, queries.entries, side) for side in ("left", "right"))
    counts = last - first
    asking = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(asking)) - np.repeat(np.cumsum(counts) - counts, counts)
    return Truths.of_pairs(asking, order[first[asking] + within], len(counts))


def _rows(
    direction: Direction, scores: CrossedScores, queries: Side, candidates: Side
) -> ScoreRows:
    images, captions = (queries, candidates) if direction == "i2t" else (candidates, queries)
    of_images = _found(scores, "images", images.keys)
    of_captions = _found(scores, "captions", captions.keys)
    if scores.grid is not None:
        matrix = scores.grid.scores
        if direction == "i2t":
            return MatrixRows(matrix=matrix, query_of=of_images, candidate_of=of_captions)
        return MatrixRows(matrix=matrix.T, query_of=of_captions, candidate_of=of_images)
    assert scores.images is not None
    assert scores.captions is not None
    pictures, texts = (scores.images, of_images), (scores.captions, of_captions)
    return _vector_rows(*(pictures, texts) if direction == "i2t" else (texts, pictures))


def _vector_rows(queries: tuple[Keyed, Indices], candidates: tuple[Keyed, Indices]) -> VectorRows:
    distinct, of = np.unique(candidates[1], return_inverse=True)
    shared = len(distinct) < len(of)
    return VectorRows(
        query_vectors=queries[0].vectors,
        candidate_vectors=candidates[0].vectors[distinct if shared else candidates[1]],
        query_of=queries[1],
        candidate_of=of.astype(np.int64) if shared else None,
    )


def _found(scores: CrossedScores, what: Literal["images", "captions"], keys: Any) -> Indices:
    places = _places(scores, what, keys)
    lost = np.flatnonzero(places < 0)
    if len(lost):
        raise InputError(
            f"{scores.model}: {len(lost):,} of {len(keys):,} {what} have no score, such as "
            f"{str(keys[lost[0]])!r}"
        )
    return places


def _places(scores: CrossedScores, what: Literal["images", "captions"], keys: Any) -> Indices:
    if scores.grid is not None:
        return scores.grid.rows(keys) if what == "images" else scores.grid.columns(keys)
    found: Keyed = getattr(scores, what)
    return found.places(keys)
