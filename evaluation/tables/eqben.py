"""EqBen's table from its flat vector of scores: four per sample, seven subsets in a fixed order."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.files.checked import read_text_lines
from eqforge.evaluation.metrics.pairs import CHANCE, judge_pairs
from eqforge.evaluation.statistics.averages import EQBEN_DOMAINS, eqben_average, pooled
from eqforge.evaluation.statistics.bootstrap import Resampled
from eqforge.evaluation.statistics.shares import Share
from eqforge.evaluation.tables.eqben_averages import (
    MEAN,
    METRICS,
    PAPER_AVERAGE,
    average_share,
    compare_averages,
    eqben_averages,
    parts_of,
    weights_of,
)
from eqforge.evaluation.tables.report import Judged, Measure, Report, Rules, measure
from eqforge.evaluation.tables.samples import text_array
from eqforge.evaluation.tables.settings import Order
from eqforge.evaluation.tables.several import compare_judged
from eqforge.evaluation.tables.vectors import read_vector, unshuffle
from eqforge.schemas.tables.eqben_subsets import EQBEN_SIZES

_OTHER: Mapping[Order, Order] = {"official": "by-subset", "by-subset": "official"}

CHANCE_OF_MEAN = sum(CHANCE.values()) / len(CHANCE)
NEAR_CHANCE, FAR_ABOVE = 0.02, 0.05
"""A vector whose mean of 15 is at most so near to chance in the order that was named, and at least
so far above it in the other, is in the other. For random scores the mean of 15 has a
standard deviation of 0.0024 around chance.
"""

_ALONE = (
    "Each sample is a cluster of its own, for a vector says nothing of its videos: with --clusters",
    "the intervals are wider, as they should be.",
)


EQBEN_COLUMNS = (
    *((domain, metric) for domain in EQBEN_DOMAINS for metric in METRICS),
    (PAPER_AVERAGE, MEAN),
)
"""Subset and metric of each column of the paper's table."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EqbenVector:
    """A published or submitted vector.

    Attributes:
      path: the file.
      order: order of its numbers. `official` is the shuffled order of EqBen's released files, which
        its server expects; `by-subset` is subset after subset.
    """

    path: Path
    order: Order = "official"


def eqben_report(
    vectors: Sequence[EqbenVector],
    rules: Rules,
    clusters: Path | None = None,
    sizes: Mapping[str, int] = EQBEN_SIZES,
) -> Report:
    """Returns EqBen's table of some vectors, the paper's average included.

    Args:
      vectors: one for each model.
      rules: how scores become numbers.
      clusters: text file with the cluster of each sample, one per line; None for none.
      sizes: number of samples of each subset, in the vector's order.

    Raises:
      InputError: a vector has another length, or cannot be read.
    """
    named = None if clusters is None else _read_clusters(clusters, sum(sizes.values()))
    judged: dict[str, dict[str, Judged]] = {}
    notes: list[str] = []
    for name, vector in zip(_names(vectors), vectors, strict=True):
        numbers = _read(vector.path, sizes)
        judged[name] = dict(_judge(_scores(numbers, vector.order), named, sizes, rules))
        notes += _doubts(name, vector.order, numbers, judged[name], rules)
    measures = [
        found
        for model, subsets in judged.items()
        for found in eqben_measures(model, subsets, rules)
    ]
    return Report(
        title=f"EqBen: {sum(sizes.values()):,} samples of {len(sizes)} subsets, in per cent",
        rules=rules,
        measures=tuple(measures),
        comparisons=(*compare_judged(judged, rules), *compare_averages(judged, rules)),
        notes=(*notes, *(_ALONE if clusters is None else ())),
        paper_columns=EQBEN_COLUMNS,
    )


def _scores(numbers: NDArray[Any], order: Order) -> NDArray[Any]:
    return (unshuffle(numbers) if order == "official" else numbers).reshape(-1, 2, 2)


def _read(path: Path, sizes: Mapping[str, int]) -> NDArray[Any]:
    found = read_vector(path)
    expected = 4 * sum(sizes.values())
    if len(found) != expected:
        parts = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
        raise InputError(
            f"{path}: expected {expected:,} numbers, four a sample in the order c0i0, c1i0, "
            f"c0i1, c1i1, of the subsets {parts}; found {len(found):,}"
        )
    return found


