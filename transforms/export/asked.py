"""The questions of an export to an evaluation harness, with the pictures that they show."""

import json
import re
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any

from eqforge.core.errors import InputError
from eqforge.core.files.checked import name_of, shown
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.lettered import LETTERS
from eqforge.schemas.records.questions import QUESTIONS, UNITS, Question, QuestionForm, form_of
from eqforge.transforms.export.encode import Picture
from eqforge.transforms.export.target import Export, Part, Record


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A question with its pictures.

    Attributes:
      question: the question.
      cluster: what the sample shares with others; the sample's own id where that is null.
      pictures: those of `question.images`.
      counts_in: the unit that it has to be right in, and how many questions that has, by metric.
    """

    question: Question
    cluster: str
    pictures: tuple[Picture, ...]
    counts_in: dict[str, tuple[str, int]]


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
        return f"it has no images to ask about; {dataset.remedy}"
    for row in dataset.rows(table, ["sample_id", *form.columns]):
        for name in form.columns:
            if row[name] is None:
                return f"{name_of(row['sample_id'])} has no {name}: every image has to be there"
            for text in row[name] if isinstance(row[name], list) else [row[name]]:
                if text in unreadable:
                    where = f"{name} of {name_of(row['sample_id'])}"
                    return f"it would read the {where}, {shown(text)}, as missing"
        if not form.questions(row):
            return (
                f"the answer of {name_of(row['sample_id'])}, {shown(row['answer'])}, is neither "
                f"one of {len(LETTERS)} options at most, nor a letter, nor yes or no"
            )
    return ""


def task_name(dataset: Dataset) -> str:
    """Returns the name of the task, of lower-case letters, digits and underscores."""
    return "eqforge_" + re.sub(r"[^a-z0-9]+", "_", dataset.manifest.dataset.lower()).strip("_")


@dataclass(frozen=True, kw_only=True, slots=True)
class Asking:
    """What the rows of an export are asked.

    Attributes:
      form: the form of their questions.
      letters: of the most options that a question has, at least A and B; none where none has any.
      sizes: of questions of a benchmark, how many each unit has, by metric and unit.
    """

    form: QuestionForm
    letters: str
    sizes: Counter[tuple[str, ...]]

    @classmethod
    def of(cls, export: Export) -> "Asking":
        """Reads what all rows have to tell."""
        form = form_of(set(export.schema.names), export.dataset.folder)
        most, sizes = 2, Counter[tuple[str, ...]]()
        if form is QUESTIONS:
            most = 0
            for row in export.rows(export.settings.table):
                most = max(most, len(row["options"]))
                sizes.update((metric, *unit(row)) for metric, unit in UNITS.items())
        return cls(form=form, letters=LETTERS[: max(most, 2)] if most else "", sizes=sizes)

    def by_sample(self, part: Part) -> Iterator[list[Asked]]:
        """Yields the questions of each row of a part."""
        for record in part.records():
            yield list(self._asked(record))

    def _asked(self, record: Record) -> Iterator[Asked]:
        pictures = {each.image_id: each for each in record.pictures.values() if each is not None}
        cluster: Any = record.row[self.form.cluster]
        questions = self.form.questions(record.row)
        like = Counter(question.asks for question in questions)
        for question in questions:
            if self.form is QUESTIONS:
                counts_in = self._units(record)
            else:
                counts_in = {"group": (question.sample_id, len(questions))}
                if len(like) > 1:
                    counts_in[question.asks] = (question.sample_id, like[question.asks])
            yield Asked(
                question=question,
                cluster=record.id if cluster is None else str(cluster),
                pictures=tuple(pictures[image] for image in question.images),
                counts_in=counts_in,
            )

    def _units(self, record: Record) -> dict[str, tuple[str, int]]:
        found = {metric: unit(record.row) for metric, unit in UNITS.items()}
        return {
            metric: (json.dumps(unit), self.sizes[(metric, *unit)])
            for metric, unit in found.items()
        }
