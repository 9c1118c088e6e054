import itertools
import math

import numpy as np
import pytest

from eqforge.evaluation.metrics.retrieval import (
    ScoreRows,
    Truths,
    dcg_cm,
    mean_jaccard,
    rank,
    recall_at,
    relative_drop,
    relevance_of,
    share_at,
    vector_rows,
)


def _random(
    seed: int, queries: int = 40, candidates: int = 25
) -> tuple[np.ndarray, list[list[int]]]:
    """Scores of few values, so that many tie, and one to four true candidates each."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 12, (queries, candidates)).astype(np.float32)
    true = [sorted(rng.choice(candidates, rng.integers(1, 5), replace=False)) for _ in scores]
    return scores, true


def matrix_rows(scores: np.ndarray) -> ScoreRows:
    return ScoreRows(len(scores), scores.shape[1], lambda start, stop: scores[start:stop])


def _truths(true: list[list[int]]) -> Truths:
    pairs = [(query, candidate) for query, found in enumerate(true) for candidate in found]
    queries, candidates = np.array(pairs[::-1]).T
    return Truths.of_pairs(queries, candidates, len(true))


def _order(row: np.ndarray, true: list[int]) -> list[int]:
    return sorted(range(len(row)), key=lambda c: (-row[c], c in true, c))


@pytest.mark.parametrize("block", [1, 60, 10**6])
def test_ranks_are_those_of_sorting_each_query(block: int) -> None:
    scores, true = _random(0)
    found = rank(matrix_rows(scores), _truths(true), block_scores=block)
    for query, (row, own) in enumerate(zip(scores, true, strict=True)):
        order = _order(row, own)
        assert list(found.top[query]) == order[:10]
        assert list(found.hits[query]) == [c in own for c in order[:10]]
        for k in (1, 5, 10):
            assert recall_at(found, k)[query] == any(c in own for c in order[:k])
            hits = sum(c in own for c in order[:k])
            assert share_at(found, k, 5)[query] == hits / min(5, k)


def test_under_expectation_recall_is_its_mean_over_all_orders_of_the_ties() -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        row = rng.integers(0, 3, 6).astype(float)
        own = sorted(rng.choice(6, 2, replace=False))
        found = rank(matrix_rows(row[None]), _truths([own]))
        orders = [
            order
            for order in itertools.permutations(range(6))
            if all(row[a] >= row[b] for a, b in itertools.pairwise(order))
        ]
        for k in (1, 2, 5):
            expected = np.mean([any(c in own for c in order[:k]) for order in orders])
            assert recall_at(found, k, "expectation")[0] == pytest.approx(expected)
            half = recall_at(found, k, "half")[0]
            assert half == (expected if expected in (0, 1) else 0.5)


def test_vectors_are_compared_as_their_dot_product() -> None:
    rng = np.random.default_rng(2)
    queries, candidates = (rng.normal(size=(n, 16)).astype(np.float32) for n in (30, 20))
    true = [[int(n)] for n in rng.integers(0, 20, 30)]
    by_vectors = rank(vector_rows(queries, candidates), _truths(true))
    by_matrix = rank(matrix_rows(queries @ candidates.T), _truths(true))
    assert np.array_equal(by_vectors.top, by_matrix.top)


def test_candidates_that_share_a_vector_tie_exactly() -> None:
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(7, 512)).astype(np.float32)
    shared = vector_rows(vectors, vectors, candidate_of=np.repeat(np.arange(7), 3))
    found = rank(shared, _truths([[3 * n] for n in range(7)]))
    assert (found.level == 2).all()
    assert recall_at(found, 1, "expectation") == pytest.approx(1 / 3)


def test_a_true_candidate_that_was_not_scored_is_not_found() -> None:
    scores = np.full((2, 12), -np.inf)
    scores[0, :3] = [3, 2, 1]
    scores[1, 4] = 1
    found = rank(matrix_rows(scores), _truths([[5], [4]]))
    assert list(recall_at(found, 10, "expectation")) == [0, 1]
    assert list(found.top[0]) == [0, 1, 2, *[-1] * 7]
    assert dcg_cm(found, np.ones((2, 10))) == pytest.approx([1 + 1 / math.log2(3) + 0.5, 1])
    assert list(found.scored) == [False, True]
    assert list(found.level) == [0, 0]


def test_dcg_cm_is_the_papers_sum() -> None:
    rng = np.random.default_rng(4)
    scores, true = _random(5)
    query_vectors, candidate_vectors = (
        rng.normal(size=(n, 8)).astype(np.float32) for n in (40, 25)
    )
    query_vectors /= np.linalg.norm(query_vectors, axis=1, keepdims=True)
    candidate_vectors /= np.linalg.norm(candidate_vectors, axis=1, keepdims=True)
    found = rank(matrix_rows(scores), _truths(true))
    got = dcg_cm(found, relevance_of(found, query_vectors, candidate_vectors))
    for query, row in enumerate(scores):
        total = 0.0
        for place, c in enumerate(_order(row, true[query])[:10], start=1):
            gain = 1.0 if c in true[query] else float(query_vectors[query] @ candidate_vectors[c])
            total += gain / math.log2(place + 1)
        assert got[query] == pytest.approx(total, abs=1e-5)


def test_the_published_recall_can_fall_with_k_and_the_usual_one_cannot() -> None:
    scores = np.array([[9.0, *range(8), *[8.5] * 4]])
    found = rank(matrix_rows(scores), _truths([[0, 1, 2, 3, 4]]))
    assert share_at(found, 1, 5)[0] == 1.0
    assert share_at(found, 5, 5)[0] == 0.2
    assert [recall_at(found, k)[0] for k in (1, 5, 10)] == [1, 1, 1]


def test_relative_drop_has_no_answer_where_there_was_nothing_to_lose() -> None:
    found = relative_drop(np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.75, 0.1]))
    assert found[:2] == pytest.approx([0.5, -0.5])
    assert np.isnan(found[2])


def test_jaccard_is_the_mean_over_pairs_of_perturbations() -> None:
    before = np.array([3.0, 3.0, 0.0, 1.0])
    after = {"a": [2.0, 1.0, 0.0, 2.0], "b": [2.0, 3.0, 0.0, np.nan], "c": [2.0, 2.0, 0.0, 1.0]}
    found = mean_jaccard(before, {name: np.array(values) for name, values in after.items()})
    assert found["decreased"] == pytest.approx((1 / 2 + 2 / 2 + 1 / 2) / 3)
    assert found["unchanged"] == pytest.approx((1 / 2 + 1 / 2 + 1 / 2) / 3)
    assert found["increased"] == 0  # only a and c were both applied to the last caption
    assert np.isnan(mean_jaccard(before[:2], {"a": before[:2], "b": before[:2]})["increased"])


def test_captions_that_one_of_two_perturbations_left_out_are_no_disagreement() -> None:
    before = np.arange(5.0)
    some = np.where(np.arange(5) < 3, before, np.nan)
    assert mean_jaccard(before, {"all": before, "some": some})["unchanged"] == 1.0
