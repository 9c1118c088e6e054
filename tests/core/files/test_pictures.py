"""The one decoder: what each kind of picture looks like, against arithmetic of its own."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from eqforge.core.files.pictures import (
    FILE_SUFFIXES,
    BadImage,
    TooManyPixels,
    open_rgb,
    read_pixels,
    read_untrusted,
)
from eqforge.transforms.filters.near_duplicates import hash_folder

Pixels = NDArray[np.uint8]
COLOURS: Pixels = np.random.default_rng(0).integers(0, 256, (30, 40, 3), dtype=np.uint8)
DEEP: NDArray[np.uint16] = np.random.default_rng(1).integers(0, 2**16, (30, 40), dtype=np.uint16)
ORIENTATION = 0x0112


def encoded(image: Image.Image, kind: str, **settings: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **settings)
    return stream.getvalue()


def grey(values: Any) -> Pixels:
    """What a grey of 8 bits looks like in RGB."""
    return np.repeat(np.asarray(values, np.uint8)[..., None], 3, axis=2)


def turned(kind: str) -> bytes:
    """COLOURS stored lying on its side, and EXIF that says so."""
    exif = Image.Exif()
    exif[ORIENTATION] = 6  # the first row of the file is the right-hand side of the picture
    return encoded(Image.fromarray(np.rot90(COLOURS)), kind, exif=exif)


def big_endian_tiff() -> bytes:
    image = Image.frombytes("I;16B", (40, 30), DEEP.astype(">u2").tobytes())
    return encoded(image, "TIFF")


def two_pixels(bits: int, data: bytes, photometric: int = 1) -> bytes:
    """A grey TIFF of two pixels, tag by tag."""
    entries = [(256, 2), (257, 1), (258, bits), (259, 1), (262, photometric)]
    entries += [(273, 8 + 2 + 12 * 9 + 4), (277, 1), (278, 1), (279, len(data))]
    parts = [b"II*\0", (8).to_bytes(4, "little"), len(entries).to_bytes(2, "little")]
    for tag, value in entries:
        parts.append(tag.to_bytes(2, "little") + (4).to_bytes(2, "little"))
        parts.append((1).to_bytes(4, "little") + value.to_bytes(4, "little"))
    return b"".join([*parts, bytes(4), data])


def inked() -> tuple[bytes, Pixels]:
    """A CMYK TIFF, and its colours as printers mix them: what neither ink nor black covers."""
    inks = np.random.default_rng(2).integers(0, 256, (30, 40, 4), dtype=np.uint8)
    left = (255.0 - inks[..., :3]) * (255.0 - inks[..., 3:]) / 255
    return encoded(Image.fromarray(inks, "CMYK"), "TIFF"), left.round().astype(np.uint8)


def with_palette() -> tuple[bytes, Pixels]:
    """Two hundred colours, one of which is called transparent, which changes none."""
    palette = np.random.default_rng(3).integers(0, 256, (200, 3), dtype=np.uint8)
    numbers = np.random.default_rng(4).integers(0, 200, (30, 40), dtype=np.uint8)
    image = Image.fromarray(numbers, "L")
    image.putpalette(palette.tobytes())
    return encoded(image, "PNG", transparency=7), palette[numbers]


CASES: dict[str, Callable[[], tuple[bytes, Pixels]]] = {
    "plain": lambda: (encoded(Image.fromarray(COLOURS), "PNG"), COLOURS),
    "turned PNG": lambda: (turned("PNG"), COLOURS),
    "turned TIFF": lambda: (turned("TIFF"), COLOURS),
    "grey of 16 bits": lambda: (encoded(Image.fromarray(DEEP), "PNG"), grey(DEEP >> 8)),
    "grey of 16 bits, a value transparent": lambda: (
        encoded(Image.fromarray(DEEP), "PNG", transparency=300),
        grey(DEEP >> 8),
    ),
    "TIFF of 16 bits": lambda: (encoded(Image.fromarray(DEEP), "TIFF"), grey(DEEP >> 8)),
    "TIFF of 16 bits, big end first": lambda: (big_endian_tiff(), grey(DEEP >> 8)),
    "TIFF of 12 bits": lambda: (
        two_pixels(12, bytes([0xAB, 0xC1, 0x23])),  # 0xABC and 0x123
        grey([[0xAB, 0x12]]),
    ),
    "palette": with_palette,
    "inks": inked,
    "transparent": lambda: (
        encoded(Image.fromarray(np.dstack([COLOURS, COLOURS[..., :1]]), "RGBA"), "PNG"),
        COLOURS,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_picture_has_the_pixels_a_viewer_shows(name: str) -> None:
    data, expected = CASES[name]()

    found = read_pixels(data)

    assert found.dtype == np.uint8
    difference = np.abs(found.astype(int) - expected.astype(int))
    assert difference.max() <= (1 if name == "inks" else 0)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n", "formats"),
        (encoded(Image.fromarray(COLOURS), "PPM"), "formats"),
        (encoded(Image.fromarray(COLOURS), "PNG")[:900], "OSError"),
        (encoded(Image.fromarray(DEEP.astype(np.float32)), "TIFF"), "32-bit"),
        (encoded(Image.fromarray(DEEP.astype(np.int32)), "TIFF"), "32-bit"),
        (two_pixels(16, bytes([1, 2, 3, 4]), photometric=0), "0 is white"),
    ],
    ids=["PostScript", "PPM", "cut short", "real numbers", "32 bits", "white is 0"],
)
def test_what_cannot_be_shown_is_a_bad_image(data: bytes, said: str) -> None:
    with pytest.raises(BadImage, match=said):
        open_rgb(data)


def test_more_pixels_than_the_limit_are_not_decoded() -> None:
    data = encoded(Image.fromarray(COLOURS), "PNG")

    assert read_pixels(data, 1_200).shape == (30, 40, 3)
    with pytest.raises(TooManyPixels) as refused:
        read_pixels(data[:60], 1_199)  # all but the header is gone
    assert refused.value.pixels == 1_200


def test_the_end_of_the_name_follows_from_the_content() -> None:
    for kind, suffix in (("JPEG", ".jpg"), ("TIFF", ".tif"), ("WEBP", ".webp")):
        found, pixels = read_untrusted(encoded(Image.fromarray(COLOURS), kind), 1_200)
        assert found == suffix
        assert found in FILE_SUFFIXES
        assert pixels.shape == (30, 40, 3)


def test_nothing_else_opens_pictures_of_any_format() -> None:
    """Pillow tries every format it knows, PostScript among them, where none are named."""
    root = Path(__file__).parents[3]
    package = root / "src" / "eqforge"
    folders = [package, *(link.resolve() for link in package.iterdir() if link.is_symlink())]
    files = [file for folder in folders for file in folder.rglob("*.py")]
    opening = re.compile(r"Image\.open\((?!.*formats=)|imread\(|imdecode\(|read_image\(")

    found = [file.name for file in files if opening.search(file.read_text(encoding="utf-8"))]

    assert len(files) > 200
    assert found == ["environments.py"]  # of Radiance pictures, whose first bytes it checks


def test_a_folder_of_training_images_is_searched_for_every_format(tmp_path: Path) -> None:
    for kind, name in (("TIFF", "a.TIF"), ("TIFF", "b.tiff"), ("PNG", "c.png"), ("PPM", "d.ppm")):
        (tmp_path / name).write_bytes(encoded(Image.fromarray(COLOURS), kind))

    found = hash_folder(str(tmp_path))

    assert found.names == ("a.TIF", "b.tiff", "c.png")
    assert len(set(map(tuple, found.hashes.tolist()))) == 1
    assert not found.unreadable
