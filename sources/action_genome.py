"""Reads Action Genome's scene graphs: objects, person boxes and the list of frames.

Boxes keep their published conventions: person boxes are (x1, y1, x2, y2), object boxes are
(x, y, width, height); both in pixels. An object that is not visible has neither box nor relations.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node, read_text_lines
from eqforge.core.late import numpy as np

RELATION_KINDS = ("attention", "spatial", "contacting")

FourNumbers = tuple[float, float, float, float]
_OBJECT_BYTES = 10  # a dict of six names and values, each a reference of two bytes
_FRAME_KEY = re.compile(r"(?P<video>[^/]+\.[A-Za-z0-9]+)/(?P<number>\d{6})\.png")


@dataclass(frozen=True, slots=True)
class FrameObject:
    """An object of an annotated frame and its relations to the person.

    Attributes:
      name: class name as published, such as `closet/cabinet`.
      box_xywh: box in pixels; None where the object is not visible.
      attention, spatial, contacting: relation names as published; empty where not visible.
      visible: whether the object is visible.
      subset: the published split, `train` or `test`.
    """

    name: str
    box_xywh: FourNumbers | None
    attention: tuple[str, ...]
    spatial: tuple[str, ...]
    contacting: tuple[str, ...]
    visible: bool
    subset: str


@dataclass(frozen=True, slots=True)
class AnnotatedFrame:
    """An annotated frame.

    Attributes:
      number: the number in the frame's file name; the first frame of a video is 1.
      person_boxes_xyxy: boxes of the detected persons; None where no person file was read.
      objects: the annotated objects.
    """

    number: int
    person_boxes_xyxy: tuple[FourNumbers, ...] | None
    objects: tuple[FrameObject, ...]


@dataclass(frozen=True, slots=True)
class SceneGraphVideo:
    """A video and its annotated frames in temporal order."""

    video: str
    frames: tuple[AnnotatedFrame, ...]


def read_action_genome(
    objects: str | Path, persons: str | Path | None = None, frame_list: str | Path | None = None
) -> list[SceneGraphVideo]:
    """Returns the videos of Action Genome ordered by name.

    Args:
      objects: `object_bbox_and_relationship.pkl`.
      persons: `person_bbox.pkl`; without it the frames carry no person boxes.
      frame_list: `frame_list.txt`; with it only the listed frames are returned.

    Raises:
      InputError: a file is missing or malformed; the message names record and field.
    """
    from eqforge.core.files.pickle_stream import convert_members  # which needs NumPy

    listed = None if frame_list is None else set(_listed_frames(frame_list))
    boxes = None if persons is None else _read_boxes(persons)
    allowance = _Allowance(objects)

    def read_frame(key: str, node: Node) -> tuple[str, AnnotatedFrame] | None:
        if listed is not None and key not in listed:
            return None
        video, number = _split_key(key, node)
        return sys.intern(video), AnnotatedFrame(
            number=number,
            person_boxes_xyxy=None if boxes is None else boxes.get(key, ()),
            objects=tuple(_object(found, allowance) for found in node.elements()),
        )

    videos: dict[str, list[AnnotatedFrame]] = {}
    for video, frame in filter(None, convert_members(objects, read_frame).values()):
        videos.setdefault(video, []).append(frame)
    return [
        SceneGraphVideo(video=video, frames=tuple(sorted(frames, key=lambda frame: frame.number)))
        for video, frames in sorted(videos.items())
    ]


class _Allowance:
    """Bounds what is read: a file of references to the same parts can expand without end.

    Every part takes some bytes of its file; a file may be read twice.
    """

    def __init__(self, path: str | Path) -> None:
        self._left = 2 * Path(path).stat().st_size if Path(path).is_file() else 0

    def take(self, node: Node, num_bytes: int) -> None:
        """Counts a part and the least number of bytes that it takes in its file.

        Raises:
          InputError: more was read than the file can hold.
        """
        self._left -= num_bytes
        if self._left < 0:
            raise InputError(
                f"{node.file}: {node.where}: the file refers to the same parts over and over"
            )


def _read_boxes(persons: str | Path) -> dict[str, tuple[FourNumbers, ...]]:
    from eqforge.core.files.pickle_stream import convert_members  # which needs NumPy

    allowance = _Allowance(persons)

    def read(_: str, record: Node) -> tuple[FourNumbers, ...]:
        return _xyxy(record, allowance)

    return convert_members(persons, read)


def _split_key(key: str, node: Node) -> tuple[str, int]:
    parts = _FRAME_KEY.fullmatch(key)
    if parts is None or int(parts["number"]) == 0:
        raise InputError(
            f"{node.file}: {key}: expected a key such as 001YG.mp4/000089.png, counted from 1"
        )
    return parts["video"], int(parts["number"])


def _object(node: Node, allowance: _Allowance) -> FrameObject:
    allowance.take(node, _OBJECT_BYTES)
    visible = node["visible"].flag()
    box = node.get("bbox")
    if visible and box is None:
        node.fail("a bbox, because the object is visible")
    return FrameObject(
        name=sys.intern(node["class"].name()),
        box_xywh=None if box is None else _box(box),
        attention=_relations(node, "attention", allowance),
        spatial=_relations(node, "spatial", allowance),
        contacting=_relations(node, "contacting", allowance),
        visible=visible,
        subset=sys.intern(node["metadata"]["set"].name()),
    )


def _relations(node: Node, kind: str, allowance: _Allowance) -> tuple[str, ...]:
    found = node.get(f"{kind}_relationship")
    names = () if found is None else found.names()
    allowance.take(node, len(names))
    return tuple(sys.intern(name) for name in names)


def _box(node: Node) -> FourNumbers:
    values = [element.number() for element in node.elements()]
    if len(values) != 4:
        node.fail("four numbers")
    return (values[0], values[1], values[2], values[3])


def _xyxy(record: Node, allowance: _Allowance) -> tuple[FourNumbers, ...]:
    mode = record["bbox_mode"]
    if mode.name() != "xyxy":
        mode.fail("xyxy")
    boxes: Any = record["bbox"].value
    if not isinstance(boxes, np.ndarray) or boxes.dtype.kind != "f" or boxes.size % 4:
        record["bbox"].fail("a float array of shape (n, 4)")
    allowance.take(record, boxes.nbytes)
    return tuple((float(a), float(b), float(c), float(d)) for a, b, c, d in boxes.reshape(-1, 4))


def _listed_frames(path: str | Path) -> Iterator[str]:
    for number, line in enumerate(read_text_lines(path), start=1):
        if line.strip():
            if _FRAME_KEY.fullmatch(line.strip()) is None:
                raise InputError(
                    f"{Path(path).name}: line {number}: expected a frame such as "
                    f"001YG.mp4/000089.png, found {line.strip()[:80]!r}"
                )
            yield line.strip()
