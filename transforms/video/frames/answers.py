"""What decoding answers to the times asked of a video."""

import dataclasses
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from eqforge.transforms.video.frames.decode_sequential import ShownFrame
from eqforge.transforms.video.frames.picture import clockwise_deg, upright_rgb
from eqforge.transforms.video.frames.video import Video, VideoUnusable, check_size, error_text


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class DecodedFrame:
    """The frame shown at a requested time.

    Attributes:
      request: position of the time in the request.
      pixels: upright RGB, shape (height, width, 3), uint8; not writable, as times that fall on
        one frame share it.
      pts: presentation timestamp in units of `time_base`.
      time_base: seconds per unit.
      timestamp_s: when the frame begins to show, in seconds after the container's start.
      frame_index: number of frames shown before it.
      rotation_deg: degrees (0, 90, 180, 270) it was turned clockwise.
    """

    request: int
    pixels: npt.NDArray[np.uint8]
    pts: int
    time_base: Fraction
    timestamp_s: float
    frame_index: int
    rotation_deg: int


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class UndecodedFrame:
    """A requested time that no frame answers.

    Attributes:
      request: position of the time in the request.
      reason: a key of FRAME_REASONS.
      detail: what was found.
    """

    request: int
    reason: str
    detail: str


Answer = DecodedFrame | UndecodedFrame


def give(video: Video, shown: ShownFrame | None, requests: Sequence[int]) -> Iterator[Answer]:
    """Answers requests with a frame, converting it once."""
    if shown is None or not requests:
        return
    try:
        pixels = _pixels(video, shown)
    except VideoUnusable as error:
        for request in requests:
            yield UndecodedFrame(request=request, reason=error.reason, detail=error.detail)
        return
    for request in requests:
        yield DecodedFrame(
            request=request,
            pixels=pixels,
            pts=shown.pts,
            time_base=video.time_base,
            timestamp_s=video.seconds(shown.pts),
            frame_index=shown.frame_index,
            rotation_deg=clockwise_deg(shown.frame),
        )


def _pixels(video: Video, shown: ShownFrame) -> npt.NDArray[np.uint8]:
    from av.error import FFmpegError

    frame = shown.frame
    check_size(frame.width, frame.height, video.settings)  # it may change on the way
    try:
        return upright_rgb(frame, video.reformatter)
    except FFmpegError as error:
        raise VideoUnusable("undecodable", error_text(error)) from error


def too_early(video: Video, request: int, first: int) -> UndecodedFrame:
    """Answers a time before the first frame, which begins to show at a tick."""
    detail = f"the first frame is shown at {video.seconds(first):.6f} s"
    return UndecodedFrame(request=request, reason="before_first_frame", detail=detail)


def too_late(video: Video, request: int, end: int) -> UndecodedFrame:
    """Answers a time after the last frame, which ends at a tick."""
    detail = f"the last frame ends at {video.seconds(end):.6f} s"
    return UndecodedFrame(request=request, reason="after_last_frame", detail=detail)
