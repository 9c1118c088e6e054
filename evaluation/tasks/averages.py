"""EqBen's averages: of seven subsets, five domains and 15 numbers, with their intervals."""

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from eqforge.evaluation.metrics.pairs import WINOGROUND
from eqforge.evaluation.statistics.bootstrap import (
    Numbers,
    Resampled,
    percentile_interval,
    resample_means,
)
from eqforge.evaluation.statistics.comparison import Comparison, exchange_test
from eqforge.evaluation.statistics.shares import ROUNDING, Interval, Share, difference_interval
from eqforge.evaluation.tables.render import Measure, ModelComparison, Rules
from eqforge.evaluation.tables.report import Judged, measure
from eqforge.evaluation.tables.samples import MACRO
from eqforge.schemas.tables.benchmarks import EQBEN_SIZES

EQBEN_DOMAINS = {
    "youcook2": ("youcook2",),
    "gebc": ("gebc",),
    "ag": ("ag",),
    "kubric": ("kubric-location", "kubric-counting", "kubric-attribute"),
    "sd": ("sd",),
}
"""EqBen's five domains, in the order of its tables, with the subsets that each averages."""

KUBRIC = "kubric"
PAPER_AVERAGE = "paper's average"
MEAN = "mean of 15"
EQBEN_COLUMNS = (
    *((domain, metric) for domain in EQBEN_DOMAINS for metric in WINOGROUND),
    (PAPER_AVERAGE, MEAN),
)
"""Subset and metric of each column of the paper's table."""

CHANCE = {name: metric.chance for name, metric in WINOGROUND.items() if metric.chance is not None}
CHANCE_OF_MEAN = sum(CHANCE.values()) / len(CHANCE)


def micro(parts: Sequence[Numbers], sizes: Sequence[int]) -> Numbers:
    """Return the mean over all samples: each subset is weighted by its size.

    Args:
      parts: for each subset its mean, or draws of it.
    """
    return np.average(np.stack(list(parts)), axis=0, weights=sizes)


def macro(parts: Sequence[Numbers]) -> Numbers:
    """Return the mean over subsets, equally weighted.

    Args:
      parts: for each subset its mean, or draws of it.
    """
    return np.stack(list(parts)).mean(axis=0)


