import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest

from eqforge.evaluation.metrics.foils import judge_foils
from eqforge.evaluation.metrics.hard_positives import CHANCE as HARD_POSITIVE_CHANCE
from eqforge.evaluation.metrics.hard_positives import judge_hard_positives
from eqforge.evaluation.metrics.pairs import CHANCE, equivariance, judge_pairs
from eqforge.evaluation.metrics.ties import TieRule


def _tied_pairs(count: int = 300) -> np.ndarray:
    """Scores of three values, so that every pattern of ties occurs."""
    return np.random.default_rng(0).integers(0, 3, size=(count, 2, 2)).astype(np.float32)


def _strict(s: np.ndarray) -> tuple[bool, bool, bool]:
    """The published code's conditions, in its own names."""
    c0_i0, c1_i0, c0_i1, c1_i1 = s[0, 0], s[0, 1], s[1, 0], s[1, 1]
    text = c0_i0 > c1_i0 and c1_i1 > c0_i1
    image = c0_i0 > c0_i1 and c1_i1 > c1_i0
    return text, image, text and image


def _shares_of_orders(
    values: np.ndarray, won: Callable[[np.ndarray], Sequence[bool]]
) -> list[Fraction]:
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
    return [Fraction(sum(column), len(orders)) for column in zip(*results, strict=True)]


def test_text_image_and_group_score_are_those_of_the_published_conditions() -> None:
    scores = _tied_pairs()
    found = judge_pairs(scores)
    expected = np.array([_strict(s) for s in scores], dtype=float)
    assert np.array_equal(np.column_stack([found.text, found.image, found.group]), expected)


def test_under_expectation_a_tie_counts_its_share_of_all_orders() -> None:
    scores = _tied_pairs(120)
    found = judge_pairs(scores, "expectation")
    for i, s in enumerate(scores):
        text, image, group = map(float, _shares_of_orders(s, _strict))
        assert (found.text[i], found.image[i], found.group[i]) == pytest.approx(
            (text, image, group)
        )


def test_half_lies_between_losing_and_winning_every_tie() -> None:
    scores = _tied_pairs()
    strict, half = judge_pairs(scores), judge_pairs(scores, "half")
    for name in ("text", "image", "group"):
        low, found = getattr(strict, name), getattr(half, name)
        assert np.array_equal(found[found != 0.5], low[found != 0.5])
        assert (low[found == 0.5] == 0).all()
    equal = judge_pairs(np.zeros((1, 2, 2), np.float32), "half")
    assert (equal.text[0], equal.image[0], equal.group[0]) == (0.5, 0.5, 0.5)


def test_scores_that_are_all_equal_get_chance_under_expectation_and_nothing_when_strict() -> None:
    equal = np.ones((5, 2, 2), dtype=np.float32)
    expected, strict = judge_pairs(equal, "expectation"), judge_pairs(equal)
    for name, chance in CHANCE.items():
        assert getattr(expected, name) == pytest.approx(chance)
        assert not getattr(strict, name).any()
    assert strict.tied.all()


def test_a_scorer_blind_to_images_has_no_text_score() -> None:
    """Chance is no floor: every image prefers the same caption, so one of the two is wrong."""
    captions = np.random.default_rng(1).normal(size=(50, 1, 2))
    found = judge_pairs(np.repeat(captions, 2, axis=1))
    assert found.text.sum() == found.image.sum() == 0


def test_float32_scores_are_compared_as_they_are() -> None:
    near = np.nextafter(np.float32(0.3), np.float32(1))
    scores = np.array([[[near, 0.3], [0.3, near]]], dtype=np.float32)
    assert judge_pairs(scores).group[0] == 1.0


def test_equivariance_is_the_squared_deviation_of_the_changes() -> None:
    scores = np.random.default_rng(2).normal(size=(40, 2, 2))
    expected = [
        ((s[0, 0] - s[0, 1]) - (s[1, 1] - s[1, 0])) ** 2
        + ((s[0, 0] - s[1, 0]) - (s[1, 1] - s[0, 1])) ** 2
        for s in scores
    ]
    assert equivariance(scores) == pytest.approx(expected)
    assert equivariance(np.array([[[0.7, 0.2], [0.2, 0.7]]])) == [0.0]


def _hard_positive(ranks: np.ndarray) -> tuple[bool, bool, bool]:
    original, positive, negative = ranks
    brittle = original > negative > positive or positive > negative > original
    return original > negative, original > negative and positive > negative, brittle


@pytest.mark.parametrize("rule", ["strict", "expectation"])
def test_hard_positives_are_judged_by_the_papers_conditions(rule: TieRule) -> None:
    scores = np.array(list(itertools.product([0.0, 1.0, 2.0], repeat=3)))
    found = judge_hard_positives(scores, rule)
    got = np.column_stack([found.original, found.augmented, found.brittleness])
    for row, s in zip(got, scores, strict=True):
        expected = _hard_positive(s) if rule == "strict" else _shares_of_orders(s, _hard_positive)
        assert list(row) == pytest.approx([float(value) for value in expected])


def test_hard_positives_ties_are_those_with_the_hard_negative() -> None:
    scores = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [2.0, 1.0, 0.0]])
    assert list(judge_hard_positives(scores).tied) == [False, True, True, False]
    equal = judge_hard_positives(np.zeros((1, 3)), "expectation")
    for name, chance in HARD_POSITIVE_CHANCE.items():
        assert getattr(equal, name)[0] == pytest.approx(chance)


def test_foils_are_judged_as_valse_does() -> None:
    scores = np.array([[0.9, 0.2], [0.6, 0.7], [0.4, 0.3], [0.5, 0.5]])
    found = judge_foils(scores)
    assert list(found.p_c) == [1, 1, 0, 0]
    assert list(found.p_f) == [1, 0, 1, 0]
    assert list(found.acc) == [1, 0.5, 0.5, 0]
    assert list(found.pairwise) == [1, 0, 1, 0]
    assert list(judge_foils(scores, "half").p_c) == [1, 1, 0, 0.5]


def test_the_order_of_the_samples_changes_no_credit() -> None:
    scores = _tied_pairs()
    order = np.random.default_rng(3).permutation(len(scores))
    found, moved = judge_pairs(scores, "expectation"), judge_pairs(scores[order], "expectation")
    assert np.array_equal(found.group[order], moved.group)
