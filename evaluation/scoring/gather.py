"""A folder of scores being written: its files, failures and counts."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from eqforge.core.files import storage
from eqforge.evaluation.scoring.index import MISSING, Index, NumberedRows, Pairs, Task, numbered
from eqforge.evaluation.scoring.pictures import Failure
from eqforge.evaluation.scoring.work import open_map
from eqforge.schemas.dataset import score_tables
from eqforge.schemas.dataset.manifest import DataFile
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.score_tables import FILE_STEMS, Counts, ScoresManifest

GROUP_ROWS = 4_000
METADATA = {"schema_version": "1"}

FailureRow = tuple[str, str, str, str]
"""Table, key, reason and detail of a failure."""

DICTIONARY_BYTES = 64 << 20
"""Limit of a column's Parquet dictionary; every row of a grid repeats all captions."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Gathered:
    """The data files, counts and failures that were written."""

    tables: dict[str, list[DataFile]]
    counts: dict[str, Counts]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Folder:
    """The output folder and the index of its images and captions."""

    output: str
    index: Index
    failures: Mapping[int, Failure]

    def write(
        self, table: str, number: int, of: int, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
    ) -> DataFile:
        path = f"data/{FILE_STEMS[table]}-{number:05d}-of-{of:05d}.parquet"
        url, rows = storage.join(self.output, path), 0
        schema = schema.with_metadata(METADATA)
        with (
            storage.open_atomic(url) as stream,
            pq.ParquetWriter(
                stream,
                schema,
                compression="zstd",
                use_dictionary=_texts(schema),
                dictionary_pagesize_limit=DICTIONARY_BYTES,
            ) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
        num_bytes, sha256 = storage.digest(url)
        return DataFile(path=path, rows=rows, num_bytes=num_bytes, sha256=sha256)

    def write_failures(self, rows: list[FailureRow]) -> list[DataFile]:
        schema = score_tables.FAILURES
        columns = [list(column) for column in zip(*rows, strict=True)] or [[]] * len(schema)
        batch = pa.record_batch([pa.array(one, pa.string()) for one in columns], schema=schema)
        return [self.write("failures", 0, 1, schema, [batch])]

    def image_failures(self) -> list[FailureRow]:
        return [
            ("images", self.index.images[one.image], one.reason, one.detail)
            for _, one in sorted(self.failures.items())
        ]

    def image_counts(self) -> Counts:
        return _counts(len(self.index.images), len(self.failures))


def lists_of(values: pa.Array, length: int, count: int) -> pa.Array:
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * length)
    return pa.ListArray.from_arrays(offsets, values)


def _texts(schema: pa.Schema) -> list[str]:
    """Return the Parquet paths of text columns, the only ones that a dictionary makes smaller."""
    found = []
    for field in schema:
        listed = pa.types.is_list(field.type)
        kind = field.type.value_type if listed else field.type
        if pa.types.is_string(kind) or pa.types.is_dictionary(kind):
            found.append(f"{field.name}.list.element" if listed else field.name)
    return found


Values = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float32]]
"""Maps image and caption numbers [n] to scores [n]."""


def cosines(work: Path) -> Values:
    images, captions = (open_map(work, f"{name}_vectors", "r") for name in ("image", "caption"))

    def values(rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float32]:
        return np.einsum("nd,nd->n", images[rows], captions[columns], dtype=np.float32)

    return values


def logits(work: Path, pairs: Pairs) -> Values:
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
    failed = folder.image_failures()
    files = dataset.files("samples")
    names = [[column.name for column in columns] for columns in (task.images, task.captions)]
    model = header.model
    about = [header.quantity, model.name, model.revision, model.precision, model.preprocessing]
    sample_failures: list[FailureRow] = []

    def batches(file: int) -> Iterator[pa.RecordBatch]:
        for part in numbered(dataset, task, folder.index, [file], GROUP_ROWS):
            ids, scores, problems = _score_rows(part, folder, values)
            sample_failures.extend(problems)
            yield _scores_batch(ids, names, scores, about)

    written = [
        folder.write("scores", number, len(files), score_tables.SCORES, batches(number))
        for number in range(len(files))
    ]
    failures = folder.write_failures(failed + sample_failures)
    return Gathered(
        tables={"scores": written, "failures": failures},
        counts={
            "samples": _counts(folder.index.samples, len(sample_failures)),
            "images": folder.image_counts(),
            "captions": _counts(len(folder.index.captions), 0),
        },
    )


def _score_rows(
    rows: NumberedRows, folder: Folder, values: Values
) -> tuple[list[str], NDArray[np.float32], list[FailureRow]]:
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


FILE_ROWS = 200_000
_GRID_CELLS = 2_000_000


def gather_vectors(folder: Folder, work: Path) -> Gathered:
    """Write the vectors of images, sorted by id, and of captions, in the order of the index."""
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
    def __init__(self, captions: int) -> None:
        self.scored = 0
        self.missing: dict[int, int] = {}
        self.asked, self.answered = np.zeros((2, captions), dtype=bool)

    def count(self, image: int, captions: NDArray[np.int64], there: NDArray[np.bool_]) -> None:
        self.scored += int(there.sum())
        if not there.all():
            self.missing[image] = int((~there).sum())
        self.asked[captions] = True
        self.answered[captions[there]] = True


def gather_grid(folder: Folder, work: Path, pairs: Pairs) -> Gathered:
    """Write each image's finite scores in a row; images and captions without a score fail."""
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
        arrays = [array.cast(field.type) for array, field in zip(columns, schema, strict=True)]
        return pa.record_batch(arrays, schema=schema.with_metadata(METADATA))

    def groups() -> Iterator[pa.RecordBatch]:
        batches: list[pa.RecordBatch] = []
        size = 0
        for image in range(len(index.images)):
            batch = None if image in folder.failures else row(image)
            if batch is None:
                continue
            batches.append(batch)
            size += int(pairs.starts[image + 1] - pairs.starts[image])
            if size >= _GRID_CELLS:
                yield pa.concat_batches(batches)
                batches, size = [], 0
        if batches:
            yield pa.concat_batches(batches)

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
