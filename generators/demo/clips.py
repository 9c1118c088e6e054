"""Film the demo's clips: a camera glides over photographs with prints laid on them.

The photographs come with scikit-image. Only files of its wheel are opened, by path, because its
loading functions may download missing files.

Boxes are (left, top, right, bottom). A time is in seconds from the start of the clip.
"""

import bisect
import functools
import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
import numpy as np
from PIL import Image, ImageOps

from eqforge.core.errors import InputError, importing
from eqforge.core.files.pictures import open_rgb

if TYPE_CHECKING:
    from av import VideoStream
    from av.container import OutputContainer

Box: TypeAlias = tuple[float, float, float, float]

GLIDE_S: Final = 0.6

DRIFT: Final = 1.04
"""How far the camera zooms in during a shot, so that it is not a still image."""

MARGIN_PX: Final = 4


class Shot(msgspec.Struct, frozen=True, array_like=True):
    """A view of a photograph held for a while, its centre in fractions of the sides.

    Zoom 1 shows as much of the photograph as fits the frame's shape, 2 half as much each way. The
    camera glides over from the previous view if it shows the same photograph, else it cuts.
    """

    photograph: str
    seconds: float
    x: float = 0.5
    y: float = 0.5
    zoom: float = 1.0
    drift: float = DRIFT


class Place(msgspec.Struct, frozen=True, array_like=True):
    """The position of a print from a time on: its centre in fractions of the frame's sides."""

    from_s: float
    x: float
    y: float


class Print(msgspec.Struct, frozen=True, kw_only=True):
    """A photograph on paper with a white margin, lying on the frame and moved about.

    Attributes:
      width: fraction of the frame's width.
      places: by ascending time; each move takes GLIDE_S. Outside [0, 1] it leaves the frame.
    """

    photograph: str
    width: float
    places: tuple[Place, ...]


class Clip(msgspec.Struct, frozen=True, kw_only=True):
    """One video file of the demo.

    Attributes:
      file: path below the folder of videos; its suffix chooses the container.
      size: width and height of the upright frame in pixels, both even.
      fps: ticks per second.
      rhythm: pattern of ticks that carry a frame, repeated: "1" all of them, "110" two of three.
      codec: h264, hevc or vp9.
      is_turned: the pixels are stored rotated, with a display rotation that undoes it.
      condition: truncated loses the file's second half, empty has 0 bytes, missing has no file.
    """

    file: str
    shots: tuple[Shot, ...]
    prints: tuple[Print, ...] = ()
    size: tuple[int, int] = (480, 360)
    fps: int = 12
    rhythm: str = "1"
    codec: Literal["h264", "hevc", "vp9"] = "h264"
    is_turned: bool = False
    condition: Literal["whole", "truncated", "empty", "missing"] = "whole"

    @property
    def starts_s(self) -> list[float]:
        lengths = (shot.seconds for shot in self.shots)
        return [round(total, 6) for total in itertools.accumulate(lengths, initial=0.0)]


# One thread each: with more, the bytes depend on which finishes first. No macroblock tree in x264:
# with a variable frame rate it reads uninitialised memory, and gives different bytes each time.
_ENCODERS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "h264": (
        "libx264",
        {"preset": "veryfast", "crf": "20", "x264-params": "threads=1:mbtree=0"},
    ),
    "hevc": (
        "libx265",
        {
            "preset": "ultrafast",
            "crf": "22",
            "x265-params": "pools=none:frame-threads=1:wpp=0:log-level=error:info=0",
        },
    ),
    "vp9": ("libvpx-vp9", {"deadline": "realtime", "cpu-used": "8", "crf": "28", "b": "0"}),
}


def all_clips() -> tuple[Clip, ...]:
    data = (resources.files(__package__) / "clips.json").read_bytes()
    return msgspec.json.decode(data, type=tuple[Clip, ...])


@functools.cache
def load_photograph(name: str) -> Image.Image:
    """Return a photograph of scikit-image as an RGB image, which callers must not change."""
    file = f"{name}.jpg" if name == "rocket" else f"{name}.png"
    try:
        return open_rgb((resources.files("skimage") / "data" / file).read_bytes())
    except FileNotFoundError as error:
        raise InputError(
            f"the photograph {file} is missing from scikit-image; reinstall scikit-image"
        ) from error


