"""Opens a video for exact reading: one file, one stream, one clock."""

import contextlib
import dataclasses
import io
import math
import os
import re
import stat
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, BinaryIO

from eqforge.core.errors import EqforgeError, importing
from eqforge.core.files.source_file import SourceFile, open_source
from eqforge.schemas.records.frames import CLOCK_GRACE_S, FrameSettings

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.reformatter import VideoReformatter
    from av.video.stream import VideoStream

# A playlist or a session description makes a demuxer open other files, or the network. Only
# formats that contain their own data are opened.
SELF_CONTAINED_FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,flv,mpegts,mpeg,mpegvideo,gif,apng,asf,ogg,ivf,"
    "h264,hevc,m4v,obu,mxf,nut,rm,dv,wtv,mp3,aac,wav,flac"
)

MAX_PIXEL_ASPECT = 10
"""A more extreme aspect is a fault of the file, and its pixels count as square."""

MAX_WEBP_PIXELS = 2**27
"""The pixels of all frames of an animated WebP: Pillow holds them in half a gigabyte."""

_TO_APNG = (
    '; to convert it, run: python -c "from PIL import Image; '
    "Image.open('clip.webp', formats=['WEBP']).save('clip.apng', save_all=True)\""
)

_DURATION = re.compile(r"(\d+):(\d+):(\d+(?:\.\d+)?)")


class VideoUnusable(EqforgeError):
    """A video, or a frame of it, cannot be used; `reason` is a key of FRAME_REASONS."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Video:
    """An open video.

    Attributes:
      container: the demuxer; it discards other streams unread if it can.
      stream: the stream that players show.
      time_base: seconds per tick of the stream's timestamps.
      zero_s: time 0 of the requests, on the stream's own clock.
      settings: the tolerance at the end and the limit of pixels.
      alive: called for each packet read, so that a watcher can tell slow from stuck.
      chosen: number of the stream, if the file has several with moving images.
      container_aspect: the container's pixel width to height, if the codec's differs.
      aspects: the codec's, for decoded packets whose pixels are not square.
    """

    container: "InputContainer"
    stream: "VideoStream"
    time_base: Fraction
    zero_s: Fraction
    reformatter: "VideoReformatter"
    settings: FrameSettings
    alive: Callable[[], None]
    chosen: str = ""
    container_aspect: Fraction | None = None
    aspects: dict[int | None, Fraction] = dataclasses.field(default_factory=dict)

    def decode(self, packet: "Packet | None") -> "list[VideoFrame]":
        """Decode a packet, or flush the decoder, and note the shape of its pixels."""
        codec = self.stream.codec_context
        frames = codec.decode(packet)
        aspect = codec.sample_aspect_ratio or Fraction(1)
        if packet is not None and (aspect != 1 or packet.pts is None):
            self.aspects[packet.pts] = aspect
        return frames

    def pixel_aspect(self, frame: "VideoFrame") -> Fraction:
        """Return a frame's pixel width to height, which may change within a stream."""
        timeless = self.aspects.get(None, Fraction(1))
        aspect = self.container_aspect or self.aspects.get(frame.pts, timeless)
        return aspect if 1 / MAX_PIXEL_ASPECT <= aspect <= MAX_PIXEL_ASPECT else Fraction(1)

    @property
    def has_pts(self) -> bool:
        """Return True if the container stores display times, not only decoding times."""
        return self.container.format.name != "avi"

    def tick(self, timestamp_s: float) -> int:
        return math.floor((Fraction(timestamp_s) + self.zero_s + CLOCK_GRACE_S) / self.time_base)

    def seconds(self, pts: int) -> float:
        return float(pts * self.time_base - self.zero_s)

    def seek(self, pts: int) -> None:
        self.container.seek(pts, stream=self.stream)

    def packets(self) -> Iterator["Packet"]:
        for packet in self.container.demux(self.stream):
            self.alive()
            if packet.size:
                yield packet

    def can_start_at(self, packet: "Packet") -> bool:
        """Return True if decoding can start at a packet without any earlier one."""
        codec = self.stream.codec_context
        if not packet.is_keyframe or codec.name != "h264":
            return packet.is_keyframe
        return is_idr(bytes(packet), codec.extradata or b"")

    @property
    def tolerance(self) -> int:
        """How many ticks after its end the last frame still answers."""
        return math.floor(Fraction(self.settings.end_tolerance_s) / self.time_base)

    def announced_end(self) -> int | None:
        """Return the end tick that the file states for the stream, if any.

        Matroska states it in a tag of the stream; the file's own value may describe the sound.
        """
        if self.stream.duration:
            return (self.stream.start_time or 0) + self.stream.duration
        if tag := _DURATION.fullmatch(self.stream.metadata.get("DURATION", "")):
            hours, minutes, seconds = map(Fraction, tag.groups())
            return math.floor((hours * 3600 + minutes * 60 + seconds) / self.time_base)
        if self.container.duration and len(self.container.streams) == 1:
            return math.floor(Fraction(self.container.duration, 1_000_000) / self.time_base)
        return None

    def ticks_per_frame(self) -> int:
        rate = self.stream.average_rate or self.stream.guessed_rate
        return max(1, math.floor(1 / rate / self.time_base)) if rate else 1


