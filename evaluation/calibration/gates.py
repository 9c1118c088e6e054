"""Fits limits of gates to labelled pairs: of those that a limit keeps, a wanted share is right.

Each limit is fitted by itself. It is the loosest value with the wanted precision on the labelled
pairs; because it was chosen on them, its precision is told of pairs that it was not fitted to,
those of one fold of sources by the value that the others give.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from eqforge.core.errors import InputError
from eqforge.core.identity import sample_rank
from eqforge.core.late import numpy as np
from eqforge.core.visible import nearest
from eqforge.evaluation.calibration.gate_rows import LabelledPair, measured_limits
from eqforge.evaluation.statistics.bootstrap import percentile_interval, resample_means
from eqforge.sources.gate_limits import (
    LIMITS,
    WHOLE,
    FittedLimit,
    Held,
    is_least,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST_KEPT: Final = 20
"""A limit that keeps fewer labelled pairs than this says nothing of its precision."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GateFitSettings:
    """How limits are fitted.

    Attributes:
      precision: share of the kept pairs that is to be right, in (0, 1].
      folds: how many the sources are dealt into, at least 2.
      resamples: how often the bootstrap draws.
      seed: of the draws.
    """

    precision: float = 0.95
    folds: int = 5
    resamples: int = 1000
    seed: int = 0


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Examples:
    """Labelled pairs that are held to a limit.

    Attributes:
      goodness: how far each is on the right side, float64 of shape (pairs,): the measure, or less
        it where the limit is a greatest value; -inf where there is nothing to measure.
      right: whether people kept it, bool of shape (pairs,).
      source: number of its source, int64 of shape (pairs,).
      fold: of its source, int64 of shape (pairs,).
    """

    goodness: NDArray[np.float64]
    right: NDArray[np.bool_]
    source: NDArray[np.int64]
    fold: NDArray[np.int64]


def fit_limits(
    pairs: Sequence[LabelledPair], names: Sequence[str], settings: GateFitSettings
) -> list[FittedLimit]:
    """Returns limits, each fitted by itself, in the order of LIMITS.

    Args:
      pairs: labelled.
      names: of the limits; all that the pairs have a measure of where none is named.
      settings: how.

    Raises:
      InputError: there are too few pairs, all are right or all are wrong, or a limit is not known
        or not measured.
    """
    there = list(measured_limits(pairs))
    for name in names:
        if name not in LIMITS:
            raise InputError(f"--limits {name}: no such limit{nearest(name, LIMITS)}")
        if name not in there:
            raise InputError(
                f"--limits {name}: the pairs have no {LIMITS[name]}; those that can be fitted: "
                f"{', '.join(there)}"
            )
    _check(pairs, settings)
    return [_fit(name, pairs, settings) for name in there if not names or name in names]


def _check(pairs: Sequence[LabelledPair], settings: GateFitSettings) -> None:
    right = sum(pair.is_right for pair in pairs)
    if right in (0, len(pairs)):
        said = "kept" if right else "dropped"
        raise InputError(
            f"all {len(pairs)} pairs that people decided on were {said}: nothing tells right from "
            "wrong; have more looked at, of a build whose gates are open"
        )
    sources = len({pair.source for pair in pairs})
    if sources < settings.folds or right < FEWEST_KEPT:
        raise InputError(
            f"{right} pairs of {len(pairs)} were kept, of {sources} sources in all: expected "
            f"{FEWEST_KEPT} at least, and {settings.folds} sources, the number of --folds"
        )


def loosest(fits: Sequence[FittedLimit]) -> FittedLimit | None:
    """Returns the limit that keeps the most right pairs of those not fitted to; None of none."""
    reached = [each for each in fits if each.value is not None]
    return max(reached, key=lambda each: each.held_out.right, default=None)


