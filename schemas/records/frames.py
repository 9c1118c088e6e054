"""Videos of a plan: the frames and pairs wanted from each, and frames stored or missed."""

import dataclasses
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from eqforge.core.files.objects import STORE_REASONS
from eqforge.core.files.pictures import MAX_PIXELS
from eqforge.core.ranges import check_range, expect
from eqforge.schemas.records.stages import Reject, Tally

VIDEO_SUFFIXES = (
    *(".mp4", ".mkv", ".webm", ".mov", ".m4v", ".avi", ".flv", ".ts"),
    *(".mpg", ".mpeg", ".wmv", ".3gp", ".ogv", ".gif", ".webp", ".apng"),
)
"""Suffixes tried after a video's id; the first that is found wins."""

CLOCK_GRACE_S = Fraction(1, 2_000_000)
"""The float nearest to a frame's time may lie so far below it."""

FRAME_REASONS: dict[str, str] = {
    "video_missing": "The video folder does not contain a file with this name.",
    "outside_root": "The path is absolute, leads out of the folder, or follows links in a circle. "
    "--follow-links allows links out of the folder.",
    "source_changed": "The file changed while eqforge was reading it.",
    **STORE_REASONS,
    "video_empty": "The video file is empty, or its frame folder has no numbered images.",
    "video_unreadable": "eqforge cannot open the video or has no decoder for it.",
    "no_video_stream": "The file contains no video, only sound, subtitles or cover art.",
    "too_many_pixels": "The image has more pixels than allowed.",
    "before_first_frame": "The time is before the first frame.",
    "after_last_frame": "The timestamp is after the end of the last frame.",
    "undecodable": "The video data for the frame is damaged or truncated.",
    "frames_unclear": "The frame folder contains duplicate numbers, the number 0, or file names "
    "in different styles.",
    "frame_missing": "The frame folder does not contain an image with the frame's number.",
    "decoder_crashed": "The decoder's process died before it reached this frame.",
    "decoder_timeout": "The decoder's process stopped responding (--decoder-timeout-s).",
}
"""Why a frame is missing: the closed list of reasons, each in one sentence."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class FrameSettings:
    """Format, size and limits of stored frames."""

    image_format: Literal["jpeg", "png"] = "jpeg"
    """File format of stored frames: `jpeg` (smaller) or `png` (lossless)."""
    jpeg_quality: int = 95
    """JPEG quality, 1 to 95."""
    max_side: int | None = None
    """Maximum width and height of a frame, in pixels. Larger frames are scaled down."""
    stored_pixels: bool = False
    """Store the pixels exactly as in the video, without corrections for interlacing, HDR or
    non-square pixels."""
    end_tolerance_s: float = 0.1
    """Use the last frame for times up to this many seconds after the end of the video."""
    max_pixels: int = MAX_PIXELS
    """Maximum number of pixels per frame (width times height). Videos with larger frames are
    rejected."""

    def __post_init__(self) -> None:
        check_range("jpeg_quality", self.jpeg_quality, 1, 95)
        expect(self, "max_side", self.max_side is None or self.max_side >= 1, "1 or more")
        is_finite = 0 <= self.end_tolerance_s < math.inf
        expect(self, "end_tolerance_s", is_finite, "a finite number of at least 0")
        expect(self, "max_pixels", self.max_pixels >= 1, "1 or more")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class FrameRequest:
    """A frame wanted from a video: the one shown at a time, or the one with a number.

    Attributes:
      frame_id: the name the answer comes back under, unique among the requests of a video.
      timestamp_s: the time in seconds after the container's start, as players show it.
      frame_index: the number of frames shown before it, in place of a time.
    """

    frame_id: str
    timestamp_s: float | None = None
    frame_index: int | None = None

    def __post_init__(self) -> None:
        """Reject a request without a finite time or a number, or with both."""
        if (self.timestamp_s is None) == (self.frame_index is None):
            raise ValueError(f"{self.frame_id}: specify either a time or a frame number, not both")
        if self.timestamp_s is not None and not math.isfinite(self.timestamp_s):
            raise ValueError(f"{self.frame_id}: the time {self.timestamp_s} is not finite")
        if self.frame_index is not None and self.frame_index < 0:
            raise ValueError(f"{self.frame_id}: the frame number {self.frame_index} is negative")

    @property
    def moment(self) -> "float | FrameNumber":
        if self.frame_index is not None:
            return FrameNumber(self.frame_index)
        assert self.timestamp_s is not None
        return self.timestamp_s


@dataclasses.dataclass(frozen=True, slots=True)
class FrameNumber:
    """A frame named by the number of frames shown before it."""

    index: int


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class StoredImage:
    """An image in the media store.

    Attributes:
      image_id: SHA-256 of the encoded image, its name in the media store.
      suffix: ".jpg" or ".png".
      width_px, height_px: size of the stored image, upright.
      num_bytes: size of the encoded image.
    """

    image_id: str
    suffix: str
    width_px: int
    height_px: int
    num_bytes: int


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class StoredFrame(StoredImage):
    """A frame that was decoded, encoded as an image and put into the media store.

    The three fields of times are None where the rate of a folder of frames is not known.

    Attributes:
      frame_id: the request's name.
      requested_timestamp_s: the time that was asked for; where a number was, the frame's own.
      timestamp_s: the time at which the frame begins to show, after the container's start.
      pts: the frame's presentation timestamp in the stream, in units of `time_base`.
      time_base: seconds per unit of `pts`, as a fraction such as "1/12800".
      frame_index: number of frames shown before it.
      rotation_deg: degrees (0, 90, 180, 270) the picture was turned clockwise to stand upright.
      pixel_aspect: width to height of the stored pixels, such as "64:45", where they were scaled
        to squares; else empty.
      is_deinterlaced: whether the lines of two fields were interpolated.
      tone_mapped: `pq` or `hlg` if high dynamic range was mapped to the standard range; else empty.
      video_stream: number of the stream, if the file has several video streams; else empty.
    """

    frame_id: str
    requested_timestamp_s: float | None
    timestamp_s: float | None
    pts: int
    time_base: str | None
    frame_index: int
    rotation_deg: int
    pixel_aspect: str = ""
    is_deinterlaced: bool = False
    tone_mapped: str = ""
    video_stream: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class MissedFrame:
    """A frame that could not be extracted.

    Attributes:
      frame_id: the request's name.
      requested_timestamp_s: the time that was asked for; None where a number was.
      reason: a key of FRAME_REASONS.
      detail: what was found, for a human reader.
    """

    frame_id: str
    requested_timestamp_s: float | None
    reason: str
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PairCandidate:
    """Two frames of one video and a caption of each.

    Attributes:
      sample_id: the id the sample will have.
      frame_0_id, frame_1_id: ids of two frame requests of the same clip.
      caption_0, caption_1: the captions that are scored.
      captions_0, captions_1: every caption known for the image; the scored one is among them.
      annotation: what the source says of the pair, as text by field name.
    """

    sample_id: str
    frame_0_id: str
    frame_1_id: str
    caption_0: str
    caption_1: str
    captions_0: tuple[str, ...]
    captions_1: tuple[str, ...]
    annotation: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Clip:
    """One video of a plan.

    Attributes:
      clip_id: the video's id, unique in the plan.
      video: the name under which the video is looked up below the videos folder.
      split: the source's split, such as `train`.
      licence: licence of the video, where the source states one.
      root: what the ids of its candidates begin with, such as `eq-youcook2/xHr8X2Wpmno`; the
        candidate id of the video itself.
      frames: the frames that the pairs need, each once.
      pairs: the candidate pairs.
      rejects: annotation records that gave no candidate, each with its reason.
      tallies: the counts of the planning stages.
    """

    clip_id: str
    video: str
    split: str
    licence: str | None = None
    root: str = ""
    frames: tuple[FrameRequest, ...] = ()
    pairs: tuple[PairCandidate, ...] = ()
    rejects: tuple[Reject, ...] = ()
    tallies: tuple[Tally, ...] = ()
