"""Reads what judges say of a dataset's samples."""

from collections.abc import Iterator
from typing import Final

import msgspec

from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.errors import InputError
from eqforge.schemas.io.checked import shown
from eqforge.schemas.records.judgements import QUESTIONS
from eqforge.schemas.tables.texts import Judgement

_TABLE: Final = "judgements"


def read_judgements(dataset: Dataset) -> Iterator[Judgement]:
    """Yields the judgements of a dataset.

    Raises:
      InputError: it has none, a file is damaged, or an answer is to no question.
    """
    if not dataset.files(_TABLE):
        raise InputError(f"{dataset.folder}: has no judgements; build it with --verify")
    for row in dataset.rows(_TABLE):
        found = msgspec.convert(row, Judgement)
        for answer in found.answers:
            if answer.question not in QUESTIONS:
                raise InputError(
                    f"{dataset.folder}: {_TABLE}: no question is called {shown(answer.question)}"
                )
        yield found
