"""Read and rewrite mesh files: glTF, and the file names in OBJ and MTL files.

glTF files are rotated from y up, as the standard has it, to z up.

Source: Wavefront, "Advanced Visualizer" manual, appendices B1 (OBJ) and "MTL material format";
Khronos Group, "glTF 2.0 Specification", sections 3.5.2 (transformations) and 4.4 (GLB).
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, unquote_to_bytes

from eqforge.core.errors import InputError

_LIBRARY = re.compile(r"^[ \t]*mtllib[ \t]+(.*\S)", re.MULTILINE)
_SURFACE = re.compile(r"^[ \t]*newmtl[ \t]+(.*\S)", re.MULTILINE)
_USED = re.compile(r"^[ \t]*usemtl[ \t]+(.*\S)", re.MULTILINE)
_BETWEEN = re.compile(r"(?<=\.mtl)[ \t]+", re.IGNORECASE)
_FACE = re.compile(r"^[ \t]*f[ \t]", re.MULTILINE)
_NUMBER = r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:e[-+]?\d++)?(?=[ \t])"
_OPTION = (
    r"-(?:(?:blendu|blendv|cc|clamp|imfchan|type|texres|boost|bm)[ \t]+\S+"
    rf"|mm(?:[ \t]+{_NUMBER}){{2}}|[ost](?:[ \t]+{_NUMBER}){{1,3}})[ \t]+"
)
_PICTURE = re.compile(
    rf"^([ \t]*(map_\w+|bump|norm|disp|decal|refl)[ \t]+(?:{_OPTION})*+)(\S.*)$",
    re.MULTILINE | re.IGNORECASE,
)
_COLOUR = "map_kd"
_USUAL = {
    each.lower(): each
    for each in ("map_Kd", "map_Ks", "map_Ns", "map_Ke", "map_d", "map_Bump", "map_Pr", "map_Pm")
}
GREY = "Kd 0.2 0.2 0.2\nNs 50\nillum 2\n"


def read_text(path: Path) -> str:
    """Read a file as UTF-8, or else as Latin-1, which accepts all bytes."""
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return text.replace("\r\n", "\n")


def libraries_of(mesh: Path) -> dict[str, Path | None]:
    """Map the libraries that an OBJ file names to their paths; None for a missing one.

    Blender reads a line with blanks as one name or several.
    """
    found: dict[str, Path | None] = {}
    for line in _LIBRARY.findall(read_text(mesh)):
        entry = _plain(line)
        whole = _beside(mesh, entry)
        names = [entry] if whole else _BETWEEN.split(entry)
        found |= {name: _beside(mesh, name) for name in names}
    return found


def pictures_named(library: str, only_colour: bool = False) -> list[str]:
    names = (
        _plain(name)
        for _, keyword, name in _PICTURE.findall(library)
        if not only_colour or keyword.lower() == _COLOUR
    )
    return list(dict.fromkeys(names))


def with_pictures(library: str, name_of: Callable[[str], str]) -> str:
    """Rename the images in a library's text.

    Blender reads keywords only as they are usually written, `map_Kd` and not `map_kd`.
    """

    def renamed(found: re.Match[str]) -> str:
        keyword = _USUAL.get(found[2].lower(), found[2])
        start = found[1].replace(found[2], keyword, 1)
        return start + name_of(_plain(found[3]))

    return _PICTURE.sub(renamed, library)


def showing(library: str, picture: str) -> str:
    return _SURFACE.sub(lambda found: f"{found[0]}\nmap_Kd {picture}", library)


def plain_library(mesh: str) -> str:
    names = list(dict.fromkeys(_USED.findall(mesh))) or ["surface"]
    return "\n".join(f"newmtl {name}\n{GREY}" for name in names)


def with_library(mesh: str, name: str, library: str) -> str:
    text = re.sub(r"^[ \t]*mtllib\b.*\n?", "", mesh, flags=re.MULTILINE)
    surfaces, face = _SURFACE.findall(library), _FACE.search(text)
    if surfaces and face and not _USED.search(text):
        text = f"{text[: face.start()]}usemtl {surfaces[0]}\n{text[face.start() :]}"
    return f"mtllib {name}\n{text}"


def with_names(mesh: str, library: str, name_of: Callable[[str], str]) -> tuple[str, str]:
    names = {
        each: name_of(each)
        for each in dict.fromkeys((*_SURFACE.findall(library), *_USED.findall(mesh)))
    }

    def renamed(found: re.Match[str]) -> str:
        return found[0][: -len(found[1])] + names[found[1]]

    return _USED.sub(renamed, mesh), _SURFACE.sub(renamed, library)


def _plain(name: str) -> str:
    return name.strip().strip('"').replace("\\", "/")


def _beside(mesh: Path, name: str) -> Path | None:
    path = mesh.parent / name
    return path if is_file(path) else None


def is_file(path: Path) -> bool:
    """Return True if a file exists; False for impossible names (too long, or with a NUL)."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


