"""Decodes an encoded image to upright RGB pixels, as viewers and Hugging Face show it."""

import io
import re
import warnings

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

SUFFIXES = {
    "JPEG": ".jpg",
    "MPO": ".jpg",  # a JPEG with more pictures behind it, as telephones write; the first counts
    "PNG": ".png",
    "WEBP": ".webp",
    "GIF": ".gif",
    "BMP": ".bmp",
}
"""Formats of a user's images and the ends of their files' names."""

_OPENED = sorted(SUFFIXES.keys() - {"MPO"})  # which Pillow opens as JPEG


class BadImage(ValueError):
    """A file is no image that can be read; its text is the same in every process."""


class TooManyPixels(ValueError):
    """An image has more pixels than are decoded.

    Attributes:
      pixels: how many it says it has.
    """

    def __init__(self, pixels: int) -> None:
        """Takes the number of pixels."""
        super().__init__(f"{pixels} pixels")
        self.pixels = pixels


def read_pixels(data: bytes) -> NDArray[np.uint8]:
    """Decodes an encoded image to RGB, uint8 [height, width, 3]; see `open_rgb`."""
    return np.asarray(open_rgb(data))


def open_rgb(data: bytes) -> Image.Image:
    """Decodes an encoded image to RGB, turned and mirrored as its EXIF says.

    Damaged EXIF says nothing. Colours of print (CMYK) and 16 bits become RGB of 8 bits;
    transparency is dropped; of an animation the first picture counts.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of damaged EXIF, of many pixels
        with Image.open(io.BytesIO(data)) as image:
            image.load()
            return _rgb(_upright(image))


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # grey of 16 bits, of which Pillow would make white
        values = np.clip(np.asarray(image) >> 8, 0, 255)
        return Image.fromarray(values.astype(np.uint8)).convert("RGB")
    return image.convert("RGB")


def _upright(image: Image.Image) -> Image.Image:
    try:
        is_turned = image.getexif().get(ExifTags.Base.Orientation, 1) != 1
        return ImageOps.exif_transpose(image) if is_turned else image
    except Exception:
        return image


def read_untrusted(data: bytes, max_pixels: int) -> tuple[str, NDArray[np.uint8]]:
    """Decodes a user's image; returns the end of its file's name, and its pixels.

    Raises:
      TooManyPixels: it has more; it is not decoded.
      BadImage: it is damaged, cut short, or in another format than those of SUFFIXES.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Pillow warns of is decided here
        try:
            with Image.open(io.BytesIO(data), formats=_OPENED) as image:
                kind, pixels = image.format or "", image.width * image.height
            if pixels > max_pixels:
                raise TooManyPixels(pixels)
            return SUFFIXES[kind], read_pixels(data)
        except UnidentifiedImageError as error:
            raise BadImage(f"no readable image of the formats {', '.join(_OPENED)}") from error
        except Image.DecompressionBombError as error:
            raise TooManyPixels(_number_in(str(error), max_pixels)) from error
        except (TooManyPixels, MemoryError):
            raise
        except Exception as error:  # decoders raise whatever a damaged file brings about
            said = re.sub(r"0x[0-9a-f]+", "0x", f"{type(error).__name__}: {error}")
            raise BadImage(said[:200] if said.isprintable() else ascii(said)[:200]) from error


def _number_in(text: str, default: int) -> int:
    """Returns the number of pixels of Pillow's message."""
    found = re.search(r"\((\d+) pixels\)", text)
    return int(found[1]) if found else default
