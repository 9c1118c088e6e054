"""Makes assets of folders of scanned objects, with words and an archive for each.

Known are the layouts of Google Scanned Objects for Gazebo (`NAME/meshes/model.obj`,
`NAME/materials/textures/texture.png`, `NAME/metadata.pbtxt`) and for MuJoCo (`NAME/model.obj`,
`NAME/texture.png`), and any folder with one OBJ or GLB file.

Source: Downs et al. 2022, "Google Scanned Objects: A High-Quality Dataset of 3D Scanned Household
  Items", section III.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from xml.etree import ElementTree

from eqforge.generators.scenes.archives import packed
from eqforge.generators.scenes.copies import PICTURES, pictures_named
from eqforge.generators.scenes.manifest import AssetWords
from eqforge.generators.scenes.nouns import words_for
from eqforge.generators.scenes.tints import MAIN_SHARE, Shown, sampled, shown_colours
from eqforge.schemas.errors import InputError
from eqforge.schemas.identity import sha256_hex
from eqforge.schemas.late import numpy as np

SIMULATION, COLLISION = "object.urdf", "collision_geometry.obj"
MESHES = (".obj", ".glb")
CLASH_SHARE = 0.08
"""Share of another colour of a surface, from which on it is not recoloured to that."""

_CATEGORY = re.compile(r'categor\w*\s*\{[^}]*?first:\s*"([^"]+)"', re.DOTALL)
_LIBRARY = re.compile(r"^mtllib\s+(.+?)\s*$", re.MULTILINE)
_USED = re.compile(r"^usemtl\s+(.+?)\s*$", re.MULTILINE)
_NEW = re.compile(r"^newmtl\s+(.+?)\s*$", re.MULTILINE)
_MAP = re.compile(r"^(\s*map_\w+\s+)(?:.*[\s/\\])?(\S+)\s*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Adopted:
    """A scan as an asset.

    Attributes:
      archive: its files, packed.
      entry: of the manifest.
      notes: what was mended in its files, or is to be known of it.
    """

    archive: bytes
    entry: Mapping[str, Any]
    notes: tuple[str, ...]


def scans_in(folder: Path) -> Iterator[Path]:
    """Yields the folders of scans within a folder, by name; the folder itself where it is one.

    Raises:
      InputError: there is no folder, or no scan in it.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    if _meshes(folder):
        yield folder
        return
    found = [each for each in sorted(folder.iterdir()) if each.is_dir() and _meshes(each)]
    if not found:
        raise InputError(
            f"{folder}: no folder in it holds a mesh: expected NAME/model.obj or "
            "NAME/meshes/model.obj, as Google Scanned Objects have them"
        )
    yield from found


def adopt(
    folder: Path, nouns: Mapping[str, Mapping[str, Any]], axes: Mapping[str, str], licence: str
) -> Adopted:
    """Makes an asset of a scan's folder.

    Args:
      folder: of one scan; its name becomes the asset's id.
      nouns: words by a word of the folder's name or a category, besides those that eqforge knows.
      axes: of the file, as kubric's importer takes them.
      licence: of the scan.

    Raises:
      InputError: it holds no mesh or several, or one that cannot be read.
    """
    mesh = _mesh_of(folder)
    if mesh.suffix.lower() == ".glb" and axes.get("axis_up", "Z") != "Z":
        raise InputError(
            f"{mesh}: GLB files are taken in their own axes, without --axis-up: save it with z up"
        )
    notes: list[str] = []
    files = {mesh.name: mesh.read_bytes()}
    if mesh.suffix.lower() == ".obj":
        files, notes = _with_library(mesh, _textures(folder))
    low, high, shown, hull = _looked_at(mesh, axes, files)
    files |= {COLLISION: hull, SIMULATION: _body(folder.name, mesh.name)}
    words = _words(folder, nouns, shown, mesh.suffix.lower() == ".obj")
    if words is None:
        notes.append("no word of its name says what it is: captions do not speak of it")
    try:
        archive = packed(files)
    except ValueError as error:
        raise InputError(f"{folder}: its files cannot be packed: {error}") from error
    entry: dict[str, Any] = {
        "asset_type": "FileBasedObject",
        "id": folder.name,
        "kwargs": {
            "bounds": [low, high],
            "mass": 1.0,
            "render_filename": f"{{asset_dir}}/{mesh.name}",
            "render_import_kwargs": dict(axes),
            "simulation_filename": f"{{asset_dir}}/{SIMULATION}",
        },
        "license": licence,
        "metadata": {"category": _category(folder) or ""},
        "num_bytes": len(archive),
        "path": f"{folder.name}.tar.gz",
        "sha256": sha256_hex(archive),
    }
    if words is not None:
        entry["words"] = words
    return Adopted(archive=archive, entry=entry, notes=tuple(notes))