GLTF = (".glb", ".gltf")
_MAGIC, _JSON = b"glTF", b"JSON"
_DRACO = "KHR_draco_mesh_compression"
_STANDING = (1, 0, 0, 0, 0, 0, 1, 0, 0, -1, 0, 0, 0, 0, 0, 1)  # y up to z up, by columns


@dataclass(frozen=True, kw_only=True, slots=True)
class Gltf:
    """A glTF file: its JSON, and the chunk after it in a GLB file."""

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

    def stood_up(self) -> Gltf:
        """Rotate from y up to z up: add a node above the roots of the scene."""
        document = self.document
        nodes = list(document.get("nodes", ()))
        scene = document["scenes"][document.get("scene", 0)]
        turning = {"name": "z up", "matrix": list(_STANDING), "children": scene.get("nodes", [])}
        scenes = [{**scene, "nodes": [len(nodes)]}]
        document = {**document, "nodes": [*nodes, turning], "scenes": scenes, "scene": 0}
        return replace(self, document=document)

    def shown_scene(self) -> Gltf:
        """Remove animations and meshes outside the scene, which Blender would import, too."""
        document = json.loads(json.dumps(self.document))
        document.pop("animations", None)
        nodes = document.get("nodes", [])
        below = {child for node in nodes for child in node.get("children", ())}
        if not document.get("scenes"):
            document["scenes"] = [{"nodes": [at for at in range(len(nodes)) if at not in below]}]
        reached = list(document["scenes"][document.get("scene", 0)].get("nodes", ()))
        if not below.isdisjoint(reached):
            raise ValueError("a scene lists a node that is the child of another node")
        for at in reached:  # grows as it is read
            reached += nodes[at].get("children", ())
        for at in set(range(len(nodes))) - set(reached):
            nodes[at].pop("mesh", None)
        return replace(self, document=document)

    def renamed(self, material_name: Callable[[str], str], file_name: Callable[[str], str]) -> Gltf:
        document = json.loads(json.dumps(self.document))
        for material in document.get("materials", ()):
            material["name"] = material_name(str(material.get("name") or "surface"))
        for each in _outside(document):
            each["uri"] = quote(file_name(unquote(each["uri"])))
        return replace(self, document=document)

    def files_named(self) -> list[str]:
        return list(dict.fromkeys(unquote(each["uri"]) for each in _outside(self.document)))

    def pictures_named(self) -> list[str]:
        found = _outside({"images": self.document.get("images", ())})
        return list(dict.fromkeys(unquote(each["uri"]) for each in found))

    def pictures_inside(self) -> Iterator[bytes]:
        views = self.document.get("bufferViews", ())
        for image in self.document.get("images", ()):
            if "bufferView" in image:
                view = views[image["bufferView"]]
                start = view.get("byteOffset", 0)
                if self.rest is not None and not view.get("buffer"):
                    yield self.rest[8:][start : start + view["byteLength"]]
            elif image.get("uri", "").startswith("data:"):
                header, _, data = image["uri"].partition(",")
                is_base64 = header.endswith(";base64")
                yield base64.b64decode(data) if is_base64 else unquote_to_bytes(data)


def read_gltf(data: bytes, file: str) -> Gltf:
    """Read a glTF or GLB file of version 2 without skeleton or compression.

    Raises:
      ValueError, LookupError, TypeError, AttributeError: it is damaged.
    """
    rest = None
    try:
        if data[:4] == _MAGIC:
            version, _, size = struct.unpack("<III", data[4:16])
            if version != 2 or data[16:20] != _JSON:
                raise InputError(f"{file}: expected GLB version 2, found version {version}")
            data, rest = data[20 : 20 + size], data[20 + size :]
        document = json.loads(data)
        if not str(document["asset"]["version"]).startswith("2."):
            raise InputError(
                f"{file}: expected glTF version 2, found version {document['asset']['version']}"
            )
    except (struct.error, ValueError, LookupError, TypeError, RecursionError) as error:
        raise InputError(f"{file}: not a glTF file: {type(error).__name__}: {error}") from error
    if document.get("skins"):
        raise InputError(
            f"{file}: the mesh has a skeleton; apply the pose, and save the mesh without a skeleton"
        )
    if _DRACO in (document.get("extensionsRequired") or ()):
        raise InputError(
            f"{file}: eqforge cannot read compressed meshes ({_DRACO}); save the mesh without "
            "compression"
        )
    if not _is_forest(document.get("nodes", ())):
        raise InputError(f"{file}: a node has two parents, or is its own ancestor")
    return Gltf(document=document, rest=rest)


def _is_forest(nodes: Sequence[dict[str, Any]]) -> bool:
    children = [child for node in nodes for child in node.get("children", ())]
    if len(set(children)) < len(children):
        return False
    reached = sorted(set(range(len(nodes))) - set(children))
    for at in reached:  # grows as it is read
        reached += nodes[at].get("children", ())
    return len(reached) == len(nodes)


def _outside(document: dict[str, Any]) -> list[dict[str, Any]]:
    parts = (*document.get("buffers", ()), *document.get("images", ()))
    return [part for part in parts if not part.get("uri", "data:").startswith("data:")]