def _names(vectors: Sequence[EqbenVector]) -> list[str]:
    stems = [vector.path.stem for vector in vectors]
    whole = [str(vector.path) for vector in vectors]
    if len(set(whole)) < len(whole):
        raise InputError(f"{max(whole, key=whole.count)}: is named twice")
    return stems if len(set(stems)) == len(stems) else whole


def _read_clusters(path: Path, samples: int) -> NDArray[Any]:
    lines = read_text_lines(path)
    if len(lines) != samples:
        raise InputError(f"{path}: expected {samples:,} lines, one a sample; found {len(lines):,}")
    return text_array(lines)


def _judge(
    scores: NDArray[Any], clusters: NDArray[Any] | None, sizes: Mapping[str, int], rules: Rules
) -> Iterator[tuple[str, Judged]]:
    start = 0
    for name, size in sizes.items():
        part = slice(start, start + size)
        found = judge_pairs(scores[part], rules.ties)
        yield (
            name,
            Judged(
                credits={"text": found.text, "image": found.image, "group": found.group},
                chance=CHANCE,
                tied=found.tied,
                clusters=None if clusters is None else clusters[part],
                expected=size,
            ),
        )
        start += size


def _doubts(
    model: str, order: Order, numbers: NDArray[Any], judged: Mapping[str, Judged], rules: Rules
) -> Iterator[str]:
    """Yields a warning where a vector looks as if it were in the other order."""
    found = _mean_of_15(judged)
    if found > CHANCE_OF_MEAN + NEAR_CHANCE:
        return
    sizes = {name: one.expected for name, one in judged.items()}
    other = _mean_of_15(dict(_judge(_scores(numbers, _OTHER[order]), None, sizes, rules)))
    if other >= CHANCE_OF_MEAN + FAR_ABOVE:
        yield (
            f"Warning: {model}: read in the order {order} its mean of 15 is {100 * found:.2f}, "
            f"where chance is {100 * CHANCE_OF_MEAN:.2f}; with --order {_OTHER[order]} it is "
            f"{100 * other:.2f}."
        )


def _mean_of_15(judged: Mapping[str, Judged]) -> float:
    means = {
        name: np.array([credit.mean() for credit in one.credits.values()])
        for name, one in judged.items()
    }
    return float(eqben_average(means))


def eqben_measures(model: str, subsets: Mapping[str, Judged], rules: Rules) -> Iterator[Measure]:
    """Yields the numbers of a model on EqBen's subsets, and their averages.

    Args:
      model: its name.
      subsets: METRICS of each subset's samples, in the order of EQBEN_SIZES.
      rules: seed and resamples.
    """
    found: dict[str, Resampled] = {}
    for name, judged in subsets.items():
        found[name], measures = measure(model, name, judged, rules)
        yield from measures
    sizes = [judged.scored for judged in subsets.values()]
    averages = eqben_averages(pooled(found), sizes)
    for (name, metric, rows), weights in zip(averages, weights_of(sizes), strict=True):
        of = {subset: judged for subset, judged in subsets.items() if subset in parts_of(name)}
        chance = CHANCE.get(metric, CHANCE_OF_MEAN)
        share = average_share(rows, weights, list(found.values()))
        yield _average(model, name, metric, share, of, chance)


def _average(
    model: str, subset: str, metric: str, share: Share, of: Mapping[str, Judged], chance: float
) -> Measure:
    tied = [judged.tied for judged in of.values() if judged.tied is not None]
    low, high = share.interval()
    expected = sum(judged.expected for judged in of.values())
    scored = sum(judged.scored for judged in of.values())
    return Measure(
        model=model,
        subset=subset,
        metric=metric,
        value=share.value,
        low=low,
        high=high,
        chance=chance,
        expected=expected,
        scored=scored,
        missing=expected - scored,
        clusters=sum(_clusters(judged) for judged in of.values()),
        ties=float(np.concatenate(tied).mean()),
    )


def _clusters(judged: Judged) -> int:
    return judged.scored if judged.clusters is None else len(np.unique(judged.clusters))
