"""Joins what a harness says of samples with a dataset, by id."""

from collections.abc import Callable, Collection, Container, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.evaluation.metrics.ties import Credits
from eqforge.evaluation.tables.errata import without, wrong_samples
from eqforge.evaluation.tables.report import Judged, Rules
from eqforge.evaluation.tables.samples import Samples, read_samples
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.questions import QuestionForm, form_of

T = TypeVar("T")
_ROWS: Final = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class HarnessRules:
    """How answers are judged.

    Attributes:
      rules: seed and resamples.
      by, cluster: columns that name subsets and clusters; None for those of the kind of sample.
      allow_missing: whether samples may have questions without an answer.
      errata: file of what is wrong with samples, which are left out; None for none.
    """

    rules: Rules
    by: str | None = None
    cluster: str | None = None
    allow_missing: bool = False
    errata: Path | None = None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Joined:
    """What is joined with.

    Attributes:
      dataset: the dataset.
      form: what its samples are asked.
      samples: ids, clusters and subsets of those that are measured.
      known: the ids of all.
      notes: what was left out by errata.
    """

    dataset: Dataset
    form: QuestionForm
    samples: Samples
    known: frozenset[str]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, dataset: Dataset, settings: HarnessRules) -> "Joined":
        """Reads ids, clusters and subsets.

        Raises:
          InputError: samples of this kind are not asked about, or lack a column; or the errata are
            of other samples.
        """
        columns = set(dataset.columns("samples"))
        form = form_of(columns, dataset.folder)
        own = next((name for name in form.by if name in columns), None)
        samples = read_samples(dataset, settings.cluster or form.cluster, settings.by or own)
        known = frozenset(samples.keys.tolist())
        gone, notes = wrong_samples(known, settings.errata)
        measured = without(samples, gone)
        return cls(dataset=dataset, form=form, samples=measured, known=known, notes=notes)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yields id and texts of each sample."""
        wanted = ["sample_id", *self.form.columns]
        for batch in self.dataset.batches("samples", wanted, _ROWS):
            yield from batch.to_pylist()


def check_known(path: Path, given: Collection[Any], known: Container[Any], what: str) -> None:
    """Checks that everything that is told is of the dataset.

    Args:
      path: of the file, for the message.
      given: ids of what is told.
      known: those of the dataset.
      what: what they are, for the message.

    Raises:
      InputError: something is of no sample or question of the dataset.
    """
    strange = [key for key in given if key not in known]
    if strange:
        raise InputError(
            f"{path}: {len(strange):,} of {len(given):,} {what} that the dataset does not have, "
            f"such as {shown(min(strange))}: they are of another dataset, or of an earlier build "
            "of it"
        )


def check_missing(
    path: Path, samples: Samples, told: Mapping[str, Any], settings: HarnessRules, why: str
) -> None:
    """Checks that all samples are told of, if they have to be.

    Args:
      path: of the file, for the message.
      samples: the samples.
      told: what is told, by sample.
      settings: whether some may be missing.
      why: what is known of the reason, for the message.

    Raises:
      InputError: samples are missing that may not, or all are.
    """
    missing = [key for key in samples.keys.tolist() if key not in told]
    if len(missing) == len(samples.keys):
        raise InputError(f"{path}: not one sample has an answer to all its questions{why}")
    if missing and not settings.allow_missing:
        raise InputError(
            f"{path}: {len(missing):,} of {len(samples.keys):,} samples have not all answers{why}, "
            f"such as {shown(min(missing))}; --allow-missing leaves them out"
        )


def judged_by(
    samples: Samples, told: Mapping[str, T], judge: Callable[[list[T]], dict[str, Credits]]
) -> Iterator[tuple[str, Judged]]:
    """Yields the credits of the samples of each subset that are told of.

    Args:
      samples: the samples.
      told: what is told, by sample.
      judge: returns the credits [n] of n samples.
    """
    for subset, rows, like in chosen_of(samples, told):
        yield subset, replace(like, credits=judge(rows))


def chosen_of(samples: Samples, told: Mapping[str, T]) -> Iterator[tuple[str, list[T], Judged]]:
    """Yields what is told of the samples of each subset, and the frame of their credits."""
    keys = samples.keys.tolist()
    scored = np.array([key in told for key in keys], dtype=bool)
    for subset, members in samples.subsets.items():
        chosen = members & scored
        if chosen.any():
            like = Judged(
                credits={},
                chance={},
                tied=None,
                clusters=samples.clusters[chosen],
                expected=int(members.sum()),
                keys=samples.keys[chosen],
            )
            yield subset, [told[keys[row]] for row in np.flatnonzero(chosen)], like
