"""Output of `eqforge score`: tables of scores or vectors, failures and a manifest.

A folder of scores holds `scores.json`, written last, and below `data/` some of these tables:

* `scores`: a row per sample, with the scores of its few images and captions;
* `image_vectors`, `caption_vectors`: unit vectors of a dual encoder, where every image is compared
  with every caption; the score of an image and a caption is their dot product;
* `grid`: a row per image, with a fusion encoder's scores of many captions;
* `failures`: a row for everything that could not be scored, with the reason.

Rows are joined with those of the dataset by key, never by position.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import shown
from eqforge.core.files.typed_json import decode
from eqforge.schemas.dataset.manifest import DataFile
from eqforge.schemas.dataset.reader import read_file_batches
from eqforge.schemas.records.scores import Identity
from eqforge.schemas.tables.columns import list_of, required

FILE_NAME = "scores.json"
FORMAT = "eqforge scores"
FORMAT_VERSION = 1

Quantity = Literal["cosine", "logit", "probability", "score"]
"""What a score is: a cosine in [-1, 1], log-odds, a probability in [0, 1], or a number that only
ranks and has no threshold."""

FILE_STEMS = {
    "scores": "scores",
    "image_vectors": "vectors-images",
    "caption_vectors": "vectors-captions",
    "grid": "grid",
    "failures": "failures",
}
"""Prefix of the file names of each table."""

FAILURE_REASONS = {
    "undecodable_image": "The image's bytes cannot be decoded to pixels.",
    "too_many_pixels": "The image has more pixels than allowed.",
    "unusable_image": "The model cannot process the image, or has no data for its key.",
    "missing_image": "The sample names no image, or one that is not in the table of images.",
    "not_finite": "The model's answer is not a number, or the table of scores lacks the pair.",
    "image_failed": "An image of the sample could not be scored; see the image's own failure.",
}
"""Why something has no score."""

_TEXT, _FLOAT = pa.string(), pa.float32()
_NAME = pa.dictionary(pa.int32(), _TEXT)

SCORES = pa.schema(
    [
        required("sample_id", _TEXT),
        required("images", list_of(_TEXT)),
        required("captions", list_of(_TEXT)),
        required("values", list_of(_FLOAT)),
        *(
            required(name, _NAME)
            for name in ("quantity", "model", "revision", "precision", "preprocessing")
        ),
    ]
)
"""A row per sample.

