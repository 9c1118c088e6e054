"""Which samples to review: those that judges disagree on, or that are perhaps wrong."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from eqforge.core.errors import InputError
from eqforge.core.ranges import check_range
from eqforge.core.visible import counted
from eqforge.schemas.dataset.judgements import how_judged, read_judgements
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.judgements import OF_SOURCE, disputed_by_judges, disputed_by_rules
from eqforge.schemas.tables.texts import Judgement

Disputed = Literal["judges", "rules"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Doubtful:
    """The samples that want a look.

    Attributes:
      ids: of these.
      unjudged: where what judges dispute was asked for, how many others no judge was asked about,
        captions of the source aside.
    """

    ids: tuple[str, ...]
    unjudged: int = 0


def doubtful(
    dataset: Dataset, disputed: Disputed | None = None, unlikely: float | None = None
) -> Doubtful:
    """Returns which samples of a dataset want a look.

    Of a sample without judgement, as of a combined dataset's part that has none, nothing is known.

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
    rows = [row for row in rows if unlikely is None or _is_unlikely(row, unlikely)]
    found = tuple(row.sample_id for row in rows if _is_disputed(row, disputed))
    others = [row for row in rows if not row.answers and row.basis != OF_SOURCE]
    unjudged = 0 if disputed is None else len(others)
    if not found:
        asked = f"; no judge was asked about {counted(unjudged, 'samples')}" if unjudged else ""
        raise InputError(f"{dataset.folder}: nothing in it is in doubt{asked}")
    return Doubtful(ids=found, unjudged=unjudged)


def _judgements(dataset: Dataset) -> Iterator[Judgement]:
    """Yields what is known of each sample, which is nothing where the table has no row of it."""
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


def _is_unlikely(row: Judgement, limit: float) -> bool:
    return row.basis != OF_SOURCE and (row.probability is None or row.probability < limit)


def _is_disputed(row: Judgement, disputed: Disputed | None) -> bool:
    if disputed is None:
        return True
    return (disputed_by_judges if disputed == "judges" else disputed_by_rules)(row.answers)
