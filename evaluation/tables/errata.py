"""Leaves out of a table what errata say is wrong."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.visible import counted, visible
from eqforge.evaluation.tables.sample_scores import SampleScores
from eqforge.evaluation.tables.samples import Samples
from eqforge.sources.errata import by_reason, read_errata, told, unknown


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
    gone, notes = wrong_samples(samples.keys.tolist(), path)
    found = []
    for each in scores:
        left = _outside(each.keys, gone)
        found.append(replace(each, keys=each.keys[left], values=each.values[left]))
    return without(samples, gone), found, notes


def wrong_samples(
    ids: Collection[str], path: Path | None
) -> tuple[frozenset[str], tuple[str, ...]]:
    """Returns which samples errata drop or correct, and notes on how many and why.

    Args:
      ids: of all samples that are measured.
      path: file of the errata; None for none.

    Raises:
      InputError: it is no such file, an erratum is of no sample, or nothing would be left.
    """
    if path is None:
        return frozenset(), ()
    errata = read_errata(path)
    if lost := unknown(errata, set(ids)):
        raise InputError(f"--errata {path}: {told(lost)} that is measured here")
    wrong = [erratum for erratum in errata if erratum.action != "note"]
    gone = frozenset(erratum.id for erratum in wrong)
    if gone.issuperset(ids):
        raise InputError(f"--errata {path}: leaves no sample to measure")
    notes = [
        visible(f"errata: {counted(count, 'samples')} left out ({action}): {reason}")
        for (action, reason), count in by_reason(wrong).items()
    ]
    return gone, tuple(notes)


def without(samples: Samples, gone: Collection[str]) -> Samples:
    """Returns samples but for some, and without the subsets that become empty."""
    left = _outside(samples.keys, gone)
    subsets = {name: members[left] for name, members in samples.subsets.items()}
    return replace(
        samples,
        keys=samples.keys[left],
        clusters=samples.clusters[left],
        subsets={name: members for name, members in subsets.items() if members.any()},
    )


def _outside(keys: NDArray[np.object_], gone: Collection[str]) -> NDArray[np.bool_]:
    return ~np.isin(keys, np.array(sorted(gone), dtype=object))
