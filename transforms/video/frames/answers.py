"""Converts decoded frames to answers with upright RGB pixels."""

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from eqforge.transforms.filters.image_filter import import_cv2
from eqforge.transforms.video.frames.video import Video, VideoUnusable, check_size, error_text
from eqforge.transforms.video.frames.walks import ShownFrame

if TYPE_CHECKING:
    from av.filter import Graph
    from av.video.frame import VideoFrame
    from av.video.plane import VideoPlane
    from av.video.reformatter import VideoReformatter


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class DecodedFrame:
    """The frame shown at a requested time.

    Attributes:
      request: position of the time in the request.
      pixels: upright RGB, uint8 [height, width, 3]; read-only, as times on one frame share it.
      pts: presentation timestamp in units of `time_base`.
      time_base: seconds per unit.
      timestamp_s: start of display, in seconds after the container's start.
      frame_index: number of frames shown before it.
      rotation_deg: clockwise rotation that was applied (0, 90, 180, 270).
      pixel_aspect: width to height of the stored pixels; 1 if they were not scaled.
      is_deinterlaced: whether the lines of two fields were interpolated.
      tone_mapped: `pq` or `hlg` if high dynamic range was mapped to the standard range; else empty.
      video_stream: number of the stream, if the file has several video streams; else empty.
    """

    request: int
    pixels: npt.NDArray[np.uint8]
    pts: int
    time_base: Fraction
    timestamp_s: float
    frame_index: int
    rotation_deg: int
    pixel_aspect: Fraction
    is_deinterlaced: bool
    tone_mapped: str = ""
    video_stream: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class UndecodedFrame:
    """A requested time without a frame; `reason` is a key of FRAME_REASONS."""

    request: int
    reason: str
    detail: str


Answer = DecodedFrame | UndecodedFrame
SQUARE = Fraction(1)
_HDR = {16: "pq", 18: "hlg"}
"""Transfer characteristics of ITU-T H.273 that no ordinary screen shows."""


def answer_requests(
    video: Video, shown: ShownFrame | None, requests: Sequence[int]
) -> Iterator[Answer]:
    if shown is None or not requests:
        return
    is_deinterlaced = shown.frame.interlaced_frame and not video.settings.stored_pixels
    aspect = SQUARE if video.settings.stored_pixels else video.pixel_aspect(shown.frame)
    tone_mapped = "" if video.settings.stored_pixels else _HDR.get(shown.frame.color_trc, "")
    try:
        pixels = _pixels(video, shown, aspect, is_deinterlaced, bool(tone_mapped))
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
            pixel_aspect=aspect,
            is_deinterlaced=is_deinterlaced,
            tone_mapped=tone_mapped,
            video_stream="" if video.settings.stored_pixels else video.chosen,
        )


def _pixels(
    video: Video, shown: ShownFrame, aspect: Fraction, is_deinterlaced: bool, is_hdr: bool
) -> npt.NDArray[np.uint8]:
    from av.error import FFmpegError

    frame = shown.frame
    check_size(*_square_size(frame, aspect), video.settings)  # it may change on the way
    try:
        if is_deinterlaced:
            frame = _deinterlaced(shown, video.time_base)
        if is_hdr:
            frame = _tone_mapped(frame)
        return upright_rgb(frame, video.reformatter, aspect)
    except FFmpegError as error:
        raise VideoUnusable("undecodable", error_text(error)) from error


def too_early(video: Video, request: int, first: int) -> UndecodedFrame:
    detail = f"the first frame is shown at {video.seconds(first):.6f} s"
    return UndecodedFrame(request=request, reason="before_first_frame", detail=detail)


def too_late(video: Video, request: int, end: int) -> UndecodedFrame:
    detail = f"the last frame ends at {video.seconds(end):.6f} s"
    return UndecodedFrame(request=request, reason="after_last_frame", detail=detail)


def _square_size(frame: "VideoFrame", aspect: Fraction) -> tuple[int, int]:
    """Return the frame's size in square pixels, never smaller than stored."""
    return max(frame.width, round(frame.width * aspect)), max(
        frame.height, round(frame.height / aspect)
    )


def _deinterlaced(shown: ShownFrame, time_base: Fraction) -> "VideoFrame":
    """Interpolate the lines of a frame's second field, as FFmpeg's bwdif does."""
    from av.filter import Graph

    frame = shown.frame
    known = [each for each in (shown.before, frame, shown.after) if each is not None]
    shape = frame.width, frame.height, frame.format.name
    fields = [each for each in known if (each.width, each.height, each.format.name) == shape]
    graph = Graph()
    source = graph.add_buffer(
        width=frame.width, height=frame.height, format=frame.format, time_base=time_base
    )
    graph.link_nodes(source, graph.add("bwdif", "mode=send_frame"), graph.add("buffersink"))
    graph.configure()
    for each in (*fields, None):
        graph.push(each)
    frames = [graph.vpull() for _ in fields]
    return frames[next(n for n, each in enumerate(fields) if each is frame)]


def _tone_mapped(frame: "VideoFrame") -> "VideoFrame":
    """Map a frame of PQ or HLG to the range and gamut of BT.709, as RGB, with FFmpeg's swscale."""
    colours = frame.colorspace, frame.color_range, frame.color_primaries, frame.color_trc
    graph = _tone_mapper(frame.width, frame.height, frame.format.name, *colours)
    graph.push(frame)
    return graph.vpull()


@functools.lru_cache(maxsize=4)  # FFmpeg computes its table for seconds
def _tone_mapper(width: int, height: int, pix_fmt: str, *colours: object) -> "Graph":
    """Return the filter for frames of a format; its table follows their `colours`."""
    from av.filter import Graph
    from av.video.format import VideoFormat

    graph = Graph()
    form = VideoFormat(pix_fmt)
    source = graph.add_buffer(width=width, height=height, format=form, time_base=SQUARE)
    options = "out_transfer=bt709:out_primaries=bt709:intent=perceptual"
    scale = graph.add("scale", f"{options}:flags=accurate_rnd+full_chroma_int+bitexact")
    graph.link_nodes(source, scale, graph.add("format", "gbrp"), graph.add("buffersink"))
    graph.configure()
    return graph


def upright_rgb(
    frame: "VideoFrame", reformatter: "VideoReformatter", aspect: Fraction = SQUARE
) -> npt.NDArray[np.uint8]:
    """Return a frame's pixels as RGB, rotated and mirrored by its display matrix.

    The stream's colour matrix and range apply; without a matrix, BT.601 is assumed, as FFmpeg does.
    Chroma is interpolated, and values are rounded rather than truncated: the result is within one
    level of the exact value, and the same on every processor. FFmpeg's default conversion is on
    average one level too dark.

    Args:
      reformatter: kept for the video, as setting one up takes as long as using it.
      aspect: width to height of the stored pixels. One side is enlarged until they are square.

    Returns:
      uint8 [height, width, 3], contiguous, read-only.
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
    if aspect != SQUARE:
        size = _square_size(frame, aspect)
        packed = np.asarray(Image.fromarray(packed).resize(size, Image.Resampling.LANCZOS))
    pixels = _upright(packed, _display_matrix(frame))
    pixels.flags.writeable = False
    return pixels


def clockwise_deg(frame: "VideoFrame") -> int:
    """Return the clockwise rotation (0, 90, 180, 270) that sets a frame upright."""
    return round(-frame.rotation / 90) * 90 % 360


def _rows(plane: "VideoPlane") -> npt.NDArray[np.uint8]:
    """Return a plane's samples [height, width] without row padding."""
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
    """Apply the quarter turn and mirroring nearest to a display matrix."""
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
