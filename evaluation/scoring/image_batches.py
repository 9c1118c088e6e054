"""Cuts the images of a dataset into batches, from the ids in the tables alone.

A batch holds the same images in the same order whatever the number of processes.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.schemas.dataset.reader import Dataset


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Piece:
    """Some images of one row group.

    Attributes:
      path: the Parquet file, relative to the dataset's folder.
      group: its row group.
      rows: int64, rows of the row group.
      images: int64, the number of each row's image.
    """

    path: str
    group: int
    rows: NDArray[np.int64]
    images: NDArray[np.int64]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Batch:
    """Where the images of one batch are stored.

    Attributes:
      unit: the unit of work it belongs to.
      pieces: its images by row group, in the order of the dataset.
    """

    unit: int
    pieces: tuple[Piece, ...]


def cut_batches(
    dataset: Dataset, numbers: dict[str | None, int], batch_images: int, unit_batches: int
) -> tuple[list[Batch], list[str]]:
    """Cuts the requested images into batches, and these into units of several batches.

    Args:
      dataset: the dataset.
      numbers: the number of every requested image, by id.
      batch_images: maximum number of images per batch.
      unit_batches: batches per unit.

    Returns:
      The batches, units ascending from 0, and the ids that are not in the dataset.

    Raises:
      InputError: a file is missing or damaged, or has an image twice.
    """
    batches: list[Batch] = []
    seen = np.zeros(len(numbers), dtype=bool)
    pieces: list[Piece] = []
    room = batch_images

    def close() -> None:
        nonlocal room
        if pieces:
            batches.append(Batch(unit=len(batches) // unit_batches, pieces=tuple(pieces)))
        pieces.clear()
        room = batch_images

    for path, group, rows, found in _wanted(dataset, numbers):
        if seen[found].any() or len(np.unique(found)) < len(found):
            raise InputError(f"{dataset.url(path)}: an image appears twice in the table of images")
        seen[found] = True
        start = 0
        while start < len(rows):
            part = slice(start, start + room)
            pieces.append(Piece(path=path, group=group, rows=rows[part], images=found[part]))
            start += len(pieces[-1].rows)
            room -= len(pieces[-1].rows)
            if room == 0:
                close()
    close()
    missing = [image for image, number in numbers.items() if not seen[number]]
    return batches, sorted(str(image) for image in missing)


def _wanted(
    dataset: Dataset, numbers: dict[str | None, int]
) -> Iterator[tuple[str, int, NDArray[np.int64], NDArray[np.int64]]]:
    """Yields path, row group, requested rows, and the numbers of their images."""
    for file in dataset.files("images"):
        for group, table in enumerate(dataset.groups(file.path, ["image_id"])):
            ids = table.column("image_id").to_pylist()
            found = np.array([numbers.get(image, -1) for image in ids], dtype=np.int64)
            rows = np.flatnonzero(found >= 0)
            yield file.path, group, rows, found[rows]
