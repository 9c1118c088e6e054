"""The questions of an export to an evaluation harness, with the pictures that they show."""

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any

from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.errors import InputError
from eqforge.schemas.io.checked import name_of, shown
from eqforge.schemas.records.questions import Question, QuestionForm, form_of
from eqforge.transforms.export.encode import Picture
from eqforge.transforms.export.target import Export, Part, Record


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A question with its pictures.

    Attributes:
      question: the question.
      cluster: what the sample shares with others; the sample's own id where that is null.
      pictures: those of `question.images`.
    """

    question: Question
    cluster: str
    pictures: tuple[Picture, ...]


def refusal(dataset: Dataset, table: str, unreadable: Container[str] = ()) -> str:
    """Returns why the rows of a table cannot be asked about; empty where they can.

    Args:
      dataset: the dataset.
      table: the table.
      unreadable: captions that the harness does not read as they are.
    """
    try:
        form = form_of(set(dataset.columns(table)), "a table")
    except InputError as error:
        return str(error).removeprefix("a table: ")
    if not dataset.manifest.num_rows("images"):
        return "it has no images to ask about"
    for row in dataset.rows(table, ["sample_id", *form.columns]):
        for name in form.columns:
            if row[name] is None:
                return f"{name_of(row['sample_id'])} has no {name}: every image has to be there"
            if row[name] in unreadable:
                text = shown(row[name])
                return (
                    f"it would read the {name} of {name_of(row['sample_id'])}, {text}, as missing"
                )
    return ""


def task_name(dataset: Dataset) -> str:
    """Returns the name of the task, of lower-case letters, digits and underscores."""
    return "eqforge_" + re.sub(r"[^a-z0-9]+", "_", dataset.manifest.dataset.lower()).strip("_")


def form_of_rows(export: Export) -> QuestionForm:
    """Returns what the rows of an export are asked."""
    return form_of(set(export.schema.names), export.dataset.folder)


def by_sample(part: Part, form: QuestionForm) -> Iterator[list[Asked]]:
    """Yields the questions of each row of a part."""
    for record in part.records():
        yield list(_asked(record, form))


def _asked(record: Record, form: QuestionForm) -> Iterator[Asked]:
    pictures = {found.image_id: found for found in record.pictures.values() if found is not None}
    cluster: Any = record.row[form.cluster]
    for question in form.questions(record.row):
        yield Asked(
            question=question,
            cluster=record.id if cluster is None else str(cluster),
            pictures=tuple(pictures[image] for image in question.images),
        )