@contextlib.contextmanager
def open_file(path: str) -> Iterator[SourceFile]:
    _check_file(path)
    with contextlib.ExitStack() as opened:
        try:
            source = opened.enter_context(open_source(path))
        except OSError as error:
            raise VideoUnusable("video_unreadable", error_text(error)) from error
        yield source


@contextlib.contextmanager
def open_video(
    source: SourceFile, settings: FrameSettings, alive: Callable[[], None]
) -> Iterator[Video]:
    """Open a file's best video stream, from its start, for decoding in one thread.

    The file is read from its descriptor, so replacing it meanwhile has no effect.

    Raises:
      VideoUnusable: nothing in the file can be decoded.
    """
    with importing("av", "video"):
        import av

    stored = _without_webp(source.stream, settings)
    if stored is not source.stream:
        alive()
    # FFmpeg counts the padding of up to 2**16 rows to a multiple of 64 pixels.
    limits = {"max_pixels": str(settings.max_pixels + 2**22)}
    try:
        container = av.open(
            stored,
            mode="r",
            options=limits,
            container_options={
                "format_whitelist": SELF_CONTAINED_FORMATS,
                "protocol_whitelist": "file",
            },
            metadata_errors="replace",
        )
    except (av.error.FFmpegError, OSError, ValueError) as error:
        detail = _of_image(source) or error_text(error)
        raise VideoUnusable("video_unreadable", detail) from error
    with container:
        stream = _best_stream(container, settings)
        # A damaged picture must raise an error, not be concealed from its neighbours.
        stream.codec_context.options = limits | {"err_detect": "explode"}
        stream.codec_context.thread_count = 1
        for other in container.streams:
            if other.index != stream.index:
                other.discard = av.stream.Discard.all
        assert stream.time_base is not None
        by_container, by_codec = (
            each.sample_aspect_ratio or Fraction(1) for each in (stream, stream.codec_context)
        )
        yield Video(
            container=container,
            stream=stream,
            time_base=stream.time_base,
            zero_s=_start_s(container),
            reformatter=av.video.reformatter.VideoReformatter(),
            settings=settings,
            alive=alive,
            chosen=str(stream.index) if len(_moving(container)) > 1 else "",
            container_aspect=None if by_container == by_codec else by_container,
        )


def _without_webp(stream: BinaryIO, settings: FrameSettings) -> BinaryIO:
    """Return a file at its start. FFmpeg reads no animated WebP: return that as an APNG.

    APNG keeps its colours and times.
    """
    from PIL import Image

    stream.seek(0)
    is_webp = re.match(b"RIFF....WEBP", stream.read(12), re.DOTALL)
    stream.seek(0)
    if not is_webp:
        return stream
    converted = io.BytesIO()
    try:
        with Image.open(stream, formats=["WEBP"]) as image:
            check_size(*image.size, settings)
            frames = getattr(image, "n_frames", 1)
            if frames == 1:
                raise VideoUnusable("video_unreadable", "a WebP image, not a video")
            if frames * image.width * image.height > MAX_WEBP_PIXELS:
                size = f"{frames} frames of {image.width} x {image.height}"
                detail = f"{size}, at most {MAX_WEBP_PIXELS} pixels in all{_TO_APNG}"
                raise VideoUnusable("too_many_pixels", detail)
            image.save(converted, "PNG", save_all=True, compress_level=1)
        converted.seek(0)
        with Image.open(converted, formats=["PNG"]) as image:
            if getattr(image, "n_frames", 1) != frames:  # Pillow joins equal neighbours
                detail = f"a WebP with equal frames in a row{_TO_APNG}"
                raise VideoUnusable("video_unreadable", detail)
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise VideoUnusable("video_unreadable", error_text(error)) from error
    converted.seek(0)
    return converted