def _meshes(folder: Path) -> list[Path]:
    """Returns the meshes to render that a scan's folder holds; those of collisions are not."""
    found = [
        path
        for place in (folder, folder / "meshes")
        if place.is_dir()
        for path in sorted(place.iterdir())
        if path.suffix.lower() in MESHES and "collision" not in path.stem.lower()
    ]
    named = [path for path in found if path.stem in ("model", "visual_geometry")]
    return named[:1] or found


def _mesh_of(folder: Path) -> Path:
    found = _meshes(folder)
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise InputError(f"{folder}: expected one mesh, model.obj, and there are: {names}")
    return found[0]


def _textures(folder: Path) -> list[Path]:
    places = (folder, folder / "meshes", folder / "materials" / "textures")
    return [
        path
        for place in places
        if place.is_dir()
        for path in sorted(place.iterdir())
        if path.suffix.lower() in PICTURES
    ]


def _with_library(mesh: Path, textures: Sequence[Path]) -> tuple[dict[str, bytes], list[str]]:
    """Returns an OBJ file with one library beside it, whose surfaces show the textures there are.

    A library that names a picture keeps it; where none does and there is one texture, all surfaces
    show it.
    """
    text = mesh.read_text(encoding="utf-8", errors="replace")
    libraries = [mesh.parent / PurePosixPath(name).name for name in _LIBRARY.findall(text)]
    there = [path for path in libraries if path.is_file()]
    known = {path.name: path for path in textures}
    named = sorted({name for path in there for name in pictures_named(path)})
    notes: list[str] = []
    if missing := [name for name in named if name not in known]:
        raise InputError(f"{mesh}: its .mtl names {missing[0]}, which is not there")
    if named:
        texts = [path.read_text(errors="replace").replace("\\", "/") for path in there]
        library = "".join(_MAP.sub(r"\1\2", text) for text in texts)
        used = named
    else:
        library, used = _plain_library(text, list(known)[:1] if len(known) == 1 else [])
        notes += [f"its surfaces show {name}, which no .mtl named" for name in used]
        if not used:
            notes.append(f"it has {len(known)} pictures and none is named: its surfaces are grey")
    name = f"{mesh.stem}.mtl"
    lines = [line for line in text.splitlines() if not line.startswith("mtllib ")]
    if not _USED.search(text) and (surfaces := _NEW.findall(library)):
        first = next((at for at, line in enumerate(lines) if line.startswith("f ")), len(lines))
        lines.insert(first, f"usemtl {surfaces[0]}")
    files = {mesh.name: "\n".join([f"mtllib {name}", *lines, ""]).encode(), name: library.encode()}
    return files | {each: known[each].read_bytes() for each in used}, notes


def _plain_library(text: str, textures: list[str]) -> tuple[str, list[str]]:
    """Returns a library of all surfaces that a file uses, which show a texture."""
    shown = f"map_Kd {textures[0]}\n" if textures else ""
    names = list(dict.fromkeys(_USED.findall(text))) or ["surface"]
    parts = [f"newmtl {name}\nKd 0.5 0.5 0.5\nNs 50\nillum 2\n{shown}\n" for name in names]
    return "".join(parts), textures


