"""Writes the scores of samples, from what was computed of images, captions and pairs.

Rows are in the order of the dataset, and only some of them are in memory at a time.
"""

from collections.abc import Callable, Iterator
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
from eqforge.evaluation.scoring.index import MISSING, NumberedRows, Pairs, numbered
from eqforge.evaluation.scoring.tasks import Task
from eqforge.evaluation.scoring.work import open_map
from eqforge.schemas.dataset import score_tables
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.score_tables import Counts, ScoresManifest

Values = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float32]]
"""Maps numbers of images and of captions [n] to the scores of image i and caption i [n]."""


def cosines(work: Path) -> Values:
    """Returns a function that takes dot products of the encoded vectors."""
    images, captions = (open_map(work, f"{name}_vectors", "r") for name in ("image", "caption"))

    def values(rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float32]:
        return np.einsum("nd,nd->n", images[rows], captions[columns], dtype=np.float32)

    return values


def logits(work: Path, pairs: Pairs) -> Values:
    """Returns a function that looks up the scores of pairs."""
    scores = open_map(work, "values", "r")

    def values(rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float32]:
        found: NDArray[np.float32] = scores[pairs.place(rows, columns)]
        return found

    return values


def gather_samples(
    folder: Folder,
    dataset: Dataset,
    task: Task,
    values: Values,
    header: ScoresManifest,
) -> Gathered:
    """Writes one row per sample, in as many files as the dataset has."""
    failed = folder.image_failures()
    files = dataset.files("samples")
    names = [[column.name for column in columns] for columns in (task.images, task.captions)]
    model = header.model
    about = [header.quantity, model.name, model.revision, model.precision, model.preprocessing]
    sample_failures: list[FailureRow] = []

    def batches(rows: Iterator[NumberedRows]) -> Iterator[pa.RecordBatch]:
        for part in rows:
            ids, scores, problems = _score_rows(part, folder, values)
            sample_failures.extend(problems)
            yield _scores_batch(ids, names, scores, about)

    written = []
    for number in range(len(files)):
        rows = _parts(numbered(dataset, task, folder.index, [number]))
        written.append(
            folder.write("scores", number, len(files), score_tables.SCORES, batches(rows))
        )
    failures = folder.write_failures(failed + sample_failures)
    lost = len(sample_failures)
    counts = Counts(expected=folder.index.samples, scored=folder.index.samples - lost, failed=lost)
    captions = Counts(
        expected=len(folder.index.captions), scored=len(folder.index.captions), failed=0
    )
    return Gathered(
        tables={"scores": written, "failures": failures},
        counts={"samples": counts, "images": folder.image_counts(), "captions": captions},
    )


def _parts(rows: Iterator[NumberedRows]) -> Iterator[NumberedRows]:
    for one in rows:
        for start in range(0, len(one.ids), GROUP_ROWS):
            part = slice(start, start + GROUP_ROWS)
            yield NumberedRows(
                ids=one.ids[part], images=one.images[part], captions=one.captions[part]
            )


def _score_rows(
    rows: NumberedRows, folder: Folder, values: Values
) -> tuple[list[str], NDArray[np.float32], list[FailureRow]]:
    """Returns the scored ids, their values, and the failures of the others."""
    problems: dict[int, tuple[str, str]] = {}
    failed = np.array(sorted(folder.failures), dtype=np.int64)
    bad = np.isin(rows.images, failed) | (rows.images == MISSING)
    for place in np.flatnonzero(bad.any(axis=1)).tolist():
        problems[place] = _problem(rows.images[place].tolist(), folder)
    places = np.array([n for n in range(len(rows.ids)) if n not in problems], dtype=np.int64)
    images, captions = rows.images[places], rows.captions[places]
    scores = np.stack(
        [
            values(images[:, image], captions[:, caption])
            for image in range(images.shape[1])
            for caption in range(captions.shape[1])
        ],
        axis=1,
    )
    finite = np.isfinite(scores).all(axis=1)
    for place in places[~finite].tolist():
        problems[place] = ("not_finite", "a score")
    ids = [rows.ids[place] for place in places[finite]]
    return (
        ids,
        scores[finite],
        [("samples", rows.ids[place], *problem) for place, problem in sorted(problems.items())],
    )


def _problem(images: list[int], folder: Folder) -> tuple[str, str]:
    for image in images:
        if image == MISSING:
            return "missing_image", "the sample names no image"
        if image in folder.failures:
            one = folder.failures[image]
            return "image_failed", f"{folder.index.images[image]}: {one.reason}"
    raise AssertionError(images)


def _scores_batch(
    ids: list[str], names: list[list[str]], scores: NDArray[np.float32], about: list[str]
) -> pa.RecordBatch:
    count = len(ids)
    columns: dict[str, Any] = {"sample_id": pa.array(ids, pa.string())}
    for column, kept in zip(("images", "captions"), names, strict=True):
        columns[column] = lists_of(pa.array(kept * count, pa.string()), len(kept), count)
    columns["values"] = lists_of(pa.array(scores.ravel()), scores.shape[1], count)
    fields = ("quantity", "model", "revision", "precision", "preprocessing")
    for column, value in zip(fields, about, strict=True):
        indices = pa.array(np.zeros(count, np.int32))
        columns[column] = pa.DictionaryArray.from_arrays(indices, pa.array([value], pa.string()))
    return pa.record_batch(
        [columns[field.name].cast(field.type) for field in score_tables.SCORES],
        schema=score_tables.SCORES.with_metadata(METADATA),
    )
