"""Reads what judges say of a dataset's samples."""

from collections.abc import Iterator
from typing import Final

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.judgements import QUESTIONS
from eqforge.schemas.tables.combined import COMBINED
from eqforge.schemas.tables.datasets import table_type
from eqforge.schemas.tables.texts import Judgement

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
