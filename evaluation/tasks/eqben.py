"""EqBen's table: seven subsets, five domains and their averages, of a vector or of a dataset."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.files.checked import read_text_lines, shown
from eqforge.core.files.typed_json import decode, read_bytes
from eqforge.evaluation.metrics.pairs import WINOGROUND
from eqforge.evaluation.tables.render import Report, Rules
from eqforge.evaluation.tables.report import Judged, compare_judged, model_names
from eqforge.evaluation.tables.samples import read_columns, read_samples, text_array
from eqforge.evaluation.tables.scores import LARGEST_SCORE, SampleScores, places_of
from eqforge.evaluation.tables.settings import MetricsSettings, Order
from eqforge.evaluation.tasks.averages import (
    CHANCE_OF_MEAN,
    EQBEN_COLUMNS,
    average_measures,
    compare_averages,
    eqben_average,
)
from eqforge.evaluation.tasks.samples import TASKS, score_notes, without_errata
from eqforge.models.arrays import TENSORS, read_array
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.benchmark_rows import PAIRS_NAME
from eqforge.schemas.tables.benchmarks import EQBEN, EQBEN_SIZES, eqben_subset

PAIRS: Final = replace(TASKS["pairs"], metrics=WINOGROUND)
NEAR_CHANCE, FAR_ABOVE = 0.02, 0.05
"""A vector whose mean of 15 is at most so near to chance in the order that was named, and at least
so far above it in the other, is in the other. For random scores the mean of 15 has a
standard deviation of 0.0024 around chance.
"""

SUFFIXES = (".npy", ".pt", ".pth", ".json", ".txt", ".csv")
_OTHER: Mapping[Order, Order] = {"official": "by-subset", "by-subset": "official"}
_ALONE = (
    "Each sample is a cluster of its own, for a vector says nothing of its videos: with --clusters",
    "the intervals are wider, as they should be.",
)
_ALL_SCORED: Final = (
    "Models are compared by EqBen's averages only where each has scores of every sample."
)


def eqben_report(
    paths: Sequence[Path], settings: MetricsSettings, sizes: Mapping[str, int] = EQBEN_SIZES
) -> Report:
    samples = sum(sizes.values())
    clusters = None
    if settings.clusters is not None:
        lines = read_text_lines(settings.clusters)
        if len(lines) != samples:
            raise InputError(
                f"{settings.clusters}: expected {samples:,} lines, one a sample; found "
                f"{len(lines):,}"
            )
        clusters = text_array(lines)
    names = [path.stem for path in paths]
    if len(set(paths)) < len(paths):
        raise InputError(f"{max(paths, key=list(paths).count)}: is named twice")
    names = names if len(set(names)) == len(names) else [str(path) for path in paths]
    judged: dict[str, dict[str, Judged]] = {}
    notes: list[str] = []
    for name, path in zip(names, paths, strict=True):
        numbers = read_vector(path)
        if len(numbers) != 4 * samples:
            parts = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
            raise InputError(
                f"{path}: expected {4 * samples:,} numbers, four a sample in the order c0i0, c1i0, "
                f"c0i1, c1i1, of the subsets {parts}; found {len(numbers):,}"
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
    """Read a file of numbers, as benchmarks with a server take them.

    Args:
      path: a NumPy array (.npy), a tensor (.pt, .pth), a JSON list, or text with numbers between
        commas or white space (.txt, .csv). Nothing in it is executed.

    Returns:
      The numbers in a row [n], in the file's own precision, or float64 where it is text.
    """
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: expected one of {', '.join(SUFFIXES)}")
    try:
        if path.suffix in (".npy", *TENSORS):
            found = read_array(path)
        elif path.suffix == ".json":
            found = np.array(decode(read_bytes(path), list[float], str(path)), dtype=np.float64)
        else:
            text = read_bytes(path).decode("utf-8").replace(",", " ")
            found = np.array(text.split(), dtype=np.float64)
    except ValueError as error:
        raise InputError(f"{path}: expected numbers alone: {shown(str(error))}") from error
    vector: NDArray[Any] = found.ravel()
    exact = vector if vector.dtype.kind == "f" else vector.astype(np.float64)
    bad = np.flatnonzero(~(np.abs(exact.astype(np.float64)) <= LARGEST_SCORE))
    if len(bad):
        raise InputError(
            f"{path}: number {bad[0] + 1} is {exact[bad[0]]}; scores have to be "
            f"finite and within {LARGEST_SCORE:g}"
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
    """Warn where a vector looks as if it were in the other order."""
    found = _mean_of_15(judged)
    if found > CHANCE_OF_MEAN + NEAR_CHANCE:
        return
    sizes = {name: one.expected for name, one in judged.items()}
    other = _mean_of_15(dict(_judge(numbers, _OTHER[order], None, sizes, rules)))
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


def is_eqben(dataset: Dataset) -> bool:
    """Return True if the pairs come from all seven of EqBen's subsets."""
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
        PAIRS.read(path, dataset, settings.quantity) for path in paths
    ]
    names = model_names([found.model for found in scores], paths)
    samples, scores, left_out = without_errata(samples, scores, settings.errata)
    if gone := EQBEN_SIZES.keys() - samples.subsets.keys():
        raise InputError(
            f"--errata {settings.errata}: leaves no sample of EqBen's subset {min(gone)}; --by "
            "kind makes a table without EqBen's averages"
        )
    judged: dict[str, dict[str, Judged]] = {}
    for name, found, path in zip(names, scores, paths, strict=True):
        places = places_of(samples.keys, found, str(path), allow_missing=settings.allow_missing)
        whole = PAIRS.judge(found.values[np.maximum(places, 0)], found.quantity, settings.ties)
        whole = replace(whole, clusters=samples.clusters, keys=samples.keys)
        judged[name] = {
            subset: whole.part(members & (places >= 0), expected=int(members.sum()))
            for subset, members in samples.subsets.items()
        }
        if empty := [subset for subset, part in judged[name].items() if not part.scored]:
            raise InputError(
                f"{path}: no sample of EqBen's subset {empty[0]} has a score; --by kind makes a "
                "table without EqBen's averages"
            )
    is_whole = all(part.scored == part.expected for of in judged.values() for part in of.values())
    sizes = {name: int(members.sum()) for name, members in samples.subsets.items()}
    notes = [*score_notes(names, scores), *left_out]
    if not is_whole and len(paths) > 1:
        notes.append(_ALL_SCORED)
    if others := [name for name, size in sizes.items() if size != EQBEN_SIZES[name]]:
        parts = ", ".join(f"{name} {sizes[name]:,} of {EQBEN_SIZES[name]:,}" for name in others)
        notes.append(f"These are not the published subsets, by their sizes: {parts}.")
    return _report(judged, sizes, settings.rules, notes, is_whole=is_whole)
