"""Reads and rewrites the lines of OBJ and MTL files that name other files.

Source: Wavefront, "Advanced Visualizer" manual, appendices B1 (OBJ) and "MTL material format".
"""

import re
from collections.abc import Callable
from pathlib import Path

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
    """Return a file's text: in UTF-8, or else in Latin-1, which takes all bytes."""
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return text.replace("\r\n", "\n")


def libraries_of(mesh: Path) -> dict[str, Path | None]:
    """Return the libraries that an OBJ file names, with their paths; None for a missing one.

    A line may name several, and a name may have blanks, as Blender reads it.
    """
    found: dict[str, Path | None] = {}
    for line in _LIBRARY.findall(read_text(mesh)):
        said = _plain(line)
        whole = _beside(mesh, said)
        names = [said] if whole else _BETWEEN.split(said)
        found |= {name: _beside(mesh, name) for name in names}
    return found


def pictures_named(library: str, only_colour: bool = False) -> list[str]:
    """Return the pictures that a library's text names, in its order, with slashes; none twice."""
    names = (
        _plain(name)
        for _, keyword, name in _PICTURE.findall(library)
        if not only_colour or keyword.lower() == _COLOUR
    )
    return list(dict.fromkeys(names))


def with_pictures(library: str, name_of: Callable[[str], str]) -> str:
    """Return a library's text with other names of its pictures; their options are kept.

    Blender reads keywords only as they are usually written, `map_Kd` and not `map_kd`.
    """

    def renamed(found: re.Match[str]) -> str:
        keyword = _USUAL.get(found[2].lower(), found[2])
        start = found[1].replace(found[2], keyword, 1)
        return start + name_of(_plain(found[3]))

    return _PICTURE.sub(renamed, library)


def showing(library: str, picture: str) -> str:
    """Return a library's text in which every surface shows a picture."""
    return _SURFACE.sub(lambda found: f"{found[0]}\nmap_Kd {picture}", library)


def plain_library(mesh: str) -> str:
    """Return a library of the surfaces that an OBJ file's text uses, all of them grey."""
    names = list(dict.fromkeys(_USED.findall(mesh))) or ["surface"]
    return "\n".join(f"newmtl {name}\n{GREY}" for name in names)


def with_library(mesh: str, name: str, library: str) -> str:
    """Return an OBJ file's text that names one library, by whose surfaces it is covered."""
    text = re.sub(r"^[ \t]*mtllib\b.*\n?", "", mesh, flags=re.MULTILINE)
    surfaces, face = _SURFACE.findall(library), _FACE.search(text)
    if surfaces and face and not _USED.search(text):
        text = f"{text[: face.start()]}usemtl {surfaces[0]}\n{text[face.start() :]}"
    return f"mtllib {name}\n{text}"


def with_names(mesh: str, library: str, name_of: Callable[[str], str]) -> tuple[str, str]:
    """Return the texts of an OBJ file and its library with other names of their surfaces."""
    names = {
        each: name_of(each)
        for each in dict.fromkeys((*_SURFACE.findall(library), *_USED.findall(mesh)))
    }

    def renamed(found: re.Match[str]) -> str:
        return found[0][: -len(found[1])] + names[found[1]]

    return _USED.sub(renamed, mesh), _SURFACE.sub(renamed, library)


def _plain(name: str) -> str:
    """Return a name of a file with slashes, without the blanks and quotes around it."""
    return name.strip().strip('"').replace("\\", "/")


def _beside(mesh: Path, name: str) -> Path | None:
    path = mesh.parent / name
    return path if is_file(path) else None


def is_file(path: Path) -> bool:
    """Return True if there is a file of a name that may be none: too long, or with a NUL."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
