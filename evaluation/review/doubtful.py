"""Which samples to review: those that judges disagree on, or that are perhaps wrong."""

from typing import Literal

from eqforge.schemas.dataset.judgements import read_judgements
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.errors import InputError
from eqforge.schemas.ranges import check_range
from eqforge.schemas.records.judgements import OF_SOURCE, disputed_by_judges, disputed_by_rules
from eqforge.schemas.tables.texts import Judgement

Disputed = Literal["judges", "rules"]


def doubtful(
    dataset: Dataset, disputed: Disputed | None = None, unlikely: float | None = None
) -> tuple[str, ...]:
    """Returns the ids of the samples of a dataset that want a look.

    Args:
      dataset: with judgements.
      disputed: what judges disagree on among each other, or with the rules; None for any.
      unlikely: what is right with less than this probability, or an unknown one; None for any.

    Raises:
      InputError: the dataset has no judgements, none is in doubt, or a limit is no probability.
    """
    check_range("unlikely", unlikely, 0, 1)
    rows = list(read_judgements(dataset))
    if disputed is not None and not any(row.answers for row in rows):
        raise InputError(f"{dataset.folder} has no answers of judges; build it with --verify")
    found = tuple(row.sample_id for row in rows if _is_doubtful(row, disputed, unlikely))
    if not found:
        raise InputError(f"{dataset.folder}: nothing in it is in doubt")
    return found


def _is_doubtful(row: Judgement, disputed: Disputed | None, unlikely: float | None) -> bool:
    if unlikely is not None and (row.basis == OF_SOURCE or (row.probability or 0.0) >= unlikely):
        return False
    if disputed is None:
        return True
    return (disputed_by_judges if disputed == "judges" else disputed_by_rules)(row.answers)
