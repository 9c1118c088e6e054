"""Rank all candidates for each query, and score the ranks of the true candidates.

A query can have any number of true candidates. Only one block of queries is in memory at a time.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eqforge.evaluation.metrics.ties import Credits, Flags, TieRule

Indices: TypeAlias = NDArray[np.int64]

KS = (1, 5, 10)
DEPTH = 10
Recall: TypeAlias = Literal["any", "share"]
"""Meaning of R@k: whether a true candidate is in the top k, or the share of true candidates."""
SHARE_TOTALS = {"i2t": 5, "t2i": 1}
"""Numbers of true candidates per query that the published code of the share assumes."""
BLOCK_SCORES = 8_000_000
"""Number of scores in memory at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class ScoreRows:
    """Scores of queries with all candidates, computed in blocks of queries.

    `rows` maps start and stop of a block to scores [queries, candidates]; -inf if not scored.
    """

    queries: int
    candidates: int
    rows: Callable[[int, int], NDArray[np.floating[Any]]]


def vector_rows(
    queries: NDArray[np.float32],
    candidates: NDArray[np.float32],
    query_of: Indices | None = None,
    candidate_of: Indices | None = None,
) -> ScoreRows:
    """Score by dot products of vectors [n, d].

    `query_of` and `candidate_of` contain the vector index of each query and candidate, or None if
    each has its own vector. Candidates that share a vector have bitwise equal scores.
    """

    def rows(start: int, stop: int) -> NDArray[np.float32]:
        chosen = slice(start, stop) if query_of is None else query_of[start:stop]
        scores = queries[chosen] @ candidates.T
        return scores if candidate_of is None else scores[:, candidate_of]

    asking = len(queries if query_of is None else query_of)
    return ScoreRows(asking, len(candidates if candidate_of is None else candidate_of), rows)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Truths:
    """The true candidates of each query q, at index[start[q] : start[q + 1]].

    Attributes:
      start: offsets into `index` [queries + 1], from 0; each query has at least one candidate.
      index: candidates, ascending within a query.
    """

    start: Indices
    index: Indices

    @classmethod
    def of_pairs(cls, queries: Indices, candidates: Indices, count: int) -> "Truths":
        order = np.lexsort([candidates, queries])
        sizes = np.bincount(queries, minlength=count)
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return cls(start=start, index=candidates[order].astype(np.int64))

    def of(self, queries: Indices) -> "Truths":
        first, counts = self.start[queries], np.diff(self.start)[queries]
        rows = np.repeat(np.arange(len(counts)), counts)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        return Truths.of_pairs(rows, self.index[first[rows] + within], len(queries))

    def pairs(self) -> tuple[Indices, Indices]:
        """Return the query and the candidate of each pair [pairs]."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start)), self.index


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Ranking:
    """The ranks of each query's true candidates.

    Attributes:
      scored: whether a true candidate has a score [queries]; otherwise none is found.
      above: number of candidates that score above the best true candidate [queries]; all if no true
        candidate is scored.
      level: number of false candidates that tie with the best true candidate [queries]; 0 if no
        true candidate is scored.
      best: number of true candidates with the best true score [queries], at least 1.
      top: the first candidates [queries, depth], -1 if fewer were scored. Ties are
        ordered false before true, then by index.
      hits: which of the top candidates are true [queries, depth].
    """

    scored: Flags
    above: Indices
    level: Indices
    best: Indices
    top: Indices
    hits: Flags


def rank(
    scores: ScoreRows, truths: Truths, depth: int = DEPTH, block_scores: int = BLOCK_SCORES
) -> Ranking:
    """Rank all candidates of all queries, and keep the top `depth`.

    R@k needs no top candidates; a depth of 0 halves the time.
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
        true_scores = block[rows, columns]
        best_score = np.maximum.reduceat(true_scores, bounds[:-1] - bounds[0])
        best = np.bincount(rows[true_scores == best_score[rows]], minlength=stop - start)
        scored = best_score > -np.inf
        level = np.where(scored, (block == best_score[:, None]).sum(axis=1) - best, 0)
        above = np.where(scored, (block > best_score[:, None]).sum(axis=1), scores.candidates)
        top, hits = _first(block, rows, columns, depth)
        yield scored, above, level, best, top, hits


