"""What judges say of a dataset's rows, beside their labels."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from eqforge.core.errors import InputError
from eqforge.schemas.dataset.judgements import how_judged, read_judgements
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.judgements import JudgeAnswer
from eqforge.sources.row_labels import RowLabel, texts_digest, together

_ROLES: Final = ("original", "hard_positive", "hard_negative")


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedRow:
    """A caption with what was made of it, and what judges say of that.

    Attributes:
      id: `sample_id` of hard positives, `caption_id` of training captions.
      image: its picture, as the source names it; the id where it names none.
      texts: digest of the three texts; None where one is missing.
      answers: of all judges.
    """

    id: str
    image: str
    texts: str | None
    answers: tuple[JudgeAnswer, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledRow:
    """A row and what people say of it."""

    row: JudgedRow
    label: RowLabel


@dataclass(frozen=True, kw_only=True, slots=True)
class Labelled:
    """The labels that are of a dataset's rows, and how many are not.

    Attributes:
      rows: in the order of their ids.
      other_texts: labels of rows whose texts are others in the dataset.
      not_there: labels of rows that the dataset has not.
    """

    rows: tuple[LabelledRow, ...]
    other_texts: int
    not_there: int


def judged_rows(dataset: Dataset) -> Iterator[JudgedRow]:
    """Yields the rows of hard positives or of training captions that were judged.

    Raises:
      InputError: the dataset has no samples, nothing judged it, or a file is damaged.
    """
    dataset.check_samples()
    answers = {each.sample_id: each.answers for each in read_judgements(dataset)}
    if not any(answers.values()):
        raise InputError(f"{dataset.folder}: has no answers of judges; {how_judged(dataset)}")
    if "role" in dataset.columns("samples"):
        yield from _training_rows(dataset, answers)
        return
    columns = ["sample_id", "image", "caption", "hard_positive", "hard_negative"]
    for row in dataset.rows("samples", columns):
        yield JudgedRow(
            id=row["sample_id"],
            image=row["image"] or row["sample_id"],
            texts=texts_digest(row["caption"], row["hard_positive"], row["hard_negative"]),
            answers=answers.get(row["sample_id"], ()),
        )


def _training_rows(
    dataset: Dataset, answers: dict[str, tuple[JudgeAnswer, ...]]
) -> Iterator[JudgedRow]:
    captions: dict[str, dict[str, Any]] = {}
    for row in dataset.rows("samples", ["sample_id", "caption_id", "image", "role", "text"]):
        captions.setdefault(row["caption_id"], {})[row["role"]] = row
    for caption_id, texts in captions.items():
        there = [texts[role] for role in _ROLES if role in texts]
        complete = len(there) == len(_ROLES)
        yield JudgedRow(
            id=caption_id,
            image=there[0]["image"] or caption_id,
            texts=texts_digest(*(row["text"] for row in there)) if complete else None,
            answers=tuple(said for row in there for said in answers.get(row["sample_id"], ())),
        )


def with_labels(rows: Iterable[JudgedRow], labels: Iterable[RowLabel]) -> Labelled:
    """Returns the labels that are of some rows; a label with a digest has to be of their texts.

    A row that was labelled in several samples counts once, with the readings of all labels that are
    of its texts.
    """
    by_id: dict[str, list[RowLabel]] = {}
    for label in labels:
        by_id.setdefault(label.id, []).append(label)
    found: list[LabelledRow] = []
    others = 0
    for row in rows:
        there = by_id.pop(row.id, [])
        fitting = [each for each in there if each.texts in ("", row.texts)]
        others += len(there) - len(fitting)
        found += [LabelledRow(row=row, label=together(fitting))] if fitting else []
    return Labelled(
        rows=tuple(sorted(found, key=lambda each: each.row.id)),
        other_texts=others,
        not_there=sum(map(len, by_id.values())),
    )
