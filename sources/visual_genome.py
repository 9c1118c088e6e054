"""Read Visual Genome: relations between boxes, sizes and folders of images, and aliases.

  relationships.json   [{"image_id", "relationships": [{"relationship_id", "predicate", "subject",
                       "object"}]}]; subject and object are boxes with a name
  scene_graphs.json    [{"image_id", "objects": [boxes], "relationships": [{"relationship_id",
                       "predicate", "subject_id", "object_id"}]}]
  image_data.json      [{"image_id", "width", "height", "url"}]
  *_alias.txt          the names of one thing per line, separated by commas; the first is canonical

A box has x, y, w, h and `name` or `names`. The full files have hundreds of megabytes: they are held
once as bytes, and decoded image by image.

Source: Krishna et al., "Visual Genome", IJCV 2017; visualgenome.org/api, versions 1.2 and 1.4.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.typed_json import decode, read_bytes, text_lines
from eqforge.schemas.records.values import CornerBox


@dataclass(frozen=True, kw_only=True, slots=True)
class Relation:
    """A relation between two objects of an image, with the names as annotated.

    Boxes are in pixels, and may lie outside the image.
    """

    image_id: int
    relationship_id: int
    subject: str
    predicate: str
    object: str
    subject_box: CornerBox
    object_box: CornerBox


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageData:
    """An image in image_data.json: its size in pixels, and its path in the archives."""

    width_px: int
    height_px: int
    path: str


# No image is larger; a larger number is an error.
_Pixels = Annotated[float, msgspec.Meta(ge=-(2**24), le=2**24)]


class _Thing(msgspec.Struct, frozen=True):
    x: _Pixels
    y: _Pixels
    w: _Pixels
    h: _Pixels
    object_id: int | None = None
    name: str | None = None
    names: list[str] = []

    def label(self) -> str:
        return self.name if self.name is not None else next(iter(self.names), "")

    def box(self) -> CornerBox:
        x, y = int(self.x), int(self.y)
        return CornerBox(x0=x, y0=y, x1=x + int(self.w), y1=y + int(self.h))


class _Between(msgspec.Struct, frozen=True):
    relationship_id: int
    predicate: str
    subject: _Thing
    object: _Thing


class _ImageRelations(msgspec.Struct, frozen=True):
    image_id: int
    relationships: list[_Between]


class _Edge(msgspec.Struct, frozen=True):
    relationship_id: int
    predicate: str
    subject_id: int
    object_id: int


class _SceneGraph(msgspec.Struct, frozen=True):
    image_id: int
    objects: list[_Thing]
    relationships: list[_Edge]


class _Image(msgspec.Struct, frozen=True):
    image_id: int
    width: int
    height: int
    url: str = ""


def read_relationships(path: str | Path) -> Iterator[Relation]:
    for where, raw in _records(path):
        image = decode(raw, _ImageRelations, Path(path).name, where)
        for found in image.relationships:
            number, predicate = found.relationship_id, found.predicate
            yield _relation(image.image_id, number, predicate, found.subject, found.object)


def read_scene_graphs(path: str | Path) -> Iterator[Relation]:
    for where, raw in _records(path):
        graph = decode(raw, _SceneGraph, Path(path).name, where)
        things = {thing.object_id: thing for thing in graph.objects}
        for edge in graph.relationships:
            for name in (edge.subject_id, edge.object_id):
                if name not in things:
                    raise InputError(
                        f"{Path(path).name}: {where}: the relation {edge.relationship_id} refers "
                        f"to the object {name}; expected the object_id of an object in the image"
                    )
            subject, target = things[edge.subject_id], things[edge.object_id]
            yield _relation(graph.image_id, edge.relationship_id, edge.predicate, subject, target)


def _relation(image: int, number: int, predicate: str, subject: _Thing, target: _Thing) -> Relation:
    return Relation(
        image_id=image,
        relationship_id=number,
        subject=subject.label(),
        predicate=predicate,
        object=target.label(),
        subject_box=subject.box(),
        object_box=target.box(),
    )


def read_image_data(path: str | Path) -> dict[str, ImageData]:
    found: dict[str, ImageData] = {}
    for where, raw in _records(path):
        image = decode(raw, _Image, Path(path).name, where)
        if str(image.image_id) in found:
            raise InputError(
                f"{Path(path).name}: {where}: the image {image.image_id} appears twice"
            )
        # The archives unpack to the last folder of the address: .../VG_100K_2/1.jpg
        path_below = "/".join(image.url.split("/")[-2:]) or f"{image.image_id}.jpg"
        found[str(image.image_id)] = ImageData(
            width_px=image.width, height_px=image.height, path=path_below
        )
    return found


def read_aliases(path: str | Path, clean: Callable[[str], str]) -> dict[str, str]:
    """Return the canonical name of each alias; the first line with an alias wins."""
    found: dict[str, str] = {}
    for _, line in text_lines(path):
        names = [clean(name) for name in line.split(",")]
        for name in filter(None, names):
            found.setdefault(name, names[0] or name)
    return found


def _records(path: str | Path) -> Iterator[tuple[str, bytes]]:
    """Yield the elements of a JSON array undecoded, with their places."""
    raws = decode(read_bytes(path), list[msgspec.Raw], Path(path).name)
    for position, raw in enumerate(raws):
        yield f"[{position}]", bytes(raw)