def _fit(name: str, pairs: Sequence[LabelledPair], settings: GateFitSettings) -> FittedLimit:
    held = [pair for pair in pairs if name not in pair.spared]
    some = _examples(name, held, settings.folds)
    everything = np.ones(len(held), dtype=bool)
    cut = _cut(some, everything, settings.precision, name)
    draws = _drawn(some, settings, name)
    is_found = ~np.isnan(draws)
    ends = percentile_interval(draws)
    scorer, version = held[0].scorers.get(LIMITS[name], ("", ""))
    return FittedLimit(
        limit=name,
        value=None if math.isnan(cut) else _value(name, cut),
        interval=None if math.isnan(ends[0]) else _ends(name, ends),
        reached=round(float(is_found.mean()), 6),
        pairs=len(held),
        right=int(some.right.sum()),
        fitted=_held(some, some.goodness >= cut, settings),
        held_out=_held(some, _out_of_fold(some, settings, name), settings),
        scorer=scorer,
        version=version,
    )


def _examples(name: str, pairs: Sequence[LabelledPair], folds: int) -> _Examples:
    values = [pair.measures[LIMITS[name]] for pair in pairs]
    sign = 1 if is_least(name) else -1
    names = sorted({pair.source for pair in pairs}, key=lambda each: (sample_rank(each), each))
    place = {source: number for number, source in enumerate(names)}
    source = np.array([place[pair.source] for pair in pairs], dtype=np.int64)
    return _Examples(
        goodness=np.array([-math.inf if each is None else sign * each for each in values]),
        right=np.array([pair.is_right for pair in pairs]),
        source=source,
        fold=source % folds,
    )


def _cut(some: _Examples, which: NDArray[np.bool_], precision: float, name: str) -> float:
    """Returns the least goodness that some examples need; NaN where no cut is precise enough."""
    return _cut_of(some.goodness[which], some.right[which], precision, name)


def _cut_of(
    goodness: NDArray[np.float64], right: NDArray[np.bool_], precision: float, name: str
) -> float:
    order = np.argsort(-goodness, kind="stable")
    ordered = goodness[order]
    kept, hits = np.arange(1, len(order) + 1), np.cumsum(right[order])
    # A cut falls between two values, never between equal ones, and never keeps what has no value.
    is_last = np.r_[ordered[1:] < ordered[:-1], True] & np.isfinite(ordered)
    fit = np.flatnonzero(is_last & (kept >= FEWEST_KEPT) & (hits >= precision * kept - 1e-9))
    if not len(fit):
        return math.nan
    place = int(fit[-1])
    following = ordered[place + 1] if place + 1 < len(ordered) else -math.inf
    if name in WHOLE or not math.isfinite(following):
        return float(ordered[place])
    return float(ordered[place] + following) / 2


def _drawn(some: _Examples, settings: GateFitSettings, name: str) -> NDArray[np.float64]:
    """Returns the cut of each resample of the sources, as the setting counts it; NaN of none."""
    places = [np.flatnonzero(some.source == each) for each in range(some.source.max() + 1)]
    rng = np.random.default_rng(settings.seed)
    draws = np.empty(settings.resamples)
    for each in range(settings.resamples):
        rows = np.concatenate([places[one] for one in rng.integers(len(places), size=len(places))])
        draws[each] = _cut_of(some.goodness[rows], some.right[rows], settings.precision, name)
    return draws if is_least(name) else -draws


def _out_of_fold(some: _Examples, settings: GateFitSettings, name: str) -> NDArray[np.bool_]:
    """Returns which pairs are kept by a limit that was fitted without their fold."""
    kept = np.zeros(len(some.right), dtype=bool)
    for fold in np.unique(some.fold):
        own = some.fold == fold
        kept[own] = some.goodness[own] >= _cut(some, ~own, settings.precision, name)
    return kept


def _held(some: _Examples, kept: NDArray[np.bool_], settings: GateFitSettings) -> Held:
    right = some.right[kept]
    if not len(right):
        return Held(kept=0, right=0, precision=None, interval=None)
    drawn = resample_means(
        right, some.source[kept], seed=settings.seed, resamples=settings.resamples
    )
    low, high = drawn.share_interval()
    return Held(
        kept=len(right),
        right=int(right.sum()),
        precision=round(float(right.mean()), 6),
        interval=None if math.isnan(low) else (round(low, 6), round(high, 6)),
    )


def _value(name: str, cut: float) -> float:
    return round(cut if is_least(name) else -cut, 9)


def _ends(name: str, ends: tuple[float, float]) -> tuple[float, float]:
    return round(ends[0], 9), round(ends[1], 9)
