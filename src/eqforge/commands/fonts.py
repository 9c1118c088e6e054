"""Draws text of any script into pictures, with the fonts that the machine has.

Every character is drawn in the first font that has it. Fonts are looked for where Debian, macOS and
Windows keep them, and in matplotlib, which includes DejaVu; the fallback is Pillow's own font, of
which only ASCII is used.
"""

import functools
import importlib.util
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from fontTools.ttLib import TTFont
from PIL import Image, ImageDraw, ImageFont

FOLDERS: Final = (
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "~/.local/share/fonts",
    "~/.fonts",
    "/System/Library/Fonts",
    "/Library/Fonts",
    "~/Library/Fonts",
    "C:/Windows/Fonts",
)
# Plain faces of wide coverage come first, by their files' names, and coloured ones last.
_FIRST: Final = ("DejaVuSans", "NotoSans-Regular", "LiberationSans-Regular", "Arial", "NotoSans")
_STYLED: Final = re.compile(
    r"Bold|Italic|Oblique|Light|Thin|Black|Medium|Condensed|Serif|Mono|Math|Display|Looped|Unifont",
    re.I,
)
_COLOURED: Final = re.compile(r"Emoji", re.I)
_EMPTY: Final = ("LastResort", "AdobeBlank")  # they have a box, or nothing, for every character
_KINDS: Final = (".ttf", ".otf", ".ttc")
_ASCII: Final = frozenset(range(0x20, 0x7F))
# Marks, joiners and skin tones are drawn by the font of the character before them.
_ATTACHED: Final = ("Mn", "Mc", "Me", "Cf", "Sk")
_EMOJI: Final = range(0x1F000, 0x20000)
_PACKAGES: Final = {
    "CJK": "fonts-noto-cjk",
    "HIRAGANA": "fonts-noto-cjk",
    "KATAKANA": "fonts-noto-cjk",
    "HANGUL": "fonts-noto-cjk",
    "EMOJI": "fonts-noto-color-emoji",
}
"""Debian's packages by script; fonts-noto-core has the other scripts."""


def font_files(folders: Iterable[str] = FOLDERS) -> tuple[Path, ...]:
    """Returns the font files in some folders and in matplotlib, the preferred ones first."""
    roots = [Path(os.path.expanduser(folder)) for folder in folders]
    files = (path for root in roots for path in root.rglob("*"))
    found = {path for path in files if path.suffix.lower() in _KINDS and path.stem not in _EMPTY}
    return tuple(sorted(found | set(_of_matplotlib()), key=_rank))


def _of_matplotlib() -> Iterator[Path]:
    spec = importlib.util.find_spec("matplotlib")
    if spec is not None and spec.origin is not None:
        yield from Path(spec.origin).parent.glob("mpl-data/fonts/ttf/DejaVuSans.ttf")


def _rank(path: Path) -> tuple[bool, bool, int, str]:
    first = _FIRST.index(path.stem) if path.stem in _FIRST else len(_FIRST)
    return bool(_COLOURED.search(path.stem)), bool(_STYLED.search(path.stem)), first, str(path)


@dataclass(frozen=True, slots=True, eq=False)
class Face:
    """A font in one size.

    Attributes:
      font: Pillow's.
      characters: the code points that it has.
      scale: the factor for bitmap fonts, such as emoji, which come in one size only; else 1.
    """

    font: ImageFont.FreeTypeFont
    characters: frozenset[int]
    scale: float = 1.0


