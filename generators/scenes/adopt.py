"""Convert folders of scanned objects to assets, each with words and an archive."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias
from xml.etree import ElementTree

from eqforge.core.errors import InputError
from eqforge.core.files.checked import load_json
from eqforge.core.identity import sha256_hex
from eqforge.generators.scenes.assets import packed
from eqforge.generators.scenes.copies import GSO_WORDS, Words, checked_words, load_words
from eqforge.generators.scenes.look_child import Looks
from eqforge.generators.scenes.manifest import AS_STORED, AssetWords
from eqforge.generators.scenes.mesh_files import GLTF
from eqforge.generators.scenes.palette import MAIN_SHARE
from eqforge.generators.scenes.scan_files import (
    COLLISION,
    SIMULATION,
    category_of,
    files_of_scan,
    mesh_of,
)

Look: TypeAlias = Callable[[Mapping[str, bytes], str, Mapping[str, str]], Looks]
Axis = Literal["Y", "Z"]
CLASH_SHARE = 0.08  # share of another colour from which on a surface is not recoloured to it

_AXES: Mapping[Axis, Mapping[str, str]] = {
    "Z": AS_STORED,
    "Y": {"axis_forward": "-Z", "axis_up": "Y"},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Adopted:
    """A scan as an asset, with the key of the user's words that it matched, if any."""

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
    """Make an asset from a scan's folder; the folder name becomes the asset id.

    Args:
      nouns: the user's words, by a word of the folder name or by category.
      axis_up: the file's up axis; None for the standard of its format: Z for OBJ, Y for glTF.
      look: inspects a mesh, given its files, its name and the importer's arguments.
    """
    if not folder.name.isprintable():
        raise InputError(
            f"{folder}: its name contains a character that cannot be printed; rename the folder"
        )
    mesh = mesh_of(folder)
    is_gltf = mesh.suffix.lower() in GLTF
    up: Axis = axis_up or ("Y" if is_gltf else "Z")
    files = files_of_scan(folder, mesh, up)
    # Importers take no axes for a glTF file, so the file itself is rotated.
    stored: Axis = "Z" if is_gltf else up
    try:
        appearance = look(files.data, files.mesh, _AXES[stored])
    except InputError as error:
        raise InputError(f"{mesh}: {error}") from error
    category = category_of(folder)
    words = _words(words_for(folder.name, category, nouns), appearance)
    if words is None:
        files.notes.append("its name contains no known word, so captions cannot mention the object")
    body = _body(folder.name, files.mesh)
    try:
        archive = packed({**files.data, COLLISION: appearance.hull.encode(), SIMULATION: body})
    except ValueError as error:
        raise InputError(f"{folder}: its files cannot be packed: {error}") from error
    entry: dict[str, Any] = {
        "asset_type": "FileBasedObject",
        "id": folder.name,
        "kwargs": {
            "bounds": [list(appearance.low), list(appearance.high)],
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
        named = {*words.get("parts", ()), *words.get("trims", {})}
        materials = ", ".join(appearance.surfaces)
        files.notes += (
            f"none of its materials is called {name!r}; its materials are {materials[:300]}"
            for name in sorted(named - appearance.surfaces.keys())
        )
    key = key_for(folder.name, category, nouns)
    return Adopted(archive=archive, entry=entry, key=key, notes=tuple(files.notes))


def _body(name: str, mesh: str) -> bytes:
    robot = ElementTree.Element("robot", name=name)
    link = ElementTree.SubElement(robot, "link", name="base")
    for kind, file in (("visual", mesh), ("collision", COLLISION)):
        shape = ElementTree.SubElement(ElementTree.SubElement(link, kind), "geometry")
        ElementTree.SubElement(shape, "mesh", filename=file)
    return ElementTree.tostring(robot)


def _words(words: Mapping[str, Any] | None, appearance: Looks) -> dict[str, Any] | None:
    if words is None:
        return None
    entry = dict(words)
    main, share = next(iter(appearance.colours.items()), ("", 0.0))
    parts: list[str] | None = []
    if share >= MAIN_SHARE:
        entry.setdefault("colour", main)
        parts = _changing(appearance, main)
        colours = [name for name, part in appearance.colours.items() if part >= CLASH_SHARE]
        if parts != [] and colours[1:]:
            entry.setdefault("clashes", colours[1:])
    if parts is not None:
        entry.setdefault("parts", parts)
    plain = asdict(AssetWords(noun="", plural=""))
    return {key: value for key, value in entry.items() if value != plain.get(key)}


def _changing(appearance: Looks, colour: str) -> list[str] | None:
    found = {
        name: surface.share
        for name, surface in appearance.surfaces.items()
        if surface.colours.get(colour, 0) >= MAIN_SHARE
    }
    if len(found) == len(appearance.surfaces):
        return None
    return list(found) if sum(found.values()) >= MAIN_SHARE else []


NOUNS = str(Path(__file__).parent / "data" / "gso_nouns.json")

_EDGES = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=\d)")


def words_for(name: str, category: str | None, nouns: Mapping[str, Words]) -> Words | None:
    """Find the words for a scan, in manifest format; None if nothing says what it is.

    The user's words win over eqforge's. A whole name wins over the longest phrase in it, and a
    phrase wins over the category.
    """
    key = key_for(name, category, nouns)
    if key is not None:
        return nouns[key]
    names, phrases, heads, categories = _known_nouns()
    if name in names:
        return {key: it for key, it in names[name].items() if key not in ("colour", "clashes")}
    phrase = _phrase_in(name, phrases, heads) or categories.get(category or "")
    return None if phrase is None else names[phrase]


def key_for(name: str, category: str | None, nouns: Mapping[str, Words]) -> str | None:
    if name in nouns:
        return name
    phrases = {" ".join(_pieces(key)): key for key in nouns}
    phrase = _phrase_in(name, phrases)
    if phrase is not None:
        return phrases[phrase]
    return phrases.get(" ".join(_pieces(category))) if category else None


def _phrase_in(name: str, phrases: Mapping[str, Any], heads: Collection[str] = ()) -> str | None:
    """Return the longest phrase in a name, or the last of equally long ones.

    A phrase before a head noun is only a modifier: "car key" names a key, not a car.
    """
    pieces = _pieces(name)
    for length in range(len(pieces), 0, -1):
        for start in range(len(pieces) - length, -1, -1):
            run, after = pieces[start : start + length], pieces[start + length : start + length + 1]
            if after and after[0] in heads:
                continue
            last = run[-1][:-1] if run[-1].endswith("s") and len(run[-1]) > 3 else run[-1]
            for words in (" ".join(run), " ".join((*run[:-1], last))):
                if words in phrases:
                    return words
    return None


def _pieces(name: str) -> list[str]:
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFC", name))
    return [piece.lower() for word in words for piece in _EDGES.split(word)]


@functools.cache
def _known_nouns() -> tuple[
    Mapping[str, Words], Mapping[str, Words], Collection[str], Mapping[str, str]
]:
    """Return words by name and phrase, words by phrase, modified nouns, and phrases by category."""
    table = load_json(NOUNS)
    phrases = checked_words(table["phrases"])
    categories = {name: node.text() for name, node in table["categories"].items()}
    names = {**phrases, **load_words(GSO_WORDS)}
    return names, phrases, frozenset(table["modified"].names()), categories
