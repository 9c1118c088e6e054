import itertools
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np
import pytest

from eqforge.evaluation.metrics.pairs import (
    FOIL_METRICS,
    HARD_POSITIVE_METRICS,
    WINOGROUND,
    caption_recognised,
    equivariance,
    foil_ties,
    group_score,
    pair_ties,
)
from eqforge.evaluation.metrics.ties import Metric, TieRule

RANKED = {name: HARD_POSITIVE_METRICS[name] for name in ("original", "augmented", "brittleness")}


def _tied_pairs(count: int = 300) -> np.ndarray:
    """Scores of three values, so that every pattern of ties occurs."""
    return np.random.default_rng(0).integers(0, 3, size=(count, 2, 2)).astype(np.float32)


def _all(metrics: Mapping[str, Metric], scores: np.ndarray, rule: TieRule = "strict") -> np.ndarray:
    """Returns the credits of all metrics [n, metrics]."""
    return np.column_stack([metric.of(scores, rule) for metric in metrics.values()])


def _strict(s: np.ndarray) -> tuple[bool, bool, bool]:
    """The published code's conditions, in its own names."""
    c0_i0, c1_i0, c0_i1, c1_i1 = s[0, 0], s[0, 1], s[1, 0], s[1, 1]
    text = c0_i0 > c1_i0 and c1_i1 > c0_i1
    image = c0_i0 > c0_i1 and c1_i1 > c1_i0
    return text, image, text and image


def _hard_positive(ranks: np.ndarray) -> tuple[bool, bool, bool]:
    original, positive, negative = ranks
    brittle = original > negative > positive or positive > negative > original
    return original > negative, original > negative and positive > negative, brittle


def _shares_of_orders(
    values: np.ndarray, won: Callable[[np.ndarray], Sequence[bool]]
) -> list[float]:
    """How often each condition holds over all orders of the entries that keep to the values."""
    entries = list(values.ravel())
    orders = [
        order
        for order in itertools.permutations(range(len(entries)))
        if all(entries[a] <= entries[b] for a, b in itertools.pairwise(order))
    ]
    results = []
    for order in orders:
        ranks = np.empty(len(entries))
        ranks[list(order)] = range(len(entries))
        results.append(won(ranks.reshape(values.shape)))
    shares = [Fraction(sum(column), len(orders)) for column in zip(*results, strict=True)]
    return [float(share) for share in shares]


PAIRS = _tied_pairs(120)
TRIPLES = np.array(list(itertools.product([0.0, 1.0, 2.0], repeat=3)))
CASES = [(WINOGROUND, PAIRS, _strict), (RANKED, TRIPLES, _hard_positive)]


@pytest.mark.parametrize(("metrics", "scores", "won"), CASES, ids=["pairs", "hard positives"])
def test_samples_are_judged_by_the_papers_conditions(
    metrics: Mapping[str, Metric], scores: np.ndarray, won: Callable[[np.ndarray], Sequence[bool]]
) -> None:
    """Strictly, and under expectation a tie counts its share of all orders."""
    assert np.array_equal(_all(metrics, scores), [[*map(float, won(s))] for s in scores])
    for found, s in zip(_all(metrics, scores, "expectation"), scores, strict=True):
        assert list(found) == pytest.approx(_shares_of_orders(s, won))


def test_half_lies_between_losing_and_winning_every_tie() -> None:
    strict, half = _all(WINOGROUND, _tied_pairs()), _all(WINOGROUND, _tied_pairs(), "half")
    assert np.array_equal(half[half != 0.5], strict[half != 0.5])
    assert (strict[half == 0.5] == 0).all()
    assert _all(WINOGROUND, np.zeros((1, 2, 2), np.float32), "half").tolist() == [[0.5] * 3]


@pytest.mark.parametrize(("metrics", "shape"), [(WINOGROUND, (5, 2, 2)), (RANKED, (5, 3))])
def test_scores_that_are_all_equal_get_chance_under_expectation_and_nothing_when_strict(
    metrics: Mapping[str, Metric], shape: tuple[int, ...]
) -> None:
    equal = np.ones(shape, dtype=np.float32)
    for metric in metrics.values():
        assert metric.of(equal, "expectation") == pytest.approx(metric.chance)
        assert not metric.of(equal, "strict").any()
    assert (pair_ties if len(shape) == 3 else foil_ties)(equal).all()


def test_a_scorer_blind_to_images_has_no_text_score() -> None:
    """Chance is no floor: every image prefers the same caption, so one of the two is wrong."""
    captions = np.random.default_rng(1).normal(size=(50, 1, 2))
    assert not _all(WINOGROUND, np.repeat(captions, 2, axis=1))[:, :2].any()


def test_float32_scores_are_compared_as_they_are() -> None:
    near = np.nextafter(np.float32(0.3), np.float32(1))
    scores = np.array([[[near, 0.3], [0.3, near]]], dtype=np.float32)
    assert group_score(scores)[0] == 1.0


def test_equivariance_is_the_squared_deviation_of_the_changes() -> None:
    scores = np.random.default_rng(2).normal(size=(40, 2, 2))
    expected = [
        ((s[0, 0] - s[0, 1]) - (s[1, 1] - s[1, 0])) ** 2
        + ((s[0, 0] - s[1, 0]) - (s[1, 1] - s[0, 1])) ** 2
        for s in scores
    ]
    assert equivariance(scores) == pytest.approx(expected)
    assert equivariance(np.array([[[0.7, 0.2], [0.2, 0.7]]])) == [0.0]


def test_hard_positives_ties_are_those_with_the_hard_negative() -> None:
    scores = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [2.0, 1.0, 0.0]])
    assert list(foil_ties(scores)) == [False, True, True, False]


def test_foils_are_judged_as_valse_does() -> None:
    scores = np.array([[0.9, 0.2], [0.6, 0.7], [0.4, 0.3], [0.5, 0.5]])
    found = {name: list(metric.of(scores, "strict")) for name, metric in FOIL_METRICS.items()}
    assert found == {
        "p_c": [1, 1, 0, 0],
        "p_f": [1, 0, 1, 0],
        "acc": [1, 0.5, 0.5, 0],
        "pairwise": [1, 0, 1, 0],
    }
    assert list(caption_recognised(scores, "half")) == [1, 1, 0, 0.5]


def test_the_order_of_the_samples_changes_no_credit() -> None:
    scores = _tied_pairs()
    order = np.random.default_rng(3).permutation(len(scores))
    found, moved = (_all(WINOGROUND, each, "expectation") for each in (scores, scores[order]))
    assert np.array_equal(found[order], moved)
