"""Limits from labels: what they give where the truth is known, and what they refuse."""

import random
from dataclasses import replace

import pytest

from eqforge.core.errors import InputError
from eqforge.evaluation.calibration.gate_rows import LabelledPair, measured_limits
from eqforge.evaluation.calibration.gates import (
    FEWEST_KEPT,
    GateFitSettings,
    fit_limits,
    loosest,
)
from eqforge.sources.gate_limits import LIMITS, is_least

QUICK = GateFitSettings(precision=0.9, resamples=100)


def pair(value: float | None, is_right: bool, source: str, name: str = "ssim") -> LabelledPair:
    return LabelledPair(
        source=source,
        is_right=is_right,
        measures={name: value},
        scorers={},
        spared=frozenset(),
    )


def drawn(count: int, seed: int = 0, name: str = "ssim", sources: int = 50) -> list[LabelledPair]:
    """Pairs of a share that is right of 0.97 from 0.6 on, and of 0.3 below."""
    rng = random.Random(seed)

    def one() -> LabelledPair:
        value = round(rng.random(), 6)
        is_right = rng.random() < (0.97 if value > 0.6 else 0.3)
        return pair(value, is_right, f"s{rng.randrange(sources)}", name)

    return [one() for _ in range(count)]


def kept_of(pairs: list[LabelledPair], name: str, limit: float) -> list[LabelledPair]:
    def is_kept(value: float | None) -> bool:
        return value is not None and (value >= limit if is_least(name) else value <= limit)

    return [each for each in pairs if is_kept(each.measures[LIMITS[name]])]


@pytest.mark.parametrize("name", ["min_ssim", "max_ssim"])
def test_it_is_the_loosest_value_with_the_precision(name: str) -> None:
    pairs = drawn(400)
    if name == "max_ssim":
        pairs = [pair(1 - (p.measures["ssim"] or 0.0), p.is_right, p.source) for p in pairs]
    (fit,) = fit_limits(pairs, [name], QUICK)

    assert fit.value is not None
    kept = kept_of(pairs, name, fit.value)
    right = sum(each.is_right for each in kept)
    assert right >= 0.9 * len(kept)
    assert (fit.fitted.kept, fit.fitted.right) == (len(kept), right)
    for looser in sorted({each.measures["ssim"] or 0.0 for each in pairs}):
        more = kept_of(pairs, name, looser)
        if len(more) > len(kept):
            assert sum(each.is_right for each in more) < 0.9 * len(more)
    assert fit.interval is not None
    low, high = fit.interval
    assert low <= fit.value <= high
    assert fit.reached == 1.0


def test_the_interval_holds_the_value_of_many_labels_and_held_out_precision_is_honest() -> None:
    """Of 40 sets the interval of 95 % misses the value of 40,000 labels a few times at most."""
    (truth,) = fit_limits(drawn(40_000, seed=99, sources=4000), ["min_ssim"], QUICK)
    assert truth.value is not None
    inside, gained = 0, 0.0
    fresh = drawn(4000, seed=1234)
    for seed in range(40):
        (fit,) = fit_limits(drawn(300, seed=seed), ["min_ssim"], QUICK)
        assert fit.interval is not None
        assert fit.value is not None
        inside += fit.interval[0] <= truth.value <= fit.interval[1]
        kept = kept_of(fresh, "min_ssim", fit.value)
        real = sum(each.is_right for each in kept) / len(kept)
        assert fit.held_out.precision is not None
        gained += fit.held_out.precision - real
    assert inside >= 34
    assert abs(gained / 40) < 0.01


def test_the_order_of_the_labels_changes_nothing() -> None:
    pairs = drawn(200)
    shuffled = random.Random(3).sample(pairs, len(pairs))
    (first,), (second,) = (fit_limits(some, ["min_ssim"], QUICK) for some in (pairs, shuffled))
    assert replace_intervals(first) == replace_intervals(second)
    assert fit_limits(pairs, ["min_ssim"], QUICK) == [first]


def replace_intervals(fit: object) -> dict[str, object]:
    return {name: getattr(fit, name) for name in ("limit", "value", "pairs", "right", "fitted")}


def test_a_pair_without_the_measure_is_never_kept() -> None:
    pairs = [*drawn(200), *(pair(None, is_right=True, source=f"n{n}") for n in range(50))]
    (fit,) = fit_limits(pairs, ["min_ssim"], QUICK)
    assert fit.value is not None
    assert fit.fitted.kept == len(kept_of(pairs, "min_ssim", fit.value))
    assert fit.pairs == 250


def test_a_limit_that_tells_nothing_reaches_nothing_and_the_most_useful_is_chosen() -> None:
    rng = random.Random(5)
    pairs = [
        replace(each, measures={**each.measures, "changed_area_fraction": rng.random()})
        for each in drawn(300)
    ]
    fits = {each.limit: each for each in fit_limits(pairs, [], QUICK)}
    assert set(fits) == {"min_changed_area", "max_changed_area", "min_ssim", "max_ssim"}
    assert fits["max_ssim"].value is None
    assert fits["max_ssim"].fitted.kept == 0
    best = loosest(list(fits.values()))
    assert best is not None
    assert best.limit == "min_ssim"


def test_pairs_that_are_not_held_to_a_limit_do_not_count() -> None:
    pairs = drawn(200)
    spared = [
        replace(pair(0.99, is_right=False, source=f"x{n}"), spared=frozenset({"min_ssim"}))
        for n in range(100)
    ]
    assert fit_limits([*pairs, *spared], ["min_ssim"], QUICK) == fit_limits(
        pairs, ["min_ssim"], QUICK
    )


def test_a_whole_number_stays_one() -> None:
    pairs = [
        pair(
            round(30 * (each.measures["phash_distance"] or 0.0)),
            each.is_right,
            each.source,
            "phash_distance",
        )
        for each in drawn(300, name="phash_distance")
    ]
    (fit,) = fit_limits(pairs, ["min_phash_distance"], QUICK)
    assert fit.value == round(fit.value or 0.0)


@pytest.mark.parametrize(
    ("pairs", "names", "message"),
    [
        ([pair(0.5, True, f"s{n}") for n in range(60)], [], "all 60 pairs .* were kept"),
        ([pair(0.5, False, f"s{n}") for n in range(60)], [], "all 60 pairs .* were dropped"),
        (drawn(20), [], f"expected {FEWEST_KEPT} at least"),
        (drawn(200, sources=2), [], "2 sources in all"),
        (drawn(200), ["min_sim"], "no such limit; did you mean"),
        (drawn(200), ["max_perceptual"], "have no perceptual_distance; .* min_ssim, max_ssim"),
    ],
)
def test_labels_that_do_not_do_are_one_clear_error(
    pairs: list[LabelledPair], names: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        fit_limits(pairs, names, QUICK)


def test_only_what_all_pairs_have_can_be_fitted() -> None:
    assert (
        list(measured_limits([pair(0.1, True, "a"), pair(0.1, True, "b", "phash_distance")])) == []
    )
