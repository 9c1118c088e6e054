"""Makes assets of folders of scanned objects, with words and an archive for each."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias
from xml.etree import ElementTree

from eqforge.core.errors import InputError
from eqforge.core.files.pictures import why_unreadable
from eqforge.core.identity import sha256_hex
from eqforge.generators.scenes import gltf, wavefront
from eqforge.generators.scenes.assets import packed
from eqforge.generators.scenes.copies import key_for, words_for
from eqforge.generators.scenes.look_child import Looks
from eqforge.generators.scenes.manifest import AS_STORED, AssetWords
from eqforge.generators.scenes.palette import MAIN_SHARE
from eqforge.generators.scenes.scan_folders import category_of, mesh_of, pictures_of

SIMULATION, COLLISION = "object.urdf", "collision_geometry.obj"
"""The body of an asset, and its collision shape."""

_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,90}")
_TEXTURE = ("texture", "diffuse", "albedo", "basecolor", "base_color", "color")
"""Stems of pictures that are shown although a library with surfaces does not name them."""


@dataclass(kw_only=True, slots=True)
class ScanFiles:
    """The files of a scan by name, its mesh, and notes on what was fixed or is to be known."""

    mesh: str
    data: dict[str, bytes]
    notes: list[str] = field(default_factory=list)


def files_of_scan(folder: Path, mesh: Path, axis_up: str) -> ScanFiles:
    """Return a scan's mesh with all that it needs."""
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
        self._own = {name.lower() for name in (*own, SIMULATION, COLLISION)}
        self.paths: dict[str, Path] = {}

    def beside(self, path: Path) -> Callable[[str], str]:
        """Return what packs the file that another one calls so, and tell its packed name."""
        return lambda said: self.pack(self._found(path, said))

    def pack(self, path: Path) -> str:
        for name, known in self.paths.items():
            if known == path:
                return name
        name, taken = path.name, self._own | {each.lower() for each in self.paths}
        if not _PLAIN.fullmatch(name) or name.lower() in taken:
            name = f"{sha256_hex(os.fsencode(path.relative_to(self._folder)))[:16]}{path.suffix}"
        self.paths[name] = path
        return name

    def data(self) -> dict[str, bytes]:
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
    for name, data in pictures.items():
        if why := why_unreadable(data):
            raise InputError(f"{mesh}: its texture {name} cannot be read: {why}")


def _of_gltf(folder: Path, mesh: Path, axis_up: str) -> ScanFiles:
    name = f"model{mesh.suffix.lower()}"
    packer = _Packer(folder, mesh, name)
    made = gltf.shown_scene(gltf.read_gltf(mesh.read_bytes(), str(mesh)))
    made = gltf.renamed(made, _Names(), packer.beside(mesh))
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
    """Return the libraries of an OBJ file in its scan's folder, and the names of all others."""
    there, missing = [], []
    for name, path in wavefront.libraries_of(mesh).items():
        if path is None or not Path(os.path.normpath(path)).is_relative_to(folder):
            missing.append(name)
        else:
            there.append(path)
    return there, missing


