"""Videos with captioned segments, and the readers of YouCook2 and GEB+."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node, load_json, read_all


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptionedSegment:
    """A segment of a video and its caption.

    Attributes:
      segment_id: unique within its video.
      start_s, end_s: in seconds from the video's start; equal for a single timestamp.
      annotation: the source's other fields, as text by field name.
      frame_index: number of frames before it, in place of times, which are then 0.
    """

    segment_id: str
    start_s: float
    end_s: float
    caption: str
    annotation: dict[str, str] = field(default_factory=dict)
    frame_index: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RefusedRecord:
    """A record without a valid segment.

    Attributes:
        record_id: unique within its video, derived from the content.
        reason: `bad_segment` or `duplicate_moment`.
    """

    record_id: str
    reason: str
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptionedVideo:
    """A video with its captioned segments.

    Attributes:
      video_id: the id in its samples; empty for rejected records that name no video.
      video: name of the file below the videos folder, to look up.
      licence: None if not stated.
      annotation: the source's fields about the whole video, as text by field name.
      segments: in any order; ids are unique within the video.
      refused: its records without a valid segment.
    """

    video_id: str
    video: str
    split: str
    licence: str | None = None
    annotation: dict[str, str] = field(default_factory=dict)
    segments: tuple[CaptionedSegment, ...] = ()
    refused: tuple[RefusedRecord, ...] = ()


Video = TypeVar("Video", bound="CaptionedVideo | BoundaryVideo")


def read_files(
    paths: Sequence[Path], read: Callable[[Path], Iterable[Video]]
) -> list[tuple[Path, Video]]:
    if not paths:
        raise InputError("--annotations: pass one or more files")
    files: set[Path] = set()
    for path in paths:
        if path.resolve() in files:
            raise InputError(f"--annotations: the file {path} was passed twice")
        files.add(path.resolve())
    found: dict[str, tuple[Path, Video]] = {}
    for path in sorted(paths):
        for video in read(path):
            other, _ = found.setdefault(video.video_id, (path, video))
            if other is not path:
                raise InputError(
                    f"--annotations: the video {video.video_id} is in both {other} and {path}; "
                    "remove it from one of them"
                )
    return [found[video_id] for video_id in sorted(found)]


SUBSETS = ("training", "validation", "testing")


def read_youcook2(path: str | Path) -> list[CaptionedVideo]:
    """Return the videos of a YouCook2 annotation file in the file's order.

    Segment ids are the published numbers with three digits.
    """
    database = load_json(path)["database"]
    return read_all(database.items(), _video)


def _video(video_id: str, record: Node) -> CaptionedVideo:
    subset = record["subset"]
    if subset.name() not in SUBSETS:
        subset.fail(f"one of {', '.join(SUBSETS)}")
    segments = tuple(_segment(segment) for segment in record["annotations"].elements())
    for segment_id, count in Counter(segment.segment_id for segment in segments).items():
        if count > 1:
            place = f"{record.place}.annotations"
            raise InputError(f"{place}: the segment id {segment_id!r} appears twice")
    return CaptionedVideo(
        video_id=video_id,
        video=video_id,
        split=subset.name(),
        annotation={
            "duration_s": str(record["duration"].number()),
            "recipe_type": record["recipe_type"].name(),
        },
        segments=segments,
    )


def _segment(segment: Node) -> CaptionedSegment:
    bounds = [bound.number() for bound in segment["segment"].elements()]
    if len(bounds) != 2:
        segment["segment"].fail("[start, end] in seconds")
    return CaptionedSegment(
        segment_id=f"{segment['id'].integer():03d}",
        start_s=bounds[0],
        end_s=bounds[1],
        caption=segment["sentence"].line(),
    )


_BOUNDARY_ID = re.compile(r"(?P<video>.+)_(?P<number>\d+)(?P<annotator>[A-Z])")


@dataclass(frozen=True, kw_only=True, slots=True)
class Boundary:
    """A timestamp at which the status of a subject changes, as one annotator describes it.

    Attributes:
      boundary_id: the published id, `<video>_<number><annotator>`.
      number: position of the boundary in its video, from 0.
      timestamp_s, prev_timestamp_s, next_timestamp_s: the boundary, and its neighbours (or ends of
        the video), in seconds.
      label: kind of change, such as `Change of Action`.
    """

    boundary_id: str
    number: int
    annotator: str
    timestamp_s: float
    prev_timestamp_s: float
    next_timestamp_s: float
    label: str
    subject: str
    status_before: str
    status_after: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BoundaryVideo:
    """A video and its boundaries, ordered by (number, annotator)."""

    video_id: str
    boundaries: tuple[Boundary, ...]


def read_gebplus(path: str | Path) -> list[BoundaryVideo]:
    return read_all(load_json(path).items(), _boundary_video)


def _boundary_video(video_id: str, record: Node) -> BoundaryVideo:
    boundaries = [_boundary(video_id, boundary) for boundary in record.elements()]
    boundaries.sort(key=_place)
    for first, second in pairwise(boundaries):
        if _place(first) == _place(second):
            raise InputError(f"{record.place}: the boundary {second.boundary_id} appears twice")
    return BoundaryVideo(video_id=video_id, boundaries=tuple(boundaries))


def _place(boundary: Boundary) -> tuple[int, str]:
    return boundary.number, boundary.annotator


def _boundary(video_id: str, record: Node) -> Boundary:
    boundary_id = record["boundary_id"]
    parts = _BOUNDARY_ID.fullmatch(boundary_id.name())
    if parts is None or parts["video"] != video_id:
        boundary_id.fail(f"{video_id}_<number><annotator>")
    return Boundary(
        boundary_id=boundary_id.name(),
        number=int(parts["number"]),
        annotator=parts["annotator"],
        timestamp_s=record["timestamp"].number(),
        prev_timestamp_s=record["prev_timestamp"].number(),
        next_timestamp_s=record["next_timestamp"].number(),
        label=record["label"].text(),
        subject=record["subject"].line(),
        status_before=record["status_before"].line(),
        status_after=record["status_after"].line(),
    )
