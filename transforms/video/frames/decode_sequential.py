"""Decodes a video from its start, for files whose index or seeks cannot be relied on."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from eqforge.transforms.video.frames.index import PacketIndex
from eqforge.transforms.video.frames.video import Video, error_text

if TYPE_CHECKING:
    from av.packet import Packet
    from av.video.frame import VideoFrame


@dataclasses.dataclass(frozen=True, slots=True)
class ShownFrame:
    """A decoded frame, when it begins to show, and how many frames are shown before it."""

    pts: int
    frame_index: int
    frame: "VideoFrame"


@dataclasses.dataclass(frozen=True, slots=True)
class Gap:
    """A place between two frames where damage has swallowed some, and the error."""

    detail: str


def decode_through(video: Video, index: PacketIndex) -> Iterator[ShownFrame | Gap]:
    """Yield a video's frames in display order, with gaps where the data is damaged.

    After an error, nothing that the decoder still holds is trusted, nor what it outputs before the
    next keyframe, nor that keyframe's leading pictures: all may depend on the damaged one.

    Args:
      video: the open video, standing at its start.
      index: its packets, which number the frames after a gap.
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
        shown = ShownFrame(pts, number if is_counted else index.rank(pts), frame)
        yield shown


def _sound_frames(video: Video) -> Iterator["VideoFrame | Gap"]:
    is_broken = False
    trusted_from: int | None = None
    for packet in _packets_and_gaps(video):
        if is_broken:
            if packet is None or isinstance(packet, Gap) or not video.can_start_at(packet):
                continue
            is_broken, trusted_from = False, packet.pts
        # What the decoder holds is sound as long as it was fed with nothing else.
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
    """Return a packet's frames up to the first fault, and the fault."""
    from av.error import FFmpegError

    try:
        frames = video.stream.codec_context.decode(packet)
    except FFmpegError as error:
        return [], Gap(error_text(error))
    for number, frame in enumerate(frames):
        if frame.is_corrupt:
            return frames[:number], Gap("the decoder calls a frame corrupt")
    return frames, None
