"""Films a clip: draws its frames and encodes them, byte for byte reproducibly."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageOps

from eqforge.core.errors import MissingExtra
from eqforge.generators.demo.photographs import load_photograph
from eqforge.generators.demo.scenes import (
    Clip,
    Print,
    photograph_at,
    print_box,
    ticks,
    window_at,
)

if TYPE_CHECKING:
    from av import VideoStream
    from av.container import OutputContainer

MARGIN_PX = 4
"""The white margin of a print."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Encoder:
    name: str
    options: Mapping[str, str]


# One thread each: with more, the bytes depend on which finishes first. No macroblock tree in x264:
# with a variable frame rate it reads uninitialised memory, and gives different bytes each time.
_ENCODERS: Mapping[str, _Encoder] = MappingProxyType(
    {
        "h264": _Encoder(
            name="libx264",
            options={"preset": "veryfast", "crf": "20", "x264-params": "threads=1:mbtree=0"},
        ),
        "hevc": _Encoder(
            name="libx265",
            options={
                "preset": "ultrafast",
                "crf": "22",
                "x265-params": "pools=none:frame-threads=1:wpp=0:log-level=error:info=0",
            },
        ),
        "vp9": _Encoder(
            name="libvpx-vp9",
            options={"deadline": "realtime", "cpu-used": "8", "crf": "28", "b": "0"},
        ),
    }
)


def draw_frame(clip: Clip, time_s: float) -> Image.Image:
    """Returns the upright RGB frame of a clip at a time.

    Args:
      clip: what to film.
      time_s: seconds from its start, in [0, duration).

    Returns:
      An image of the clip's size.
    """
    photograph = load_photograph(photograph_at(clip, time_s))
    # The window is in fractions of a pixel: rounded ones would make slow moves jump.
    frame = photograph.resize(clip.size, Image.Resampling.BICUBIC, box=window_at(clip, time_s))
    for laid in clip.prints:
        left, top, right, bottom = print_box(clip, time_s, laid)
        frame.paste(_paper(laid, int(right - left), int(bottom - top)), (int(left), int(top)))
    return frame


def film(clip: Clip, path: Path) -> None:
    """Writes a clip as a video file, damaged as its `condition` says.

    Args:
      clip: what to film.
      path: the file to write; its folder must exist.

    Raises:
      MissingExtra: PyAV is not installed.
    """
    if clip.condition == "missing":
        return
    if clip.condition == "empty":
        path.write_bytes(b"")
        return
    _encode(clip, path)
    if clip.condition == "truncated":
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])


def _paper(laid: Print, width: int, height: int) -> Image.Image:
    inner = (width - 2 * MARGIN_PX, height - 2 * MARGIN_PX)
    printed = load_photograph(laid.photograph).resize(inner, Image.Resampling.LANCZOS)
    return ImageOps.expand(printed, MARGIN_PX, fill="white")


def _encode(clip: Clip, path: Path) -> None:
    try:
        import av
    except ImportError as error:
        raise MissingExtra("av", "video") from error

    # The index comes first, as for streaming; without it, half a file would show nothing.
    muxing = {"fflags": "+bitexact", "movflags": "+faststart"}
    with av.open(str(path), "w", container_options=muxing) as container:
        stream = _open_stream(container, clip)
        for tick in ticks(clip):
            picture = draw_frame(clip, tick / clip.fps)
            if clip.is_turned:
                picture = picture.transpose(Image.Transpose.ROTATE_270)  # a quarter clockwise
            frame = av.VideoFrame.from_ndarray(np.asarray(picture), format="rgb24")
            frame.pts, frame.time_base = tick, Fraction(1, clip.fps)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def _open_stream(container: "OutputContainer", clip: Clip) -> "VideoStream":
    from av import VideoStream
    from av.codec.context import Flags

    encoder = _ENCODERS[clip.codec]
    stream = container.add_stream(encoder.name, rate=clip.fps, options=dict(encoder.options))
    assert isinstance(stream, VideoStream), "every encoder above is one of video"
    stream.width, stream.height = clip.size[::-1] if clip.is_turned else clip.size
    stream.pix_fmt = "yuv420p"
    stream.time_base = stream.codec_context.time_base = Fraction(1, clip.fps)
    stream.codec_context.thread_count = 1
    stream.codec_context.gop_size = 4 * clip.fps
    # Without it the encoder would write its build into the file.
    stream.codec_context.flags |= Flags.bitexact
    if clip.is_turned:
        stream.set_display_rotation(90)  # a quarter counterclockwise: upright again
    return stream
