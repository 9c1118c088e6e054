"""EqBen's table: seven subsets, five domains and their averages, from a vector or a dataset."""

import math
import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.files.checked import clipped, read_text_lines
from eqforge.core.files.typed_json import decode, read_bytes
from eqforge.evaluation.metrics.pairs import WINOGROUND
from eqforge.evaluation.statistics.bootstrap import (
    Comparison,
    Numbers,
    Resampled,
    exchange_test,
    percentile_interval,
    resample_means,
)
from eqforge.evaluation.statistics.shares import ROUNDING, Interval, Share, difference_interval
from eqforge.evaluation.tables.render import Measure, ModelComparison, Report, Rules
from eqforge.evaluation.tables.report import Judged, compare_judged, measure, model_names
from eqforge.evaluation.tables.samples import MACRO, read_columns, read_samples, text_array
from eqforge.evaluation.tables.scores import LARGEST_SCORE, SampleScores
from eqforge.evaluation.tables.settings import MetricsSettings, Order
from eqforge.evaluation.tasks.samples import TASKS, score_notes, without_errata
from eqforge.models.arrays import TENSORS, read_array
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.benchmark_rows import PAIRS_NAME
from eqforge.schemas.tables.benchmarks import EQBEN, EQBEN_SIZES, eqben_subset

PAIRS: Final = replace(TASKS["pairs"], metrics=WINOGROUND)
NEAR_CHANCE, FAR_ABOVE = 0.02, 0.05
"""A vector counts as swapped if its mean of 15 is within NEAR_CHANCE of chance in the named order,
and FAR_ABOVE above it in the other. Random scores have a standard deviation of 0.0024.
"""

SUFFIXES = (".npy", ".pt", ".pth", ".json", ".txt", ".csv")
_OTHER: Mapping[Order, Order] = {"official": "by-subset", "by-subset": "official"}
_ALONE = (
    "Each sample is its own cluster, because a score vector does not name its videos.",
    "So these intervals are too narrow. Pass --clusters to get correct intervals.",
)
_ALL_SCORED: Final = "EqBen's averages are compared only between models that scored every sample."


def eqben_report(
    paths: Sequence[Path], settings: MetricsSettings, sizes: Mapping[str, int] = EQBEN_SIZES
) -> Report:
    samples = sum(sizes.values())
    clusters = None
    if settings.clusters is not None:
        lines = read_text_lines(settings.clusters)
        if len(lines) != samples:
            raise InputError(
                f"{settings.clusters}: expected {samples:,} lines, one per sample; found "
                f"{len(lines):,}"
            )
        clusters = text_array(lines)
    names = [path.stem for path in paths]
    if len(set(paths)) < len(paths):
        raise InputError(f"{max(paths, key=list(paths).count)} appears twice; pass it once")
    names = names if len(set(names)) == len(names) else [str(path) for path in paths]
    judged: dict[str, dict[str, Judged]] = {}
    notes: list[str] = []
    for name, path in zip(names, paths, strict=True):
        numbers = read_vector(path)
        if len(numbers) != 4 * samples:
            parts = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
            raise InputError(
                f"{path}: found {len(numbers):,} numbers, but EqBen needs {4 * samples:,}. Each "
                f"sample has four, in the order c0i0, c1i0, c0i1, c1i1. Samples per subset: {parts}"
            )
        judged[name] = dict(_judge(numbers, settings.order, clusters, sizes, settings.rules))
        notes += _doubts(name, settings.order, numbers, judged[name], settings.rules)
    notes += _ALONE if clusters is None else ()
    return _report(judged, sizes, settings.rules, notes)


def _report(
    judged: Mapping[str, Mapping[str, Judged]],
    sizes: Mapping[str, int],
    rules: Rules,
    notes: Sequence[str],
    *,
    is_whole: bool = True,
) -> Report:
    return Report(
        title=f"EqBen: {sum(sizes.values()):,} samples of {len(sizes)} subsets, in per cent",
        rules=rules,
        measures=tuple(
            one for model, of in judged.items() for one in average_measures(model, of, rules)
        ),
        comparisons=(
            *compare_judged(judged, rules),
            *(compare_averages(judged, rules) if is_whole else ()),
        ),
        notes=tuple(notes),
        paper_columns=EQBEN_COLUMNS,
    )


