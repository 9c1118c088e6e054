"""Reads glTF files, and turns them from y up, as the standard has it, to z up.

Source: Khronos Group, "glTF 2.0 Specification", sections 3.5.2 (transformations) and 4.4 (GLB).
"""

import base64
import json
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, unquote_to_bytes

from eqforge.core.errors import InputError

SUFFIXES = (".glb", ".gltf")
_MAGIC, _JSON = b"glTF", b"JSON"
_DRACO = "KHR_draco_mesh_compression"
_STANDING = (1, 0, 0, 0, 0, 0, 1, 0, 0, -1, 0, 0, 0, 0, 0, 1)
"""Turns y up to z up; columns first, as the format has matrices."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gltf:
    """A glTF file: its JSON, and what follows that in a GLB file."""

    document: dict[str, Any]
    rest: bytes | None

    def encoded(self) -> bytes:
        text = json.dumps(self.document, ensure_ascii=False, separators=(",", ":")).encode()
        if self.rest is None:
            return text
        text += b" " * (-len(text) % 4)
        length = 12 + 8 + len(text) + len(self.rest)
        header = _MAGIC + struct.pack("<II", 2, length) + struct.pack("<I", len(text)) + _JSON
        return header + text + self.rest


def read_gltf(data: bytes, file: str) -> Gltf:
    """Read a glTF or GLB file.

    Raises:
      InputError: it is none of version 2, has a skeleton, is compressed, or its nodes are no trees.
      ValueError, LookupError, TypeError, AttributeError: it is damaged.
    """
    rest = None
    try:
        if data[:4] == _MAGIC:
            version, _, size = struct.unpack("<III", data[4:16])
            if version != 2 or data[16:20] != _JSON:
                raise InputError(f"{file}: a GLB file of version {version}; 2 is read")
            data, rest = data[20 : 20 + size], data[20 + size :]
        document = json.loads(data)
        if not str(document["asset"]["version"]).startswith("2."):
            raise InputError(f"{file}: glTF of version {document['asset']['version']}; 2 is read")
    except (struct.error, ValueError, LookupError, TypeError) as error:
        raise InputError(f"{file}: no glTF file: {type(error).__name__}: {error}") from error
    if document.get("skins"):
        raise InputError(f"{file}: it has a skeleton: apply its pose and save it without one")
    if _DRACO in (document.get("extensionsRequired") or ()):
        raise InputError(f"{file}: it is compressed ({_DRACO}), which is not read: save it without")
    if not _is_forest(document.get("nodes", ())):
        raise InputError(f"{file}: a node of it is below two others, or below itself")
    return Gltf(document=document, rest=rest)


def _is_forest(nodes: Sequence[dict[str, Any]]) -> bool:
    """Return True if every node is below one other at most, and none below itself."""
    children = [child for node in nodes for child in node.get("children", ())]
    if len(set(children)) < len(children):
        return False
    reached = sorted(set(range(len(nodes))) - set(children))
    for at in reached:  # grows as it is read
        reached += nodes[at].get("children", ())
    return len(reached) == len(nodes)


def stood_up(gltf: Gltf) -> Gltf:
    """Return a file with y up as one with z up: its roots hang below a node that turns them."""
    document = gltf.document
    nodes = list(document.get("nodes", ()))
    scene = document["scenes"][document.get("scene", 0)]
    turning = {"name": "z up", "matrix": list(_STANDING), "children": scene.get("nodes", [])}
    scenes = [{**scene, "nodes": [len(nodes)]}]
    document = {**document, "nodes": [*nodes, turning], "scenes": scenes, "scene": 0}
    return Gltf(document=document, rest=gltf.rest)


def shown_scene(gltf: Gltf) -> Gltf:
    """Return a file as its scene stands still, without the meshes that it does not show.

    Blender would import these, too. A file without scenes shows all that it has.
    """
    document = json.loads(json.dumps(gltf.document))
    document.pop("animations", None)
    nodes = document.get("nodes", [])
    below = {child for node in nodes for child in node.get("children", ())}
    if not document.get("scenes"):
        document["scenes"] = [{"nodes": [at for at in range(len(nodes)) if at not in below]}]
    reached = list(document["scenes"][document.get("scene", 0)].get("nodes", ()))
    if not below.isdisjoint(reached):
        raise ValueError("a scene names a node that is below another one")
    for at in reached:  # grows as it is read
        reached += nodes[at].get("children", ())
    for at in set(range(len(nodes))) - set(reached):
        nodes[at].pop("mesh", None)
    return Gltf(document=document, rest=gltf.rest)


def renamed(
    gltf: Gltf, material_name: Callable[[str], str], file_name: Callable[[str], str]
) -> Gltf:
    """Return a file with other names of its materials and of the files that it names."""
    document = json.loads(json.dumps(gltf.document))
    for material in document.get("materials", ()):
        material["name"] = material_name(str(material.get("name") or "surface"))
    for each in _outside(document):
        each["uri"] = quote(file_name(unquote(each["uri"])))
    return Gltf(document=document, rest=gltf.rest)


def files_named(gltf: Gltf) -> list[str]:
    """Return the files beside it that it names, in its order; none twice."""
    return list(dict.fromkeys(unquote(each["uri"]) for each in _outside(gltf.document)))


def pictures_named(gltf: Gltf) -> list[str]:
    """Return the pictures beside it that it names; none twice."""
    found = _outside({"images": gltf.document.get("images", ())})
    return list(dict.fromkeys(unquote(each["uri"]) for each in found))


def pictures_inside(gltf: Gltf) -> Iterator[bytes]:
    """Yield the encoded pictures in its JSON and in the chunk behind that, not in other files."""
    views = gltf.document.get("bufferViews", ())
    for image in gltf.document.get("images", ()):
        if "bufferView" in image:
            view = views[image["bufferView"]]
            start = view.get("byteOffset", 0)
            if gltf.rest is not None and not view.get("buffer"):
                yield gltf.rest[8:][start : start + view["byteLength"]]
        elif image.get("uri", "").startswith("data:"):
            header, _, data = image["uri"].partition(",")
            is_base64 = header.endswith(";base64")
            yield base64.b64decode(data) if is_base64 else unquote_to_bytes(data)


def _outside(document: dict[str, Any]) -> list[dict[str, Any]]:
    parts = (*document.get("buffers", ()), *document.get("images", ()))
    return [part for part in parts if not part.get("uri", "data:").startswith("data:")]
