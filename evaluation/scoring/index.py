"""The distinct images, captions and pairs that a task needs, each with a number.

Images are numbered by id, captions by length and then text, so numbers do not depend on the order
of samples. Texts and ids are held in memory; images and scores never are.
"""

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.identity import fingerprint
from eqforge.core.visible import nearest
from eqforge.models.scorer import Vectors
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.score_tables import ScoresFolder, open_scores
from eqforge.schemas.tables.texts import ENCODED_CHARACTERS


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A table's column of image ids or texts."""

    table: str
    name: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """Images and captions to score: within each row of `samples`, or all with all if `crossed`."""

    name: str
    images: tuple[Column, ...]
    captions: tuple[Column, ...]
    crossed: bool

    def tables(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, dict[str, None]] = {}
        for column in (*self.images, *self.captions):
            found.setdefault(column.table, {})[column.name] = None
        return {table: tuple(names) for table, names in found.items()}


def _of(table: str, *names: str) -> tuple[Column, ...]:
    return tuple(Column(table=table, name=name) for name in names)


_PERTURBED: Final = "retrieval-perturbations"

TASKS: Final[Mapping[str, Task]] = {
    task.name: task
    for task in (
        Task(
            name="pairs",
            images=_of("samples", "image_0_id", "image_1_id"),
            captions=_of("samples", "caption_0", "caption_1"),
            crossed=False,
        ),
        Task(
            name="hard-positives",
            images=_of("samples", "image_id"),
            captions=_of("samples", "caption", "hard_positive", "hard_negative"),
            crossed=False,
        ),
        Task(
            name="foils",
            images=_of("samples", "image_id"),
            captions=_of("samples", "caption", "hard_negative"),
            crossed=False,
        ),
        Task(
            name=_PERTURBED,
            images=_of("captions", "image_id"),
            captions=(*_of("captions", "caption"), *_of("samples", "perturbed_caption")),
            crossed=True,
        ),
        Task(
            name="simat",
            images=_of("gallery", "image_id"),
            captions=(
                *_of("captions", "caption", "subject", "relation", "object"),
                *_of("samples", "source_word", "target_word"),
            ),
            crossed=True,
        ),
        Task(
            name="retrieval",
            images=_of("retrieval", "image_id"),
            captions=_of("retrieval", "caption"),
            crossed=True,
        ),
    )
}
"""Tasks by name. A dataset's task is the first whose columns it has."""


def task_of(dataset: Dataset, name: str | None = None) -> Task:
    if name is not None and name not in TASKS:
        known = ", ".join(TASKS)
        raise InputError(f"--task {name}: expected one of {known}{nearest(name, TASKS)}")
    wanted = TASKS.values() if name is None else [TASKS[name]]
    found = {table: set(dataset.columns(table)) for table in dataset.manifest.tables}
    for task in wanted:
        tables = task.tables()
        if all(found.get(table, set()).issuperset(names) for table, names in tables.items()):
            if not dataset.manifest.tables.get("images"):
                raise InputError(f"{dataset.folder} contains no images; {dataset.remedy}")
            return task
    dataset.check_samples()
    if "question" in found.get("samples", ()):
        raise InputError(
            f"{dataset.folder} contains questions, but image-text models cannot answer questions. "
            "Export them with `eqforge export --format lmms-eval` (or vlmevalkit). Then evaluate "
            "the answers with `eqforge metrics`"
        )
    if {"role", "text"} <= found["samples"]:
        raise InputError(
            f"{dataset.folder} contains captions to train on, but no pairs of images and captions "
            "to score. To train a model on it, run `eqforge finetune`"
        )
    shown = "; ".join(f"{table}: {', '.join(sorted(found[table]))}" for table in sorted(found))
    raise InputError(
        f"{dataset.folder}: the dataset {dataset.manifest.dataset!r} has no images and captions "
        f"for {'any task' if name is None else f'the task {name}'}. Its columns are {shown}"
    )


