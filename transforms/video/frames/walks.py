"""Decodes a video from its start, or only the packets that some frames need.

In a well-indexed video, the packets between each wanted frame and its keyframe are decoded, except
unreferenced frames; the rest of the file is skipped. Every packet read and frame decoded must be
the one that the index names. Files with unreliable indexes or seeks are decoded from their start.
"""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from eqforge.core.errors import EqforgeError
from eqforge.transforms.video.frames.index import PacketEntry, PacketIndex, Run, plan_runs
from eqforge.transforms.video.frames.video import Video, error_text

if TYPE_CHECKING:
    from av.packet import Packet
    from av.video.frame import VideoFrame

# Containers whose packets carry true times and keyframes, and codecs in which each packet is one
# frame. MPEG-TS seeks to the wrong packet, AVI stores no times, VP8 stores frames never shown.
WALKABLE_FORMATS = frozenset({"mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm"})
WALKABLE_CODECS = frozenset(
    {"h264", "hevc", "vp9", "libdav1d", "av1", "mpeg4", "mjpeg", "prores", "dnxhd", "ffv1"}
)


class Surprise(EqforgeError):
    """The container did not give the packet that the index names."""


class _Damage(EqforgeError):
    """A packet, at a position in decoding order, does not decode correctly."""

    def __init__(self, position: int) -> None:
        super().__init__(f"packet {position}")
        self.position = position


def can_walk(video: Video, index: PacketIndex) -> bool:
    codec = video.stream.codec_context
    is_progressive = codec.field_order <= 1  # 0 is unknown; in others a packet may be half a frame
    return (
        video.container.format.name in WALKABLE_FORMATS
        and codec.name in WALKABLE_CODECS
        and is_progressive
        and index.is_sound
    )


def walk(video: Video, index: PacketIndex, wanted: Collection[int]) -> Iterator["VideoFrame"]:
    """Yield the wanted frames, except damaged ones.

    Raises:
      Surprise: the container does not match its index; frames yielded earlier are right.
    """
    from av.error import FFmpegError

    codec = video.stream.codec_context
    codec.reorder_depth = max(codec.reorder_depth, index.reorder_depth)
    runs = deque(plan_runs(index, wanted))
    while runs:
        run = runs.popleft()
        missing = set(run.wanted)
        try:
            for frame in _decode_run(video, index, run):
                if frame.pts in missing:
                    missing.remove(frame.pts)
                    yield frame
        except _Damage as damage:
            runs.extendleft(_runs_around(index, run, missing, damage.position))
        except FFmpegError as error:
            raise Surprise(error_text(error)) from error


def _runs_around(
    index: PacketIndex, run: Run, missing: Collection[int], damaged: int
) -> Iterator[Run]:
    """Yield the runs worth another try after damage at a position.

    If a wanted frame is damaged, the others may not need it. Otherwise its group is lost, with the
    decoder's pending frames.
    """
    culprit = index.entries[damaged].pts
    assert culprit is not None  # the index is sound
    group = index.start_of(culprit)
    if culprit in missing:
        rest = [pts for pts in missing if pts != culprit]
    else:
        rest = [pts for pts in missing if index.start_of(pts) != group]
    for smaller in plan_runs(index, rest, min_skipped=-len(index.entries)):
        if smaller != run:
            yield smaller


def _decode_run(video: Video, index: PacketIndex, run: Run) -> Iterator["VideoFrame"]:
    from av.error import FFmpegError

    codec = video.stream.codec_context
    unwanted = _unwanted(video)
    for position, packet in _packets_of(video, index, run):
        is_wanted = packet is not None and packet.pts in run.wanted
        codec.skip_frame = "DEFAULT" if is_wanted else unwanted
        try:
            frames = video.decode(packet)
        except FFmpegError as error:
            raise _Damage(position) from error
        for frame in frames:
            known = index.position.get(frame.pts) if frame.pts is not None else None
            if frame.is_corrupt or known is None:
                raise _Damage(position if known is None else known)
            if frame.interlaced_frame and not video.settings.stored_pixels:
                raise Surprise("a frame cannot be deinterlaced without its neighbours")
            yield frame


def _packets_of(
    video: Video, index: PacketIndex, run: Run
) -> Iterator[tuple[int, "Packet | None"]]:
    """Yield a run's packets, then None, which flushes the decoder."""
    key = index.entries[run.first]
    video.seek(_pts(key))
    position = -1
    for packet in video.packets():
        if position >= 0:
            position += 1
        else:  # the first packet after the seek
            landed = index.position.get(_pts(packet))
            if landed is None or landed > run.first:
                raise Surprise(f"a seek to {key.pts} landed at {packet.pts}")
            position = landed
        if packet.pts != index.entries[position].pts:
            raise Surprise(f"found packet {packet.pts}, not {index.entries[position].pts}")
        # A keyframe's leading pictures refer to frames that were not decoded.
        if position >= run.first and _pts(packet) >= _pts(key):
            if packet.is_corrupt:
                raise _Damage(position)
            yield position, packet
        if position == run.last:
            break
    yield run.last, None


