"""EqBen's table of scored datasets: a combined one that has its seven subsets, or the imported."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from eqforge.core.errors import InputError
from eqforge.evaluation.tables.eqben import EQBEN_COLUMNS, eqben_measures
from eqforge.evaluation.tables.eqben_averages import METRICS, compare_averages
from eqforge.evaluation.tables.errata import without_errata
from eqforge.evaluation.tables.report import Judged, Report
from eqforge.evaluation.tables.sample_judges import TASKS
from eqforge.evaluation.tables.sample_scores import SampleScores, places_of
from eqforge.evaluation.tables.sample_tasks import (
    SampleRules,
    model_names,
    part_of,
    read_scores,
    score_notes,
)
from eqforge.evaluation.tables.samples import Samples, read_columns, read_samples
from eqforge.evaluation.tables.several import compare_judged
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.combined import PAIRS_NAME
from eqforge.schemas.tables.eqben_subsets import EQBEN, EQBEN_SIZES, eqben_subset

_ALL_SCORED: Final = (
    "Models are compared by EqBen's averages only where each has scores of every sample."
)


def is_eqben(dataset: Dataset) -> bool:
    """Tells whether the pairs of a dataset are of EqBen's seven subsets, of each at least one.

    Raises:
      InputError: a file is missing or damaged.
    """
    if dataset.manifest.dataset not in (PAIRS_NAME, EQBEN):
        return False
    kinds = set(read_columns(dataset, "samples", ["kind"])["kind"])
    return set(map(eqben_subset, kinds)) == EQBEN_SIZES.keys()


def eqben_samples_report(dataset: Dataset, paths: Sequence[Path], settings: SampleRules) -> Report:
    """Returns EqBen's table of some models' scores of a dataset's pairs.

    Args:
      dataset: what was scored; see is_eqben.
      paths: a folder or file of scores for each model.
      settings: how they are judged.

    Raises:
      InputError: the scores are not of this dataset, or some are missing though not allowed to be.
    """
    task, rules = TASKS["pairs"], settings.rules
    samples = _by_subset(read_samples(dataset, settings.cluster or task.cluster, "kind"))
    scores = [read_scores(path, dataset, task, settings) for path in paths]
    names = model_names([found.model for found in scores], paths)
    left_out: tuple[str, ...] = ()
    if settings.errata is not None:
        samples, scores, left_out = without_errata(samples, scores, settings.errata)
        if gone := EQBEN_SIZES.keys() - samples.subsets.keys():
            raise InputError(
                f"--errata {settings.errata}: leaves no sample of EqBen's subset {min(gone)}; --by "
                "kind makes a table without EqBen's averages"
            )
    judged = {
        name: dict(_judge(samples, found, path, settings))
        for name, found, path in zip(names, scores, paths, strict=True)
    }
    is_whole = all(part.scored == part.expected for of in judged.values() for part in of.values())
    averages = compare_averages(judged, rules) if is_whole else ()
    sizes = {name: int(members.sum()) for name, members in samples.subsets.items()}
    return Report(
        title=f"EqBen: {sum(sizes.values()):,} samples of {len(sizes)} subsets, in per cent",
        rules=rules,
        measures=tuple(
            found for model, of in judged.items() for found in eqben_measures(model, of, rules)
        ),
        comparisons=(*compare_judged(judged, rules), *averages),
        notes=(
            *score_notes(names, scores),
            *left_out,
            *(() if is_whole or len(paths) == 1 else [_ALL_SCORED]),
            *_notes_of(sizes),
        ),
        paper_columns=EQBEN_COLUMNS,
    )


def _by_subset(samples: Samples) -> Samples:
    """Returns samples with EqBen's subsets, in its order, in the place of their kinds."""
    of = {name: np.zeros(len(samples.keys), dtype=bool) for name in EQBEN_SIZES}
    for kind, members in samples.subsets.items():
        if subset := eqben_subset(kind):
            of[subset] |= members
    return replace(samples, subsets=of)


def _judge(
    samples: Samples, scores: SampleScores, path: Path, settings: SampleRules
) -> Iterator[tuple[str, Judged]]:
    allowed = settings.allow_missing
    places = places_of(samples.keys, scores, str(path), allow_missing=allowed)
    found = TASKS["pairs"].judge(
        scores.values[np.maximum(places, 0)], scores.quantity, settings.rules
    )
    verdict = replace(found, credits={name: found.credits[name] for name in METRICS}, units={})
    for subset, members in samples.subsets.items():
        judged = part_of(samples, verdict, members, places >= 0)
        if not judged.scored:
            raise InputError(
                f"{path}: no sample of EqBen's subset {subset} has a score; --by kind makes a "
                "table without EqBen's averages"
            )
        yield subset, judged


def _notes_of(sizes: Mapping[str, int]) -> Iterator[str]:
    others = [name for name, size in sizes.items() if size != EQBEN_SIZES[name]]
    if others:
        parts = ", ".join(f"{name} {sizes[name]:,} of {EQBEN_SIZES[name]:,}" for name in others)
        yield f"These are not the published subsets, by their sizes: {parts}."
