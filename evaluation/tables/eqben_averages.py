"""EqBen's averages over its subsets, of a model and of the difference of two."""

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
    percentile_interval,
    resample_means,
)
from eqforge.evaluation.statistics.comparison import Comparison, exchange_test
from eqforge.evaluation.tables.report import Judged, ModelComparison, Rules

METRICS = ("text", "image", "group")
KUBRIC = "kubric"
PAPER_AVERAGE = "paper's average"
MEAN = "mean of 15"


def parts_of(average: str) -> Sequence[str]:
    """Returns the subsets that an average is of."""
    if average == KUBRIC:
        return EQBEN_DOMAINS[KUBRIC]
    return [subset for parts in EQBEN_DOMAINS.values() for subset in parts]


def eqben_averages(
    subsets: Mapping[str, Numbers], sizes: Sequence[int]
) -> Iterator[tuple[str, str, Numbers]]:
    """Yields name, metric and rows of every average; each is linear in the subsets' numbers.

    Args:
      subsets: for each subset rows of METRICS [rows, 3], such as means and draws of them.
      sizes: samples of each subset.
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


def compare_averages(
    judged: Mapping[str, Mapping[str, Judged]], rules: Rules
) -> Iterator[ModelComparison]:
    """Yields how far each further model's averages are above the first one's.

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
    # What an average makes of 1 for one metric of one subset is the weight it gives it.
    units = np.eye(len(gains) * len(METRICS)).reshape(-1, len(gains), len(METRICS))
    weights = eqben_averages(dict(zip(gains, units.transpose(1, 0, 2), strict=True)), sizes)
    averages = eqben_averages(pooled(drawn), sizes)
    for (average, metric, rows), (_, _, weight) in zip(averages, weights, strict=True):
        of = parts_of(average)
        shares = dict(zip(gains, weight.reshape(len(gains), -1), strict=True))
        shifts = [gains[name] @ shares[name] / len(gains[name]) for name in of]
        shift = np.concatenate(shifts)
        clusters = _together([base[name] for name in of])
        low, high = percentile_interval(rows[1:])
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


def _credits(judged: Judged) -> Numbers:
    return np.column_stack([judged.credits[metric] for metric in METRICS])


def _together(parts: Sequence[Judged]) -> Numbers | None:
    """Returns the clusters of all samples [n]; None where each is alone."""
    named = [part.clusters for part in parts if part.clusters is not None]
    return np.concatenate(named) if named else None
