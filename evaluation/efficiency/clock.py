"""Measures how long something takes: warmed up, synchronised, each run by itself."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from eqforge.evaluation.statistics.bootstrap import Numbers, percentile_interval

Action = Callable[[], object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """Some times, in seconds.

    Attributes:
      median: the middle one.
      low, high: 95 % interval of the median, by a bootstrap.
      mean: the arithmetic mean, which the paper reports.
      runs: how many there are.
    """

    median: float
    low: float
    high: float
    mean: float
    runs: int


def synchroniser(device: str) -> Action:
    """Returns what waits until a device has done everything it was asked for."""
    if device.partition(":")[0] not in ("cuda", "mps", "xpu"):
        return lambda: None
    import torch

    kind = getattr(torch, device.partition(":")[0])
    return lambda: kind.synchronize() if device == "mps" else kind.synchronize(device)


def seconds_of(action: Action, wait: Action) -> float:
    """Returns how long an action takes until the device is done with it."""
    wait()
    start = time.perf_counter()
    action()
    wait()
    return time.perf_counter() - start


def draw_medians(seconds: Sequence[float] | Numbers, resamples: int, seed: int) -> Numbers:
    """Returns medians of times drawn anew, with replacement [resamples].

    Args:
      seconds: times [n], at least one.
      resamples: how often they are drawn.
      seed: of the draws.
    """
    values = np.sort(np.asarray(seconds, dtype=np.float64))
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(0, len(values), len(values)) for _ in range(resamples)]
    return np.array([np.median(values[places]) for places in drawn])


def spread(seconds: Sequence[float], resamples: int, seed: int) -> Spread:
    """Returns median, its interval and mean of some times."""
    low, high = percentile_interval(draw_medians(seconds, resamples, seed))
    return Spread(
        median=float(np.median(seconds)),
        low=low,
        high=high,
        mean=float(np.mean(seconds)),
        runs=len(seconds),
    )