def _meant(others: list[Path], mesh: Path, folder: Path, has_library: bool) -> Path | None:
    """Return the picture that surfaces without one are to show: the only one there is.

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


Look: TypeAlias = Callable[[Mapping[str, bytes], str, Mapping[str, str]], Looks]
Axis = Literal["Y", "Z"]
CLASH_SHARE = 0.08
"""Share of another colour of a surface, from which on it is not recoloured to that."""

_AXES: Mapping[Axis, Mapping[str, str]] = {
    "Z": AS_STORED,
    "Y": {"axis_forward": "-Z", "axis_up": "Y"},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Adopted:
    """A scan as an asset.

    Attributes:
      archive: its files, packed.
      entry: of the manifest.
      key: of the user's words that it has; None where it has others, or none.
      notes: what was fixed in its files, or is to be known of it.
    """

    archive: bytes
    entry: Mapping[str, Any]
    key: str | None
    notes: tuple[str, ...]


def adopt(
    folder: Path,
    nouns: Mapping[str, Mapping[str, Any]],
    axis_up: Axis | None,
    licence: str,
    look: Look,
) -> Adopted:
    """Make an asset of a scan's folder.

    Args:
      folder: of one scan; its name becomes the asset's id.
      nouns: words by a word of the folder's name or a category, besides those that eqforge knows.
      axis_up: which axis of the file points up; None for Z in an OBJ file and Y in a glTF file,
        as that format's standard says.
      licence: of the scan.
      look: tells what a mesh looks like, given its files, its name and the importer's arguments.
    """
    if not folder.name.isprintable():
        raise InputError(f"{folder}: its name has a character that cannot be printed")
    mesh = mesh_of(folder)
    is_gltf = mesh.suffix.lower() in gltf.SUFFIXES
    up: Axis = axis_up or ("Y" if is_gltf else "Z")
    files = files_of_scan(folder, mesh, up)
    # A glTF file is turned itself, since importers take no axes for it.
    stored: Axis = "Z" if is_gltf else up
    try:
        looks = look(files.data, files.mesh, _AXES[stored])
    except InputError as error:
        raise InputError(f"{mesh}: {error}") from error
    category = category_of(folder)
    words = _words(words_for(folder.name, category, nouns), looks)
    if words is None:
        files.notes.append("no word of its name says what it is: captions do not speak of it")
    body = _body(folder.name, files.mesh)
    try:
        archive = packed({**files.data, COLLISION: looks.hull.encode(), SIMULATION: body})
    except ValueError as error:
        raise InputError(f"{folder}: its files cannot be packed: {error}") from error
    entry: dict[str, Any] = {
        "asset_type": "FileBasedObject",
        "id": folder.name,
        "kwargs": {
            "bounds": [list(looks.low), list(looks.high)],
            "mass": 1.0,
            "render_filename": f"{{asset_dir}}/{files.mesh}",
            "render_import_kwargs": dict(_AXES[stored]),
            "simulation_filename": f"{{asset_dir}}/{SIMULATION}",
        },
        "license": licence,
        "metadata": {"category": category or ""},
        "num_bytes": len(archive),
        "path": f"{folder.name}.tar.gz",
        "sha256": sha256_hex(archive),
    }
    if words is not None:
        entry["words"] = words
        files.notes += _unknown(words, looks)
    key = key_for(folder.name, category, nouns)
    return Adopted(archive=archive, entry=entry, key=key, notes=tuple(files.notes))


def _body(name: str, mesh: str) -> bytes:
    """Return the URDF file of a body whose collision shape is its convex hull."""
    robot = ElementTree.Element("robot", name=name)
    link = ElementTree.SubElement(robot, "link", name="base")
    for kind, file in (("visual", mesh), ("collision", COLLISION)):
        shape = ElementTree.SubElement(ElementTree.SubElement(link, kind), "geometry")
        ElementTree.SubElement(shape, "mesh", filename=file)
    return ElementTree.tostring(robot)


def _unknown(words: Mapping[str, Any], looks: Looks) -> list[str]:
    named = {*words.get("parts", ()), *words.get("trims", {})}
    there = ", ".join(looks.surfaces)
    return [
        f"no material of it is called {name!r}; it has {there[:300]}"
        for name in sorted(named - looks.surfaces.keys())
    ]


def _words(words: Mapping[str, Any] | None, looks: Looks) -> dict[str, Any] | None:
    """Return the words of a manifest for a scan; None where nothing says what it is.

    A colour is named that most of the surface shows; such a thing may be recoloured.
    """
    if words is None:
        return None
    said = dict(words)
    main, share = next(iter(looks.colours.items()), ("", 0.0))
    parts: list[str] | None = []
    if share >= MAIN_SHARE:
        said.setdefault("colour", main)
        parts = _changing(looks, main)
        others = [name for name, part in looks.colours.items() if part >= CLASH_SHARE]
        if parts != [] and others[1:]:
            said.setdefault("clashes", others[1:])
    if parts is not None:
        said.setdefault("parts", parts)
    plain = asdict(AssetWords(noun="", plural=""))
    return {key: value for key, value in said.items() if value != plain.get(key)}


def _changing(looks: Looks, colour: str) -> list[str] | None:
    """Return the materials that get another colour: those that mostly have the main one.

    Returns:
      None where all have it, and none where those that have it are too little of the surface.
    """
    found = {
        name: surface.share
        for name, surface in looks.surfaces.items()
        if surface.colours.get(colour, 0) >= MAIN_SHARE
    }
    if len(found) == len(looks.surfaces):
        return None
    return list(found) if sum(found.values()) >= MAIN_SHARE else []
