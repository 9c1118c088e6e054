"""Find scanned objects in folders, in several layouts, and pack their files.

It reads the layouts of Google Scanned Objects for Gazebo (`NAME/meshes/model.obj`,
`NAME/materials/textures/texture.png`, `NAME/metadata.pbtxt`) and for MuJoCo (`NAME/model.obj`,
`NAME/texture.png`), and any folder with one OBJ, GLB or glTF file.

Source: Downs et al. 2022, "Google Scanned Objects: A High-Quality Dataset of 3D Scanned Household
Items", section III.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.core.files.pictures import FILE_SUFFIXES, why_unreadable
from eqforge.core.identity import sha256_hex
from eqforge.generators.scenes.mesh_files import (
    GLTF,
    is_file,
    libraries_of,
    pictures_named,
    plain_library,
    read_gltf,
    read_text,
    showing,
    with_library,
    with_names,
    with_pictures,
)

MESHES = (".obj", *GLTF)
OTHER_MESHES = (".ply", ".stl", ".dae", ".fbx", ".usd", ".usda", ".usdc", ".usdz", ".blend", ".3ds")
_MAIN = ("model", "visual_geometry")
_OWN = ("meshes", "materials")
_CATEGORY = re.compile(r'categor\w{0,9}\s{0,9}\{[^}]{0,400}?first:\s{0,9}"([^"]{1,400})"')


def scans_in(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the scan folders in a folder (or the folder itself), and all other entries."""
    if not folder.is_dir():
        raise InputError(
            f"{folder}{' is a file; pass its' if folder.exists() else ': no such'} folder"
        )
    folder = folder.resolve()
    folders = [each for each in _files(folder) if each.is_dir() and each.name not in _OWN]
    scans = [each for each in folders if _below(each, (*MESHES, *OTHER_MESHES))]
    meshes = _meshes(folder)
    if meshes and scans:
        raise InputError(
            f"{folder} contains both {meshes[0].name} and folders with meshes, such as "
            f"{scans[0].name}; move one of them elsewhere"
        )
    loose = [each for each in _files(folder) if each.is_file() and _ends(each, OTHER_MESHES)]
    if meshes or (loose and not scans):
        return [folder], []
    if not scans:
        raise InputError(
            f"{folder} contains no mesh. Expected NAME/model.obj or NAME/meshes/model.obj, as in "
            "Google Scanned Objects, or one .glb or .gltf file."
        )
    return scans, [*(each for each in folders if each not in scans), *loose]


def mesh_of(folder: Path) -> Path:
    found = _meshes(folder) or _below(folder, MESHES)
    if not found:
        others = [path.name for path in _below(folder, OTHER_MESHES)] or ["only collision meshes"]
        raise InputError(f"{folder}: expected a .obj, .glb or .gltf mesh, found {others[0]}")
    if len(found) > 1:
        names = ", ".join(path.relative_to(folder).as_posix() for path in found[:4])
        raise InputError(f"{folder}: expected a single mesh or a mesh named 'model'; found {names}")
    return found[0]


def pictures_of(folder: Path, mesh: Path) -> list[Path]:
    places = (folder, mesh.parent, folder / "materials" / "textures", folder / "textures")
    found = (path for place in dict.fromkeys(places) for path in _files(place))
    return [path for path in found if path.is_file() and _ends(path, FILE_SUFFIXES)]


def category_of(folder: Path) -> str | None:
    path = folder / "metadata.pbtxt"
    found = _CATEGORY.search(read_text(path)) if path.is_file() else None
    return None if found is None else found[1]


def _meshes(folder: Path) -> list[Path]:
    found = [
        path
        for place in (folder, folder / "meshes")
        for path in _files(place)
        if path.is_file() and _ends(path, MESHES) and not _is_collision(path, folder)
    ]
    named = [path for path in found if path.stem in _MAIN]
    return named[:1] or found


def _below(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    found = (path for path in sorted(folder.rglob("*")) if _ends(path, suffixes))
    return [path for path in found if path.is_file() and not _is_collision(path, folder)]


def _is_collision(path: Path, folder: Path) -> bool:
    return "collision" in path.relative_to(folder).as_posix().lower()


def _files(place: Path) -> Iterator[Path]:
    entries: Iterable[Path] = sorted(place.iterdir()) if place.is_dir() else ()
    yield from (path for path in entries if not path.name.startswith("."))


def _ends(path: Path, suffixes: tuple[str, ...]) -> bool:
    return path.suffix.lower() in suffixes


SIMULATION, COLLISION = "object.urdf", "collision_geometry.obj"

_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,90}")
_TEXTURE = ("texture", "diffuse", "albedo", "basecolor", "base_color", "color")
"""Stems of images that are used as textures even if no library with surfaces names them."""


@dataclass(kw_only=True, slots=True)
class ScanFiles:
    """The files of a scan by name, its mesh, and notes on fixes and limitations."""

    mesh: str
    data: dict[str, bytes]
    notes: list[str] = field(default_factory=list)


def files_of_scan(folder: Path, mesh: Path, axis_up: str) -> ScanFiles:
    try:
        if mesh.suffix.lower() in GLTF:
            return _of_gltf(folder, mesh, axis_up)
        return _of_obj(folder, mesh)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{mesh} is damaged ({type(error).__name__}: {error})") from error


