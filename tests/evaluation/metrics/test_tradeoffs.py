import numpy as np
import pytest

from eqforge.evaluation.tasks.boundaries import Search, within
from eqforge.evaluation.tasks.gap import fisher_interval, pearson

# VLUE, table 2, eight models: NLVR2 Test-P and Test-OOD, VQA Test-dev and Test-OOD.
VLUE_INSIDE = np.array(
    [
        *(78.03, 76.20, 79.98, 73.6, 83.14, 84.21, 84.76, 83.05),
        *(72.70, 69.90, 73.82, 69.80, 75.84, 78.07, 78.22, 77.68),
    ]
)
VLUE_OUTSIDE = np.array(
    [
        *(66.53, 65.24, 66.60, 73.84, 73.17, 74.16, 73.02, 73.47),
        *(48.38, 46.18, 47.79, 46.31, 51.52, 51.55, 52.57, 53.76),
    ]
)


def test_the_correlation_of_vlues_models_is_the_printed_one() -> None:
    """0.75, section 5: over NLVR2 and VQA together."""
    found = pearson(VLUE_INSIDE, VLUE_OUTSIDE)
    assert found == pytest.approx(0.75, abs=0.005)
    x, y = (v - v.mean() for v in (VLUE_INSIDE, VLUE_OUTSIDE))
    assert found == pytest.approx((x @ y) / np.sqrt((x @ x) * (y @ y)))
    low, high = fisher_interval(found, len(VLUE_INSIDE))
    assert low < found < high


def test_two_models_or_equal_ones_have_no_correlation() -> None:
    assert np.isnan(pearson(VLUE_INSIDE[:2], VLUE_OUTSIDE[:2]))
    assert np.isnan(pearson(np.ones(4), VLUE_OUTSIDE[:4]))


def best_times_s(scores: np.ndarray, times_s: np.ndarray) -> np.ndarray:
    search = Search(boundary_id="", video="", timestamp_s=0.0, times_s=times_s, scores=scores)
    return search.best_times_s


def test_the_boundary_is_between_the_frames_that_match_both_captions_at_once() -> None:
    before, after = np.array([0.9, 0.8, 0.1, 0.2]), np.array([0.1, 0.2, 0.9, 0.5])
    found = best_times_s(before[:-1] + after[1:], np.array([0.1, 0.3, 0.5]))
    assert found.tolist() == [0.3]


def test_places_that_fit_equally_well_count_by_the_tie_rule() -> None:
    best = best_times_s(np.ones(5), np.arange(0.5, 5))
    assert best.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]
    for threshold, counts in ((0.1, (0, 0.5, 0.2)), (2.5, (1, 1, 1)), (0.01, (0, 0.5, 0.2))):
        found = [within(best, 2.5, threshold, rule) for rule in ("strict", "half", "expectation")]
        assert found == pytest.approx(counts)
    assert [within(best, 9.0, 1.0, rule) for rule in ("strict", "half", "expectation")] == [0] * 3


def test_an_error_of_the_threshold_is_too_large() -> None:
    assert [within(np.array([error]), 0.0, 0.1) for error in (-0.09, 0.1, 0.5)] == [1, 0, 0]
    assert within(np.arange(0.5, 4), 2.0, 1.0, "expectation") == 0.5


def test_a_random_guess_gets_chance() -> None:
    rng = np.random.default_rng(2)
    times = np.arange(0.5, 29) / 5
    guesses = [best_times_s(rng.random(29), times) for _ in range(3000)]
    found = np.mean([within(guess, 2.9, 0.5) for guess in guesses])
    assert found == pytest.approx(within(times, 2.9, 0.5, "expectation"), abs=0.025)
