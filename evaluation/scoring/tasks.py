"""What is scored in a dataset: which images with which captions, by the columns of its tables."""

import dataclasses
from collections.abc import Mapping
from typing import Final

from eqforge.core.errors import InputError
from eqforge.core.visible import nearest
from eqforge.schemas.dataset.reader import Dataset


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A column of image ids or texts, with its table."""

    table: str
    name: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """Which images are scored with which captions.

    Attributes:
      name: name of the task.
      images: columns of image ids.
      captions: columns of texts.
      crossed: whether all images are compared with all captions; otherwise the images of a row
        of `samples` with the captions of the same row, in the order of the columns.
      meaning: one sentence for the manual.
    """

    name: str
    images: tuple[Column, ...]
    captions: tuple[Column, ...]
    crossed: bool
    meaning: str

    def tables(self) -> Mapping[str, tuple[str, ...]]:
        """Return the columns by table, tables and columns in order."""
        found: dict[str, dict[str, None]] = {}
        for column in (*self.images, *self.captions):
            found.setdefault(column.table, {})[column.name] = None
        return {table: tuple(names) for table, names in found.items()}


def _of(table: str, *names: str) -> tuple[Column, ...]:
    return tuple(Column(table=table, name=name) for name in names)


TASKS: Final[Mapping[str, Task]] = {
    task.name: task
    for task in (
        Task(
            name="pairs",
            images=_of("samples", "image_0_id", "image_1_id"),
            captions=_of("samples", "caption_0", "caption_1"),
            crossed=False,
            meaning="Two images and two captions, four scores a sample.",
        ),
        Task(
            name="hard-positives",
            images=_of("samples", "image_id"),
            captions=_of("samples", "caption", "hard_positive", "hard_negative"),
            crossed=False,
            meaning="An image with its caption, the hard positive and the hard negative.",
        ),
        Task(
            name="foils",
            images=_of("samples", "image_id"),
            captions=_of("samples", "caption", "hard_negative"),
            crossed=False,
            meaning="An image with its caption and the foil.",
        ),
        Task(
            name="retrieval-perturbations",
            images=_of("captions", "image_id"),
            captions=(*_of("captions", "caption"), *_of("samples", "perturbed_caption")),
            crossed=True,
            meaning="Every image with every caption, perturbed ones included.",
        ),
        Task(
            name="simat",
            images=_of("gallery", "image_id"),
            captions=(
                *_of("captions", "caption", "subject", "relation", "object"),
                *_of("samples", "source_word", "target_word"),
            ),
            crossed=True,
            meaning="The crops, the captions of the triplets, and the words by themselves.",
        ),
        Task(
            name="retrieval",
            images=_of("retrieval", "image_id"),
            captions=_of("retrieval", "caption"),
            crossed=True,
            meaning="Every image with every caption, 4 to 8 of them its own.",
        ),
    )
}
"""Tasks by name. A dataset's task is the first whose columns it has."""


def task_of(dataset: Dataset, name: str | None = None) -> Task:
    """Return the named task, or by default the one that the dataset's tables are made for."""
    if name is not None and name not in TASKS:
        known = ", ".join(TASKS)
        raise InputError(f"--task {name}: expected one of {known}{nearest(name, TASKS)}")
    wanted = TASKS.values() if name is None else [TASKS[name]]
    found = {table: set(dataset.columns(table)) for table in dataset.manifest.tables}
    for task in wanted:
        tables = task.tables()
        if all(found.get(table, set()).issuperset(names) for table, names in tables.items()):
            _check_images(dataset)
            return task
    dataset.check_samples()
    if "question" in found.get("samples", ()):
        raise InputError(
            f"{dataset.folder}: holds questions, which a model of images and captions does not "
            "answer; `eqforge export --format lmms-eval` or vlmevalkit has them asked, and "
            "`eqforge metrics` measures the answers"
        )
    shown = "; ".join(f"{table}: {', '.join(sorted(found[table]))}" for table in sorted(found))
    raise InputError(
        f"{dataset.folder}: the dataset {dataset.manifest.dataset!r} has no images and captions to "
        f"be scored for {' or '.join(task.name for task in wanted)}; its columns are {shown}"
    )


def _check_images(dataset: Dataset) -> None:
    if not dataset.manifest.tables.get("images"):
        raise InputError(f"{dataset.folder}: the dataset holds no images; {dataset.remedy}")