def _pts(packet: "Packet | PacketEntry") -> int:
    if packet.pts is None:
        raise Surprise("a packet without a time")
    return packet.pts


def _unwanted(video: Video) -> Literal["DEFAULT", "NONREF"]:
    """Return which frames the decoder may skip in a packet that is not wanted.

    H.264 marks unreferenced frames. HEVC marks frames unreferenced in their temporal layer, which
    is the same if there is one layer; byte 21 of its configuration record (ISO/IEC 14496-15,
    8.3.3.1) holds the number. Other decoders have no such mark, or drop more than the packet.
    """
    codec = video.stream.codec_context
    if codec.name == "h264":
        return "NONREF"
    record = codec.extradata or b""
    if codec.name == "hevc" and len(record) > 22 and record[0] == 1:
        return "NONREF" if record[21] >> 3 & 7 == 1 else "DEFAULT"
    return "DEFAULT"


@dataclass(frozen=True, slots=True)
class ShownFrame:
    """A decoded frame, its start of display, and the number of frames shown before it.

    Attributes:
      before, after: its neighbours, if known; only in files read from the start.
    """

    pts: int
    frame_index: int
    frame: "VideoFrame"
    before: "VideoFrame | None" = None
    after: "VideoFrame | None" = None


@dataclass(frozen=True, slots=True)
class Gap:
    """A place where damage swallowed frames, and the error."""

    detail: str


def decode_through(video: Video, index: PacketIndex) -> Iterator[ShownFrame | Gap]:
    """Yield the frames of a video, standing at its start, in display order, with gaps for damage.

    After an error, the decoder's pending frames, its output before the next keyframe, and that
    keyframe's leading pictures are dropped: all may depend on the damaged one.

    Args:
      index: the video's packets, which number the frames after a gap.
    """
    shown: ShownFrame | None = None
    is_counted = True
    for frame in _sound_frames(video):
        if isinstance(frame, Gap):
            yield frame
            if not video.has_pts:
                return  # the frames that follow cannot be identified
            is_counted = False
            continue
        number = shown.frame_index + 1 if shown else 0
        if frame.pts is not None and video.has_pts:
            pts = frame.pts
        elif number < len(index.shown):
            pts = index.shown[number]  # without a time of its own, that of the packet
        else:
            pts = shown.pts + video.ticks_per_frame() if shown else video.tick(0)
        if shown is not None and pts <= shown.pts:
            continue  # a frame that goes back in time is never the one shown
        before = shown.frame if shown else None
        shown = ShownFrame(pts, number if is_counted else index.rank(pts), frame, before)
        yield shown


def _sound_frames(video: Video) -> Iterator["VideoFrame | Gap"]:
    is_broken = False
    trusted_from: int | None = None
    for packet in _packets_and_gaps(video):
        if is_broken:
            if packet is None or isinstance(packet, Gap) or not video.can_start_at(packet):
                continue
            is_broken, trusted_from = False, packet.pts
        # The decoder's pending frames are sound as long as it received nothing else.
        gap = packet if isinstance(packet, Gap) else None
        frames, fault = _decode(video, None if isinstance(packet, Gap) else packet)
        for frame in frames:
            if trusted_from is None or frame.pts is None or frame.pts >= trusted_from:
                yield frame
        gap = gap or fault
        if gap is not None:
            is_broken = True
            video.stream.codec_context.flush_buffers()
            yield gap


def _packets_and_gaps(video: Video) -> Iterator["Packet | Gap | None"]:
    """Yield the packets, a gap for one that is cut short, and at the end None or a gap."""
    from av.error import FFmpegError

    try:
        for packet in video.packets():
            yield Gap("a packet is incomplete") if packet.is_corrupt else packet
    except FFmpegError as error:
        yield Gap(error_text(error))
    else:
        yield None


def _decode(video: Video, packet: "Packet | None") -> tuple[Sequence["VideoFrame"], Gap | None]:
    from av.error import FFmpegError

    try:
        frames = video.decode(packet)
    except FFmpegError as error:
        return [], Gap(error_text(error))
    for number, frame in enumerate(frames):
        if frame.is_corrupt:
            return frames[:number], Gap("the decoder calls a frame corrupt")
    return frames, None
