import numpy as np
import pytest
from scipy.stats import beta, binomtest  # type: ignore[import-untyped]
from scipy.stats import t as student

from eqforge.evaluation.statistics.bootstrap import (
    ENOUGH_CLUSTERS,
    compare_paired,
    exchange_test,
    percentile_interval,
    resample_means,
)
from eqforge.evaluation.tasks.eqben import domains, eqben_average

RN50 = {  # EqBen, table 3, CLIP (RN-50), per cent; its average stands as 33.28
    "sd": (90.09, 85.92, 79.11),
    "kubric": (21.33, 21.93, 9.75),
    "youcook2": (47.72, 47.99, 34.05),
    "gebc": (10.80, 18.03, 3.97),
    "ag": (14.52, 10.44, 3.50),
}


def _clustered(seed: int, clusters: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Samples that agree within their cluster, of uneven sizes."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, clusters)
    numbers = np.repeat(np.arange(clusters), sizes)
    return (rng.random(clusters) < 0.4)[numbers].astype(float), numbers


def _loop(credits: np.ndarray, numbers: np.ndarray, resamples: int) -> np.ndarray:
    """The bootstrap as the textbook writes it."""
    rng = np.random.default_rng(99)
    groups = [credits[numbers == number] for number in np.unique(numbers)]
    draws = []
    for _ in range(resamples):
        drawn = np.concatenate([groups[i] for i in rng.integers(0, len(groups), len(groups))])
        draws.append(drawn.mean())
    return np.array(draws)


@pytest.mark.parametrize("noise", [0.0, 1e-9])
def test_the_interval_is_that_of_drawing_clusters_one_by_one(noise: float) -> None:
    """With and without noise: clusters that are alike are drawn by number, others one by one."""
    credits, numbers = _clustered(0, clusters=300)
    rng = np.random.default_rng(1)
    many = np.tile(numbers, 8) + 300 * np.repeat(np.arange(8), len(numbers))
    credits = np.tile(credits, 8) + noise * rng.normal(size=8 * len(credits))
    found = resample_means(credits, many, resamples=2000).interval()
    assert found == pytest.approx(percentile_interval(_loop(credits, many, 500)), abs=0.006)


def test_intervals_over_clusters_cover_the_truth_as_often_as_they_say() -> None:
    covered, alone = 0, 0
    for seed in range(200):
        credits, numbers = _clustered(seed)
        low, high = resample_means(credits, numbers, seed=seed, resamples=300).interval()
        covered += low <= 0.4 <= high
        low, high = resample_means(credits, seed=seed, resamples=300).interval()
        alone += low <= 0.4 <= high
    assert 0.88 <= covered / 200 <= 0.99
    assert alone / 200 < 0.8, "drawn one by one, samples of one cluster make intervals too narrow"


@pytest.mark.parametrize(("clusters", "low", "high"), [(3, 0.70, 0.80), (5, 0.89, 0.95)])
def test_intervals_of_few_clusters_cover_it_less_often(
    clusters: int, low: float, high: float
) -> None:
    assert clusters < ENOUGH_CLUSTERS
    assert low < _covered(clusters) < high


def test_intervals_of_enough_clusters_cover_it_as_often_as_they_say() -> None:
    assert 0.91 < _covered(ENOUGH_CLUSTERS) < 0.97


def test_intervals_of_unequal_clusters_cover_the_mean() -> None:
    """Plain percentiles cover it in 89% of samples."""
    covered = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        sizes = rng.geometric(0.1, 12)
        numbers = np.repeat(np.arange(12), sizes)
        credits = 0.6 * rng.normal(size=12)[numbers] + rng.normal(size=len(numbers))
        low, high = resample_means(credits, numbers, seed=seed, resamples=500).interval()
        covered += low <= 0 <= high
    assert 0.92 < covered / 300 < 0.98


def _covered(clusters: int, rounds: int = 1_000) -> float:
    """Returns how often an interval of evenly spread values holds their mean."""
    rng = np.random.default_rng(0)
    drawn = (resample_means(rng.random(clusters), seed=n).interval() for n in range(rounds))
    return float(np.mean([low <= 0.5 <= high for low, high in drawn]))


@pytest.mark.parametrize(("right", "count"), [(0, 22), (22, 22), (0, 1000), (3, 3)])
def test_nothing_and_everything_right_have_the_exact_interval(right: int, count: int) -> None:
    credits = np.repeat([1.0, 0.0], [right, count - right])
    exact = binomtest(right, count).proportion_ci(method="exact")
    assert resample_means(credits).share_interval() == pytest.approx((exact.low, exact.high))
    # Ten equal samples of a cluster are one trial.
    clusters = np.repeat(np.arange(count), 10)
    tenfold = resample_means(np.repeat(credits, 10), clusters).share_interval()
    assert tenfold == pytest.approx((exact.low, exact.high))


def test_in_between_the_interval_is_the_exact_one_of_as_many_trials_as_have_its_variance() -> None:
    credits = np.repeat([1.0, 0.0], [400, 600])
    exact = binomtest(400, 1000).proportion_ci(method="exact")
    alone = resample_means(credits, resamples=20_000).share_interval()
    assert alone == pytest.approx((exact.low, exact.high), abs=2e-3)
    tenfold = resample_means(
        np.repeat(credits, 10), np.repeat(np.arange(1000), 10), resamples=20_000
    ).share_interval()
    assert tenfold == pytest.approx(alone, abs=1e-3)
    uneven = resample_means(np.zeros(3), np.arange(3), weights=np.array([1.0, 1.0, 2.0]))
    assert uneven.share_interval()[1] == pytest.approx(beta.ppf(0.975, 1, 16 / 6))


def test_one_cluster_has_no_interval_and_a_few_ties_are_not_certain() -> None:
    assert np.isnan(resample_means(np.ones(5), np.zeros(5)).share_interval()).all()
    low, high = resample_means(np.full(3, 0.5)).share_interval()
    assert low < 0.1
    assert high > 0.9
    low, high = resample_means(np.full(9_999, 0.5)).share_interval()
    assert 0.49 < low < high < 0.51


def test_sums_of_shares_have_bounds_in_their_own_unit_and_probes_wider_ones() -> None:
    low, high = resample_means(np.zeros(22)).share_interval(most=3.0)
    assert (low, high) == pytest.approx((0.0, 3 * 0.154373), abs=1e-5)
    narrow = resample_means(np.repeat([1.0, 0.0], [10, 30]))
    assert narrow.share_interval(widening=1.5)[1] > narrow.share_interval()[1]


@pytest.mark.parametrize(("clusters", "rate"), [(3, 0.97), (5, 0.1), (22, 0.02)])
def test_intervals_of_shares_near_0_and_1_cover_them_in_clusters_few_or_many(
    clusters: int, rate: float
) -> None:
    """Half of what varies is between clusters; percentiles hold a rate of 0.02 one time in ten."""
    rng = np.random.default_rng(0)
    held, percentiles = 0, 0
    for seed in range(150):
        own = rng.beta(rate, 1 - rate, clusters)
        numbers = np.repeat(np.arange(clusters), rng.integers(1, 6, clusters))
        credits = (rng.random(len(numbers)) < own[numbers]).astype(float)
        found = resample_means(credits, numbers, seed=seed, resamples=200)
        low, high = found.share_interval()
        held += low <= rate <= high
        low, high = found.interval()
        percentiles += low <= rate <= high
    assert held >= 0.93 * 150
    assert percentiles < held


@pytest.mark.parametrize("clusters", [2, 5])
def test_intervals_of_shares_of_few_large_clusters_cover_them(clusters: int) -> None:
    """Fifty samples a cluster that mostly agree: of two clusters percentiles hold one in two."""
    rng = np.random.default_rng(2)
    held = 0
    for seed in range(150):
        right = rng.random((clusters, 50)) < rng.beta(1.2, 1.2, (clusters, 1))
        numbers = np.repeat(np.arange(clusters), 50)
        credits = right.ravel().astype(float)
        low, high = resample_means(credits, numbers, seed=seed, resamples=200).share_interval()
        held += low <= 0.5 <= high
    assert held >= 0.93 * 150


def test_trials_of_few_clusters_are_those_of_korn_and_graubard() -> None:
    """n / deff, of the variance with clusters - 1 in its divisor, times a square of Student's t."""
    numbers, credits = np.repeat(np.arange(6), 10), np.zeros(60)
    for cluster, right in enumerate((9, 2, 5, 8, 3, 6)):
        credits[10 * cluster : 10 * cluster + right] = 1.0
    means, share = credits.reshape(6, 10).mean(axis=1), credits.mean()
    effect = (means.var(ddof=1) / 6) / (share * (1 - share) / 59)
    trials = 60 / effect * (student.ppf(0.975, 59) / student.ppf(0.975, 5)) ** 2
    right = share * trials
    exact = beta.ppf(0.025, right, trials - right + 1), beta.ppf(0.975, right + 1, trials - right)
    found = resample_means(credits, numbers, resamples=50_000).share_interval()
    assert found == pytest.approx(exact, abs=3e-3)


@pytest.mark.parametrize("clusters", [5, 22])
def test_intervals_of_rare_differences_cover_them(clusters: int) -> None:
    """The second model is right where the first is not on 3 of 100, and wrong on 2 of 100."""
    rng = np.random.default_rng(1)
    held, percentiles = 0, 0
    for seed in range(150):
        drawn = rng.random(4 * clusters)
        first, second = (drawn < 0.52).astype(float), (drawn < 0.5).astype(float)
        second[drawn > 0.97] = 1.0
        numbers = np.repeat(np.arange(clusters), 4)
        true = 0.03 - 0.02
        one = compare_paired(first, second, numbers, seed=seed, resamples=100, most=1.0)
        held += one.low <= true <= one.high
        one = compare_paired(first, second, numbers, seed=seed, resamples=100)
        percentiles += one.low <= true <= one.high
    assert held >= 0.95 * 150
    assert percentiles < 0.92 * 150


def test_the_order_of_rows_changes_nothing_to_the_last_bit() -> None:
    rng = np.random.default_rng(5)
    credits, clusters = rng.normal(size=(500, 3)), rng.integers(0, 40, 500).astype(str)
    weights = rng.random(500)
    order = rng.permutation(500)
    found = resample_means(credits, clusters, weights=weights, seed=3, resamples=50)
    moved = resample_means(
        credits[order], clusters[order], weights=weights[order], seed=3, resamples=50
    )
    assert np.array_equal(found.values, moved.values)
    assert np.array_equal(found.draws, moved.draws)
    assert found.clusters == 40


def test_weights_make_a_weighted_mean() -> None:
    found = resample_means(np.array([1.0, 0.0]), weights=np.array([3.0, 1.0]), resamples=10)
    assert found.values == [0.75]


def test_the_mean_of_groups_is_that_of_drawing_clusters_one_by_one() -> None:
    rng = np.random.default_rng(7)
    numbers, groups = rng.integers(0, 40, 400), rng.choice([0, 0, 0, 1, 2], 400)
    credits = rng.normal(size=(400, 2)) + groups[:, None]
    found = resample_means(credits, numbers, groups=groups, resamples=2000)
    parts = [credits[groups == group].mean(axis=0) for group in range(3)]
    assert found.values == pytest.approx(np.mean(parts, axis=0))
    draws = []
    for _ in range(1000):
        drawn = np.concatenate([np.flatnonzero(numbers == c) for c in rng.integers(0, 40, 40)])
        means = [credits[drawn][groups[drawn] == group].mean(axis=0) for group in range(3)]
        draws.append(np.mean(means, axis=0))
    for metric in range(2):
        expected = percentile_interval(np.array(draws)[:, metric])
        assert found.interval(metric) == pytest.approx(expected, abs=0.03)


def test_draws_without_one_of_the_groups_do_not_count() -> None:
    groups = np.array(["rare"] + ["often"] * 20)
    found = resample_means(np.ones(21), groups=groups, resamples=200)
    assert 0.2 < np.isnan(found.draws).mean() < 0.5
    assert found.interval() == (1.0, 1.0)
    each = resample_means(np.ones(21), groups=np.arange(21), resamples=200)
    assert each.values == [1.0]
    assert np.isnan(each.interval()).all()


def test_no_rows_have_no_mean() -> None:
    found = resample_means(np.zeros((0, 2)), resamples=5)
    assert np.isnan(found.values).all()
    assert np.isnan(found.interval()).all()
    assert found.clusters == 0


def test_the_papers_average_is_the_mean_of_its_fifteen_numbers() -> None:
    subsets = {name: np.array(found) for name, found in RN50.items() if name != "kubric"}
    location, counting = np.array([10.0, 12.0, 1.25]), np.array([20.0, 20.0, 5.2])
    subsets["kubric-location"], subsets["kubric-counting"] = location, counting
    subsets["kubric-attribute"] = 3 * np.array(RN50["kubric"]) - location - counting
    assert domains(subsets)["kubric"] == pytest.approx(RN50["kubric"])
    assert float(eqben_average(subsets)) == pytest.approx(33.28, abs=0.005)


def test_a_comparison_counts_gains_and_losses() -> None:
    first, second = np.array([1.0, 0, 0, 1, 0, 0]), np.array([1.0, 1, 1, 0, 1, 0])
    found = compare_paired(first, second, resamples=500)
    assert (found.better, found.worse, found.samples) == (3, 1, 6)
    assert found.difference == pytest.approx(2 / 6)
    assert found.low < found.difference < found.high


def test_the_exchange_test_is_the_exact_share_of_sign_patterns() -> None:
    """Of the 16 patterns of (1, 1, 1, -1) ten have a sum of at least 2 either way."""
    gains = np.array([1.0, 1.0, 1.0, -1.0])
    p_value = exchange_test(gains, None, seed=0, resamples=20_000)
    assert p_value == pytest.approx(10 / 16, abs=0.012)


def test_models_that_differ_by_chance_alone_are_seldom_told_apart() -> None:
    """Also where samples of one cluster agree; a test of samples alone would cry wolf."""
    wolves = 0
    for seed in range(100):
        _, numbers = _clustered(seed)
        rng = np.random.default_rng(seed + 5000)
        gains = rng.choice([-1.0, 0.0, 1.0], size=60)[numbers]
        wolves += exchange_test(gains, numbers, seed=1000 + seed, resamples=200) <= 0.05
    assert wolves <= 12


def test_two_equal_models_are_never_told_apart() -> None:
    same = np.array([1.0, 0.0, 1.0])
    assert compare_paired(same, same, resamples=20).p_value == 1.0