def domains(subsets: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Return EqBen's five domains of its seven subsets: Kubric is the mean of its three.

    Args:
      subsets: means, or draws of them, of any shape, under the keys of EQBEN_SIZES.
    """
    return {
        domain: macro([subsets[name] for name in names]) for domain, names in EQBEN_DOMAINS.items()
    }


def eqben_average(subsets: Mapping[str, Numbers]) -> Numbers:
    """Return the paper's average of 15 numbers: three scores of each of five domains.

    Kubric's three subsets are averaged first, so that all domains weigh the same.

    Args:
      subsets: for each key of EQBEN_SIZES its text, image and group score [..., 3].

    Source: EqBen, table 3; its rows but FIBER's first are the mean of their 15 numbers.
    """
    return np.concatenate(list(domains(subsets).values()), axis=-1).mean(axis=-1)


def pooled(found: Mapping[str, Resampled]) -> dict[str, Numbers]:
    """Stack values and draws of each subset [1 + resamples, metrics]."""
    return {name: np.vstack([part.values, part.draws]) for name, part in found.items()}


def _parts_of(average: str) -> Sequence[str]:
    if average == KUBRIC:
        return EQBEN_DOMAINS[KUBRIC]
    return [subset for parts in EQBEN_DOMAINS.values() for subset in parts]


def _averages(
    subsets: Mapping[str, Numbers], sizes: Sequence[int]
) -> Iterator[tuple[str, str, Numbers]]:
    """Yield name, metric and rows of every average; each is linear in the subsets' numbers.

    Args:
      subsets: for each subset rows of text, image and group [rows, 3], such as means and draws.
      sizes: number of samples of each subset.
    """
    parts = list(subsets.values())
    averages = {
        KUBRIC: domains(subsets)[KUBRIC],
        "micro average": micro(parts, sizes),
        MACRO: macro(parts),
    }
    for name, rows in averages.items():
        for column, metric in enumerate(WINOGROUND):
            yield name, metric, rows[:, column]
    yield PAPER_AVERAGE, MEAN, eqben_average(subsets)


def _weights_of(sizes: Sequence[int]) -> Iterator[Numbers]:
    """Yield the weight of each number [subsets, 3] in every average, in order."""
    # Averages are linear: applied to a one-hot input they return its weight.
    names, width = list(EQBEN_SIZES), len(WINOGROUND)
    units = np.eye(len(names) * width).reshape(-1, len(names), width)
    parts = dict(zip(names, units.transpose(1, 0, 2), strict=True))
    for _, _, rows in _averages(parts, sizes):
        yield rows.reshape(len(names), width)


def _share(rows: Numbers, weights: Numbers, parts: Sequence[Resampled]) -> Share:
    """Return an average over subsets as a share.

    Args:
      rows: value of the average, then its draws [1 + resamples].
      weights: the weight of each number in it [subsets, 3].
    """
    shares = weights.sum(axis=1)
    told = sum(s**2 / p.even_clusters[0] for s, p in zip(shares, parts, strict=True) if s)
    binary = all(part.binary.all() for part in parts)
    samples = sum(int(part.samples[0]) for part in parts) if binary else math.inf
    return Share(value=float(rows[0]), draws=rows[1:], clusters=1 / told, samples=samples)


def average_measures(model: str, subsets: Mapping[str, Judged], rules: Rules) -> Iterator[Measure]:
    """Yield the numbers on EqBen's subsets, in the order of EQBEN_SIZES, and averages."""
    found: dict[str, Resampled] = {}
    for name, judged in subsets.items():
        found[name], measures = measure(model, name, judged, rules)
        yield from measures
    sizes = [judged.scored for judged in subsets.values()]
    averages = _averages(pooled(found), sizes)
    for (name, metric, rows), weights in zip(averages, _weights_of(sizes), strict=True):
        of = [judged for subset, judged in subsets.items() if subset in _parts_of(name)]
        share = _share(rows, weights, list(found.values()))
        low, high = share.interval()
        expected = sum(judged.expected for judged in of)
        scored = sum(judged.scored for judged in of)
        tied = [judged.tied for judged in of if judged.tied is not None]
        yield Measure(
            model=model,
            subset=name,
            metric=metric,
            value=share.value,
            low=low,
            high=high,
            chance=CHANCE.get(metric, CHANCE_OF_MEAN),
            expected=expected,
            scored=scored,
            missing=expected - scored,
            clusters=sum(
                part.clusters for name_, part in found.items() if name_ in _parts_of(name)
            ),
            ties=float(np.concatenate(tied).mean()),
        )


def compare_averages(
    judged: Mapping[str, Mapping[str, Judged]], rules: Rules
) -> Iterator[ModelComparison]:
    """Compare each further model's averages with the first one's, on all samples."""
    first, *others = judged
    base = judged[first]
    for model in others:
        gains = {name: _credits(judged[model][name]) - _credits(base[name]) for name in base}
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
        averages = _averages(pooled(drawn), sizes)
        for (average, metric, rows), weight in zip(averages, _weights_of(sizes), strict=True):
            of = _parts_of(average)
            shares = dict(zip(gains, weight, strict=True))
            shift = np.concatenate([gains[name] @ shares[name] / len(gains[name]) for name in of])
            named = [part for name in of if (part := base[name].clusters) is not None]
            low, high = _bounds(rows, weight, list(drawn.values()))
            found = Comparison(
                samples=len(shift),
                clusters=sum(drawn[name].clusters for name in of),
                difference=float(rows[0]),
                low=low,
                high=high,
                better=int((shift > 0).sum()),
                worse=int((shift < 0).sum()),
                p_value=exchange_test(
                    shift,
                    np.concatenate(named) if named else None,
                    seed=rules.seed + 1,
                    resamples=rules.resamples,
                ),
            )
            yield ModelComparison(
                model=model, against=first, subset=average, metric=metric, found=found
            )


def _bounds(rows: Numbers, weights: Numbers, parts: Sequence[Resampled]) -> Interval:
    """Return percentiles of a difference, or the interval of two shares where it never varies."""
    if np.ptp(rows) > ROUNDING:
        return percentile_interval(rows[1:])
    gained, lost = rows.clip(min=0), (-rows).clip(min=0)
    return difference_interval(_share(gained, weights, parts), _share(lost, weights, parts))


def _credits(judged: Judged) -> Numbers:
    return np.column_stack(list(judged.credits.values()))
