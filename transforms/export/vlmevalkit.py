"""A table of VLMEvalKit: a row a question, whose pictures stand in it as base64.

Put into the folder that the variable LMUData names, it is a dataset by the name of the file: the
columns A and B make it one of multiple choice. Without them the harness asks the question as it is,
and evaluates nothing.

Source: VLMEvalKit (ms-vlmeval 0.0.20), `vlmeval/dataset/__init__.py`, `image_base.py` and
`image_mcq.py`.
"""

import base64
import csv
import io
import json
from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

from eqforge.schemas.dataset.reader import Dataset
from eqforge.transforms.export import asked
from eqforge.transforms.export.asked import Asked, Asking
from eqforge.transforms.export.encode import Picture
from eqforge.transforms.export.target import Export

COLUMNS: Final = ("answer", "category", "sample_id", "cluster", "image")
"""After `index`, `question` and the options; `category` is `text` for the caption of an image,
`image` for the image of a caption and `answer`, of which the harness prints the accuracy."""

_READ_AS_NOTHING: Final = frozenset(
    {
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
        *("1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    }
)
"""Texts that pandas, with which the harness reads the table, takes for a missing value."""


def refusal(dataset: Dataset, table: str) -> str:
    """Returns why the rows of a table cannot be asked about; empty where they can."""
    return asked.refusal(dataset, table, _READ_AS_NOTHING)


def write(export: Export) -> None:
    """Writes the table."""
    path = f"{asked.task_name(export.dataset)}.tsv"
    if export.has(path):
        return
    asking = Asking.of(export)
    with export.file(path) as stream:
        stream.write(_line(["index", "question", *asking.letters, *COLUMNS]))
        for split in export.splits:
            for part in export.parts(split):
                for sample in asking.by_sample(part):
                    for row in _rows(sample, asking.letters):
                        stream.write(_line(row))
                        stream.rows += 1


def _line(row: list[str]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(row)
    return text.getvalue().encode()


def _rows(sample: list[Asked], letters: str) -> Iterator[list[str]]:
    shown_by: dict[str, str] = {}
    for each in sample:
        question = each.question
        yield [
            question.question_id,
            question.question,
            *(text for _, text in zip_longest(letters, question.options, fillvalue="")),
            question.answer,
            question.asks,
            question.sample_id,
            each.cluster,
            _image(question.question_id, each.pictures, shown_by),
        ]


def _image(question_id: str, pictures: tuple[Picture, ...], shown_by: dict[str, str]) -> str:
    """Returns a picture in base64, or the id of a question that shows it; of several a list.

    The harness evaluates a list as Python: there are only letters, digits, +, / and = in it.
    """
    if len(pictures) > 1:
        return json.dumps([base64.b64encode(found.data).decode() for found in pictures])
    (picture,) = pictures
    if (other := shown_by.setdefault(picture.image_id, question_id)) != question_id:
        return other
    return base64.b64encode(picture.data).decode()
