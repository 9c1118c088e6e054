"""Ranks all candidates for each query, block by block, and scores the ranks of the true ones.

A query may have any number of true candidates. Intermediate results are held in
memory for a block of queries at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eqforge.evaluation.metrics.score_rows import Indices, ScoreRows, Truths
from eqforge.evaluation.metrics.ties import Credits, TieRule

KS = (1, 5, 10)
DEPTH = 10
Recall: TypeAlias = Literal["any", "share"]
"""What R@k counts: whether a true candidate is in the top k, or the share of them that is."""
SHARE_TOTALS = {"i2t": 5, "t2i": 1}
"""True candidates per query assumed by the published code of the share."""
BLOCK_SCORES = 8_000_000
"""Numbers held at a time."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Ranking:
    """The ranks of each query's true candidates.

    Attributes:
      scored: whether a true candidate has a score [queries]; if none has, none is found.
      above: candidates that score above the best true one [queries]; all of them if no true one
        is scored.
      level: false candidates that tie with the best true one [queries]; 0 if no true one is
        scored.
      best: number of true candidates with the best true score [queries], at least 1.
      top: the first candidates [queries, depth], -1 where fewer were scored. Ties are
        ordered false before true, then by index.
      hits: which of them are true [queries, depth].
    """

    scored: NDArray[np.bool_]
    above: Indices
    level: Indices
    best: Indices
    top: Indices
    hits: NDArray[np.bool_]


def rank(
    scores: ScoreRows, truths: Truths, depth: int = DEPTH, block_scores: int = BLOCK_SCORES
) -> Ranking:
    """Ranks all candidates of all queries.

    Args:
      scores: of queries with candidates.
      truths: the true candidates of each query.
      depth: how many top candidates to keep; R@k needs none, and 0 saves half the time.
      block_scores: how many scores are held at a time.
    """
    parts = list(_ranked_blocks(scores, truths, min(depth, scores.candidates), block_scores))
    scored, above, level, best, top, hits = map(np.concatenate, zip(*parts, strict=True))
    return Ranking(scored=scored, above=above, level=level, best=best, top=top, hits=hits)