@dataclass(slots=True, eq=False)
class Lettering:
    """Measures and draws lines of text.

    Attributes:
      size_px: height of the letters.
      files: the fonts, the preferred ones first.
      missing: the scripts of characters that no font has.
    """

    size_px: int
    files: tuple[Path, ...] = field(default_factory=font_files)
    missing: set[str] = field(default_factory=set)
    _faces: list[Face] = field(default_factory=list)
    _unread: list[Path] = field(default_factory=list)
    _chosen: dict[str, Face] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Defers reading the fonts until a character needs them."""
        self._unread = list(self.files)

    def width(self, text: str) -> float:
        """Returns the width of a line in pixels."""
        return sum(face.font.getlength(run) * face.scale for face, run in self._runs(text))

    def draw(self, image: Image.Image, place: tuple[int, int], text: str, ink: Any) -> None:
        """Draws a line with its upper left corner at `place`; all fonts share one baseline."""
        x, baseline = float(place[0]), place[1] + self.size_px
        runs = list(self._runs(text))
        for face, run in reversed(runs) if _is_rtl(text) else runs:
            if face.scale == 1.0:
                ImageDraw.Draw(image).text(
                    (x, baseline),
                    run,
                    ink,
                    face.font,
                    anchor="ls",
                    direction=_direction(face, run, text),
                )
            else:
                _paste_scaled(image, (round(x), baseline), face, run)
            x += face.font.getlength(run) * face.scale

    def _runs(self, text: str) -> Iterator[tuple[Face, str]]:
        """Yields the runs of a text with their fonts."""
        faces: list[Face] = []
        for word in re.findall(r"\s+|\S+", text):
            whole = self._face_of_word(word, faces[-1] if faces else None)
            for character in word:
                before = faces[-1] if faces else None
                faces.append(whole or self._face_of(character, before))
        for face, part in groupby(zip(faces, text, strict=True), key=lambda pair: pair[0]):
            yield face, "".join(character for _, character in part)

    def _face_of_word(self, word: str, before: Face | None) -> Face | None:
        """Returns one font for a whole word, since its letters may join or stack; None if none."""
        wanted = {ord(character) for character in word if character.isprintable()}
        is_common = not any(character.isalpha() for character in word)
        if before is not None and is_common and before.scale == 1.0 and wanted <= before.characters:
            return before
        return next((face for face in self._all_faces() if wanted <= face.characters), None)

    def _face_of(self, character: str, before: Face | None) -> Face:
        if before is not None and unicodedata.category(character) in _ATTACHED:
            return before
        if character not in self._chosen:
            self._chosen[character] = self._search(character)
        return self._chosen[character]

    def _search(self, character: str) -> Face:
        for face in self._all_faces():
            if ord(character) in face.characters:
                return face
        if character.isprintable():
            self.missing.add(script_of(character))
        return self._faces[0]

    def _all_faces(self) -> Iterator[Face]:
        """Yields the fonts in order; each is read on demand, and kept."""
        number = 0
        while number < len(self._faces) or self._read_one():
            yield self._faces[number]
            number += 1

    def _read_one(self) -> bool:
        """Reads one more font; returns whether there was any."""
        while self._unread:
            face = _read(str(self._unread.pop(0)), self.size_px)
            if face is not None:
                self._faces.append(face)
                return True
        if not self._faces:
            font = ImageFont.load_default(self.size_px)
            assert isinstance(font, ImageFont.FreeTypeFont)
            self._faces.append(Face(font, _ASCII))
            return True
        return False


@functools.cache
def _read(path: str, size_px: int) -> Face | None:
    """Returns a font; None if it cannot be used."""
    try:
        with open(path, "rb") as stream, TTFont(stream, fontNumber=0, lazy=True) as tables:
            characters = frozenset(tables.getBestCmap() or ())
            native = None if _has_outlines(tables) else _native_size(tables)
        font = ImageFont.truetype(path, native or size_px)
    except Exception:  # damaged, of another format, or a bitmap font of unknown size
        return None
    return Face(font, characters, size_px * 1.15 / native if native else 1.0)


def _has_outlines(tables: Any) -> bool:
    return any(name in tables for name in ("glyf", "CFF ", "CFF2")) and "sbix" not in tables


def _native_size(tables: Any) -> int:
    if "sbix" in tables:
        return max(tables["sbix"].strikes)
    return max(strike.bitmapSizeTable.ppemY for strike in tables["CBLC"].strikes)


def _paste_scaled(image: Image.Image, place: tuple[int, int], face: Face, run: str) -> None:
    left, top, right, bottom = (round(each) for each in face.font.getbbox(run, anchor="ls"))
    drawn = Image.new("RGBA", (max(1, right - left), max(1, bottom - top)))
    ImageDraw.Draw(drawn).text((-left, -top), run, font=face.font, anchor="ls", embedded_color=True)
    size = [max(1, round(side * face.scale)) for side in drawn.size]
    small = drawn.resize((size[0], size[1]), Image.Resampling.LANCZOS)
    x, y = place
    image.paste(small, (x + round(left * face.scale), y + round(top * face.scale)), small)


def _is_rtl(text: str) -> bool:
    """Tells whether a line reads from right to left, by its first letter."""
    kinds = (unicodedata.bidirectional(character) for character in text)
    return next((kind for kind in kinds if kind in ("L", "R", "AL")), "L") != "L"


def _direction(face: Face, run: str, line: str) -> str | None:
    """Returns the direction of a run for Raqm, which shapes text; None without Raqm."""
    if face.font.layout_engine != ImageFont.Layout.RAQM:
        return None
    has_rtl = any(unicodedata.bidirectional(character) in ("R", "AL") for character in run)
    return "rtl" if has_rtl and _is_rtl(line) else "ltr"


def script_of(character: str) -> str:
    """Returns the script of a character, by the first word of its name, such as `CYRILLIC`."""
    if ord(character) in _EMOJI:
        return "EMOJI"
    word = unicodedata.name(character, "UNASSIGNED").split()[0].split("-")[0]
    return "CJK" if word in ("FULLWIDTH", "IDEOGRAPHIC", "KANGXI", "BOPOMOFO") else word


def advice(missing: Iterable[str]) -> str:
    """Returns a sentence that says which scripts have no font, and which packages have one."""
    scripts = sorted(missing)
    packages = sorted({_PACKAGES.get(script, "fonts-noto-core") for script in scripts})
    return (
        f"no font for {', '.join(script.lower() for script in scripts)}: boxes stand in their "
        f"place; the packages of Debian that have one: {', '.join(packages)}"
    )