`images` and `captions` name the dataset's columns that were scored, such as `image_0_id` and
`caption_1`. `values` holds every image with every caption, image by image: of a pair s(i0, c0),
s(i0, c1), s(i1, c0), s(i1, c1); of a hard positive caption, hard positive, hard negative. Model,
revision, precision and digest of the preprocessing are those of the manifest.
"""

GRID = pa.schema(
    [
        required("image_id", _TEXT),
        required("captions", list_of(_TEXT)),
        required("values", list_of(_FLOAT)),
    ]
)
"""A row per image: the captions that were scored with it, as text, and their scores."""

FAILURES = pa.schema(
    [
        required("table", _TEXT),
        required("key", _TEXT),
        required("reason", _TEXT),
        required("detail", _TEXT),
    ]
)
"""What has no score: `table` is `samples`, `images`, `captions` or `pairs`, `key` a sample's or an
image's id or a caption's text, `reason` one of FAILURE_REASONS. Pairs without a score have one row
per image, with their number in `detail`."""


def image_vectors(dimensions: int) -> pa.Schema:
    return pa.schema([required("image_id", _TEXT), required("vector", _vector(dimensions))])


def caption_vectors(dimensions: int) -> pa.Schema:
    return pa.schema([required("caption", _TEXT), required("vector", _vector(dimensions))])


def _vector(dimensions: int) -> pa.DataType:
    return pa.list_(pa.field("item", _FLOAT, nullable=False), dimensions)


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """How many samples, images or captions there are: expected = scored + failed."""

    expected: int
    scored: int
    failed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoresManifest:
    """Everything a reader has to know about a folder of scores.

    Attributes:
      dataset: name of the dataset.
      dataset_sha256: SHA-256 of the dataset's own manifest, its `dataset.json`.
      task: what was scored; a key of `eqforge.evaluation.scoring.index.TASKS`.
      quantity: what a score is.
      images, captions: the columns that a row of `scores` names; empty for tables of vectors.
      model: the model that scored.
      settings: everything else the scores depend on: batch sizes, autocast, device, threads.
      counts: of `samples`, `images`, `captions` and their `pairs`, as far as the task has them.
      versions: of eqforge and of every library that can change a score.
      tables: the files of every table.
      warnings: what a user should know before trusting the numbers.
    """

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    dataset: str
    dataset_sha256: str
    task: str
    quantity: Quantity
    images: list[str]
    captions: list[str]
    model: Identity
    settings: dict[str, Any]
    counts: dict[str, Counts]
    versions: dict[str, str]
    tables: dict[str, list[DataFile]]
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoresFolder:
    """A finished folder of scores: path and manifest."""

    folder: str
    manifest: ScoresManifest

    def batches(
        self, table: str, columns: Sequence[str] | None = None, rows: int = 10_000
    ) -> Iterator[pa.RecordBatch]:
        """Yield a table in pieces, file by file in the manifest's order; nothing if it has none.

        Args:
          table: one of FILE_STEMS.
          rows: maximum per piece. A row of `grid` has the scores of all captions, so
            read few of these at once.
        """
        advice = f"delete {self.folder} and score the dataset again"
        for file in self.manifest.tables.get(table, []):
            url = _url(self.folder, file.path)
            try:
                for batch in read_file_batches(url, columns, rows, advice):
                    yield _checked(batch, columns, url, advice)
            except UnicodeDecodeError as error:  # in the name of a column
                raise InputError(f"{url}: cannot be read: {error}; {advice}") from error


def _url(folder: str, path: str) -> str:
    url = storage.join(folder, path)
    parts = path.split("/")
    is_below = path.isprintable() and not {"", ".", ".."} & set(parts) and "\\" not in path
    if not is_below or (storage.is_local(url) and not Path(storage.locate(url)[1]).is_file()):
        raise InputError(
            f"{folder}: {FILE_NAME} lists {shown(path)}, but the folder has no such file"
        )
    return url


_KINDS: dict[str, Callable[[pa.DataType], bool]] = {
    "values": lambda kind: pa.types.is_list(kind) and pa.types.is_floating(kind.value_type),
    "captions": lambda kind: pa.types.is_list(kind) and pa.types.is_string(kind.value_type),
    "images": lambda kind: pa.types.is_list(kind) and pa.types.is_string(kind.value_type),
    "vector": lambda kind: (
        pa.types.is_fixed_size_list(kind) and pa.types.is_floating(kind.value_type)
    ),
}
"""Type checks of columns that are not text."""


def _checked(
    batch: pa.RecordBatch, columns: Sequence[str] | None, url: str, advice: str
) -> pa.RecordBatch:
    for name in batch.schema.names if columns is None else columns:
        if batch.schema.names.count(name) != 1:
            raise InputError(f"{url}: expected a single column {name!r}; {advice}")
        column = batch.column(name)
        parts = column.flatten() if pa.types.is_nested(column.type) else column
        lacks_value = bool(column.null_count or parts.null_count)
        if lacks_value or not _KINDS.get(name, _is_text)(column.type):
            problem = f"has the wrong type {shown(str(column.type))}"
            problem = "has missing values" if lacks_value else problem
            raise InputError(f"{url}: the column {name!r} {problem}; {advice}")
    return batch


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or (
        pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type)
    )


def open_scores(folder: str) -> ScoresFolder:
    url = storage.join(folder.rstrip("/"), FILE_NAME)
    if not storage.exists(url):
        raise InputError(
            f"{folder} contains no finished scores: {FILE_NAME} is missing; run the same command "
            "again to finish them"
        )
    manifest = decode(storage.read_bytes(url), ScoresManifest, f"{url}: not a score manifest")
    if (manifest.format, manifest.format_version) != (FORMAT, FORMAT_VERSION):
        raise InputError(
            f"{url}: expected the format '{FORMAT} {FORMAT_VERSION}', found '{manifest.format} "
            f"{manifest.format_version}'"
        )
    return ScoresFolder(folder=folder.rstrip("/"), manifest=manifest)