def _of_image(source: SourceFile) -> str:
    """Describe a file that begins as an image does; else return ""."""
    source.stream.seek(0)
    start = source.stream.read(12)
    kinds = {b"\x89PNG": "PNG", b"\xff\xd8\xff": "JPEG"}
    kind = next((kind for sign, kind in kinds.items() if start.startswith(sign)), "")
    return kind and f"a {kind} image, not a video"


def _check_file(path: str) -> None:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise VideoUnusable("video_missing", f"no file {os.path.basename(path)}") from error
    except (OSError, ValueError) as error:
        raise VideoUnusable("video_unreadable", error_text(error)) from error
    if not stat.S_ISREG(found.st_mode):
        raise VideoUnusable("video_unreadable", "not a regular file")
    if found.st_size == 0:
        raise VideoUnusable("video_empty", "0 bytes")


def _best_stream(container: "InputContainer", settings: FrameSettings) -> "VideoStream":
    """Return the stream that players show, which FFmpeg ranks first; cover art does not count."""
    moving = _moving(container)
    if not moving:
        kinds = ", ".join(sorted({stream.type for stream in container.streams})) or "nothing"
        raise VideoUnusable("no_video_stream", f"the file holds {kinds}")
    best = container.streams.best("video")
    stream = next((stream for stream in moving if best and stream.index == best.index), moving[0])
    codec = stream.codec_context
    if codec is None or stream.time_base is None:
        raise VideoUnusable("video_unreadable", f"no decoder for stream {stream.index}")
    check_size(codec.width, codec.height, settings)
    return stream


def _moving(container: "InputContainer") -> "list[VideoStream]":
    from av.stream import Disposition

    return [
        stream
        for stream in container.streams.video
        if not stream.disposition & Disposition.attached_pic
    ]


def check_size(width: int, height: int, settings: FrameSettings) -> None:
    if width * height > settings.max_pixels:
        detail = f"{width} x {height}, at most {settings.max_pixels}"
        raise VideoUnusable("too_many_pixels", detail)


def _start_s(container: "InputContainer") -> Fraction:
    """Return the container's start exactly: FFmpeg rounds it to microseconds."""
    rounded = Fraction(container.start_time or 0, 1_000_000)
    for stream in container.streams:
        if stream.start_time is not None and stream.time_base is not None:
            exact = stream.start_time * stream.time_base
            if abs(exact - rounded) <= Fraction(1, 1_000_000):
                return exact
    return rounded


def error_text(error: Exception) -> str:
    """Return an error as one line without the path of the file, which differs by machine."""
    reason = getattr(error, "strerror", None) or str(error) or "no message"
    return f"{type(error).__name__}: {reason}"


SLICE, IDR_SLICE = 1, 5


def is_idr(packet: bytes, record: bytes) -> bool:
    """Return True if a packet is an IDR picture: no later picture refers to an earlier one.

    Containers also mark other pictures as keyframes: those of an open GOP, whose successors carry
    commands about older pictures, and the start of a gradual refresh, which is incomplete.

    Args:
      packet: one picture's NAL units, each after its length or a start code.
      record: the stream's AVCDecoderConfigurationRecord, which begins with 1 and states the size of
        the lengths; anything else means start codes.

    Source: ITU-T H.264, table 7-1 and annex B; ISO/IEC 14496-15, 5.3.3.1.
    """
    is_record = len(record) > 4 and record[0] == 1
    units = _by_length(packet, (record[4] & 3) + 1) if is_record else _by_start_code(packet)
    for kind in units:
        if SLICE <= kind <= IDR_SLICE:
            return kind == IDR_SLICE
    return False


def _by_length(packet: bytes, size: int) -> Iterator[int]:
    """Yield the types of units that follow their length."""
    at = 0
    while at + size < len(packet):
        yield packet[at + size] & 31
        at += size + int.from_bytes(packet[at : at + size], "big")


def _by_start_code(packet: bytes) -> Iterator[int]:
    """Yield the types of units that follow the bytes 0, 0, 1."""
    at = packet.find(b"\0\0\1")
    while 0 <= at < len(packet) - 3:
        yield packet[at + 3] & 31
        at = packet.find(b"\0\0\1", at + 3)
