"""Which samples to review: those that judges disagree on, or that are perhaps wrong."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.ranges import check_range
from eqforge.core.visible import counted
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.judgements import (
    OF_SOURCE,
    QUESTIONS,
    disputed_by_judges,
    disputed_by_rules,
)
from eqforge.schemas.tables.combined import COMBINED
from eqforge.schemas.tables.datasets import table_type
from eqforge.schemas.tables.texts import Judgement


@dataclass(frozen=True, kw_only=True, slots=True)
class Doubtful:
    """The samples that want a look.

    Attributes:
      unjudged: where what judges dispute was asked for, how many others no judge was asked about,
        captions of the source aside.
    """

    ids: tuple[str, ...]
    unjudged: int = 0


def doubtful(
    dataset: Dataset,
    disputed: Literal["judges", "rules"] | None = None,
    unlikely: float | None = None,
) -> Doubtful:
    """Returns which samples of a dataset want a look.

    Args:
      dataset: with judgements.
      disputed: what judges disagree on among each other, or with the rules; None for any.
      unlikely: what is right with less than this probability, or an unknown one; None for any.

    Raises:
      InputError: the dataset has no samples, answers or probabilities, none is in doubt, or a limit
        is no probability.
    """
    check_range("unlikely", unlikely, 0, 1)
    dataset.check_samples()
    rows = list(_judgements(dataset))
    if disputed is not None and not any(row.answers for row in rows):
        raise InputError(f"{dataset.folder}: has no answers of judges; {how_judged(dataset)}")
    if unlikely is not None and all(row.probability is None for row in rows):
        how = how_judged(dataset, "the rules of corrected mode")
        raise InputError(
            f"{dataset.folder}: has no probabilities of being right, as --unlikely needs; {how}"
        )
    if unlikely is not None:
        made = [row for row in rows if row.basis != OF_SOURCE]
        rows = [row for row in made if row.probability is None or row.probability < unlikely]
    unjudged = 0
    if disputed is not None:
        unjudged = sum(not row.answers and row.basis != OF_SOURCE for row in rows)
        is_disputed = disputed_by_judges if disputed == "judges" else disputed_by_rules
        rows = [row for row in rows if is_disputed(row.answers)]
    if not rows:
        asked = f"; no judge was asked about {counted(unjudged, 'samples')}" if unjudged else ""
        raise InputError(f"{dataset.folder}: nothing in it is in doubt{asked}")
    return Doubtful(ids=tuple(row.sample_id for row in rows), unjudged=unjudged)


def _judgements(dataset: Dataset) -> Iterator[Judgement]:
    """Yields what is known of each sample; of one without a row, nothing is."""
    known = {row.sample_id: row for row in read_judgements(dataset)}
    beside = ["role"] if "role" in dataset.columns("samples") else []
    for row in dataset.rows("samples", ["sample_id", *beside]):
        name, is_original = row["sample_id"], row.get("role") == "original"
        yield known.get(name) or Judgement(
            sample_id=name,
            probability=None,
            low=None,
            high=None,
            basis=OF_SOURCE if is_original else "",
            answers=(),
        )


_TABLE: Final = "judgements"


def read_judgements(dataset: Dataset) -> Iterator[Judgement]:
    """Yields the judgements of a dataset; none where it has no such table.

    Raises:
      InputError: a file is damaged, or an answer is to no question.
    """
    for row in dataset.rows(_TABLE):
        found = msgspec.convert(row, Judgement)
        for answer in found.answers:
            if answer.question not in QUESTIONS:
                raise InputError(
                    f"{dataset.folder}: {_TABLE}: no question is called {shown(answer.question)}"
                )
        yield found


def how_judged(dataset: Dataset, options: str = "--verify") -> str:
    """Returns what gives a dataset judgements, or that nothing does, for the end of an error.

    Args:
      dataset: without them.
      options: of the build that has them.
    """
    name = dataset.manifest.dataset
    if table_type(name, _TABLE) is None:
        return f"hard-positives and training-captions can have them, {name} cannot"
    verb = "combine parts that were built" if name in COMBINED else "build it"
    return f"{verb} with {options}"
