"""What `eqforge converse` writes: answers, what was not asked, and a manifest, written last."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.typed_json import decode
from eqforge.schemas.dataset.manifest import DataFile
from eqforge.schemas.dataset.reader import read_file_batches
from eqforge.schemas.dataset.score_tables import FAILURE_REASONS, Counts
from eqforge.schemas.records.scores import Identity
from eqforge.schemas.tables.columns import required

FILE_NAME = "answers.json"
FORMAT = "eqforge answers"
FORMAT_VERSION = 1
REASONS = FAILURE_REASONS | {
    "question_too_long": "Question and answer do not fit into what the model can read.",
}
"""Why a pair was not asked about, by reason."""

_TEXT, _NUMBER = pa.string(), pa.int8()

ANSWERS = pa.schema(
    [
        required("sample_id", _TEXT),
        required("image_order", _TEXT),
        required("caption_order", _TEXT),
        required("prompt", _TEXT),
        required("answer", _TEXT),
        pa.field("left", _NUMBER),
        pa.field("right", _NUMBER),
        required("form", _TEXT),
        required("true_left", _NUMBER),
    ],
    metadata={"schema_version": "1"},
)
"""One row per question, four per sample.

`image_order` says which image of the pair was left and which right, `01` or `10`, and
`caption_order` which caption was called 1 and which 2. `left` and `right` are the numbers that the
answer gives, null if it could not be parsed; `form` says how it was parsed or why not, a key of
`questions.FORMS`; `true_left` is the correct number for the left image.
"""

FAILURES = pa.schema(
    [required("sample_id", _TEXT), required("reason", _TEXT), required("detail", _TEXT)],
    metadata={"schema_version": "1"},
)
"""One row per pair that was not asked about; `reason` is one of REASONS."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class AnswersManifest:
    """Everything a reader has to know about a folder of answers.

    Attributes:
      dataset_sha256: SHA-256 of the dataset's `dataset.json`.
      settings: everything else than the model that the answers depend on.
      chosen: SHA-256 of the ids of the pairs to ask about.
      counts: the counts of `samples`.
      forms: how many answers have each form; see `questions.FORMS`.
      versions: eqforge and every library that can change an answer.
      tables: the files of `answers` and `failures`.
    """

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    dataset: str
    dataset_sha256: str
    model: Identity
    settings: dict[str, Any]
    chosen: str
    counts: dict[str, Counts]
    forms: dict[str, int]
    versions: dict[str, str]
    tables: dict[str, list[DataFile]]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """The number that an answer gives the left image, None if it could not be parsed.

    `orders` are those of images and captions, each `01` or `10`.
    """

    sample_id: str
    orders: tuple[str, str]
    left: int | None
    true_left: int


def path_of(table: str, number: int, of: int) -> str:
    """Returns the path of a shard within the folder."""
    return f"data/{table}-{number:05d}-of-{of:05d}.parquet"


def write_rows(url: str, schema: pa.Schema, rows: Sequence[dict[str, Any]]) -> None:
    """Writes one shard atomically."""
    with storage.open_atomic(url) as stream:
        pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), stream, compression="zstd")


def describe(folder: str, table: str, of: int) -> list[DataFile]:
    """Returns length, rows and digest of every shard of a table."""
    found = []
    for number in range(of):
        path = path_of(table, number, of)
        num_bytes, sha256 = storage.digest(storage.join(folder, path))
        rows = sum(1 for _ in rows_of(folder, path, ["sample_id"]))
        found.append(DataFile(path=path, rows=rows, num_bytes=num_bytes, sha256=sha256))
    return found


def rows_of(folder: str, path: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yields columns of the rows of one shard.

    Raises:
      InputError: it is missing or damaged.
    """
    for batch in read_file_batches(storage.join(folder, path), list(columns), 10_000):
        yield from batch.to_pylist()


def read_answers(folder: str, files: Sequence[DataFile]) -> list[Answered]:
    """Reads the answers of a folder.

    Raises:
      InputError: a file is missing or damaged.
    """
    columns = ["sample_id", "image_order", "caption_order", "left", "true_left"]
    return [
        Answered(
            sample_id=row["sample_id"],
            orders=(row["image_order"], row["caption_order"]),
            left=row["left"],
            true_left=row["true_left"],
        )
        for file in files
        for row in rows_of(folder, file.path, columns)
    ]


def open_answers(folder: str) -> AnswersManifest | None:
    """Returns the manifest of a finished folder; None where there is none yet.

    Raises:
      InputError: the file there is not such a manifest.
    """
    url = storage.join(folder, FILE_NAME)
    if not storage.exists(url):
        return None
    found = decode(storage.read_bytes(url), AnswersManifest, f"{url}: not a manifest of answers")
    if (found.format, found.format_version) != (FORMAT, FORMAT_VERSION):
        raise InputError(f"{url}: expected format {FORMAT} {FORMAT_VERSION}")
    return found