def _first(
    block: NDArray[np.floating[Any]], rows: Indices, columns: Indices, depth: int
) -> tuple[Indices, Flags]:
    """Return the top candidates of each row of scores, and which are true [rows, depth]."""
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
    """Credit each query with a true candidate among the first k [queries].

    If the result depends on a tie with the best true candidate, the rule sets the credit: 0, one
    half, or the probability under a random order.
    """
    sure = ranking.scored & (ranking.above + ranking.level < k)
    open_ = ranking.scored & ~sure & (ranking.above < k)
    if rule == "strict":
        return sure.astype(np.float64)
    if rule == "half":
        return sure + 0.5 * open_
    missed = np.ones(len(sure))
    for place in range(k):  # the chance that each open rank goes to a false candidate
        left = np.maximum(ranking.level - place, 0) / (ranking.level + ranking.best - place).clip(1)
        missed *= np.where(place < k - ranking.above, left, 1.0)
    return np.where(open_, 1.0 - missed, sure.astype(np.float64))


def share_at(ranking: Ranking, k: int, total: int) -> Credits:
    """Return (true candidates among the first k) / min(total, k) for each query [queries].

    With five captions per image, R@5 can be below R@1, unlike the usual R@k. Ties count as wrong.

    Source: `recall_at_k` of mariyahendriksen/evaluating-cmr-in-vl; Hendriksen et al. 2024, table 3.
    """
    return ranking.hits[:, :k].sum(axis=1) / min(total, k)


def dcg_cm(
    ranking: Ranking, relevance: NDArray[np.floating[Any]], depth: int = DEPTH
) -> NDArray[np.float64]:
    """Return each query's cross-modal discounted cumulative gain: sum of gain / log2(rank + 1).

    The gain of a true candidate is 1. The gain of any other candidate is its similarity by a second
    model, `relevance` [queries, depth]. The sum is not normalised: its maximum is 4.54 for ten
    candidates.

    Source: Hendriksen et al. 2024, section 4.
    """
    gains = np.where(ranking.hits, 1.0, relevance)
    gains = np.where(ranking.top >= 0, gains, 0.0)[:, :depth]
    return gains @ (1 / np.log2(np.arange(2, 2 + gains.shape[1])))


def relevance_of(
    ranking: Ranking, queries: NDArray[np.float32], candidates: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Return the cosine of each query and its top candidates (unit vectors) [queries, depth]."""
    found = np.empty(ranking.top.shape)
    step = max(1, BLOCK_SCORES // (ranking.top.shape[1] * queries.shape[1]))
    for start in range(0, len(found), step):
        part = slice(start, start + step)
        found[part] = np.einsum("qd,qkd->qk", queries[part], candidates[ranking.top[part]])
    return found


def relative_drop(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (before - after) / before; NaN if the score before is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(before > 0, (before - after) / before, np.nan)


def chance_of_recall(truths: Truths, candidates: int, k: int) -> NDArray[np.float64]:
    """Return the probability that k random candidates include a true one [queries]."""
    true = np.diff(truths.start)
    missed = np.ones(len(true))
    for place in range(min(k, candidates)):
        missed *= np.maximum(candidates - true - place, 0) / (candidates - place)
    return 1.0 - missed


GROUPS = {"decreased": np.less, "increased": np.greater, "unchanged": np.equal}
"""The comparison of scores after and before that defines each group of queries.

Source: Hendriksen et al. 2024, section 5.4.
"""


def mean_jaccard(
    before: NDArray[np.float64], after: Mapping[str, NDArray[np.float64]]
) -> dict[str, float]:
    """Return each group's mean Jaccard similarity of perturbations, |A and B| / |A or B|.

    A and B are the groups of two perturbations. They contain only captions that both perturbations
    changed, because unchanged captions do not show agreement. The paper's perturbations change
    every caption. Pairs of empty sets do not count. The mean is NaN if no pair remains.

    Args:
      before: score of each caption [captions].
      after: scores with the perturbed caption [captions], by perturbation; NaN if unchanged or
        without a score.

    Source: Hendriksen et al. 2024, section 5.4 and table 5.
    """
    shares: dict[str, list[float]] = {group: [] for group in GROUPS}
    for first, second in itertools.combinations(after.values(), 2):
        shared = np.isfinite(first) & np.isfinite(second)
        for group, compare in GROUPS.items():
            ours, theirs = (compare(one[shared], before[shared]) for one in (first, second))
            if either := (ours | theirs).sum():
                shares[group].append((ours & theirs).sum() / either)
    return {
        group: float(np.mean(found)) if found else float("nan") for group, found in shares.items()
    }
