"""Finds scanned objects in folders, in the layouts that they come in.

Known are those of Google Scanned Objects for Gazebo (`NAME/meshes/model.obj`,
`NAME/materials/textures/texture.png`, `NAME/metadata.pbtxt`) and for MuJoCo (`NAME/model.obj`,
`NAME/texture.png`), and any folder with one OBJ, GLB or glTF file.

Source: Downs et al. 2022, "Google Scanned Objects: A High-Quality Dataset of 3D Scanned Household
  Items", section III.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.core.files.pictures import FILE_SUFFIXES
from eqforge.generators.scenes.gltf import SUFFIXES as GLTF
from eqforge.generators.scenes.wavefront import read_text

MESHES = (".obj", *GLTF)
OTHER_MESHES = (".ply", ".stl", ".dae", ".fbx", ".usd", ".usda", ".usdc", ".usdz", ".blend", ".3ds")
_MAIN = ("model", "visual_geometry")
_OWN = ("meshes", "materials")
_CATEGORY = re.compile(r'categor\w{0,9}\s{0,9}\{[^}]{0,400}?first:\s{0,9}"([^"]{1,400})"')


def scans_in(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the folders of scans within a folder, by name, or itself where it is one.

    Returns:
      Those with a mesh, be it one that cannot be taken; and what else there is, folders without
      one and loose files.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: {'a file: name its' if folder.exists() else 'no such'} folder")
    folder = folder.resolve()
    folders = [each for each in _files(folder) if each.is_dir() and each.name not in _OWN]
    scans = [each for each in folders if _below(each, (*MESHES, *OTHER_MESHES))]
    own = _meshes(folder)
    if own and scans:
        raise InputError(
            f"{folder}: it holds {own[0].name}, and folders with meshes as well, such as "
            f"{scans[0].name}: move the one or the others out of it"
        )
    loose = [each for each in _files(folder) if each.is_file() and _ends(each, OTHER_MESHES)]
    if own or (loose and not scans):
        return [folder], []
    if not scans:
        raise InputError(
            f"{folder}: no folder in it holds a mesh: expected NAME/model.obj or "
            "NAME/meshes/model.obj, as Google Scanned Objects have them, or one .glb or .gltf"
        )
    return scans, [*(each for each in folders if each not in scans), *loose]


def mesh_of(folder: Path) -> Path:
    """Return the mesh of a scan's folder: the one in it, or else the only one below."""
    found = _meshes(folder) or _below(folder, MESHES)
    if not found:
        others = [path.name for path in _below(folder, OTHER_MESHES)] or ["nothing but collisions"]
        raise InputError(f"{folder}: it holds {others[0]}, and only .obj, .glb and .gltf are read")
    if len(found) > 1:
        names = ", ".join(path.relative_to(folder).as_posix() for path in found[:4])
        raise InputError(f"{folder}: expected one mesh, or one called model: there are {names}")
    return found[0]


def pictures_of(folder: Path, mesh: Path) -> list[Path]:
    """Return the pictures where a scan may have its textures, in the order of their places."""
    places = (folder, mesh.parent, folder / "materials" / "textures", folder / "textures")
    found = (path for place in dict.fromkeys(places) for path in _files(place))
    return [path for path in found if path.is_file() and _ends(path, FILE_SUFFIXES)]


def category_of(folder: Path) -> str | None:
    """Return the category that a scan's metadata names, as Gazebo's files have it."""
    path = folder / "metadata.pbtxt"
    found = _CATEGORY.search(read_text(path)) if path.is_file() else None
    return None if found is None else found[1]


def _meshes(folder: Path) -> list[Path]:
    """Return the meshes to render that a scan's folder holds; those of collisions are not."""
    found = [
        path
        for place in (folder, folder / "meshes")
        for path in _files(place)
        if path.is_file() and _ends(path, MESHES) and not _is_collision(path, folder)
    ]
    named = [path for path in found if path.stem in _MAIN]
    return named[:1] or found


def _below(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """Return the meshes in a folder and in those below it, but for those of collisions."""
    found = (path for path in sorted(folder.rglob("*")) if _ends(path, suffixes))
    return [path for path in found if path.is_file() and not _is_collision(path, folder)]


def _is_collision(path: Path, folder: Path) -> bool:
    return "collision" in path.relative_to(folder).as_posix().lower()


def _files(place: Path) -> Iterator[Path]:
    entries: Iterable[Path] = sorted(place.iterdir()) if place.is_dir() else ()
    yield from (path for path in entries if not path.name.startswith("."))


def _ends(path: Path, suffixes: tuple[str, ...]) -> bool:
    return path.suffix.lower() in suffixes
