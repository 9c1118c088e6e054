"""Images that are damaged, huge or unusual: each is taken upright, or is a reject with a reason."""

import io
import json
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eqforge.commands import verify
from eqforge.core.files.pictures import read_pixels
from eqforge.pipelines import retrieval_perturbations
from tests.builds import reasons, rows
from tests.fuzz.mutate import with_sums

GRADIENT = np.linspace(0, 255, 60 * 40 * 3, dtype=np.uint8).reshape(40, 60, 3)
LIMIT_MB = 900


def encoded(image: Image.Image, kind: str, **settings: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **settings)
    return stream.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_bomb() -> bytes:
    """A billion and a half white pixels in 180 kB."""
    side = 40_000
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0))
    packer = zlib.compressobj(9)
    row = b"\0" + b"\xff" * (side // 8)
    data = b"".join(packer.compress(row * 100) for _ in range(side // 100)) + packer.flush()
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def text_bomb() -> bytes:
    """A comment of 200 MB that is packed into 200 kB."""
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(b"a" * 10**6) for _ in range(200)) + packer.flush()
    good = encoded(PICTURE, "PNG")
    return good[:33] + chunk(b"zTXt", b"Comment\0\0" + data) + good[33:]


def with_byte(data: bytes, place: int, value: int) -> bytes:
    return data[:place] + bytes([data[place] ^ value]) + data[place + 1 :]


PICTURE = Image.fromarray(GRADIENT)
GOOD_PNG, GOOD_JPEG = encoded(PICTURE, "PNG"), encoded(PICTURE, "JPEG", quality=95)
REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "zero-byte.jpg": (lambda: b"", "undecodable_image"),
    "truncated.jpg": (lambda: GOOD_JPEG[: len(GOOD_JPEG) // 2], "undecodable_image"),
    "header-alone.jpg": (lambda: GOOD_JPEG[:200], "undecodable_image"),
    "truncated.png": (lambda: GOOD_PNG[: len(GOOD_PNG) // 2], "undecodable_image"),
    "bad-sum-of-header.png": (lambda: with_byte(GOOD_PNG, 29, 1), "undecodable_image"),
    "bad-pixels.png": (lambda: with_sums(with_byte(GOOD_PNG, 80, 8)), "undecodable_image"),
    "measured.tif": (
        lambda: encoded(Image.fromarray(GRADIENT[..., 0].astype(np.float32)), "TIFF"),
        "undecodable_image",
    ),
    "truncated.tif": (lambda: encoded(PICTURE, "TIFF")[:4000], "undecodable_image"),
    "picture.svg": (lambda: b"<svg xmlns='http://www.w3.org/2000/svg'/>", "undecodable_image"),
    "script.eps": (
        lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
        "undecodable_image",
    ),
    "bomb.png": (png_bomb, "too_many_pixels"),
    "text-bomb.png": (text_bomb, "undecodable_image"),
    "screen.gif": (
        lambda: b"GIF89a\xff\xff\xff\xff" + encoded(PICTURE.convert("P"), "GIF")[10:],
        "too_many_pixels",
    ),
}


def build(folder: Path, images: dict[str, bytes], *more: str) -> tuple[int, Path]:
    """Builds a dataset of one caption for each image; returns status and folder."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    lines = []
    for name, data in images.items():
        (folder / "images" / name).write_bytes(data)
        lines.append({"image": name, "caption": f"Two dogs on a bench, {name.split('.')[0]}."})
    captions = folder / "captions.jsonl"
    captions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    argv = ["--captions", str(captions), "--images", str(folder / "images")]
    output = folder / "out"
    status = retrieval_perturbations.main([*argv, *more, "--output", str(output)])
    return status, output


def test_images_that_cannot_be_read_are_rejects(tmp_path: Path) -> None:
    images = {name: make() for name, (make, _) in REFUSED.items()} | {"good.png": GOOD_PNG}

    status, output = build(tmp_path, images)

    assert status == 0
    expected = [reason for _, reason in REFUSED.values()]
    assert reasons(output, "captions") == {name: expected.count(name) for name in set(expected)}
    rejects = rows(output, "rejects")
    found = {row["source_id"]: row["reason"] for row in rejects}
    assert found == {name: reason for name, (_, reason) in REFUSED.items()}
    assert {row["image"] for row in rows(output, "samples")} == {"good.png"}
    # The same words in every process: no address of memory stands in a row.
    assert all("0x7f" not in (row["detail"] or "") for row in rejects)

    status, output = build(tmp_path, dict.fromkeys(images, GOOD_PNG), "--overwrite")

    assert status == 0
    assert not rows(output, "rejects")


UNUSUAL: dict[str, bytes] = {
    "cmyk.jpg": encoded(PICTURE.convert("CMYK"), "JPEG", quality=95),
    "sixteen.png": encoded(Image.fromarray(GRADIENT[..., 0].astype("<u2") * 257), "PNG"),
    "animated.gif": encoded(
        PICTURE.convert("P"), "GIF", save_all=True, append_images=[Image.new("P", (60, 40), 3)]
    ),
    "palette.png": encoded(PICTURE.convert("P"), "PNG", transparency=0),
    "alpha.png": encoded(PICTURE.convert("RGBA"), "PNG"),
    "bad-sum-of-pixels.png": GOOD_PNG[:-16] + bytes(4) + GOOD_PNG[-12:],
    "lossless.webp": encoded(PICTURE, "WEBP", lossless=True),
    "page.tif": encoded(PICTURE, "TIFF"),
    "telephone.jpg": encoded(
        PICTURE, "MPO", quality=95, save_all=True, append_images=[Image.new("RGB", (60, 40))]
    ),
}


def turned(orientation: int) -> bytes:
    """A JPEG that its EXIF turns."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(PICTURE, "JPEG", quality=95, exif=exif)


def test_unusual_images_are_taken_as_they_look(tmp_path: Path) -> None:
    images = UNUSUAL | {"turned.jpg": turned(6), "damaged-exif.jpg": with_damaged_exif()}

    status, output = build(tmp_path, images)

    assert status == 0
    assert not rows(output, "rejects")
    stored = {row["image_id"]: row for row in rows(output, "images")}
    shown = {row["image"]: stored[row["image_id"]] for row in rows(output, "samples")}
    assert {name: row["image"]["bytes"] for name, row in shown.items()} == images
    sizes = {name: (row["width_px"], row["height_px"]) for name, row in shown.items()}
    assert sizes == dict.fromkeys(images, (60, 40)) | {"turned.jpg": (40, 60)}
    assert verify.main([str(output)]) == 0
    for name in images:
        pixels = read_pixels(images[name]).astype(int)
        right = GRADIENT.astype(int) if name != "sixteen.png" else GRADIENT[..., :1].astype(int)
        right = np.rot90(right, -1) if name == "turned.jpg" else right
        assert np.abs(pixels - right).mean() < 20, name


def with_damaged_exif() -> bytes:
    """A JPEG whose EXIF says that it is turned, in a place that is not there."""
    data = turned(6)
    place = data.index(b"Exif\0\0")
    return data[: place + 10] + b"\xff\xff\xff\xff" + data[place + 14 :]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_orientation_is_set_upright(orientation: int) -> None:
    """Against what the eight values mean: where the first row and column of the file are shown."""
    turns: dict[int, Callable[[Any], Any]] = {
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.transpose(1, 0, 2),
        6: lambda a: a.transpose(1, 0, 2)[:, ::-1],
        7: lambda a: a.transpose(1, 0, 2)[::-1, ::-1],
        8: lambda a: a.transpose(1, 0, 2)[::-1],
    }
    raw = np.asarray(Image.open(io.BytesIO(GOOD_JPEG)))

    assert np.array_equal(read_pixels(turned(orientation)), turns[orientation](raw))


_READ = f"""
import resource, sys
from eqforge.core.files.source_folder import SourceFolder
from eqforge.schemas.records.scores import Rejection
from eqforge.transforms.dataset.image_folder import ImageFolder
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = ImageFolder(SourceFolder(sys.argv[1]), sys.argv[2]).find("large.jpg")
assert isinstance(found, Rejection) == (sys.argv[3] == "refused"), found
more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
print(more)
assert more < (50 if sys.argv[3] == "refused" else {LIMIT_MB}), more
"""


@pytest.mark.parametrize(("side", "what"), [(10_000, "refused"), (8_000, "taken")])
def test_a_jpeg_of_a_hundred_megapixels_takes_no_memory(
    tmp_path: Path, side: int, what: str
) -> None:
    """Of 64 megapixels, just under the limit, one takes less than a gigabyte."""
    Image.new("L", (side, side)).save(tmp_path / "large.jpg")
    argv = [sys.executable, "-c", _READ, str(tmp_path), str(tmp_path / "media"), what]
    environment = os.environ | {"PYTHONPATH": ""}

    found = subprocess.run(argv, capture_output=True, text=True, env=environment, check=False)

    assert found.returncode == 0, found.stderr
