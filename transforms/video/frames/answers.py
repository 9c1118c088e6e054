"""Answers of decoding to the times asked of a video, with upright RGB pixels."""

import dataclasses
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from eqforge.transforms.filters.image_filter import import_cv2
from eqforge.transforms.video.frames.video import Video, VideoUnusable, check_size, error_text
from eqforge.transforms.video.frames.walks import ShownFrame

if TYPE_CHECKING:
    from av.video.frame import VideoFrame
    from av.video.plane import VideoPlane
    from av.video.reformatter import VideoReformatter


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
    """

    request: int
    reason: str
    detail: str


Answer = DecodedFrame | UndecodedFrame


def answer_requests(
    video: Video, shown: ShownFrame | None, requests: Sequence[int]
) -> Iterator[Answer]:
    """Answer requests with a frame, converting it once."""
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
    """Answer a time before the first frame, which begins to show at a tick."""
    detail = f"the first frame is shown at {video.seconds(first):.6f} s"
    return UndecodedFrame(request=request, reason="before_first_frame", detail=detail)


def too_late(video: Video, request: int, end: int) -> UndecodedFrame:
    """Answer a time after the last frame, which ends at a tick."""
    detail = f"the last frame ends at {video.seconds(end):.6f} s"
    return UndecodedFrame(request=request, reason="after_last_frame", detail=detail)


def upright_rgb(frame: "VideoFrame", reformatter: "VideoReformatter") -> npt.NDArray[np.uint8]:
    """Return a frame's pixels as RGB, turned and mirrored as its display matrix says.

    The stream's colour matrix and range are honoured; a stream that names no matrix is taken for
    BT.601, as FFmpeg does. Chroma is interpolated, and all is rounded rather than truncated: the
    result is within one level of the exact value, and the same on every processor. FFmpeg's
    default conversion is on average one level too dark. High dynamic range is not tone-mapped;
    pixels that are not square stay as they are.

    Args:
      reformatter: a converter kept for the video, as setting one up takes as long as using it.

    Returns:
      Shape (height, width, 3), uint8, contiguous, not writable.
    """
    from av.video.reformatter import Interpolation

    # Planar, because FFmpeg converts to it 2.4 times faster than to packed RGB.
    planar = reformatter.reformat(
        frame,
        format="gbrp",
        interpolation=Interpolation.BILINEAR
        | Interpolation.ACCURATE_RND
        | Interpolation.FULL_CHR_H_INT
        | Interpolation.BITEXACT,
        threads=1,
    )
    green, blue, red = (_rows(plane) for plane in planar.planes)
    packed = np.asarray(import_cv2().merge((red, green, blue)), dtype=np.uint8)
    pixels = _upright(packed, _display_matrix(frame))
    pixels.flags.writeable = False
    return pixels


def clockwise_deg(frame: "VideoFrame") -> int:
    """Return the quarter turns in degrees (0, 90, 180, 270) that set a frame upright."""
    return round(-frame.rotation / 90) * 90 % 360


def _rows(plane: "VideoPlane") -> npt.NDArray[np.uint8]:
    """Return a plane's samples, shape (height, width), without the padding of its rows."""
    samples = np.frombuffer(memoryview(plane), dtype=np.uint8)
    return samples.reshape(plane.height, plane.line_size)[:, : plane.width]


def _display_matrix(frame: "VideoFrame") -> tuple[int, int, int, int]:
    """Return (a, b, c, d) of a frame's display matrix, which shows (x, y) at (ax+cy, bx+dy)."""
    from av.sidedata.sidedata import Type

    side_data: Any = frame.side_data  # its type annotation covers motion vectors only
    try:
        data = side_data[Type.DISPLAYMATRIX]
    except KeyError:
        return (1, 0, 0, 1)
    except ValueError:  # PyAV fails on other side data that it has no name for
        quarters = round(frame.rotation / 90) % 4  # counter-clockwise
        return ((1, 0, 0, 1), (0, -1, 1, 0), (-1, 0, 0, -1), (0, 1, -1, 0))[quarters]
    matrix = np.frombuffer(memoryview(data), dtype=np.int32)
    return (int(matrix[0]), int(matrix[1]), int(matrix[3]), int(matrix[4]))


def _upright(
    pixels: npt.NDArray[np.uint8], matrix: tuple[int, int, int, int]
) -> npt.NDArray[np.uint8]:
    """Apply the turn and the mirroring that come nearest to a display matrix."""
    a, b, c, d = matrix
    if abs(b) + abs(c) > abs(a) + abs(d):
        down, right = b, c
        pixels = pixels.transpose(1, 0, 2)
    else:
        down, right = d, a
    if down < 0:
        pixels = pixels[::-1]
    if right < 0:
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)
