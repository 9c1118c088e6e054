"""Text of many scripts: every character is drawn by a font that has it, or said to be missing."""

import unicodedata
from pathlib import Path

import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib import TTFont
from PIL import Image, features

from eqforge.commands.fonts import Lettering, advice, font_files

SIZE = 16
DOG = "狗"


@pytest.fixture(scope="module")
def dejavu() -> Path:
    """DejaVu Sans, as matplotlib brings it: Latin, Greek, Cyrillic, Arabic, Hebrew."""
    matplotlib = pytest.importorskip("matplotlib")
    return Path(matplotlib.__file__).parent / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf"


@pytest.fixture(scope="module")
def squares(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A font with one character, a black square as wide as it is high."""
    pen = TTGlyphPen(None)
    for place, point in enumerate([(0, 0), (0, 1000), (1000, 1000), (1000, 0)]):
        (pen.lineTo if place else pen.moveTo)(point)
    pen.closePath()
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder([".notdef", "dog"])
    builder.setupCharacterMap({ord(DOG): "dog"})
    builder.setupGlyf({".notdef": TTGlyphPen(None).glyph(), "dog": pen.glyph()})
    builder.setupHorizontalMetrics({".notdef": (500, 0), "dog": (1000, 0)})
    builder.setupHorizontalHeader(ascent=1000, descent=0)
    builder.setupNameTable({"familyName": "Squares", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    file = tmp_path_factory.mktemp("fonts") / "Squares.ttf"
    builder.save(file)
    return file


def drawn(lettering: Lettering, text: str, width: int = 200) -> np.ndarray:
    """The ink of a line, in [0, 255]."""
    image = Image.new("RGB", (width, 2 * SIZE), "white")
    lettering.draw(image, (0, 0), text, (0, 0, 0))
    return 255 - np.asarray(image.convert("L")).astype(int)


@pytest.mark.parametrize("text", ["é", "ü", "ß", "ж", "Ω", "ش", "א", "ế", "→"])
def test_a_character_is_drawn_and_is_no_box(dejavu: Path, text: str) -> None:
    lettering = Lettering(SIZE, (dejavu,))
    box = drawn(Lettering(SIZE, (dejavu,)), DOG)

    ink = drawn(lettering, text)

    assert not lettering.missing
    assert ink.max() > 128
    assert not np.array_equal(ink, box)


def test_the_first_font_that_has_a_character_draws_it(dejavu: Path, squares: Path) -> None:
    lettering = Lettering(SIZE, (dejavu, squares))
    plain = drawn(Lettering(SIZE, (dejavu,)), "ab ")

    ink = drawn(lettering, f"ab {DOG}c")

    start = lettering.width("ab ")
    assert lettering.width(f"ab {DOG}") == start + SIZE
    left, right = round(start) + 1, round(start) + SIZE - 1
    assert (ink[1 : SIZE - 1, left:right] == 255).all()  # the square stands on the baseline
    assert (ink[SIZE + 4 :, left:right] == 0).all()
    assert np.array_equal(ink[:, : left - 2], plain[:, : left - 2])
    assert ink[:, right + 2 :].max() > 128  # the letter behind it
    assert not lettering.missing


def test_a_word_is_drawn_by_one_font_where_one_has_all_of_it(dejavu: Path, tmp_path: Path) -> None:
    """Letters of two fonts would not join."""
    with TTFont(dejavu) as font:
        for table in font["cmap"].tables:
            table.cmap.pop(ord("b"), None)
        font.save(tmp_path / "Lacking.ttf")
    lettering = Lettering(SIZE, (tmp_path / "Lacking.ttf", dejavu))

    parts = [part for _, part in lettering._runs("aca ab ca")]

    assert parts == ["aca ", "ab ", "ca"]
    assert [part for _, part in lettering._runs(f"ab{DOG}")] == ["a", "b", DOG]
    assert lettering.missing == {"CJK"}


def test_what_no_font_has_is_named_with_the_package_that_has_it(dejavu: Path) -> None:
    lettering = Lettering(SIZE, (dejavu,))

    drawn(lettering, "两只狗。한 हिन्दी 🐶 café", width=400)

    assert lettering.missing == {"CJK", "HANGUL", "DEVANAGARI", "EMOJI"}
    said = advice(lettering.missing)
    assert said.startswith("no font for cjk, devanagari, emoji, hangul:")
    assert said.endswith(": fonts-noto-cjk, fonts-noto-color-emoji, fonts-noto-core")


def test_without_fonts_the_letters_of_english_are_drawn(tmp_path: Path) -> None:
    (tmp_path / "broken.ttf").write_bytes(b"no font")
    lettering = Lettering(SIZE, (tmp_path / "broken.ttf",))

    assert drawn(lettering, "A dog & 2 cats").max() > 128
    assert not lettering.missing
    drawn(lettering, "é")
    assert lettering.missing == {"LATIN"}


@pytest.mark.skipif(not features.check("raqm"), reason="Pillow has no Raqm here")
def test_hebrew_runs_from_right_to_left_and_arabic_letters_join(dejavu: Path) -> None:
    lettering = Lettering(SIZE, (dejavu,))
    first, second = "ש", "ל"

    ink = drawn(lettering, first + second)

    alone = drawn(lettering, first)
    width = round(lettering.width(first))
    at = round(lettering.width(second))
    assert np.array_equal(ink[:, at + 1 : at + width - 1], alone[:, 1 : width - 1])
    apart = sum(lettering.width(letter) for letter in "كلب")
    assert lettering.width("كلب") < apart  # the forms within a word are narrower


def test_a_right_to_left_line_of_two_fonts_begins_on_the_right(dejavu: Path, squares: Path) -> None:
    lettering = Lettering(SIZE, (dejavu, squares))

    ink = drawn(lettering, f"שלום{DOG}")

    assert (ink[1 : SIZE - 1, 1 : SIZE - 1] == 255).all()


def test_marks_and_joiners_stay_with_the_font_of_their_letter(dejavu: Path) -> None:
    lettering = Lettering(SIZE, (dejavu,))

    drawn(lettering, unicodedata.normalize("NFD", "é") + "\u200d\ufe0f")

    assert not lettering.missing


def test_fonts_are_found_in_order_of_use(tmp_path: Path) -> None:
    names = ["NotoColorEmoji.ttf", "Zed.otf", "DejaVuSans-Bold.ttf", "deep/DejaVuSans.ttf"]
    for name in [*names, "notes.txt", "LastResort.otf"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")

    found = [path for path in font_files([str(tmp_path)]) if path.is_relative_to(tmp_path)]

    assert [path.name for path in found] == [
        "DejaVuSans.ttf",
        "Zed.otf",
        "DejaVuSans-Bold.ttf",
        "NotoColorEmoji.ttf",
    ]
    assert font_files([str(tmp_path / "none")]) == tuple(
        path for path in font_files([]) if path.name == "DejaVuSans.ttf"
    )


@pytest.mark.skipif(
    not any(path.stem == "NotoColorEmoji" for path in font_files()), reason="no font of emoji"
)
def test_emoji_are_drawn_in_colour_and_in_the_size_of_letters() -> None:
    lettering = Lettering(SIZE)
    image = Image.new("RGB", (60, 2 * SIZE), "white")

    lettering.draw(image, (0, 4), "\U0001f436", (0, 0, 0))

    pixels = np.asarray(image).astype(int)
    assert np.ptp(pixels, axis=2).max() > 50  # colours
    assert SIZE * 0.8 < lettering.width("\U0001f436") < SIZE * 1.8
