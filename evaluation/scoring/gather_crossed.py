"""Writes the tables of tasks that compare all images with all captions: vectors, or a grid."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eqforge.evaluation.scoring.folder import (
    GROUP_ROWS,
    METADATA,
    FailureRow,
    Folder,
    Gathered,
    lists_of,
)
from eqforge.evaluation.scoring.index import Pairs
from eqforge.evaluation.scoring.pictures import Failure
from eqforge.evaluation.scoring.work import open_map
from eqforge.schemas.dataset import score_tables
from eqforge.schemas.dataset.manifest import DataFile
from eqforge.schemas.dataset.score_tables import Counts

FILE_ROWS = 200_000
_GRID_CELLS = 2_000_000


def gather_vectors(folder: Folder, work: Path) -> Gathered:
    """Writes the vectors of images, sorted by id, and of captions, in the order of the index."""
    index = folder.index
    images, captions = (open_map(work, f"{name}_vectors", "r") for name in ("image", "caption"))
    kept = np.array([n for n in range(len(images)) if n not in folder.failures], dtype=np.int64)
    finite = np.array(
        [
            number
            for start in range(0, len(captions), GROUP_ROWS)
            for number in start
            + np.flatnonzero(np.isfinite(captions[start : start + GROUP_ROWS]).all(axis=1))
        ],
        dtype=np.int64,
    )
    lost = sorted(set(range(len(captions))) - set(finite.tolist()))
    tables = {
        "image_vectors": _write_vectors(folder, "image_vectors", index.images, images, kept),
        "caption_vectors": _write_vectors(
            folder, "caption_vectors", index.captions, captions, finite
        ),
        "failures": folder.write_failures(
            folder.image_failures()
            + [("captions", index.captions[n], "not_finite", "the caption's vector") for n in lost]
        ),
    }
    counts = {"images": folder.image_counts(), "captions": _counts(len(captions), len(lost))}
    return Gathered(tables=tables, counts=counts)


def _write_vectors(
    folder: Folder, table: str, keys: list[str], vectors: Any, kept: NDArray[np.int64]
) -> list[DataFile]:
    make = getattr(score_tables, table)
    schema = make(vectors.shape[1])

    def batches(numbers: NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(numbers), GROUP_ROWS):
            part = numbers[start : start + GROUP_ROWS]
            values = pa.array(np.ascontiguousarray(vectors[part]).ravel())
            columns = [
                pa.array([keys[number] for number in part], pa.string()),
                pa.FixedSizeListArray.from_arrays(values, vectors.shape[1]).cast(schema[1].type),
            ]
            yield pa.record_batch(columns, schema=schema.with_metadata(METADATA))

    files = max(1, -(-len(kept) // FILE_ROWS))
    return [
        folder.write(
            table,
            number,
            files,
            schema,
            batches(kept[number * FILE_ROWS : (number + 1) * FILE_ROWS]),
        )
        for number in range(files)
    ]


class _Cells:
    """Counts which cells of a grid have a score.

    Attributes:
      scored: number of cells with a score.
      missing: number of cells without one, by image.
      asked, answered: whether a caption has a cell, and whether it has a score [captions].
    """

    def __init__(self, captions: int) -> None:
        self.scored = 0
        self.missing: dict[int, int] = {}
        self.asked, self.answered = np.zeros((2, captions), dtype=bool)

    def count(self, image: int, captions: NDArray[np.int64], there: NDArray[np.bool_]) -> None:
        """Adds an image: its captions, and which of their cells have a score."""
        self.scored += int(there.sum())
        if not there.all():
            self.missing[image] = int((~there).sum())
        self.asked[captions] = True
        self.answered[captions[there]] = True


def gather_grid(folder: Folder, work: Path, pairs: Pairs) -> Gathered:
    """Writes one row per image, with the scores of the captions it was paired with.

    A score that is not finite is left out and counted; an image or caption without any other
    fails.
    """
    scores, index = open_map(work, "values", "r"), folder.index
    texts = pa.array(index.captions, pa.string())
    cells = _Cells(len(index.captions))
    lost: dict[int, Failure] = {}

    def row(image: int) -> pa.RecordBatch | None:
        values = np.array(scores[pairs.starts[image] : pairs.starts[image + 1]])
        numbers, there = pairs.captions_of(image), np.isfinite(values)
        cells.count(image, numbers, there)
        if len(values) and not there.any():
            lost[image] = Failure(image=image, reason="not_finite", detail="every score")
            return None
        values, captions = values[there], texts.take(pa.array(numbers[there]))
        columns = [
            pa.array([index.images[image]], pa.string()),
            lists_of(captions, len(values), 1),
            lists_of(pa.array(values), len(values), 1),
        ]
        schema = score_tables.GRID
        cast = [array.cast(field.type) for array, field in zip(columns, schema, strict=True)]
        return pa.record_batch(cast, schema=schema.with_metadata(METADATA))

    def groups() -> Iterator[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        size = 0
        for image in range(len(index.images)):
            made = None if image in folder.failures else row(image)
            if made is None:
                continue
            held.append(made)
            size += int(pairs.starts[image + 1] - pairs.starts[image])
            if size >= _GRID_CELLS:
                yield pa.concat_batches(held)
                held, size = [], 0
        if held:
            yield pa.concat_batches(held)

    written = [folder.write("grid", 0, 1, score_tables.GRID, groups())]
    final = dataclasses.replace(folder, failures=dict(folder.failures) | lost)
    silent = np.flatnonzero(cells.asked & ~cells.answered).tolist()
    rows: list[FailureRow] = [
        *final.image_failures(),
        *(("captions", index.captions[n], "not_finite", "every score") for n in silent),
        *(
            ("pairs", index.images[image], "not_finite", f"{count} scores")
            for image, count in cells.missing.items()
            if image not in lost
        ),
    ]
    return Gathered(
        tables={"grid": written, "failures": final.write_failures(rows)},
        counts={
            "images": final.image_counts(),
            "captions": _counts(len(index.captions), len(silent)),
            "pairs": _counts(pairs.count, pairs.count - cells.scored),
        },
    )


def _counts(expected: int, failed: int) -> Counts:
    return Counts(expected=expected, scored=expected - failed, failed=failed)
