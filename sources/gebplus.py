"""Reads the boundary captions of GEB+ (`train.json`, `val.json`, `test.json`)."""

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node, load_json, read_all

_BOUNDARY_ID = re.compile(r"(?P<video>.+)_(?P<number>\d+)(?P<annotator>[A-Z])")


@dataclass(frozen=True, kw_only=True, slots=True)
class Boundary:
    """A moment at which the status of a subject changes, as one annotator describes it.

    Attributes:
      boundary_id: the published id, `<video>_<number><annotator>`.
      number: position of the moment in its video, from 0.
      annotator: letter of the annotator.
      timestamp_s, prev_timestamp_s, next_timestamp_s: the moment, and the boundaries (or ends of
        the video) around it, in seconds.
      label: kind of change, such as `Change of Action`.
      subject, status_before, status_after: the caption's three parts.
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
    """Returns the videos of a GEB+ annotation file in the file's order.

    Raises:
      InputError: the file is not a GEB+ annotation file; the message names record and field, for
        the first ten videos.
    """
    return read_all(load_json(path).items(), _video)


def _video(video_id: str, record: Node) -> BoundaryVideo:
    boundaries = [_boundary(video_id, boundary) for boundary in record.elements()]
    boundaries.sort(key=_place)
    for first, second in pairwise(boundaries):
        if _place(first) == _place(second):
            raise InputError(
                f"{record.file}: {record.where}: the boundary {second.boundary_id} appears twice"
            )
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
        subject=record["subject"].text(),
        status_before=record["status_before"].text(),
        status_after=record["status_after"].text(),
    )