def read_vector(path: Path) -> NDArray[np.floating[Any]]:
    """Read a vector of numbers, as benchmark servers accept them; nothing in the file is executed.

    Args:
        path: a NumPy array (.npy), a tensor (.pt, .pth), a JSON list, or text with numbers
            separated by commas or white space (.txt, .csv).

    Returns:
        The numbers [n] in the file's precision; float64 for text.
    """
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: expected one of the endings {', '.join(SUFFIXES)}")
    try:
        if path.suffix in (".npy", *TENSORS):
            found = read_array(path)
        elif path.suffix == ".json":
            found = np.array(decode(read_bytes(path), list[float], str(path)), dtype=np.float64)
        else:
            text = read_bytes(path).decode("utf-8").replace(",", " ")
            found = np.array(text.split(), dtype=np.float64)
    except ValueError as error:
        what = str(error).replace("could not convert string to float: ", "found ")
        raise InputError(f"{path}: expected only numbers; {clipped(what)}") from error
    vector: NDArray[Any] = found.ravel()
    exact = vector if vector.dtype.kind == "f" else vector.astype(np.float64)
    bad = np.flatnonzero(~(np.abs(exact.astype(np.float64)) <= LARGEST_SCORE))
    if len(bad):
        raise InputError(
            f"{path}: number {bad[0] + 1} is {exact[bad[0]]}; scores must be finite and between "
            f"-{LARGEST_SCORE:g} and {LARGEST_SCORE:g}"
        )
    return exact


def unshuffle(vector: NDArray[Any], seed: int = 1234) -> NDArray[Any]:
    """Undo the shuffling of a vector by EqBen's published rule.

    The rule shuffles the list 0 … n-1 by Python's `random.Random(seed)` and puts number
    `shuffled[i]` at place i; sorting the list undoes it.
    """
    places = list(range(len(vector)))
    random.Random(seed).shuffle(places)
    return vector[np.argsort(places)]


def _judge(
    numbers: NDArray[Any],
    order: Order,
    clusters: NDArray[Any] | None,
    sizes: Mapping[str, int],
    rules: Rules,
) -> Iterator[tuple[str, Judged]]:
    scores = (unshuffle(numbers) if order == "official" else numbers).reshape(-1, 4)
    start = 0
    for name, size in sizes.items():
        part = slice(start, start + size)
        judged = PAIRS.judge(scores[part], None, rules.ties)
        yield name, replace(judged, clusters=None if clusters is None else clusters[part])
        start += size


def _doubts(
    model: str, order: Order, numbers: NDArray[Any], judged: Mapping[str, Judged], rules: Rules
) -> Iterator[str]:
    """Warn if a vector seems to be in the other order."""
    found = _mean_of_15(judged)
    if found > CHANCE_OF_MEAN + NEAR_CHANCE:
        return
    sizes = {name: one.expected for name, one in judged.items()}
    other = _mean_of_15(dict(_judge(numbers, _OTHER[order], None, sizes, rules)))
    if other >= CHANCE_OF_MEAN + FAR_ABOVE:
        yield (
            f"Warning: {model}: the scores seem to be in the {_OTHER[order]} order. With --order "
            f"{_OTHER[order]}, the {MEAN} would be {100 * other:.2f} instead of {100 * found:.2f} "
            f"(chance: {100 * CHANCE_OF_MEAN:.2f})."
        )


def _mean_of_15(judged: Mapping[str, Judged]) -> float:
    means = {
        name: np.array([credit.mean() for credit in one.credits.values()])
        for name, one in judged.items()
    }
    return float(eqben_average(means))


def is_eqben(dataset: Dataset) -> bool:
    if dataset.manifest.dataset not in (PAIRS_NAME, EQBEN):
        return False
    kinds = set(read_columns(dataset, "samples", ["kind"])["kind"])
    return set(map(eqben_subset, kinds)) == EQBEN_SIZES.keys()


def eqben_samples_report(
    dataset: Dataset, paths: Sequence[Path], settings: MetricsSettings
) -> Report:
    samples = read_samples(dataset, settings.cluster or PAIRS.cluster, "kind")
    subsets = {name: np.zeros(len(samples.keys), dtype=bool) for name in EQBEN_SIZES}
    for kind, members in samples.subsets.items():
        if subset := eqben_subset(kind):
            subsets[subset] |= members
    samples = replace(samples, subsets=subsets)
    scores: Sequence[SampleScores] = [
        PAIRS.read(path, dataset, settings.quantity, settings.columns) for path in paths
    ]
    names = model_names([found.model for found in scores], paths)
    samples, scores, left_out = without_errata(samples, scores, settings.errata)
    if absent := EQBEN_SIZES.keys() - samples.subsets.keys():
        raise InputError(
            f"--errata {settings.errata} leaves out all samples of EqBen's subset {min(absent)}; "
            "pass --by kind for a table without EqBen's averages"
        )
    judged: dict[str, dict[str, Judged]] = {}
    for name, found, path in zip(names, scores, paths, strict=True):
        judged[name] = PAIRS.judge_subsets(samples, found, path, settings)
        judged[name].pop(MACRO, None)
        if empty := [subset for subset, part in judged[name].items() if not part.scored]:
            raise InputError(
                f"{path}: no sample of EqBen's subset {empty[0]} has a score; pass --by kind "
                "for a table without EqBen's averages"
            )
    is_whole = all(part.scored == part.expected for of in judged.values() for part in of.values())
    sizes = {name: int(members.sum()) for name, members in samples.subsets.items()}
    notes = [*score_notes(names, scores), *left_out]
    if not is_whole and len(paths) > 1:
        notes.append(_ALL_SCORED)
    if deviations := [name for name, size in sizes.items() if size != EQBEN_SIZES[name]]:
        parts = ", ".join(f"{name} {sizes[name]:,} of {EQBEN_SIZES[name]:,}" for name in deviations)
        notes.append(f"These sizes differ from the published subsets: {parts}.")
    return _report(judged, sizes, settings.rules, notes, is_whole=is_whole)


