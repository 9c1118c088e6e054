"""Makes assets of folders of scanned objects, with words and an archive for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias
from xml.etree import ElementTree

from eqforge.core.errors import InputError
from eqforge.core.identity import sha256_hex
from eqforge.generators.scenes.archives import packed
from eqforge.generators.scenes.gltf import SUFFIXES as GLTF
from eqforge.generators.scenes.look_child import Looks
from eqforge.generators.scenes.manifest import AS_STORED, AssetWords
from eqforge.generators.scenes.nouns import key_for, words_for
from eqforge.generators.scenes.scan_files import OWN_FILES, files_of_scan
from eqforge.generators.scenes.scan_folders import category_of, mesh_of
from eqforge.generators.scenes.tints import MAIN_SHARE

SIMULATION, COLLISION = OWN_FILES
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
      notes: what was mended in its files, or is to be known of it.
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
    """Makes an asset of a scan's folder.

    Args:
      folder: of one scan; its name becomes the asset's id.
      nouns: words by a word of the folder's name or a category, besides those that eqforge knows.
      axis_up: which axis of the file points up; None for Z in an OBJ file and Y in a glTF file,
        as that format's standard says.
      licence: of the scan.
      look: tells what a mesh looks like, given its files, its name and the importer's arguments.

    Raises:
      InputError: it holds no mesh or several, or one that cannot be read; its name is no id.
    """
    if not folder.name.isprintable():
        raise InputError(f"{folder}: its name has a character that cannot be printed")
    mesh = mesh_of(folder)
    is_gltf = mesh.suffix.lower() in GLTF
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
    """Returns the URDF file of a body whose collision shape is its convex hull."""
    robot = ElementTree.Element("robot", name=name)
    link = ElementTree.SubElement(robot, "link", name="base")
    for kind, file in (("visual", mesh), ("collision", COLLISION)):
        shape = ElementTree.SubElement(ElementTree.SubElement(link, kind), "geometry")
        ElementTree.SubElement(shape, "mesh", filename=file)
    return ElementTree.tostring(robot)


def _unknown(words: Mapping[str, Any], looks: Looks) -> list[str]:
    """Returns which materials the words of a user name that there are none of."""
    named = {*words.get("parts", ()), *words.get("trims", {})}
    there = ", ".join(looks.surfaces)
    return [
        f"no material of it is called {name!r}; it has {there[:300]}"
        for name in sorted(named - looks.surfaces.keys())
    ]


def _words(words: Mapping[str, Any] | None, looks: Looks) -> dict[str, Any] | None:
    """Returns the words of a manifest for a scan; None where nothing says what it is.

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
    """Returns the materials that get another colour: those that mostly have the main one.

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
