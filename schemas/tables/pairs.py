"""The rows of a dataset of pairs of video frames, and of what other datasets have too.

A dataset has three tables: `samples`, `images` (one row per distinct image; samples refer to it
by id) and `rejects` (one row per candidate that did not become a sample).
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from eqforge.schemas.records.books import Reject
from eqforge.schemas.records.ranges import Sha256, Share, Similarity, Text, Whole, Whole32
from eqforge.schemas.records.scores import Score
from eqforge.schemas.records.values import PictureSuffix, Span
from eqforge.schemas.tables.description import DatasetType, TableType

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

    Of a video that is a folder of frames, the source file is the picture. Its ticks are frames, by
    the rate that `--frames-fps` gives; without it both times are -1, and `time_base` is empty.

    Attributes:
      frame_id: name of the frame within its dataset.
      source_path: the source file, relative to the folder the user named.
      source_sha256: SHA-256 of the source file.
      licence: licence of the source, where stated.
      requested_timestamp_s, timestamp_s: seconds after the container's start: the time asked for,
        and the presentation time of the frame that was on screen then.
      pts: the same presentation time in the stream's own ticks.
      time_base: their length, in seconds as a fraction.
      frame_index: position of the frame in presentation order, from 0.
      rotation_deg: rotation that was applied to show the frame upright.
      parameters: how the image was encoded, as JSON; `pixel_aspect` is the shape of stored pixels
        that were scaled to squares, and `deinterlaced` the filter that joined two fields.
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
    """Two images that differ in one thing, with a caption of each: caption i describes image i.

    Attributes:
      sample_id: stable id made from the source, unique in the dataset.
      dataset, split: names of the dataset and of the source's split.
      source_id: the video both images come from; the cluster of the statistics.
      caption_0, caption_1: the captions that are scored.
      captions_0, captions_1: all captions known for each image.
      image_0_id, image_1_id: keys into `images`.
      origin_0, origin_1: lineage of the two images.
      annotation: what the source says of the pair, as a JSON object.
      changed_area_fraction: share of the picture whose lightness or colour changed, in [0, 1]; this
        and the four that follow are defined in `eqforge.transforms.filters.minimality`.
      ssim: structural similarity, the least of L*, a* and b*, in [-1, 1].
      background_ssim: the same outside the changed area; None where nothing is outside.
      luminance_shift: mean luma of the second image less the first's, in [-255, 255]; blind to
        colour by definition.
      phash_distance: differing bits of the perceptual hashes, 0 to 192.
      word_edit_distance: words inserted, deleted or replaced between the captions.
      edited_spans_0, edited_spans_1: the characters [start, end) of each caption that the edit
        touches.
      scores: every other score of the pair, with its scorer.
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
    """One distinct image.

    Its bytes stay in the media store until they are written.

    Attributes:
      image_id: SHA-256 of the encoded bytes.
      suffix: `.jpg` or `.png`.
      width_px, height_px: size of the picture.
      num_bytes: length of the encoded bytes.
      phash: perceptual hashes (ImageHash's pHash) of red, green and blue, 192 bits as 48
        hexadecimal digits.
      scores: what the filters measured on the stored image, with the settings they ran under,
        whether or not they refused anything: a threshold can be moved without measuring again.
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
    name="rejects",
    record=Reject,
    key=("candidate_id", "stage"),
    counted=("stage", "reason"),
)
PAIRS_TABLE = TableType(
    name="samples",
    record=PairSample,
    key=("sample_id",),
    references={"image_0_id": "images", "image_1_id": "images"},
)
VIDEO_PAIRS = DatasetType(
    tables=(PAIRS_TABLE, IMAGES_TABLE, REJECTS_TABLE),
    card="In `samples`, `caption_0` describes the image `image_0_id` and `caption_1` the image "
    "`image_1_id`; the two ids are keys into `images`, where every distinct picture stands once. "
    "`origin_0` and `origin_1` say where each picture comes from, and `origin_0.licence` what the "
    "source states of its licence.",
)
