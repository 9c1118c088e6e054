"""What `eqforge score` writes of a dataset: tables of scores or vectors, failures and a manifest.

A folder of scores holds `scores.json`, written last, and below `data/` some of these tables:

* `scores`: a row a sample, with the scores of its few images and captions;
* `image_vectors`, `caption_vectors`: unit vectors of a dual encoder, where everything is compared
  with everything; the score of an image and a caption is their dot product;
* `grid`: a row an image, with the scores of many captions, by a fusion encoder;
* `failures`: a row for everything that could not be scored, with the reason.

Rows are joined with those of the dataset by key, never by place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import pyarrow as pa

from eqforge.schemas import storage
from eqforge.schemas.dataset import read_file_batches
from eqforge.schemas.errors import InputError
from eqforge.schemas.manifest import DataFile
from eqforge.schemas.tables import list_of, required

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
"""How the files of each table begin."""

FAILURE_REASONS = {
    "undecodable_image": "The image's bytes cannot be decoded to pixels.",
    "too_many_pixels": "The image is larger than the limit that keeps memory bounded.",
    "unusable_image": "The model cannot take the image, or nothing is known under its key.",
    "missing_image": "The sample names no image, or one that is not in the table of images.",
    "not_finite": "The model's answer is not a number; a table of scores has none.",
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
"""A row a sample.

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
"""A row an image: the captions that were scored with it, as text, and their scores."""

FAILURES = pa.schema(
    [
        required("table", _TEXT),
        required("key", _TEXT),
        required("reason", _TEXT),
        required("detail", _TEXT),
    ]
)
"""What has no score: `table` is `samples`, `images`, `captions` or `pairs`, `key` a sample's or an
image's id or a caption's text, `reason` one of FAILURE_REASONS. Of pairs that have no score there
is one row an image, with their number in `detail`."""


def image_vectors(dimensions: int) -> pa.Schema:
    """Returns the columns `image_id` and `vector`, of unit length."""
    return pa.schema([required("image_id", _TEXT), required("vector", _vector(dimensions))])


def caption_vectors(dimensions: int) -> pa.Schema:
    """Returns the columns `caption`, a caption or word as text, and `vector`, of unit length."""
    return pa.schema([required("caption", _TEXT), required("vector", _vector(dimensions))])


def _vector(dimensions: int) -> pa.DataType:
    return pa.list_(pa.field("item", _FLOAT, nullable=False), dimensions)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoringModel:
    """The model that scored; what the fields are is said in `eqforge.models.scorer.Identity`."""

    kind: str
    family: str
    model: str
    revision: str
    precision: str
    preprocessing: str
    calibration: str

    @property
    def name(self) -> str:
        """Kind, model and revision."""
        return f"{self.kind}:{self.model}@{self.revision}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """How many samples, images or captions there are: expected = scored + failed."""

    expected: int
    scored: int
    failed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoresManifest:
    """Everything a reader has to know of a folder of scores.

    Attributes:
      dataset: name of the dataset.
      dataset_sha256: SHA-256 of the dataset's own manifest, its `dataset.json`.
      task: what was scored; a key of `eqforge.evaluation.scoring.tasks.TASKS`.
      quantity: what a score is.
      images, captions: the columns that a row of `scores` names; empty for tables of vectors.
      model: the model that scored.
      settings: everything else the scores depend on: batch sizes, autocast, device, threads.
      counts: of `samples`, `images`, `captions` and `pairs` of them, as far as the task has them.
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
    model: ScoringModel
    settings: dict[str, Any]
    counts: dict[str, Counts]
    versions: dict[str, str]
    tables: dict[str, list[DataFile]]
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoresFolder:
    """A finished folder of scores: where it is and its manifest."""

    folder: str
    manifest: ScoresManifest

    def batches(
        self, table: str, columns: Sequence[str] | None = None, rows: int = 10_000
    ) -> Iterator[pa.RecordBatch]:
        """Yields a table in pieces, file by file in the manifest's order; nothing if it has none.

        Args:
          table: one of FILE_STEMS.
          columns: their names; None for all.
          rows: how many there are in a piece at most. A row of `grid` has the scores of all
            captions, so of that table few should be read at once.

        Raises:
          InputError: a file is missing or damaged.
        """
        for file in self.manifest.tables.get(table, []):
            url = storage.join(self.folder, file.path)
            yield from read_file_batches(
                url, columns, rows, f"delete {self.folder} and score the dataset again"
            )


def open_scores(folder: str) -> ScoresFolder:
    """Opens a finished folder of scores.

    Raises:
      InputError: the folder holds none.
    """
    url = storage.join(folder.rstrip("/"), FILE_NAME)
    if not storage.exists(url):
        raise InputError(
            f"{folder} holds no {FILE_NAME}: it holds no scores, or eqforge score has not finished "
            "(run the same command again to finish it)"
        )
    try:
        manifest = msgspec.json.decode(storage.read_bytes(url), type=ScoresManifest)
    except msgspec.DecodeError as error:
        raise InputError(f"{url}: not a manifest of scores: {error}") from error
    if (manifest.format, manifest.format_version) != (FORMAT, FORMAT_VERSION):
        raise InputError(f"{url}: expected format {FORMAT} {FORMAT_VERSION}")
    return ScoresFolder(folder=folder.rstrip("/"), manifest=manifest)


def to_json(manifest: ScoresManifest) -> bytes:
    """Returns a manifest as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