EQBEN_DOMAINS = {
    "youcook2": ("youcook2",),
    "gebc": ("gebc",),
    "ag": ("ag",),
    "kubric": ("kubric-location", "kubric-counting", "kubric-attribute"),
    "sd": ("sd",),
}
"""EqBen's five domains, in table order, with the subsets that each averages."""

KUBRIC = "kubric"
PAPER_AVERAGE = "paper's average"
MEAN = "mean of 15"
EQBEN_COLUMNS = (
    *((domain, metric) for domain in EQBEN_DOMAINS for metric in WINOGROUND),
    (PAPER_AVERAGE, MEAN),
)

CHANCE = {name: metric.chance for name, metric in WINOGROUND.items() if metric.chance is not None}
CHANCE_OF_MEAN = sum(CHANCE.values()) / len(CHANCE)


def domains(subsets: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Average EqBen's seven subsets to five domains: Kubric is the mean of its three."""
    return {
        domain: np.mean([subsets[name] for name in names], axis=0)
        for domain, names in EQBEN_DOMAINS.items()
    }


def eqben_average(subsets: Mapping[str, Numbers]) -> Numbers:
    """Return the paper's average of 15 numbers: three scores of each of five domains.

    Args:
      subsets: text, image and group score of each key of EQBEN_SIZES [..., 3].

    Source: EqBen, table 3; every row except FIBER's first is the mean of its 15 numbers.
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
    """Yield name, metric and rows of every average, linear in each subset's scores [rows, 3]."""
    parts = np.stack(list(subsets.values()))
    averages = {
        KUBRIC: domains(subsets)[KUBRIC],
        "micro average": np.average(parts, axis=0, weights=sizes),
        MACRO: parts.mean(axis=0),
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
    """Return an average as a share, from its rows [1 + resamples] and weights [subsets, 3]."""
    shares = weights.sum(axis=1)
    variance = sum(s**2 / p.even_clusters[0] for s, p in zip(shares, parts, strict=True) if s)
    binary = all(part.binary.all() for part in parts)
    samples = sum(int(part.samples[0]) for part in parts) if binary else math.inf
    return Share(value=float(rows[0]), draws=rows[1:], clusters=1 / variance, samples=samples)


def average_measures(model: str, subsets: Mapping[str, Judged], rules: Rules) -> Iterator[Measure]:
    found: dict[str, Resampled] = {}
    for name, judged in subsets.items():
        found[name], measures = measure(model, name, judged, rules)
        yield from measures
    sizes = [judged.scored for judged in subsets.values()]
    averages = _averages(pooled(found), sizes)
    for (name, metric, rows), weights in zip(averages, _weights_of(sizes), strict=True):
        of = [subsets[part] for part in _parts_of(name)]
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
            clusters=sum(found[part].clusters for part in _parts_of(name)),
            ties=float(np.concatenate(tied).mean()),
        )


def compare_averages(
    judged: Mapping[str, Mapping[str, Judged]], rules: Rules
) -> Iterator[ModelComparison]:
    first, *rivals = judged
    base = judged[first]
    for model in rivals:
        gains = {name: _credits(judged[model][name]) - _credits(base[name]) for name in base}
        sizes = [len(part) for part in gains.values()]
        means = {
            name: resample_means(
                part,
                base[name].clusters,
                seed=(rules.seed, zlib.crc32(name.encode())),
                resamples=rules.resamples,
            )
            for name, part in gains.items()
        }
        averages = _averages(pooled(means), sizes)
        for (average, metric, rows), weight in zip(averages, _weights_of(sizes), strict=True):
            of = _parts_of(average)
            shares = dict(zip(gains, weight, strict=True))
            shift = np.concatenate([gains[name] @ shares[name] / len(gains[name]) for name in of])
            named = [part for name in of if (part := base[name].clusters) is not None]
            low, high = _bounds(rows, weight, list(means.values()))
            found = Comparison(
                samples=len(shift),
                clusters=sum(means[name].clusters for name in of),
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
    """Return percentiles of a difference, or the interval of two shares if it never varies."""
    if np.ptp(rows) > ROUNDING:
        clusters = _share(rows, weights, parts).clusters
        return percentile_interval(rows[1:], clusters=clusters)
    gained, lost = rows.clip(min=0), (-rows).clip(min=0)
    return difference_interval(_share(gained, weights, parts), _share(lost, weights, parts))


def _credits(judged: Judged) -> Numbers:
    return np.column_stack(list(judged.credits.values()))
