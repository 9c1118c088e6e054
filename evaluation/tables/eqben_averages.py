"""EqBen's averages over its subsets, of one model and of differences of two."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from eqforge.evaluation.statistics.averages import (
    EQBEN_DOMAINS,
    domains,
    eqben_average,
    macro,
    micro,
    pooled,
)
from eqforge.evaluation.statistics.bootstrap import (
    Numbers,
    Resampled,
    percentile_interval,
    resample_means,
)
from eqforge.evaluation.statistics.comparison import Comparison, exchange_test
from eqforge.evaluation.statistics.shares import (
    ROUNDING,
    Interval,
    Share,
    difference_interval,
)
from eqforge.evaluation.tables.report import Judged, ModelComparison, Rules
from eqforge.schemas.tables.eqben_subsets import EQBEN_SIZES

METRICS = ("text", "image", "group")
KUBRIC = "kubric"
PAPER_AVERAGE = "paper's average"
MEAN = "mean of 15"


def parts_of(average: str) -> Sequence[str]:
    """Returns the subsets that an average is taken over."""
    if average == KUBRIC:
        return EQBEN_DOMAINS[KUBRIC]
    return [subset for parts in EQBEN_DOMAINS.values() for subset in parts]


def eqben_averages(
    subsets: Mapping[str, Numbers], sizes: Sequence[int]
) -> Iterator[tuple[str, str, Numbers]]:
    """Yields name, metric and rows of every average; each is linear in the subsets' numbers.

    Args:
      subsets: for each subset rows of METRICS [rows, 3], such as means and draws of them.
      sizes: number of samples of each subset.
    """
    parts = list(subsets.values())
    averages = {
        KUBRIC: domains(subsets)[KUBRIC],
        "micro average": micro(parts, sizes),
        "macro average": macro(parts),
    }
    for name, rows in averages.items():
        for column, metric in enumerate(METRICS):
            yield name, metric, rows[:, column]
    yield PAPER_AVERAGE, MEAN, eqben_average(subsets)


def weights_of(sizes: Sequence[int]) -> Iterator[Numbers]:
    """Yields for every average, in order, the weight of each number [subsets, METRICS]."""
    # Averages are linear: applied to a one-hot input they return its weight.
    names = list(EQBEN_SIZES)
    units = np.eye(len(names) * len(METRICS)).reshape(-1, len(names), len(METRICS))
    parts = dict(zip(names, units.transpose(1, 0, 2), strict=True))
    for _, _, rows in eqben_averages(parts, sizes):
        yield rows.reshape(len(names), len(METRICS))


def average_share(rows: Numbers, weights: Numbers, parts: Sequence[Resampled]) -> Share:
    """Returns an average over subsets as a share.

    Args:
      rows: value of the average, then its draws [1 + resamples].
      weights: the weight of each number in it [subsets, METRICS].
      parts: the resampled subsets.
    """
    shares = weights.sum(axis=1)
    told = sum(s**2 / p.even_clusters[0] for s, p in zip(shares, parts, strict=True) if s)
    binary = all(part.binary.all() for part in parts)
    samples = sum(int(part.samples[0]) for part in parts) if binary else math.inf
    return Share(value=float(rows[0]), draws=rows[1:], clusters=1 / told, samples=samples)


def compare_averages(
    judged: Mapping[str, Mapping[str, Judged]], rules: Rules
) -> Iterator[ModelComparison]:
    """Yields by how much each further model's averages exceed the first one's.

    Args:
      judged: for each model, in order, the METRICS of the same samples of each subset.
      rules: seed and resamples.
    """
    first, *others = judged
    for model in others:
        for average, metric, found in _compared(judged[first], judged[model], rules):
            yield ModelComparison(
                model=model, against=first, subset=average, metric=metric, found=found
            )


def _compared(
    base: Mapping[str, Judged], other: Mapping[str, Judged], rules: Rules
) -> Iterator[tuple[str, str, Comparison]]:
    gains = {name: _credits(other[name]) - _credits(base[name]) for name in base}
    sizes = [len(part) for part in gains.values()]
    drawn = {
        name: resample_means(
            part,
            base[name].clusters,
            seed=(rules.seed, zlib.crc32(name.encode())),
            resamples=rules.resamples,
        )
        for name, part in gains.items()
    }
    averages = eqben_averages(pooled(drawn), sizes)
    for (average, metric, rows), weight in zip(averages, weights_of(sizes), strict=True):
        of = parts_of(average)
        shares = dict(zip(gains, weight, strict=True))
        shifts = [gains[name] @ shares[name] / len(gains[name]) for name in of]
        shift = np.concatenate(shifts)
        clusters = _together([base[name] for name in of])
        low, high = _bounds(rows, weight, list(drawn.values()))
        yield (
            average,
            metric,
            Comparison(
                samples=len(shift),
                clusters=sum(drawn[name].clusters for name in of),
                difference=float(rows[0]),
                low=low,
                high=high,
                better=int((shift > 0).sum()),
                worse=int((shift < 0).sum()),
                p_value=exchange_test(
                    shift, clusters, seed=rules.seed + 1, resamples=rules.resamples
                ),
            ),
        )


def _bounds(rows: Numbers, weights: Numbers, parts: Sequence[Resampled]) -> Interval:
    """Returns the percentiles of a difference; if it never varies, the interval for two shares."""
    if np.ptp(rows) > ROUNDING:
        return percentile_interval(rows[1:])
    gained, lost = (
        average_share(side, weights, parts) for side in (rows.clip(min=0), (-rows).clip(min=0))
    )
    return difference_interval(gained, lost)


def _credits(judged: Judged) -> Numbers:
    return np.column_stack([judged.credits[metric] for metric in METRICS])


def _together(parts: Sequence[Judged]) -> Numbers | None:
    """Returns the clusters of all samples [n]; None for one cluster per sample."""
    named = [part.clusters for part in parts if part.clusters is not None]
    return np.concatenate(named) if named else None
