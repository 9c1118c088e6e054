"""Makes clips whose frames show their own number, in a pattern that survives compression."""

import dataclasses
import itertools
import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt

BITS = 8
MILLISECOND = Fraction(1, 1000)

Pixels = npt.NDArray[np.uint8]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Clip:
    """How a clip is encoded.

    Attributes:
      suffix: the container.
      codec: an encoder of FFmpeg.
      size: (width, height) in pixels as shown.
      pix_fmt: pixel format.
      starts_ms: when each frame begins to show.
      options: options of the encoder.
      muxer: options of the container.
      rotation_deg: the quarter turn, counterclockwise, that a player has to make.
    """

    suffix: str = ".mp4"
    codec: str = "libx264"
    size: tuple[int, int] = (160, 96)
    pix_fmt: str = "yuv420p"
    starts_ms: Sequence[int] = range(0, 48 * 40, 40)
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    muxer: Mapping[str, str] = dataclasses.field(default_factory=dict)
    rotation_deg: int = 0


def draw(number: int, size: tuple[int, int]) -> Pixels:
    """Returns a frame: its number in black and white blocks, their negative, a moving texture."""
    width, height = size
    bits = [number >> bit & 1 for bit in range(BITS)]
    columns = np.arange(width) * BITS // width
    row = np.array(bits, dtype=np.uint8)[columns] * 219 + 18
    pixels = np.empty((height, width, 3), dtype=np.uint8)
    pixels[: height // 3] = row[:, None]
    pixels[height // 3 : 2 * height // 3] = 255 - row[:, None]
    x, y = np.meshgrid(np.arange(width), np.arange(2 * height // 3, height))
    pixels[2 * height // 3 :, :, 0] = (x * 2 + number * 5) % 256
    pixels[2 * height // 3 :, :, 1] = (y * 3 + number * 3) % 256
    pixels[2 * height // 3 :, :, 2] = (x + y + number * 7) % 256
    return pixels


def read_number(pixels: npt.NDArray[np.integer]) -> int | None:
    """Returns the number a frame shows, None if it shows none."""
    height, width = pixels.shape[:2]
    centres = [(2 * bit + 1) * width // (2 * BITS) for bit in range(BITS)]
    reach = max(1, width // (4 * BITS))

    def read(y: int) -> list[bool]:
        rows = pixels[y - 2 : y + 3].astype(float)
        return [bool(rows[:, x - reach : x + reach].mean() > 127) for x in centres]

    bits, negative = read(height // 6), read(height // 2)
    if any(a == b for a, b in zip(bits, negative, strict=True)):
        return None
    return sum(bit << number for number, bit in enumerate(bits))


def write_clip(path: Path, clip: Clip, sound_ms: int = 0) -> Path:
    """Writes a clip, with so much silence from time 0 on, and returns its path."""
    os.environ.setdefault("SVT_LOG", "0")  # the AV1 encoder prints a page otherwise
    turned = clip.rotation_deg % 180 != 0
    with av.open(str(path), "w", options=dict(clip.muxer)) as container:
        stream = container.add_stream(clip.codec, rate=25, options=dict(clip.options))
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height = clip.size[::-1] if turned else clip.size
        stream.pix_fmt = clip.pix_fmt
        stream.time_base = stream.codec_context.time_base = MILLISECOND
        stream.codec_context.thread_count = 1
        if clip.rotation_deg:
            stream.set_display_rotation(clip.rotation_deg)
        if sound_ms:
            write_silence(container, sound_ms)
        for number, start in enumerate(clip.starts_ms):
            upright = draw(number, clip.size)
            coded = np.ascontiguousarray(np.rot90(upright, -clip.rotation_deg // 90))
            frame = av.VideoFrame.from_ndarray(coded, format="rgb24")
            frame.pts, frame.time_base = start, MILLISECOND
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def write_silence(container: av.container.OutputContainer, sound_ms: int) -> None:
    """Writes a stream of silence that begins at time 0."""
    stream = container.add_stream("aac", rate=8000)
    for start in range(0, sound_ms * 8, 1024):
        frame = av.AudioFrame(format="fltp", layout="mono", samples=1024)
        for plane in frame.planes:
            plane.update(bytes(plane.buffer_size))
        frame.sample_rate, frame.pts = 8000, start
        frame.time_base = Fraction(1, 8000)
        container.mux(stream.encode(frame))
    container.mux(stream.encode(None))


def uneven(lengths_ms: Sequence[int], start_ms: int = 0) -> list[int]:
    """Returns when frames of the given lengths begin, the last length left out."""
    return list(itertools.accumulate(lengths_ms[:-1], initial=start_ms))


_rng = np.random.default_rng(20)
_JITTER = uneven(_rng.choice([20, 40, 60, 100], size=48).tolist())
_SWITCHING = uneven([20] * 16 + [200] * 8 + [40] * 24)
_X264 = {"g": "12", "bf": "3", "preset": "veryfast"}
_X265 = {"preset": "ultrafast"}

CLIPS: dict[str, Clip] = {
    "constant rate": Clip(options=_X264),
    "variable rate, jitter": Clip(starts_ms=_JITTER, options=_X264),
    "variable rate, switching": Clip(starts_ms=_SWITCHING, options=_X264, suffix=".mkv"),
    "starting at 1.5 s": Clip(starts_ms=range(1500, 1500 + 48 * 40, 40), options=_X264),
    "starting at 1.5 s, Matroska": Clip(
        suffix=".mkv", starts_ms=range(1500, 1500 + 48 * 40, 40), options=_X264
    ),
    "open GOP": Clip(
        options={
            **_X264,
            "b-pyramid": "normal",
            "x264-params": "open-gop=1:scenecut=0:min-keyint=12",
        }
    ),
    "in fragments": Clip(options=_X264, muxer={"movflags": "frag_keyframe+empty_moov"}),
    "HEVC with B-frames": Clip(
        codec="libx265",
        options={
            **_X265,
            "x265-params": "keyint=12:min-keyint=12:bframes=4:open-gop=1:log-level=none",
        },
    ),
    "HEVC in temporal layers": Clip(
        codec="libx265",
        options={
            **_X265,
            "x265-params": "keyint=24:bframes=4:temporal-layers=3:b-adapt=0:log-level=none",
        },
    ),
    "VP9": Clip(
        suffix=".webm",
        codec="libvpx-vp9",
        options={"g": "12", "deadline": "good", "cpu-used": "8", "lag-in-frames": "16"},
    ),
    "VP8": Clip(
        suffix=".webm",
        codec="libvpx",
        options={
            "g": "12",
            "deadline": "good",
            "cpu-used": "8",
            "auto-alt-ref": "1",
            "lag-in-frames": "16",
        },
    ),
    "AV1": Clip(suffix=".mkv", codec="libsvtav1", options={"preset": "12", "g": "12"}),
    "MPEG-TS": Clip(suffix=".ts", options=_X264),
    "MPEG-TS, HEVC": Clip(
        suffix=".ts",
        codec="libx265",
        options={**_X265, "x265-params": "keyint=12:bframes=4:open-gop=1:log-level=none"},
    ),
    "AVI, MPEG-4": Clip(suffix=".avi", codec="mpeg4", options={"g": "12", "q": "3"}),
    "AVI, H.264": Clip(suffix=".avi", options=_X264),
    "raw H.264": Clip(suffix=".h264", options=_X264),
    "AVI, MPEG-4 with B-frames": Clip(suffix=".avi", codec="mpeg4", options={"g": "12", "bf": "2"}),
    "MP4, MPEG-4": Clip(codec="mpeg4", options={"g": "12", "bf": "2"}),
    "FLV": Clip(suffix=".flv", options=_X264),
    "GIF": Clip(suffix=".gif", codec="gif", pix_fmt="rgb8"),
    "keyframes only": Clip(suffix=".mov", codec="mjpeg", pix_fmt="yuvj422p"),
    "odd size": Clip(size=(161, 95), options=_X264, pix_fmt="yuv444p"),
    "odd size, 4:2:0": Clip(
        size=(161, 95),
        suffix=".webm",
        codec="libvpx-vp9",
        options={"g": "12", "deadline": "realtime", "cpu-used": "8"},
    ),
    "10 bits": Clip(options=_X264, pix_fmt="yuv420p10le"),
    "4:4:4": Clip(options=_X264, pix_fmt="yuv444p"),
    "grey": Clip(options=_X264, pix_fmt="gray"),
    "turned by 90 degrees": Clip(options=_X264, rotation_deg=90),
    "turned by 180 degrees": Clip(options=_X264, rotation_deg=180),
    "turned by 270 degrees": Clip(options=_X264, rotation_deg=270),
    "intra refresh": Clip(
        options={"preset": "veryfast", "x264-params": "intra-refresh=1:keyint=12"}
    ),
    "one keyframe": Clip(options={"preset": "veryfast", "g": "1000", "bf": "8"}),
}