class _Packer:
    """Finds the files that a mesh names, and renames them for the archive.

    `own` are names that other files of the archive have.
    """

    def __init__(self, folder: Path, mesh: Path, *reserved: str) -> None:
        self._folder, self._known = folder, pictures_of(folder, mesh)
        self._own = {name.lower() for name in (*reserved, SIMULATION, COLLISION)}
        self.paths: dict[str, Path] = {}

    def beside(self, path: Path) -> Callable[[str], str]:
        """Return a function that packs a file named in this one, and returns its packed name."""
        return lambda name: self.pack(self._found(path, name))

    def pack(self, path: Path) -> str:
        for name, known in self.paths.items():
            if known == path:
                return name
        name, used_names = path.name, self._own | {each.lower() for each in self.paths}
        if not _PLAIN.fullmatch(name) or name.lower() in used_names:
            name = f"{sha256_hex(os.fsencode(path.relative_to(self._folder)))[:16]}{path.suffix}"
        self.paths[name] = path
        return name

    def data(self) -> dict[str, bytes]:
        return {name: path.read_bytes() for name, path in self.paths.items()}

    def _found(self, path: Path, reference: str) -> Path:
        # Check the name alone: the user answers for links inside the folder.
        target = Path(os.path.normpath(path.parent / reference))
        if target.is_relative_to(self._folder) and is_file(target):
            return target
        base = reference.rpartition("/")[2].lower()
        for known in self._known:
            if known.name.lower() == base:
                return known
        raise InputError(f"{path} refers to {reference[:200]!r}, which does not exist")


class _Names:
    def __init__(self) -> None:
        self._taken: set[str] = set()

    def __call__(self, original: str) -> str:
        plain = re.sub(r"\.(\d{3,})$", r"_\1", original).encode()[:50].decode(errors="ignore")
        name, number = plain, 2
        while name in self._taken:
            name, number = f"{plain}_{number}", number + 1
        self._taken.add(name)
        return name


def _check_pictures(mesh: Path, pictures: Mapping[str, bytes]) -> None:
    for name, data in pictures.items():
        if why := why_unreadable(data):
            raise InputError(f"{mesh}: texture {name}: {why}")


def _of_gltf(folder: Path, mesh: Path, axis_up: str) -> ScanFiles:
    name = f"model{mesh.suffix.lower()}"
    packer = _Packer(folder, mesh, name)
    scene = read_gltf(mesh.read_bytes(), str(mesh)).shown_scene()
    scene = scene.renamed(_Names(), packer.beside(mesh))
    scene = scene.stood_up() if axis_up == "Y" else scene
    data = packer.data()
    pictures = {each: data[each] for each in scene.pictures_named()}
    pictures |= {f"{at} (counted from 0)": each for at, each in enumerate(scene.pictures_inside())}
    _check_pictures(mesh, pictures)
    return ScanFiles(mesh=name, data={**data, name: scene.encoded()})


def _of_obj(folder: Path, mesh: Path) -> ScanFiles:
    name = f"{mesh.stem}.mtl"
    text, packer = read_text(mesh), _Packer(folder, mesh, mesh.name, name)
    notes: list[str] = []
    parts, missing = [], []
    for named, path in libraries_of(mesh).items():
        if path is not None and Path(os.path.normpath(path)).is_relative_to(folder):
            parts.append(with_pictures(read_text(path), packer.beside(path)))
        else:
            missing.append(named)
    library = "\n".join(parts) or plain_library(text)
    if not pictures_named(library, only_colour=True):
        others = [each for each in pictures_of(folder, mesh) if each not in packer.paths.values()]
        shown = _meant(others, mesh, folder, has_library=bool(parts))
        if shown is not None:
            library = showing(library, packer.pack(shown))
            notes.append(f"no .mtl file refers to a texture, so its surfaces show {shown.name}")
        else:
            notes.append(_why_plain(others, missing, has_library=bool(parts)))
    text, library = with_names(text, library, _Names())
    files = {mesh.name: with_library(text, name, library), name: library}
    data = packer.data()
    _check_pictures(mesh, data)
    contents = {key: value.encode() for key, value in files.items()}
    return ScanFiles(mesh=mesh.name, data={**data, **contents}, notes=notes)


def _meant(others: list[Path], mesh: Path, folder: Path, has_library: bool) -> Path | None:
    """Return the only image, for surfaces without a texture.

    If a library already sets colours, the image must be named like a texture.
    """
    if len(others) != 1:
        return None
    stem = others[0].stem.lower()
    plain = (*_TEXTURE, mesh.stem.lower(), folder.name.lower())
    is_texture = stem in plain or others[0].parent.name == "textures"
    return others[0] if is_texture or not has_library else None


def _why_plain(others: list[Path], missing: list[str], has_library: bool) -> str:
    colours = "have the colours of their .mtl file" if has_library else "are grey"
    why = "there is no texture"
    if missing:
        why = f"the .mtl file refers to {missing[0][:100]!r}, which does not exist"
    elif others:
        names = ", ".join(path.name for path in others[:3])
        why = f"no .mtl file refers to a texture, although the folder contains {names}"
    return f"{why}, so its surfaces {colours}"
