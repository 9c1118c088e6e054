"""Times actions one by one, synchronised with the device."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from eqforge.evaluation.statistics.bootstrap import Numbers, percentile_interval

Action = Callable[[], object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """Summary of some times, in seconds.

    Attributes:
      median: the median.
      low, high: bootstrap 95 % interval of the median.
      mean: the arithmetic mean, which the paper reports.
      runs: number of times.
    """

    median: float
    low: float
    high: float
    mean: float
    runs: int


def synchroniser(device: str) -> Action:
    """Returns a function that waits until the device has finished all queued work."""
    if device.partition(":")[0] not in ("cuda", "mps", "xpu"):
        return lambda: None
    import torch

    kind = getattr(torch, device.partition(":")[0])
    return lambda: kind.synchronize() if device == "mps" else kind.synchronize(device)


def seconds_of(
    action: Action, wait: Action, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Returns how long an action takes by a clock, until the device has finished it."""
    wait()
    start = clock()
    action()
    wait()
    return clock() - start


def draw_medians(seconds: Sequence[float] | Numbers, resamples: int, seed: int) -> Numbers:
    """Returns medians of times resampled with replacement [resamples].

    Args:
      seconds: times [n], at least one.
      resamples: number of resamples.
      seed: seed of the draws.
    """
    values = np.sort(np.asarray(seconds, dtype=np.float64))
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(0, len(values), len(values)) for _ in range(resamples)]
    return np.array([np.median(values[places]) for places in drawn])


def spread(seconds: Sequence[float], resamples: int, seed: int) -> Spread:
    """Returns the median of some times, its interval, and the mean."""
    low, high = percentile_interval(draw_medians(seconds, resamples, seed))
    return Spread(
        median=float(np.median(seconds)),
        low=low,
        high=high,
        mean=float(np.mean(seconds)),
        runs=len(seconds),
    )
