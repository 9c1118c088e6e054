"""Brings the files of a scan into the form of an asset: flat, z up, each texture where it is shown.

What a file names lies beside it in the archive, under a plain name.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.core.files.pictures import why_unreadable
from eqforge.core.identity import sha256_hex
from eqforge.generators.scenes import gltf, wavefront
from eqforge.generators.scenes.scan_folders import pictures_of

OWN_FILES = ("object.urdf", "collision_geometry.obj")
"""The body of an asset, and its collision shape."""

_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,90}")
_TEXTURE = ("texture", "diffuse", "albedo", "basecolor", "base_color", "color")
"""Stems of pictures that are shown although a library with surfaces does not name them."""


@dataclass(kw_only=True, slots=True)
class ScanFiles:
    """The files of a scan.

    Attributes:
      mesh: name of the one to render.
      data: their contents by name.
      notes: what was mended, or is to be known.
    """

    mesh: str
    data: dict[str, bytes]
    notes: list[str] = field(default_factory=list)


def files_of_scan(folder: Path, mesh: Path, axis_up: str) -> ScanFiles:
    """Returns a scan's mesh with all that it needs.

    Args:
      folder: of the scan; no file outside it is read.
      mesh: its OBJ, GLB or glTF file.
      axis_up: the axis that points up in it, Z or Y; a glTF file is turned.

    Raises:
      InputError: a file cannot be read, or names one that is not there.
    """
    try:
        if mesh.suffix.lower() in gltf.SUFFIXES:
            return _of_gltf(folder, mesh, axis_up)
        return _of_obj(folder, mesh)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{mesh}: a damaged file: {type(error).__name__}: {error}") from error


class _Packer:
    """Finds the files that a mesh names, and gives them names of their own in the archive.

    Args:
      folder: of the scan.
      mesh: its file.
      own: names that other files of the archive have.

    Attributes:
      paths: of the files, by their names.
    """

    def __init__(self, folder: Path, mesh: Path, *own: str) -> None:
        self._folder, self._known = folder, pictures_of(folder, mesh)
        self._own = {name.lower() for name in (*own, *OWN_FILES)}
        self.paths: dict[str, Path] = {}

    def beside(self, path: Path) -> Callable[[str], str]:
        """Returns what packs the file that another one calls so, and tells its packed name."""
        return lambda said: self.pack(self._found(path, said))

    def pack(self, path: Path) -> str:
        """Packs a file; returns its name in the archive."""
        for name, known in self.paths.items():
            if known == path:
                return name
        name, taken = path.name, self._own | {each.lower() for each in self.paths}
        if not _PLAIN.fullmatch(name) or name.lower() in taken:
            name = f"{sha256_hex(os.fsencode(path.relative_to(self._folder)))[:16]}{path.suffix}"
        self.paths[name] = path
        return name

    def data(self) -> dict[str, bytes]:
        """Returns the contents of what was packed, by name."""
        return {name: path.read_bytes() for name, path in self.paths.items()}

    def _found(self, path: Path, said: str) -> Path:
        # By its name alone: what a link in the folder leads to is the user's.
        there = Path(os.path.normpath(path.parent / said))
        if there.is_relative_to(self._folder) and wavefront.is_file(there):
            return there
        base = said.rpartition("/")[2].lower()
        for known in self._known:
            if known.name.lower() == base:
                return known
        raise InputError(f"{path}: it names {said[:200]}, which is not there")


class _Names:
    """Names for materials: no two alike, and none that Blender would cut or number."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def __call__(self, said: str) -> str:
        plain = re.sub(r"\.(\d{3,})$", r"_\1", said).encode()[:50].decode(errors="ignore")
        name, number = plain, 2
        while name in self._taken:
            name, number = f"{plain}_{number}", number + 1
        self._taken.add(name)
        return name


def _check_pictures(mesh: Path, pictures: Mapping[str, bytes]) -> None:
    """Checks that the pictures of a scan can be shown.

    Raises:
      InputError: one is no picture, or of a format that is not read.
    """
    for name, data in pictures.items():
        if why := why_unreadable(data):
            raise InputError(f"{mesh}: its texture {name} cannot be read: {why}")


def _of_gltf(folder: Path, mesh: Path, axis_up: str) -> ScanFiles:
    name = f"model{mesh.suffix.lower()}"
    packer = _Packer(folder, mesh, name)
    made = gltf.shown_scene(gltf.read_gltf(mesh.read_bytes(), str(mesh)))
    made = gltf.with_files(gltf.with_names(made, _Names()), packer.beside(mesh))
    made = gltf.stood_up(made) if axis_up == "Y" else made
    data = packer.data()
    pictures = {each: data[each] for each in gltf.pictures_named(made)}
    pictures |= {f"{at} inside it": each for at, each in enumerate(gltf.pictures_inside(made))}
    _check_pictures(mesh, pictures)
    return ScanFiles(mesh=name, data={**data, name: made.encoded()})


def _of_obj(folder: Path, mesh: Path) -> ScanFiles:
    name = f"{mesh.stem}.mtl"
    text, packer = wavefront.read_text(mesh), _Packer(folder, mesh, mesh.name, name)
    notes: list[str] = []
    libraries, missing = _libraries(folder, mesh)
    parts = [
        wavefront.with_pictures(wavefront.read_text(path), packer.beside(path))
        for path in libraries
    ]
    library = "\n".join(parts) or wavefront.plain_library(text)
    if not wavefront.pictures_named(library, only_colour=True):
        others = [each for each in pictures_of(folder, mesh) if each not in packer.paths.values()]
        shown = _meant(others, mesh, folder, has_library=bool(parts))
        if shown is not None:
            library = wavefront.showing(library, packer.pack(shown))
            notes.append(f"its surfaces show {shown.name}, which no .mtl named")
        else:
            notes.append(_why_plain(others, missing, has_library=bool(parts)))
    text, library = wavefront.with_names(text, library, _Names())
    files = {mesh.name: wavefront.with_library(text, name, library), name: library}
    data = packer.data()
    _check_pictures(mesh, data)
    own = {key: value.encode() for key, value in files.items()}
    return ScanFiles(mesh=mesh.name, data={**data, **own}, notes=notes)


def _libraries(folder: Path, mesh: Path) -> tuple[list[Path], list[str]]:
    """Returns the libraries of an OBJ file in its scan's folder, and the names of all others."""
    there, missing = [], []
    for name, path in wavefront.libraries_of(mesh).items():
        if path is None or not Path(os.path.normpath(path)).is_relative_to(folder):
            missing.append(name)
        else:
            there.append(path)
    return there, missing


def _meant(others: list[Path], mesh: Path, folder: Path, has_library: bool) -> Path | None:
    """Returns the picture that surfaces without one are to show: the only one there is.

    Beside a library that gives surfaces their colours it has to be called as textures are.
    """
    if len(others) != 1:
        return None
    called = others[0].stem.lower()
    plain = (*_TEXTURE, mesh.stem.lower(), folder.name.lower())
    is_texture = called in plain or others[0].parent.name == "textures"
    return others[0] if is_texture or not has_library else None


def _why_plain(others: list[Path], missing: list[str], has_library: bool) -> str:
    colours = "have the colours of their .mtl" if has_library else "are grey"
    why = "there is no texture"
    if missing:
        why = f"{missing[0][:100]}, which it names, is not there"
    elif others:
        names = ", ".join(path.name for path in others[:3])
        why = f"no .mtl names a texture ({names} lies there)"
    return f"{why}: its surfaces {colours}"
