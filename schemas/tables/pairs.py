"""The rows of a dataset of pairs of video frames, and of what other datasets have too.

A dataset has three tables: `samples`, `images` (one row per distinct image; samples refer to it
by id) and `rejects` (one row per candidate that did not become a sample).
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from eqforge.schemas.records.scores import Score
from eqforge.schemas.records.stages import Reject
from eqforge.schemas.records.values import (
    PictureSuffix,
    Sha256,
    Share,
    Similarity,
    Span,
    Text,
    Whole,
    Whole32,
)
from eqforge.schemas.tables.description import DatasetType, TableType, samples_table

UNKNOWN_S = -1.0
"""Stands for a time that is not known; no frame is shown before 0."""

Time = Annotated[float, Meta(ge=UNKNOWN_S, le=1e9)]
LumaShift = Annotated[float, Meta(ge=-255, le=255)]
Bits = Annotated[Whole32, Meta(le=192)]

PAIR_RULES = {
    "captions_0": lambda row: row.caption_0 in row.captions_0,
    "captions_1": lambda row: row.caption_1 in row.captions_1,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Where an image of a sample comes from.

    For a folder of frames, the source file is the image, and ticks are frames at the rate of
    `--frames-fps`. Without that rate, both times are -1 and `time_base` is empty.

    Attributes:
      frame_id: name of the frame, unique in its dataset.
      source_path: path of the source file, relative to the folder that the user specified.
      source_sha256: SHA-256 of the source file.
      licence: licence of the source, if the source states one.
      requested_timestamp_s: requested time, in seconds after the container's start.
      timestamp_s: presentation time of the frame that is on screen at the requested time, in
        seconds.
      pts: presentation time in ticks of the stream.
      time_base: length of a tick in seconds, as a fraction.
      frame_index: position of the frame in presentation order, from 0.
      rotation_deg: rotation in degrees that makes the frame upright.
      parameters: how the image was encoded, as JSON. `pixel_aspect` is the original shape of pixels
        that were scaled to squares. `deinterlaced` is the filter that joined two fields.
        `tone_mapped` is the kind of high dynamic range (`pq` or `hlg`). `video_stream` is the
        number of the stream, if the file has several streams.
    """

    frame_id: str
    source_path: str
    source_sha256: Sha256
    licence: str | None
    requested_timestamp_s: Time
    timestamp_s: Time
    pts: int
    time_base: Annotated[str, Meta(pattern=r"\A([1-9][0-9]*(/[1-9][0-9]*)?)?\Z")]
    frame_index: Whole
    rotation_deg: Annotated[Whole32, Meta(le=270, multiple_of=90)]
    parameters: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PairSample:
    """Two images that differ in one detail, each with a caption. Caption i describes image i.

    Attributes:
      sample_id: stable id derived from the source, unique in the dataset.
      dataset, split: name of the dataset and of the source's split.
      source_id: video that both images come from, used as the cluster in statistics.
      caption_0, caption_1: captions used for scoring.
      captions_0, captions_1: all known captions of each image.
      image_0_id, image_1_id: keys into `images`.
      origin_0, origin_1: source of each image.
      annotation: the source's fields for the pair, as a JSON object.
      changed_area_fraction: fraction of the image whose lightness or colour changed, in [0, 1].
      ssim: structural similarity in [-1, 1], the minimum over the channels L*, a* and b*.
      background_ssim: structural similarity outside the changed area, or None if the whole image
        changed.
      luminance_shift: mean luma of image 1 minus mean luma of image 0, in [-255, 255].
      phash_distance: number of bits in which the perceptual hashes differ, 0 to 192.
      word_edit_distance: number of words inserted, deleted or replaced between the captions.
      edited_spans_0, edited_spans_1: edited characters [start, end) of each caption.
      scores: all other scores of the pair.
    """

    sample_id: Text
    dataset: Text
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
    changed_area_fraction: Share
    ssim: Similarity
    background_ssim: Similarity | None
    luminance_shift: LumaShift
    phash_distance: Bits
    word_edit_distance: Whole32
    edited_spans_0: tuple[Span, ...]
    edited_spans_1: tuple[Span, ...]
    scores: tuple[Score, ...]

    RULES: ClassVar = PAIR_RULES


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageRow:
    """A distinct image.

    Its bytes stay in the media store until they are written.

    Attributes:
      image_id: SHA-256 of the encoded bytes.
      suffix: `.jpg` or `.png`.
      width_px, height_px: size in pixels.
      num_bytes: size of the encoded image in bytes.
      phash: perceptual hashes (ImageHash's pHash) of the red, green and blue channels: 192 bits as
        48 hexadecimal digits.
      scores: measurements of the image filters, which let you change a threshold without measuring
        again.
    """

    image_id: Text
    suffix: PictureSuffix
    width_px: Whole32
    height_px: Whole32
    num_bytes: Whole
    phash: Annotated[str, Meta(pattern=r"\A[0-9a-f]{48}\Z")]
    scores: tuple[Score, ...]


IMAGES_TABLE = TableType(name="images", record=ImageRow, key=("image_id",))
REJECTS_TABLE = TableType(
    name="rejects", record=Reject, key=("candidate_id", "stage"), counted=("stage", "reason")
)
PAIRS_TABLE = samples_table(PairSample, {"image_0_id": "images", "image_1_id": "images"})
VIDEO_PAIRS = DatasetType(
    tables=(PAIRS_TABLE, IMAGES_TABLE, REJECTS_TABLE),
    card="In `samples`, `caption_0` describes the image `image_0_id` and `caption_1` the image "
    "`image_1_id`; the two ids are keys into `images`, which has one row per distinct image. "
    "`origin_0` and `origin_1` describe the source of each image; `origin_0.licence` is the "
    "licence that the source states.",
)
