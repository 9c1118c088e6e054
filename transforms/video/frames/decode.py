"""Decodes exact frames: for each time, the frame whose interval contains it.

A frame is shown from its presentation timestamp until the next frame's, the last one for its
duration. Time 0 is the container's start, as in players and FFmpeg.
"""

import contextlib
import math
import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from eqforge.core.files.source_file import FileState, SourceFile
from eqforge.schemas.records.frames import FrameNumber, FrameSettings
from eqforge.transforms.video.frames.answers import (
    Answer,
    UndecodedFrame,
    answer_requests,
    too_early,
    too_late,
)
from eqforge.transforms.video.frames.index import PacketIndex, read_index
from eqforge.transforms.video.frames.video import Video, VideoUnusable, open_file, open_video
from eqforge.transforms.video.frames.walks import (
    Gap,
    ShownFrame,
    Surprise,
    can_walk,
    decode_through,
    walk,
)

Moment = float | FrameNumber

Times = Sequence[tuple[int, int]]
"""Requested ticks, ascending, each with the position of its request."""


def decode_frames(
    path: str,
    moments: Sequence[Moment],
    settings: FrameSettings,
    alive: Callable[[], None] = lambda: None,
    expected: FileState | None = None,
) -> Iterator[Answer]:
    """Yield exactly one answer for each timestamp, in any order.

    If the container's index is reliable, only the packets that the frames need are decoded;
    otherwise the file is decoded from its start to the last requested time. Both give the same
    frames.

    Args:
      moments: finite times in seconds after the container's start, or frame numbers, in any order,
        repeats included.
      settings: the tolerance at the end and the limit of pixels; storage settings do not matter.
      alive: called at least once for each packet read.
      expected: the required state of the file; None for any.
    """
    if not all(isinstance(at, FrameNumber) or math.isfinite(at) for at in moments):
        raise ValueError(f"a time requested from {os.path.basename(path)} is not finite")
    unanswered = set(range(len(moments)))
    try:
        with open_file(path) as source:
            if expected is not None and source.state != expected:
                raise VideoUnusable("source_changed", "the file changed before it was decoded")
            for answer in _answers(source, moments, settings, alive):
                unanswered.remove(answer.request)
                yield answer
    except VideoUnusable as error:
        for request in sorted(unanswered):
            yield UndecodedFrame(request=request, reason=error.reason, detail=error.detail)


def _answers(
    source: SourceFile,
    moments: Sequence[Moment],
    settings: FrameSettings,
    alive: Callable[[], None],
) -> Iterator[Answer]:
    waiting: dict[int, int] = {}
    with open_video(source, settings, alive) as video:
        index = read_index(video)
        for request, moment in enumerate(moments):
            tick = _tick(video, index, moment)
            if index.fault is not None and tick >= index.known_until:
                yield _after(video, request, tick, index.end, Gap(index.fault))
            else:
                waiting[request] = tick
        if can_walk(video, index):
            with contextlib.suppress(Surprise):
                for answer in _answer_by_index(video, index, _in_order(waiting)):
                    del waiting[answer.request]
                    yield answer
    if waiting:
        with open_video(source, settings, alive) as video:  # seeking back is not reliable
            yield from _answer_in_passing(video, index, _in_order(waiting))


def _in_order(ticks: Mapping[int, int]) -> Times:
    return sorted((tick, request) for request, tick in ticks.items())


def _tick(video: Video, index: PacketIndex, moment: Moment) -> int:
    """Return the tick of a timestamp; after the index's last frame, ticks follow at the rate."""
    if not isinstance(moment, FrameNumber):
        return video.tick(moment)
    beyond = moment.index - len(index.shown)
    if beyond < 0:
        return index.shown[moment.index]
    first_unknown = index.end if index.fault is not None else index.end + video.tolerance
    return first_unknown + beyond * video.ticks_per_frame()


def _answer_by_index(video: Video, index: PacketIndex, times: Times) -> Iterator[Answer]:
    wanted: dict[int, list[int]] = defaultdict(list)
    for tick, request in times:
        pts = index.frame_at(tick)
        if pts is None:
            yield too_early(video, request, index.shown[0])
        elif tick >= index.end + video.tolerance:
            yield too_late(video, request, index.end)
        else:
            wanted[pts].append(request)
    for frame in walk(video, index, wanted):
        assert frame.pts is not None  # it was looked up in the index
        shown = ShownFrame(frame.pts, index.rank(frame.pts), frame)
        yield from answer_requests(video, shown, wanted[frame.pts])


def _answer_in_passing(video: Video, index: PacketIndex, times: Times) -> Iterator[Answer]:
    # If each packet is a frame, a frame without output is damaged, with or without an error.
    silent = Gap("the decoder gives no frame for it") if can_walk(video, index) else None
    waiting = deque(times)
    shown: ShownFrame | None = None
    gap: Gap | None = None
    for item in decode_through(video, index):
        if isinstance(item, Gap):
            gap = gap or item
            continue
        due = []
        while waiting and waiting[0][0] < item.pts:
            due.append(waiting.popleft())
        if shown is not None and gap is None:
            shown = replace(shown, after=item.frame)
        yield from _answer_between(video, index, shown, gap or silent, item.pts, due)
        if not waiting:
            return
        shown, gap = item, None
    is_last = shown is not None and index.shown[-1:] == [shown.pts]
    yield from _answer_at_end(video, index, shown, gap or (None if is_last else silent), waiting)


def _answer_between(
    video: Video,
    index: PacketIndex,
    shown: ShownFrame | None,
    gap: Gap | None,
    next_pts: int,
    times: Times,
) -> Iterator[Answer]:
    pending = []
    for tick, request in times:
        if shown is not None and (gap is None or index.frame_at(tick) == shown.pts):
            pending.append(request)
        elif gap is not None and index.frame_at(tick) is not None:
            yield UndecodedFrame(request=request, reason="undecodable", detail=gap.detail)
        else:
            yield too_early(video, request, next_pts)
    yield from answer_requests(video, shown, pending)


def _answer_at_end(
    video: Video, index: PacketIndex, shown: ShownFrame | None, gap: Gap | None, times: Times
) -> Iterator[Answer]:
    if gap is None and shown is None:
        gap = Gap("no frame comes out of the decoder")
    if shown is None:
        end = video.tick(0)
    elif index.shown and index.shown[-1] == shown.pts:
        end = index.end
    else:
        end = shown.pts + (shown.frame.duration or video.ticks_per_frame())
    pending = []
    for tick, request in times:
        # The last frame is not stretched over missing frames.
        if shown is not None and tick < end + (video.tolerance if gap is None else 0):
            pending.append(request)
        else:
            yield _after(video, request, tick, end, gap)
    yield from answer_requests(video, shown, pending)


def _after(video: Video, request: int, tick: int, end: int, gap: Gap | None) -> UndecodedFrame:
    announced = video.announced_end()
    if gap is not None and (announced is None or tick < announced):
        return UndecodedFrame(request=request, reason="undecodable", detail=gap.detail)
    return too_late(video, request, end)
