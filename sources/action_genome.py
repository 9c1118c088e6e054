"""Read Action Genome's scene graphs: objects, person boxes and the list of frames.

Boxes keep their published conventions: person boxes are (x1, y1, x2, y2), object boxes are
(x, y, width, height); both in pixels. An object that is not visible has neither box nor relations.
"""

import pickle
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import msgspec
from more_itertools import batched

from eqforge.core.errors import InputError, readable
from eqforge.core.files import untrusted
from eqforge.core.files.checked import Node, clipped, read_text_lines, shown
from eqforge.core.files.source_file import open_seekable
from eqforge.core.files.untrusted import Unreadable

RELATION_KINDS = ("attention", "spatial", "contacting")

FourNumbers = tuple[float, float, float, float]
_FRAME_KEY = re.compile(r"(?P<video>[^/]+\.[A-Za-z0-9]+)/(?P<number>\d{6})\.png")


@dataclass(frozen=True, slots=True)
class FrameObject:
    """An object of an annotated frame and its relations to the person, as published.

    Attributes:
      name: class, such as `closet/cabinet`.
      box_xywh: box in pixels; None where the object is not visible.
      attention, spatial, contacting: relations; empty where the object is not visible.
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
        number: the number in the frame's file name, from 1.
        person_boxes_xyxy: boxes of the detected persons; None if no person file was read.
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
    """Return the videos of Action Genome ordered by name.

    Args:
      objects: `object_bbox_and_relationship.pkl`.
      persons: `person_bbox.pkl`; without it the frames carry no person boxes.
      frame_list: `frame_list.txt`, to return only the listed frames.
    """
    listed = None if frame_list is None else set(_listed_frames(frame_list))
    boxes: dict[str, tuple[FourNumbers, ...]] | None = None
    if persons is not None:
        boxes = {}
        for key, node in read_members(persons):
            if (mode := node["bbox_mode"]).name() != "xyxy":
                mode.fail("xyxy")
            boxes[key] = tuple(map(_box, node["bbox"].elements()))
    videos: dict[str, list[AnnotatedFrame]] = {}
    for key, node in read_members(objects):
        if listed is None or key in listed:
            parts = _FRAME_KEY.fullmatch(key)
            if parts is None or int(parts["number"]) == 0:
                raise InputError(
                    f"{node.file}: {key}: expected a key such as 001YG.mp4/000089.png, with frames "
                    "numbered from 1"
                )
            frame = AnnotatedFrame(
                number=int(parts["number"]),
                person_boxes_xyxy=None if boxes is None else boxes.get(key, ()),
                objects=tuple(map(_object, node.elements())),
            )
            videos.setdefault(parts["video"], []).append(frame)
    return [
        SceneGraphVideo(video=video, frames=tuple(sorted(frames, key=lambda frame: frame.number)))
        for video, frames in sorted(videos.items())
    ]


def _object(node: Node) -> FrameObject:
    visible = node["visible"].flag()
    box = node.get("bbox")
    if visible and box is None:
        raise InputError(f"{node.place}: the object is visible, but has no bbox")
    return FrameObject(
        name=sys.intern(node["class"].name()),
        box_xywh=None if box is None else _box(box),
        attention=_relations(node, "attention"),
        spatial=_relations(node, "spatial"),
        contacting=_relations(node, "contacting"),
        visible=visible,
        subset=sys.intern(node["metadata"]["set"].name()),
    )


def _relations(node: Node, kind: str) -> tuple[str, ...]:
    found = node.get(f"{kind}_relationship")
    names = () if found is None else found.names()
    return tuple(sys.intern(name) for name in names)


def _box(node: Node) -> FourNumbers:
    values = [element.number() for element in node.elements()]
    if len(values) != 4:
        node.fail("four numbers")
    return (values[0], values[1], values[2], values[3])


def _listed_frames(path: str | Path) -> Iterator[str]:
    for number, line in enumerate(read_text_lines(path), start=1):
        if line.strip():
            if _FRAME_KEY.fullmatch(line.strip()) is None:
                raise InputError(
                    f"{Path(path).name}: line {number}: expected a frame such as "
                    f"001YG.mp4/000089.png, found {line.strip()[:80]!r}"
                )
            yield line.strip()


_READER: Final = f"{__name__}:members"
_AT_ONCE: Final = 1_000
_FREE_BYTES: Final = 16 << 20
"""Bytes that members may take as JSON whatever the file's length, as they may share parts."""

# NumPy arrays and scalars as every NumPy since 1.x pickles them.
_NAMES: Final = frozenset(
    [
        *(("numpy", "ndarray"), ("numpy", "dtype")),
        *(("_codecs", "encode"), ("__builtin__", "bytes"), ("builtins", "bytes")),
        *(("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct")),
        *(("numpy.core.multiarray", "scalar"), ("numpy._core.multiarray", "scalar")),
        *(("numpy.core.numeric", "_frombuffer"), ("numpy._core.numeric", "_frombuffer")),
    ]
)


def read_members(path: str | Path) -> Iterator[tuple[str, Node]]:
    """Yield key and value of each member of a pickled dict or list; arrays become lists.

    Nothing in the file is executed in this process. A class or function other than an array
    constructor raises InputError.
    """
    file = Path(path).name
    try:
        with readable(path), open_seekable(path) as stream:
            for part in untrusted.read(_READER, stream, free=_FREE_BYTES):
                for key, value in msgspec.json.decode(part):
                    yield Node(file, shown(key), key).name(), Node(file, str(key), value)
    except Unreadable as error:
        raise InputError(f"{file}: cannot be read as a pickle: {clipped(str(error))}") from error


class _Unpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Return a constructor of arrays; reject anything else."""
        if (module_name, global_name) not in _NAMES:
            raise Unreadable(
                f"it contains {clipped(module_name)}.{clipped(global_name)}. eqforge reads only "
                "plain containers and NumPy arrays, because other objects can run code."
            )
        return super().find_class(module_name, global_name)


def members(stream: IO[bytes]) -> Iterator[memoryview]:
    """Yield members of a pickled dict or list in batches, as JSON; runs in the child."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's about the names of its old modules
        whole = _Unpickler(stream).load()
    if isinstance(whole, list):
        whole = {f"[{place}]": value for place, value in enumerate(whole)}
    if not isinstance(whole, dict):
        raise Unreadable(f"expected a dict or a list, found the type {type(whole).__name__}")
    for batch in batched(whole.items(), _AT_ONCE):
        yield memoryview(msgspec.json.encode(batch, enc_hook=_plain))


def _plain(value: Any) -> Any:
    import numpy as np

    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufU":
        return value.tolist()
    raise Unreadable(f"it contains a {type(value).__name__}, which annotations never contain")