def film(clip: Clip, path: Path) -> None:
    """Write a clip as a video file, byte for byte reproducibly, damaged as its `condition` says."""
    if clip.condition == "missing":
        return
    if clip.condition == "empty":
        path.write_bytes(b"")
        return
    _encode(clip, path)
    if clip.condition == "truncated":
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])


def _encode(clip: Clip, path: Path) -> None:
    with importing("av", "video"):
        import av

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

    name, options = _ENCODERS[clip.codec]
    stream = container.add_stream(name, rate=clip.fps, options=dict(options))
    assert isinstance(stream, VideoStream), "all encoders above encode video"
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


def ticks(clip: Clip) -> list[int]:
    """Return the presentation times of a clip's frames, in units of 1 / fps seconds."""
    total = round(clip.starts_s[-1] * clip.fps)
    return [tick for tick in range(total) if clip.rhythm[tick % len(clip.rhythm)] == "1"]


def draw_frame(clip: Clip, time_s: float) -> Image.Image:
    photograph = load_photograph(clip.shots[_shot_index(clip, time_s)].photograph)
    # The window is in fractions of a pixel: rounded ones would make slow moves jump.
    frame = photograph.resize(clip.size, Image.Resampling.BICUBIC, box=window_at(clip, time_s))
    for laid in clip.prints:
        left, top, right, bottom = print_box(clip, time_s, laid)
        inner = right - left - 2 * MARGIN_PX, bottom - top - 2 * MARGIN_PX
        printed = load_photograph(laid.photograph).resize(inner, Image.Resampling.LANCZOS)
        frame.paste(ImageOps.expand(printed, MARGIN_PX, fill="white"), (left, top))
    return frame


def window_at(clip: Clip, time_s: float) -> Box:
    """Return the part of the photograph that fills the frame, in the photograph's pixels."""
    index = _shot_index(clip, time_s)
    width, height = load_photograph(clip.shots[index].photograph).size
    centre_x, centre_y, zoom = _view_at(clip, index, time_s)
    scale = min(width / clip.size[0], height / clip.size[1]) / zoom
    half_width, half_height = clip.size[0] * scale / 2, clip.size[1] * scale / 2
    x = _clamp(centre_x * width, half_width, width - half_width)
    y = _clamp(centre_y * height, half_height, height - half_height)
    return x - half_width, y - half_height, x + half_width, y + half_height


def print_box(clip: Clip, time_s: float, laid: Print) -> tuple[int, int, int, int]:
    """Return a print's box in whole pixels of the frame; it may extend beyond the frame."""
    x, y = _place_at(laid.places, time_s)
    photo_width, photo_height = load_photograph(laid.photograph).size
    width = round(laid.width * clip.size[0])
    height = round(width * photo_height / photo_width)
    left = round(x * clip.size[0] - width / 2)
    top = round(y * clip.size[1] - height / 2)
    return left, top, left + width, top + height


def _shot_index(clip: Clip, time_s: float) -> int:
    # The tolerance lets a tick such as 29 / 10 belong to the shot that starts at 2.9 s.
    found = bisect.bisect_right(clip.starts_s, time_s + 1e-6) - 1
    return min(found, len(clip.shots) - 1)


def _view_at(clip: Clip, index: int, time_s: float) -> tuple[float, float, float]:
    shot, since_s = clip.shots[index], time_s - clip.starts_s[index]
    zoom = shot.zoom * shot.drift ** (since_s / shot.seconds)
    before = clip.shots[index - 1] if index > 0 else shot
    if index == 0 or before.photograph != shot.photograph or since_s >= GLIDE_S:
        return shot.x, shot.y, zoom
    share, start = _ease(since_s / GLIDE_S), before.zoom * before.drift
    # Zooms multiply, so equal steps of the exponent look like an even speed.
    return (
        before.x + (shot.x - before.x) * share,
        before.y + (shot.y - before.y) * share,
        start * (zoom / start) ** share,
    )


def _place_at(places: Sequence[Place], time_s: float) -> tuple[float, float]:
    index = max(bisect.bisect_right([place.from_s for place in places], time_s + 1e-6) - 1, 0)
    here, before = places[index], places[max(index - 1, 0)]
    share = _ease((time_s - here.from_s) / GLIDE_S)
    return before.x + (here.x - before.x) * share, before.y + (here.y - before.y) * share


def _ease(share: float) -> float:
    share = _clamp(share, 0.0, 1.0)
    return share * share * (3 - 2 * share)


def _clamp(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
