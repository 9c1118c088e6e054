"""What a contact sheet shows of a row: its pictures, and the texts that belong to them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.errors import InputError
from eqforge.schemas.tables.vlue import TASK_TABLES

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A cell of a contact sheet.

    Attributes:
      title: the row's id and what it is about.
      pictures: one or two keys into the table of images.
      texts: texts for each picture; a single picture may have many.
      boxes: objects with their boxes, in pixels, for each picture; empty if none are drawn.
      why: why a reject was refused; empty for samples.
    """

    title: str
    pictures: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    boxes: tuple[tuple[Row, ...], ...] = ((), ())
    why: str = ""


# Columns with texts of one picture, and their prefixes.
_TEXTS: Final = {
    "caption": "",
    "text": "",
    "hard_positive": "true: ",
    "hard_negative": "false: ",
    "perturbed_caption": "perturbed: ",
    "question": "",
    "options": "option: ",
    "answer": "answer: ",
}
_ABOUT: Final = (
    "kind", "change", "role", "hard_positive_kind", "hard_negative_kind", "perturbation", "part",
)  # fmt: skip
# Columns of VLUE's task tables, and their prefixes.
_OF_TASKS: Final = {
    "caption": "",
    "statement": "",
    "question": "",
    "phrase": "phrase: ",
    "label": "label: ",
    "answers": "answer: ",
    "references": "reference: ",
}


# Columns that samples need if they have the first.
_NEEDED: Final = (
    ("caption_0", ("sample_id", "caption_0", "caption_1", "image_0_id", "image_1_id")),
    (
        "target_triplet_id",
        (
            *("sample_id", "source_triplet_id", "target_triplet_id"),
            *("source_word", "target_word"),
        ),
    ),
    ("task", ("sample_id", "task")),
)


def read_entries(dataset: Dataset, rows: int, boxes: bool, only: str | None = None) -> list[Entry]:
    """Returns entries of rows from all over a dataset, in the order of their ids.

    Args:
      dataset: one with pictures.
      rows: the most entries.
      boxes: whether to include the boxes of the objects.
      only: the id of the one sample that is wanted; None for samples from all over.

    Raises:
      InputError: there is nothing to draw, or no boxes; the message says why.
    """
    columns = dataset.columns("samples")
    make = _maker(dataset, columns, boxes)
    samples = list(_spread(dataset, rows, columns, only)) if columns else []
    entries = [make(sample) for sample in samples if _pictures(sample)]
    if not entries:
        found = f"holds no pictures to draw; {dataset.remedy}"
        raise InputError(f"{dataset.folder}: {found if samples else 'has no samples to draw'}")
    return entries


def _maker(dataset: Dataset, columns: Sequence[str], boxes: bool) -> Callable[[Row], Entry]:
    if boxes and columns and not {"objects_0", "objects_1"}.issubset(columns):
        raise InputError(f"{dataset.folder}: its samples have no boxes")
    if "caption_0" in columns:
        return lambda row: _of_pair(row, boxes)
    if "target_triplet_id" in columns:
        found = dataset.rows("captions", ["caption_id", "caption"])
        captions = {row["caption_id"]: row["caption"] for row in found}
        return lambda row: _of_query(row, captions)
    if "task" in columns:
        tasks = dict(_of_tasks(dataset))
        return lambda row: _of_task(row, tasks.get(row["sample_id"], ()))
    return _of_text


def _spread(dataset: Dataset, rows: int, columns: Sequence[str], only: str | None) -> Iterator[Row]:
    """Yields samples at even distances, including the first, or the one that is wanted."""
    total = dataset.manifest.num_rows("samples")
    chosen = spread_places(total, rows)
    heavy = ("annotation", "scores", "origin_0", "origin_1", "spec_0", "spec_1", "generation")
    needed = next((names for name, names in _NEEDED if name in columns), ("sample_id",))
    names = dict.fromkeys([*needed, *(name for name in columns if name not in heavy)])
    for place, sample in enumerate(dataset.rows("samples", list(names))):
        if sample["sample_id"] == only or (only is None and place in chosen):
            yield sample


def spread_places(total: int, rows: int) -> set[int]:
    """Returns at most `rows` places in `range(total)`, at even distances, the first included."""
    shown = min(rows, total)
    return {place * total // shown for place in range(shown)}


def _pictures(row: Row) -> tuple[str, ...]:
    names = ("image_id", "image_0_id", "image_1_id")
    return tuple(row[name] for name in names if row.get(name) is not None)


def _title(row: Row) -> str:
    about = " ".join(str(row[name]) for name in _ABOUT if row.get(name) is not None)
    return f"{row['sample_id']}  {about}"


def _of_pair(row: Row, boxes: bool) -> Entry:
    return Entry(
        title=_title(row),
        pictures=_pictures(row),
        texts=((row["caption_0"],), (row["caption_1"],)),
        boxes=tuple(tuple(row[f"objects_{side}"]) for side in (0, 1)) if boxes else ((), ()),
    )


def _of_text(row: Row) -> Entry:
    return Entry(title=_title(row), pictures=_pictures(row), texts=(tuple(_texts(row, _TEXTS)),))


def _of_query(row: Row, captions: dict[str, str]) -> Entry:
    texts = (
        captions.get(row["source_triplet_id"], "?"),
        f"{row['source_word']} → {row['target_word']}",
        captions.get(row["target_triplet_id"], "?"),
    )
    return Entry(title=_title(row), pictures=_pictures(row), texts=(texts,))


def _of_tasks(dataset: Dataset) -> Iterator[tuple[str, tuple[str, ...]]]:
    for table in TASK_TABLES:
        for row in dataset.rows(table):
            yield row["sample_id"], tuple(_texts(row, _OF_TASKS))


def _texts(row: Row, columns: Mapping[str, str]) -> Iterator[str]:
    """Yields the texts of some columns, behind the prefix of each."""
    for name, word in columns.items():
        value = row.get(name)
        for each in value if isinstance(value, list) else [value]:
            if each is not None and each != "":
                yield f"{word}{_plain(each)}"


def _plain(value: Any) -> str:
    """Returns a value in words; an answer is a struct of the answer and how often it was given."""
    return " ".join(map(str, value.values())) if isinstance(value, dict) else str(value)


def _of_task(row: Row, texts: tuple[str, ...]) -> Entry:
    title = f"{row['sample_id']}  {row['task']}"
    return Entry(title=title, pictures=_pictures(row), texts=(texts, ()))
