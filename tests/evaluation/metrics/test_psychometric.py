"""Fits against known curves, and against a general optimiser."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize  # type: ignore[import-untyped]

from eqforge.evaluation.metrics.psychometric import Curves, fit_curves
from tests.evaluation.metrics.coverage import CURVES, coverage

SIZES = np.array([1.0, 2.0, 3.0, 5.0])
KNOWN = [(0.0, 2.0, 0.02), (-1.0, 1.0, 0.03), (-2.0, 3.0, 0.0), (1.0, 0.5, 0.06)]


def share(size: Any, offset: float, rise: float, lapses: float) -> Any:
    """The formula of the docstring, word for word."""
    return 0.5 + (0.5 - lapses) / (1 + np.exp(-(offset + rise * np.log2(size))))


def answers(curve: tuple[float, float, float], asked: int, draws: int = 1) -> Any:
    rng = np.random.default_rng(0)
    return rng.binomial(asked, share(SIZES, *curve), (draws, len(SIZES)))


@pytest.mark.parametrize("curve", KNOWN)
def test_a_curve_is_found_again(curve: tuple[float, float, float]) -> None:
    right = answers(curve, 1_000_000)
    found = fit_curves(SIZES, right, np.full_like(right, 1_000_000))

    assert found.share(SIZES[[-1]])[0] == pytest.approx(share(5.0, *curve), abs=2e-3)
    assert found.slopes[0] == pytest.approx(curve[1], rel=0.1)
    threshold = found.thresholds[0]
    assert (
        threshold == 1
        if share(1.0, *curve) >= 0.75
        else share(threshold, *curve) == (pytest.approx(0.75, abs=2e-3))
    )


@pytest.mark.parametrize("curve", KNOWN)
def test_no_other_curve_is_likelier(curve: tuple[float, float, float]) -> None:
    right = answers(curve, 40, draws=20)
    found = fit_curves(SIZES, right, np.full_like(right, 40))
    for row in range(20):

        def loss(values: Any, right: Any = right[row]) -> float:
            there = np.clip(share(SIZES, *values), 1e-12, 1 - 1e-12)
            return float(-(right * np.log(there) + (40 - right) * np.log(1 - there)).sum())

        bounds = [(-20, 20), (0, 20), (0, 0.06)]
        starts = ([0, 1, 0.03], [2, 0.1, 0.0], [-3, 3, 0.05], [5, 0, 0.0])
        best = min(minimize(loss, start, bounds=bounds).fun for start in starts)
        at_one = found.offset[row] - found.rise[row] * np.log2(found.middle)
        mine = loss([at_one, found.rise[row], found.lapses[row]])
        assert mine <= best + 0.01


def of(right: list[float], asked: list[int]) -> Curves:
    return fit_curves(SIZES[: len(right)], np.array([right]), np.array([asked]))


def test_a_threshold_is_never_sought_outside_of_what_was_measured() -> None:
    poor, best = of([52, 55, 60, 64], [100] * 4), of([90, 95, 98, 99], [100] * 4)
    assert poor.thresholds[0] == np.inf
    assert poor.slopes[0] > 0
    assert best.thresholds[0] == 1


@pytest.mark.parametrize(
    ("right", "threshold"),
    [([100] * 4, 1.0), ([50] * 4, np.inf), ([0] * 4, np.inf), ([60, 50, 40, 30], np.inf)],
)
def test_answers_without_a_rise_have_no_slope(right: list[float], threshold: float) -> None:
    found = of(right, [100] * 4)
    assert found.thresholds[0] == threshold
    assert np.isnan(found.slopes[0])


def test_a_step_between_two_sizes_has_a_threshold_between_them_and_an_infinite_slope() -> None:
    found = of([50, 100, 100, 100], [100] * 4)
    assert 1 < found.thresholds[0] < 2
    assert found.slopes[0] == np.inf


@pytest.mark.parametrize("unit", [0.001, 30.0])
def test_the_unit_of_the_sizes_is_nothing_to_the_slope(unit: float) -> None:
    """Of vectors that differ by 0.002 as of three words."""
    right, asked = answers((-4.0, 5.0, 0.02), 1_000_000), np.full((1, 4), 1_000_000)
    found, other = fit_curves(SIZES, right, asked), fit_curves(unit * SIZES, right, asked)
    assert other.thresholds[0] == pytest.approx(unit * found.thresholds[0], rel=1e-6)
    assert other.slopes[0] == pytest.approx(found.slopes[0], rel=1e-6)
    assert found.slopes[0] == pytest.approx(5, rel=0.05)


@pytest.mark.parametrize(
    ("sizes", "right", "asked"),
    [([0.2, 12, 30], [838, 22, 3], [1000, 50, 50]), ([1, 2, 3], [90, 60, 20], [100, 100, 100])],
)
def test_answers_that_fall_are_level_and_never_fit_by_a_rise(
    sizes: list[float], right: list[float], asked: list[float]
) -> None:
    found = fit_curves(np.array(sizes), np.array([right]), np.array([asked]))
    mean = sum(right) / sum(asked)
    assert [found.share(np.array([size]))[0] for size in sizes] == pytest.approx(
        [mean] * len(sizes), abs=1e-3
    )


@pytest.mark.parametrize("curve", CURVES)
def test_intervals_hold_the_threshold_and_the_slope_of_a_known_model(
    curve: tuple[float, float, float],
) -> None:
    assert min(coverage(curve, ladders=240, times=80, draws=100)) > 0.85


def test_sizes_without_questions_count_for_nothing_and_one_alone_gives_no_curve() -> None:
    whole, part = of([60, 80, 90], [100] * 3), of([60, 80, 90, 0], [100, 100, 100, 0])
    assert part.thresholds[0] == pytest.approx(whole.thresholds[0])
    assert part.largest[0] == 3
    assert np.isnan(of([60, 0, 0], [100, 0, 0]).offset[0])
