"""The rows of a dataset and the Parquet columns they become.

A dataset has three tables: `samples`, `images` (one row per distinct image; samples refer to it
by id) and `rejects` (one row per candidate that did not become a sample).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from eqforge.schemas.records.books import Reject
from eqforge.schemas.records.scores import Score
from eqforge.schemas.records.spans import Span

SCHEMA_VERSION = "1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Where an image of a sample comes from.

    Attributes:
      frame_id: name of the frame within its dataset.
      source_path: the source file, relative to the folder the user named.
      source_sha256: SHA-256 of the source file.
      licence: licence of the source, where stated.
      requested_timestamp_s, timestamp_s: seconds after the container's start: the time asked for,
        and the presentation time of the frame that was on screen then.
      pts, time_base: the same presentation time in the stream's own ticks and their length.
      frame_index: position of the frame in presentation order, from 0.
      rotation_deg: rotation that was applied to show the frame upright.
      parameters: how the image was encoded, as JSON.
    """

    frame_id: str
    source_path: str
    source_sha256: str
    licence: str | None
    requested_timestamp_s: float
    timestamp_s: float
    pts: int
    time_base: str
    frame_index: int
    rotation_deg: int
    parameters: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PairSample:
    """Two images that differ in one thing, with a caption of each: caption i describes image i.

    Attributes:
      sample_id: stable id made from the source, unique in the dataset.
      dataset, split: names of the dataset and of the source's split.
      source_id: the video both images come from; the cluster of the statistics.
      caption_0, caption_1: the captions that are scored.
      captions_0, captions_1: all captions known for each image.
      image_0_id, image_1_id: keys into the images table.
      origin_0, origin_1: lineage of the two images.
      annotation: what the source says of the pair, as a JSON object.
      changed_area_fraction, ssim, background_ssim, luminance_shift, phash_distance: measured
        visual minimality; definitions in `eqforge.transforms.filters.minimality`.
      word_edit_distance: words inserted, deleted or replaced between the captions.
      edited_spans_0, edited_spans_1: the characters of each caption that the edit touches.
      scores: every other score of the pair, with its scorer.
    """

    sample_id: str
    dataset: str
    split: str
    source_id: str
    caption_0: str
    caption_1: str
    captions_0: tuple[str, ...]
    captions_1: tuple[str, ...]
    image_0_id: str
    image_1_id: str
    origin_0: Origin
    origin_1: Origin
    annotation: str
    changed_area_fraction: float
    ssim: float
    background_ssim: float | None
    luminance_shift: float
    phash_distance: int
    word_edit_distance: int
    edited_spans_0: tuple[Span, ...]
    edited_spans_1: tuple[Span, ...]
    scores: tuple[Score, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageRow:
    """One distinct image, without its bytes: those stay in the media store until they are written.

    Attributes:
      image_id: SHA-256 of the encoded bytes.
      suffix: `.jpg` or `.png`.
      width_px, height_px: size of the picture.
      num_bytes: length of the encoded bytes.
      phash: perceptual hashes of red, green and blue, 192 bits as 48 hexadecimal digits.
      scores: what the filters measured on the stored image, with the settings they ran under.
    """

    image_id: str
    suffix: str
    width_px: int
    height_px: int
    num_bytes: int
    phash: str
    scores: tuple[Score, ...]


_TEXT, _NUMBER, _WHOLE = pa.string(), pa.float64(), pa.int64()


def required(name: str, kind: pa.DataType) -> pa.Field:
    """Returns a column that is never null."""
    return pa.field(name, kind, nullable=False)


def list_of(kind: pa.DataType) -> pa.DataType:
    """Returns the type of a list without nulls in it."""
    return pa.list_(pa.field("item", kind, nullable=False))


SPANS = list_of(pa.struct([required("start", _WHOLE), required("end", _WHOLE)]))
SCORES = list_of(
    pa.struct(
        [
            required("name", _TEXT),
            pa.field("value", _NUMBER),
            required("scorer", _TEXT),
            required("version", _TEXT),
            required("settings", _TEXT),
        ]
    )
)
ORIGIN = pa.struct(
    [
        required("frame_id", _TEXT),
        required("source_path", _TEXT),
        required("source_sha256", _TEXT),
        pa.field("licence", _TEXT),
        required("requested_timestamp_s", _NUMBER),
        required("timestamp_s", _NUMBER),
        required("pts", _WHOLE),
        required("time_base", _TEXT),
        required("frame_index", _WHOLE),
        required("rotation_deg", pa.int32()),
        required("parameters", _TEXT),
    ]
)
BOX = pa.struct([required(name, pa.int32()) for name in ("x0", "y0", "x1", "y1")])
IMAGE = pa.struct([pa.field("bytes", pa.binary()), pa.field("path", _TEXT)])

PAIR_SAMPLES = pa.schema(
    [
        *(required(name, _TEXT) for name in ("sample_id", "dataset", "split", "source_id")),
        *(required(name, _TEXT) for name in ("caption_0", "caption_1")),
        *(required(name, list_of(_TEXT)) for name in ("captions_0", "captions_1")),
        *(required(name, _TEXT) for name in ("image_0_id", "image_1_id")),
        *(required(name, ORIGIN) for name in ("origin_0", "origin_1")),
        required("annotation", _TEXT),
        required("changed_area_fraction", _NUMBER),
        required("ssim", _NUMBER),
        pa.field("background_ssim", _NUMBER),
        required("luminance_shift", _NUMBER),
        required("phash_distance", pa.int32()),
        required("word_edit_distance", pa.int32()),
        *(required(name, SPANS) for name in ("edited_spans_0", "edited_spans_1")),
        required("scores", SCORES),
    ]
)
IMAGES = pa.schema(
    [
        required("image_id", _TEXT),
        # Never null, but Hugging Face shows pictures only where the column could be.
        pa.field("image", IMAGE),
        *(required(name, pa.int32()) for name in ("width_px", "height_px")),
        required("num_bytes", _WHOLE),
        required("phash", _TEXT),
        required("scores", SCORES),
    ]
)
REJECTS = pa.schema(
    [
        *(required(name, _TEXT) for name in ("candidate_id", "stage", "reason")),
        *(pa.field(name, _NUMBER) for name in ("value", "threshold")),
        *(required(name, _TEXT) for name in ("detail", "source_id")),
        *(pa.field(name, _TEXT) for name in ("source_path", "source_sha256")),
    ]
)


def sample_row(sample: PairSample) -> dict[str, Any]:
    """Returns the Parquet row of a sample."""
    return _fields(sample)


def image_row(image: ImageRow, data: bytes) -> dict[str, Any]:
    """Returns the Parquet row of an image; its column `image` is what Hugging Face shows."""
    row = _fields(image)
    suffix = row.pop("suffix")
    return row | {"image": {"bytes": data, "path": image.image_id + suffix}}


def reject_row(reject: Reject) -> dict[str, Any]:
    """Returns the Parquet row of a reject."""
    return _fields(reject)


def _fields(record: Any) -> dict[str, Any]:
    row: dict[str, Any] = msgspec.to_builtins(record)  # as `asdict`, in a twentieth of its time
    return row


def with_metadata(schema: pa.Schema, metadata: Mapping[str, str]) -> pa.Schema:
    """Returns the schema with its version, Hugging Face's features and the given entries."""
    features = {field.name: _feature(field.type) for field in schema}
    entries = {
        "schema_version": SCHEMA_VERSION,
        "huggingface": json.dumps({"info": {"features": features}}, sort_keys=True),
    }
    return schema.with_metadata(entries | dict(metadata))


def _feature(kind: pa.DataType) -> Any:
    if kind == IMAGE:
        return {"_type": "Image"}
    if pa.types.is_struct(kind):
        return {field.name: _feature(field.type) for field in kind}
    if pa.types.is_list(kind):
        return {"feature": _feature(kind.value_type), "_type": "List"}
    return {"dtype": {"double": "float64"}.get(str(kind), str(kind)), "_type": "Value"}