def _ranked_blocks(
    scores: ScoreRows, truths: Truths, depth: int, block_scores: int
) -> Iterator[tuple[NDArray[Any], ...]]:
    step = max(1, block_scores // max(1, scores.candidates))
    for start in range(0, scores.queries, step):
        stop = min(start + step, scores.queries)
        block = scores.rows(start, stop)
        bounds = truths.start[start : stop + 1]
        rows = np.repeat(np.arange(stop - start), np.diff(bounds))
        columns = truths.index[bounds[0] : bounds[-1]]
        own = block[rows, columns]
        best_score = np.maximum.reduceat(own, bounds[:-1] - bounds[0])
        best = np.bincount(rows[own == best_score[rows]], minlength=stop - start)
        scored = best_score > -np.inf
        level = np.where(scored, (block == best_score[:, None]).sum(axis=1) - best, 0)
        above = np.where(scored, (block > best_score[:, None]).sum(axis=1), scores.candidates)
        top, hits = _first(block, rows, columns, depth)
        yield scored, above, level, best, top, hits


def _first(
    block: NDArray[np.floating[Any]], rows: Indices, columns: Indices, depth: int
) -> tuple[Indices, NDArray[np.bool_]]:
    """Returns the top candidates of each row of scores, and which are true [rows, depth]."""
    if not depth:
        return np.zeros((len(block), 0), np.int64), np.zeros((len(block), 0), bool)
    limit = np.partition(block, block.shape[1] - depth, axis=1)[:, -depth]
    row, column = np.nonzero((block >= limit[:, None]) & (block > -np.inf))
    true = np.isin(row * block.shape[1] + column, rows * block.shape[1] + columns)
    order = np.lexsort([column, true, -block[row, column], row])
    place = np.arange(len(row)) - np.searchsorted(row, row)  # nonzero gives rows in order
    chosen, kept = order[place < depth], place < depth
    top = np.full((len(block), depth), -1, dtype=np.int64)
    hits = np.zeros((len(block), depth), dtype=bool)
    top[row[kept], place[kept]] = column[chosen]
    hits[row[kept], place[kept]] = true[chosen]
    return top, hits


def recall_at(ranking: Ranking, k: int, rule: TieRule = "strict") -> Credits:
    """Returns for each query the credit of "a true candidate is among the first k" [queries].

    Args:
      ranking: the ranks of the true candidates.
      k: at least 1.
      rule: how false candidates tied with the best true one rank: above it, for one half where that
        decides, or in random order with it.
    """
    sure = ranking.scored & (ranking.above + ranking.level < k)
    open_ = ranking.scored & ~sure & (ranking.above < k)
    if rule == "strict":
        return sure.astype(np.float64)
    if rule == "half":
        return sure + 0.5 * open_
    missed = np.ones(len(sure))
    for place in range(k):  # the chance that each open place goes to a false candidate
        left = np.maximum(ranking.level - place, 0) / (ranking.level + ranking.best - place).clip(1)
        missed *= np.where(place < k - ranking.above, left, 1.0)
    return np.where(open_, 1.0 - missed, sure.astype(np.float64))


def share_at(ranking: Ranking, k: int, total: int) -> Credits:
    """Returns for each query (true candidates among the first k) / min(total, k) [queries].

    With five captions per image it can fall from R@1 to R@5; the usual R@k cannot.

    Args:
      ranking: the ranks of the true candidates; ties lose.
      k: at least 1, at most the depth of the ranking.
      total: true candidates per query; see SHARE_TOTALS.

    Source: `recall_at_k` of mariyahendriksen/evaluating-cmr-in-vl; Hendriksen et al. 2024, table 3.
    """
    return ranking.hits[:, :k].sum(axis=1) / min(total, k)


def dcg_cm(
    ranking: Ranking, relevance: NDArray[np.floating[Any]], depth: int = DEPTH
) -> NDArray[np.float64]:
    """Returns each query's cross-modal discounted cumulative gain: sum of gain / log2(rank + 1).

    The gain is 1 for a true candidate, else its similarity by a second model; not normalised.

    Args:
      ranking: the top candidates.
      relevance: similarity of each query with each of its top candidates [queries, depth].
      depth: number of candidates to sum over.

    Returns:
      One sum per query [queries]; at most 4.54 for ten candidates of relevance 1.

    Source: Hendriksen et al. 2024, section 4.
    """
    gains = np.where(ranking.hits, 1.0, relevance)
    gains = np.where(ranking.top >= 0, gains, 0.0)[:, :depth]
    return gains @ (1 / np.log2(np.arange(2, 2 + gains.shape[1])))


def relevance_of(
    ranking: Ranking, queries: NDArray[np.float32], candidates: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Returns the cosine of each query with each of its top candidates [queries, depth].

    Args:
      ranking: the top candidates.
      queries: unit vectors of the relevance model [queries, d].
      candidates: unit vectors of the relevance model [candidates, d].
    """
    found = np.empty(ranking.top.shape)
    step = max(1, BLOCK_SCORES // (ranking.top.shape[1] * queries.shape[1]))
    for start in range(0, len(found), step):
        part = slice(start, start + step)
        found[part] = np.einsum("qd,qkd->qk", queries[part], candidates[ranking.top[part]])
    return found


def relative_drop(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns (before - after) / before: 0 for no change, 1 for a total loss, negative for a gain.

    Args:
      before: scores without the perturbation, of any shape; where they are 0 there is no answer.
      after: scores with it, of the same shape.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(before > 0, (before - after) / before, np.nan)


def chance_of_recall(truths: Truths, candidates: int, k: int) -> NDArray[np.float64]:
    """Returns the probability that k random candidates include a true one [queries]."""
    true = np.diff(truths.start)
    missed = np.ones(len(true))
    for place in range(min(k, candidates)):
        missed *= np.maximum(candidates - true - place, 0) / (candidates - place)
    return 1.0 - missed