ROWS = 20_000
MISSING = -1


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Index:
    """The distinct images and captions of a task.

    Attributes:
      images: ids, sorted.
      captions: texts, sorted by length in characters and then by text.
      samples: number of samples; 0 if all images are compared with all captions.
    """

    images: list[str]
    captions: list[str]
    samples: int

    def image_numbers(self) -> dict[str | None, int]:
        return {image: number for number, image in enumerate(self.images)}

    def caption_numbers(self) -> dict[str | None, int]:
        return {caption: number for number, caption in enumerate(self.captions)}

    def digest(self) -> str:
        return fingerprint([self.images, self.captions, self.samples])


def texts_to_encode(dataset: Dataset, index: Index) -> list[str]:
    """Return the captions as encoded: truncated where the paper's code truncates them."""
    is_cut = (dataset.manifest.dataset, dataset.manifest.mode) == (_PERTURBED, "paper")
    return [caption[: ENCODED_CHARACTERS if is_cut else None] for caption in index.captions]


def make_index(dataset: Dataset, task: Task, more_captions: Sequence[str] = ()) -> Index:
    images: set[str] = set()
    captions: set[str] = set(more_captions)
    samples = 0
    for table, names in task.tables().items():
        ids = [column.name for column in task.images if column.table == table]
        texts = [column.name for column in task.captions if column.table == table]
        for batch in dataset.batches(table, names, ROWS):
            samples += 0 if task.crossed else batch.num_rows
            for name in ids:
                images.update(batch.column(name).unique().to_pylist())
            for name in texts:
                captions.update(batch.column(name).unique().to_pylist())
    images.discard(None)
    captions.discard(None)
    return Index(
        images=sorted(images),
        captions=sorted(captions, key=lambda caption: (len(caption), caption)),
        samples=samples,
    )


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Pairs:
    """The captions to score with each image, for a fusion encoder.

    Attributes:
      starts: int64 [images + 1]; the scores of image i are at [starts[i], starts[i+1]).
      captions: int32 [pairs], the number of each score's caption, ascending within an
        image; None if every caption is scored with every image.
    """

    starts: NDArray[np.int64]
    captions: NDArray[np.int32] | None

    @property
    def count(self) -> int:
        return int(self.starts[-1])

    def captions_of(self, image: int) -> NDArray[np.int64]:
        start, stop = self.starts[image], self.starts[image + 1]
        if self.captions is None:
            return np.arange(stop - start, dtype=np.int64)
        return self.captions[start:stop].astype(np.int64)

    def place(self, images: NDArray[np.int64], captions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of the pairs' scores [pairs]."""
        if self.captions is None:
            return self.starts[images] + captions
        return np.searchsorted(self._keys, images * self._width + captions)

    @functools.cached_property
    def _width(self) -> int:
        return 1 if self.captions is None else 1 + int(self.captions.max(initial=0))

    @functools.cached_property
    def _keys(self) -> NDArray[np.int64]:
        # One number per pair; ascending, since an image's captions are.
        assert self.captions is not None
        sizes = np.diff(self.starts)
        return np.repeat(np.arange(len(sizes)), sizes) * self._width + self.captions

    def save(self, folder: Path) -> None:
        np.save(folder / "starts.npy", self.starts)
        if self.captions is not None:
            np.save(folder / "captions.npy", self.captions)


def load_pairs(folder: Path) -> Pairs:
    captions = folder / "captions.npy"
    return Pairs(
        starts=np.load(folder / "starts.npy", mmap_mode="r"),
        captions=np.load(captions, mmap_mode="r") if captions.exists() else None,
    )


def make_pairs(dataset: Dataset, task: Task, index: Index) -> Pairs:
    width = len(index.captions)
    if task.crossed:
        return Pairs(starts=np.arange(len(index.images) + 1, dtype=np.int64) * width, captions=None)
    parts = [np.empty(0, np.int64)]
    for rows in numbered(dataset, task, index):
        for images, captions in itertools.product(rows.images.T, rows.captions.T):
            known = (images != MISSING) & (captions != MISSING)
            parts.append(np.unique(images[known] * width + captions[known]))
    keys = np.unique(np.concatenate(parts))
    image_of, caption_of = np.divmod(keys, max(width, 1))
    starts = np.searchsorted(image_of, np.arange(len(index.images) + 1)).astype(np.int64)
    return Pairs(starts=starts, captions=caption_of.astype(np.int32))


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class NumberedRows:
    """Some samples, with the numbers of their images and captions.

    Attributes:
      images: int64 [samples, images], MISSING if a sample has no image.
      captions: int64 [samples, captions], MISSING if there is no text.
    """

    ids: list[str]
    images: NDArray[np.int64]
    captions: NDArray[np.int64]


def numbered(
    dataset: Dataset,
    task: Task,
    index: Index,
    files: Sequence[int] | None = None,
    rows: int = ROWS,
) -> Iterator[NumberedRows]:
    images, captions = index.image_numbers(), index.caption_numbers()
    columns = [column.name for column in (*task.images, *task.captions)]
    table = dataset.files("samples")
    for number in range(len(table)) if files is None else files:
        file = table[number]
        for batch in dataset.file_batches(file.path, ["sample_id", *columns], rows):
            values = {name: batch.column(name).to_pylist() for name in columns}
            yield NumberedRows(
                ids=batch.column("sample_id").to_pylist(),
                images=_numbers([values[column.name] for column in task.images], images),
                captions=_numbers([values[column.name] for column in task.captions], captions),
            )


def _numbers(columns: list[list[str | None]], known: dict[str | None, int]) -> NDArray[np.int64]:
    return np.array(
        [[known.get(value, MISSING) for value in column] for column in columns], dtype=np.int64
    ).T


_CELLS = 8_000_000


def candidate_pairs(folder: str, dataset_sha256: str, index: Index, top: int) -> Pairs:
    """Return the union of the `top` captions of each image and the `top` images of each caption.

    Args:
      index: images and captions; those without a vector get only the pairs that others choose.
      top: at least 1; ties go to lower numbers.
    """
    scores = open_scores(folder)
    if "image_vectors" not in scores.manifest.tables:
        raise InputError(
            f"--candidates {folder} contains no vectors; pass the scores of a dual encoder"
        )
    if scores.manifest.dataset_sha256 != dataset_sha256:
        raise InputError(
            f"--candidates {folder}: the scores are from a different dataset. First score this "
            "dataset with the dual encoder"
        )
    images, image_vectors = _vectors(scores, "image", index.image_numbers())
    captions, caption_vectors = _vectors(scores, "caption", index.caption_numbers())
    width = len(index.captions)
    keys = [np.empty(0, np.int64)]
    for start, best in _best(image_vectors, caption_vectors, top):
        keys.append((images[start : start + len(best), None] * width + captions[best]).ravel())
    for start, best in _best(caption_vectors, image_vectors, top):
        keys.append((images[best] * width + captions[start : start + len(best), None]).ravel())
    rows, columns = np.divmod(np.unique(np.concatenate(keys)), width)
    starts = np.searchsorted(rows, np.arange(len(index.images) + 1)).astype(np.int64)
    return Pairs(starts=starts, captions=columns.astype(np.int32))


def _vectors(
    scores: ScoresFolder, kind: str, numbers: dict[str | None, int]
) -> tuple[NDArray[np.int64], Vectors]:
    key = "image_id" if kind == "image" else "caption"
    found: list[NDArray[np.int64]] = []
    vectors: list[Any] = []
    for batch in scores.batches(f"{kind}_vectors"):
        known = np.array([numbers.get(name, -1) for name in batch.column(key).to_pylist()])
        column = batch.column("vector")
        wide = column.type.list_size
        values = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, wide)
        found.append(known[known >= 0])
        vectors.append(values[known >= 0])
    if not found:
        raise InputError(f"{scores.folder} contains no {kind} vectors")
    order = np.argsort(np.concatenate(found))
    return np.concatenate(found)[order], np.concatenate(vectors)[order]


def _best(rows: Vectors, columns: Vectors, top: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield, for blocks of rows, the first row and the top columns of each row [rows, top]."""
    step = max(1, _CELLS // max(1, len(columns)))
    for start in range(0, len(rows), step):
        cosines = rows[start : start + step] @ columns.T
        yield start, np.argsort(-cosines, axis=1, kind="stable")[:, :top]