def _looked_at(
    mesh: Path, axes: Mapping[str, str], files: Mapping[str, bytes]
) -> tuple[list[float], list[float], Shown | None, bytes]:
    """Returns the corners of a mesh's box, z up, what colours it shows, and its convex hull."""
    import trimesh

    try:
        made: Any = trimesh.load(
            _buffer(files[mesh.name]),
            file_type=mesh.suffix[1:].lower(),
            resolver=trimesh.resolvers.ZipResolver(
                {name: _buffer(data) for name, data in files.items()}
            ),
            force="mesh",
            process=False,
        )
        corners = _upright(np.asarray(made.vertices, np.float64), axes)
        low, high = corners.min(axis=0), corners.max(axis=0)
    except Exception as error:
        raise InputError(
            f"{mesh}: no mesh that can be read: {type(error).__name__}: {error}"
        ) from error
    if not (low < high).all() or not np.isfinite(corners).all():
        raise InputError(f"{mesh}: it is flat, or has no corners")
    try:
        hull, shown = trimesh.convex.convex_hull(corners), _shown(made)
    except Exception as error:
        raise InputError(
            f"{mesh}: no body with a texture that can be read: {type(error).__name__}: "
            f"{str(error).strip().splitlines()[0] if str(error).strip() else 'no reason given'}"
        ) from error
    lines = [f"v {x:.6f} {y:.6f} {z:.6f}\n" for x, y, z in hull.vertices]
    lines += [f"f {a} {b} {c}\n" for a, b, c in hull.faces + 1]
    return low.round(6).tolist(), high.round(6).tolist(), shown, "".join(lines).encode()


def _body(name: str, mesh: str) -> bytes:
    """Returns the URDF file of a body whose collision shape is its convex hull."""
    robot = ElementTree.Element("robot", name=name)
    link = ElementTree.SubElement(robot, "link", name="base")
    for kind, file in (("visual", mesh), ("collision", COLLISION)):
        shape = ElementTree.SubElement(ElementTree.SubElement(link, kind), "geometry")
        ElementTree.SubElement(shape, "mesh", filename=file)
    return ElementTree.tostring(robot)


def _buffer(data: bytes) -> Any:
    return io.BytesIO(data)


def _upright(points: Any, axes: Mapping[str, str]) -> Any:
    """Returns points with z up, as Blender's importer turns them."""
    if axes.get("axis_up", "Z") == "Z":
        return points
    return np.stack((points[:, 0], -points[:, 2], points[:, 1]), axis=-1)


def _shown(made: Any) -> Shown | None:
    """Returns what colours a mesh shows; None where it has no texture."""
    visual = getattr(made, "visual", None)
    places = getattr(visual, "uv", None)
    material = getattr(visual, "material", None)
    picture = getattr(material, "image", None) or getattr(material, "baseColorTexture", None)
    if picture is None or places is None or not len(made.faces):
        return None
    texture = np.asarray(picture.convert("RGB"), np.float64) / 255
    corners = np.asarray(places, np.float64)[np.asarray(made.faces)]
    areas = np.asarray(made.area_faces, np.float64)
    return shown_colours(*sampled(corners, areas, texture)) if areas.sum() > 0 else None


def _words(
    folder: Path, nouns: Mapping[str, Mapping[str, Any]], shown: Shown | None, is_painted: bool
) -> dict[str, Any] | None:
    """Returns the words of a manifest for a scan; None where nothing says what it is.

    A colour is named that most of the surface shows; such a thing may be recoloured.
    """
    words = words_for(folder.name, _category(folder), nouns)
    if words is None:
        return None
    said = dict(words)
    plain = asdict(AssetWords(noun="", plural=""))
    share = 0.0 if shown is None else shown.shares[shown.name]
    if shown is not None and share >= MAIN_SHARE:
        said.setdefault("colour", shown.name)
    if shown is None or share < MAIN_SHARE or not is_painted:
        said.setdefault("parts", [])
    else:
        clashes = [name for name, part in shown.shares.items() if CLASH_SHARE <= part < MAIN_SHARE]
        if clashes:
            said.setdefault("clashes", clashes)
    return {key: value for key, value in said.items() if value != plain.get(key)}


def _category(folder: Path) -> str | None:
    """Returns the category that a scan's metadata names, as Gazebo's files have it."""
    path = folder / "metadata.pbtxt"
    if not path.is_file():
        return None
    found = _CATEGORY.search(path.read_text(encoding="utf-8", errors="replace"))
    return None if found is None else found[1]
