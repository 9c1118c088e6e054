"""Leaves out of a table what errata say is wrong."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from eqforge.evaluation.tables.sample_scores import SampleScores
from eqforge.evaluation.tables.samples import Samples
from eqforge.schemas.errors import InputError
from eqforge.schemas.sources.errata import by_reason, read_errata, told, unknown
from eqforge.schemas.visible import counted, visible


def without_errata(
    samples: Samples, scores: Sequence[SampleScores], path: Path
) -> tuple[Samples, list[SampleScores], tuple[str, ...]]:
    """Returns samples and their scores without those that errata drop or correct, and notes.

    What is corrected was scored with the text as it was, so its score says nothing.

    Args:
      samples: the samples.
      scores: of each model.
      path: file of the errata.

    Raises:
      InputError: it is no such file, an erratum is of no sample, or nothing is left.
    """
    errata = read_errata(path)
    if ids := unknown(errata, set(samples.keys.tolist())):
        raise InputError(f"--errata {path}: {told(ids)} that is measured here")
    wrong = [erratum for erratum in errata if erratum.action != "note"]
    gone = np.array(sorted({erratum.id for erratum in wrong}), dtype=object)
    left = ~np.isin(samples.keys, gone)
    if not left.any():
        raise InputError(f"--errata {path}: leaves no sample to measure")
    subsets = {name: members[left] for name, members in samples.subsets.items()}
    kept = replace(
        samples,
        keys=samples.keys[left],
        clusters=samples.clusters[left],
        subsets={name: members for name, members in subsets.items() if members.any()},
    )
    found = [_without(each, gone) for each in scores]
    reasons = by_reason(wrong).items()
    notes = [
        visible(f"errata: {counted(count, 'samples')} left out ({action}): {reason}")
        for (action, reason), count in reasons
    ]
    return kept, found, tuple(notes)


def _without(scores: SampleScores, gone: "np.ndarray") -> SampleScores:
    left = ~np.isin(scores.keys, gone)
    return replace(scores, keys=scores.keys[left], values=scores.values[left])
