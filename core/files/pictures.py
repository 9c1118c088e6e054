"""The only image decoder: encoded images become upright RGB, as viewers and Hugging Face show them.

Building, checking, scoring, training and plotting all see the same pixels.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
from PIL import ExifTags, Image, ImageOps

from eqforge.core.files.source_file import LFS_POINTER

if TYPE_CHECKING:
    from numpy.typing import NDArray


VERSION: Final = "2"
"""Version of the decoded pixels; recorded with their measurements."""

SUFFIXES: Final = {
    "JPEG": ".jpg",
    "MPO": ".jpg",  # a JPEG followed by more images, as phones write; the first counts
    "PNG": ".png",
    "WEBP": ".webp",
    "GIF": ".gif",
    "BMP": ".bmp",
    "TIFF": ".tif",
}
"""Supported formats, and their file suffixes.

Others are rejected: Pillow hands PostScript to an interpreter, and some formats to old decoders.
"""

FILE_SUFFIXES: Final = (*sorted(set(SUFFIXES.values())), ".jpeg", ".tiff")
"""All suffixes of image files, in lower case."""

MAX_PIXELS: Final = 2**26
"""Larger images are rejected undecoded unless a setting says otherwise."""

_OPENED: Final = tuple(sorted(SUFFIXES.keys() - {"MPO"}))  # which Pillow opens as JPEG
_CLOCKWISE_DEG: Final = {3: 180, 4: 180, 5: 270, 6: 90, 7: 90, 8: 270}  # by EXIF's orientation
_BITS, _PHOTOMETRIC, _WHITE_IS_ZERO = 258, 262, 0  # of TIFF 6.0, section 8


class BadImage(ValueError):
    """Bytes are not a readable image; the message is the same in every process."""


class TooManyPixels(ValueError):
    """An image has too many pixels to be decoded."""

    def __init__(self, pixels: int) -> None:
        super().__init__(f"{pixels} pixels")
        self.pixels = pixels


def read_pixels(data: bytes, max_pixels: int | None = None) -> NDArray[np.uint8]:
    """Decode an encoded image to RGB, uint8 [height, width, 3]; see `open_rgb`."""
    return np.asarray(open_rgb(data, max_pixels))


def open_rgb(data: bytes, max_pixels: int | None = None) -> Image.Image:
    """Decode an encoded image to RGB, rotated and mirrored as its EXIF says.

    Damaged EXIF is ignored. CMYK and 16 bits become 8-bit RGB; transparency and colour profiles are
    dropped; only the first of several images in a file counts.

    Args:
      max_pixels: larger images are not decoded; None keeps Pillow's own limit, 178,956,970.

    Raises:
      TooManyPixels: the image is too large.
      BadImage: it is damaged, cut short, or in a format outside SUFFIXES.
    """
    with opened(data, max_pixels) as image:
        return _upright_rgb(image)


def read_untrusted(data: bytes, max_pixels: int) -> tuple[str, NDArray[np.uint8]]:
    """Decode a user's image; return its suffix and its pixels, uint8 [height, width, 3]."""
    with opened(data, max_pixels) as image:
        suffix = SUFFIXES[image.format or ""]
        return suffix, np.asarray(_upright_rgb(image))


def read_frame(data: bytes, max_pixels: int) -> tuple[int, NDArray[np.uint8]]:
    """Decode a frame; return its rotation in degrees and uint8 pixels [height, width, 3]."""
    with opened(data, max_pixels) as image:
        upright = _upright_rgb(image)
        return _CLOCKWISE_DEG.get(_orientation(image), 0), np.asarray(upright)


@contextlib.contextmanager
def opened(
    data: bytes, max_pixels: int | None = None, formats: tuple[str, ...] = _OPENED
) -> Iterator[Image.Image]:
    """Open an encoded image as stored, and convert Pillow's errors in the block.

    Errors and `max_pixels` are as in `open_rgb`; `formats` are Pillow's names.
    """
    from PIL import UnidentifiedImageError

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of damaged EXIF and many pixels: handled here
        try:
            with Image.open(io.BytesIO(data), formats=formats) as image:
                pixels = image.width * image.height
                if max_pixels is not None and pixels > max_pixels:
                    raise TooManyPixels(pixels)
                yield image
        except UnidentifiedImageError as error:
            if data.startswith(LFS_POINTER):
                raise BadImage("it is a Git LFS pointer; run `git lfs pull`") from error
            raise BadImage(f"not a readable image (formats: {', '.join(formats)})") from error
        except Image.DecompressionBombError as error:
            found = re.search(r"\((\d+) pixels\)", str(error))
            raise TooManyPixels(int(found[1]) if found else MAX_PIXELS + 1) from error
        except (BadImage, TooManyPixels, MemoryError):
            raise
        except Exception as error:  # a damaged file can make decoders raise anything
            message = re.sub(r"0x[0-9a-f]+", "0x", f"{type(error).__name__}: {error}")
            raise BadImage(
                message[:200] if message.isprintable() else ascii(message)[:200]
            ) from error


def stored_rgb(image: Image.Image) -> Image.Image:
    """Return an opened image in RGB without rotation, as renderers take textures."""
    image.load()
    return _rgb(image, _grey_bits(image))


def why_unreadable(data: bytes, max_pixels: int = MAX_PIXELS) -> str | None:
    try:
        with opened(data, max_pixels) as image:
            stored_rgb(image)
    except TooManyPixels as error:
        return f"it has {error.pixels:,} pixels, more than {max_pixels:,}"
    except BadImage as error:
        return str(error)
    return None


def _upright_rgb(image: Image.Image) -> Image.Image:
    image.load()
    bits, upright = _grey_bits(image), image
    with contextlib.suppress(Exception):
        upright = ImageOps.exif_transpose(image) if _orientation(image) != 1 else image
    return _rgb(upright, bits)


def _rgb(image: Image.Image, bits: int) -> Image.Image:
    if image.mode in ("I", "F"):
        raise BadImage("its pixels are signed or 32-bit numbers, not colours")
    if image.mode.startswith("I;16"):  # which Pillow would clip to white
        return Image.fromarray((np.asarray(image) >> (bits - 8)).astype(np.uint8)).convert("RGB")
    return image.convert("RGB")


def _grey_bits(image: Image.Image) -> int:
    """Return the bit depth of a grey image of more than 8 bits: 16, except in TIFF."""
    tags = getattr(image, "tag_v2", {})
    if not image.mode.startswith("I;16") or not tags:
        return 16
    if tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO:
        raise BadImage("it is a 16-bit TIFF in which 0 is white")  # which Pillow does not invert
    return int(tags.get(_BITS, (16,))[0])


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:
        return 1
