"""The packet index of a video stream, and the plan of what to decode for some frames."""

import bisect
import dataclasses
import functools
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from eqforge.transforms.video.frames.video import Video, error_text

# Decoding fewer packets than this costs less than seeking and restarting the decoder.
MIN_SKIPPED_PACKETS = 4


class PacketEntry(NamedTuple):
    """One packet of a stream, without its data; a tuple because a film has 200,000.

    Attributes:
      pts: presentation timestamp, None if unknown. If a container stores none, the nth shown frame
        is due when the nth packet is, whichever packet holds it.
      dts: decoding timestamp, None if unknown.
      is_key: whether decoding can start here.
      is_shown: whether its frame is shown; an edit list can hide frames.
      duration: ticks its frame lasts, 0 if unknown.
    """

    pts: int | None
    dts: int | None
    is_key: bool
    is_shown: bool
    duration: int


@dataclasses.dataclass(frozen=True)
class PacketIndex:
    """The packets of a stream.

    Attributes:
      fault: why they end before the stream does, None if they do not.
      frame_ticks: length of a frame by the stream's rate.
    """

    entries: Sequence[PacketEntry]
    fault: str | None = None
    frame_ticks: int = 1

    @functools.cached_property
    def shown(self) -> list[int]:
        return sorted(e.pts for e in self.entries if e.is_shown and e.pts is not None)

    @functools.cached_property
    def position(self) -> dict[int, int]:
        return {e.pts: n for n, e in enumerate(self.entries) if e.pts is not None}

    @functools.cached_property
    def is_sound(self) -> bool:
        """Return True if decoding can start at the first packet, and each has a unique time."""
        return (
            bool(self.shown) and len(self.position) == len(self.entries) and self.entries[0].is_key
        )

    @functools.cached_property
    def reorder_depth(self) -> int:
        """The most packets that precede one in decoding order and follow it in display order."""
        ranks = {pts: rank for rank, pts in enumerate(sorted(self.position))}
        return max((number - ranks[pts] for pts, number in self.position.items()), default=0)

    @functools.cached_property
    def end(self) -> int:
        """The end tick of the last frame; an unknown length defaults to the previous frame's."""
        if not self.shown:
            return 0
        last = self.shown[-1]
        duration = self.entries[self.position[last]].duration
        return last + (duration or last - self.shown[-2:][0] or self.frame_ticks)

    @property
    def known_until(self) -> int:
        """The tick from which frames may be missing if there is a fault.

        Missing packets at the end would be decoded, and shown, after the last packet's decoding
        time.
        """
        last_dts = self.entries[-1].dts if self.entries else None
        return last_dts if last_dts is not None else min(self.shown, default=0)

    @functools.cached_property
    def _keys(self) -> list[tuple[int, int]]:
        return sorted(
            (e.pts, n) for n, e in enumerate(self.entries) if e.is_key and e.pts is not None
        )

    def start_of(self, pts: int) -> int:
        """Return the position at which decoding must start for a frame.

        It is the last keyframe not shown after the frame: frames that follow a keyframe in decoding
        order but precede it in display order may refer to frames before the keyframe.
        """
        rank = bisect.bisect_right(self._keys, (pts, self.position[pts]))
        return self._keys[max(rank - 1, 0)][1]

    def frame_at(self, tick: int) -> int | None:
        """Return the pts of the frame shown at a tick or last shown before it, if any."""
        rank = bisect.bisect_right(self.shown, tick)
        return self.shown[rank - 1] if rank else None

    def rank(self, pts: int) -> int:
        return bisect.bisect_left(self.shown, pts)


def read_index(video: Video) -> PacketIndex:
    from av.error import FFmpegError

    entries = []
    fault = None
    try:
        for packet in video.packets():
            entries.append(
                PacketEntry(
                    packet.pts if video.has_pts else packet.dts,
                    packet.dts,
                    video.can_start_at(packet),
                    not packet.is_discard,
                    packet.duration or 0,
                )
            )
    except FFmpegError as error:
        fault = error_text(error)
    index = PacketIndex(entries, fault, video.ticks_per_frame())
    return index if fault else dataclasses.replace(index, fault=_missing_end(video, index))


def _missing_end(video: Video, index: PacketIndex) -> str | None:
    """Return what a truncated file lacks; demuxers do not report truncation."""
    announced = len(video.stream.index_entries) if "mov" in video.container.format.name else 0
    if len(index.entries) < announced:
        return f"the file ends after {len(index.entries)} of {announced} packets"
    end = video.announced_end()
    inaccuracy = max(video.tolerance, 3 * index.frame_ticks)
    if end is None or not index.shown or end <= index.end + inaccuracy:
        return None
    return f"the file ends at {video.seconds(index.end):.3f} of {video.seconds(end):.3f} s"


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """A run of packets to decode.

    Attributes:
      first: position of its keyframe in decoding order.
      last: position of the last packet needed.
      wanted: presentation timestamps of the wanted frames.
    """

    first: int
    last: int
    wanted: frozenset[int]


def plan_runs(
    index: PacketIndex, wanted: Collection[int], min_skipped: int = MIN_SKIPPED_PACKETS
) -> Iterator[Run]:
    """Yield the runs of packets that give the wanted frames, in stream order.

    Args:
      wanted: presentation timestamps of frames in the index.
      min_skipped: a run continues to the next keyframe rather than skip fewer packets.
    """
    members: list[int] = []
    first = last = 0
    for pts in sorted(wanted):
        start, needed = index.start_of(pts), index.position[pts]
        if members and start != first and start - last > min_skipped:
            yield Run(first, last, frozenset(members))
            members = []
        first, last = (first, max(last, needed)) if members else (start, needed)
        members.append(pts)
    if members:
        yield Run(first, last, frozenset(members))
