"""The one decoder: encoded pictures become upright RGB, as viewers and Hugging Face show them.

Whatever builds, checks, scores, trains on or draws a dataset sees the same pixels of its pictures.
"""

import contextlib
import io
import re
import warnings
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

VERSION: Final = "2"
"""Of the pixels: it stands in what was measured on them."""

SUFFIXES: Final = {
    "JPEG": ".jpg",
    "MPO": ".jpg",  # a JPEG with more pictures behind it, as telephones write; the first counts
    "PNG": ".png",
    "WEBP": ".webp",
    "GIF": ".gif",
    "BMP": ".bmp",
    "TIFF": ".tif",
}
"""Formats that are read, and the ends of their files' names.

No other is tried: Pillow hands PostScript to an interpreter, and other formats to old decoders.
"""

FILE_SUFFIXES: Final = (*sorted(set(SUFFIXES.values())), ".jpeg", ".tiff")
"""The ends of the names of files that hold such pictures, in lower case."""

MAX_PIXELS: Final = 2**26
"""Pictures of more pixels are refused undecoded, where no setting says otherwise."""

_OPENED: Final = tuple(sorted(SUFFIXES.keys() - {"MPO"}))  # which Pillow opens as JPEG
_BITS, _PHOTOMETRIC, _WHITE_IS_ZERO = 258, 262, 0  # of TIFF 6.0, section 8


class BadImage(ValueError):
    """Bytes are no picture that can be read; its text is the same in every process."""


class TooManyPixels(ValueError):
    """A picture has more pixels than are decoded.

    Attributes:
      pixels: how many it says it has.
    """

    def __init__(self, pixels: int) -> None:
        """Takes the number of pixels."""
        super().__init__(f"{pixels} pixels")
        self.pixels = pixels


def read_pixels(data: bytes, max_pixels: int | None = None) -> NDArray[np.uint8]:
    """Decodes an encoded picture to RGB, uint8 [height, width, 3]; see `open_rgb`."""
    return np.asarray(open_rgb(data, max_pixels))


def open_rgb(data: bytes, max_pixels: int | None = None) -> Image.Image:
    """Decodes an encoded picture to RGB, turned and mirrored as its EXIF says.

    Damaged EXIF says nothing. Colours of print (CMYK) and 16 bits become RGB of 8 bits;
    transparency and colour profiles are dropped; of several pictures in a file the first counts.

    Args:
      data: the encoded picture.
      max_pixels: pictures of more are not decoded; None for those that were let in by another
        limit, of which Pillow's own is left, 178,956,970.

    Raises:
      TooManyPixels: it has more.
      BadImage: it is damaged, cut short, or in another format than those of SUFFIXES.
    """
    with opened(data, max_pixels) as image:
        return _upright_rgb(image)


def read_untrusted(data: bytes, max_pixels: int) -> tuple[str, NDArray[np.uint8]]:
    """Decodes a user's picture; returns the end of its file's name, and its pixels.

    Raises:
      TooManyPixels, BadImage: as `open_rgb`.
    """
    with opened(data, max_pixels) as image:
        suffix = SUFFIXES[image.format or ""]
        return suffix, np.asarray(_upright_rgb(image))


@contextlib.contextmanager
def opened(
    data: bytes, max_pixels: int | None = None, formats: tuple[str, ...] = _OPENED
) -> Iterator[Image.Image]:
    """Opens an encoded picture as it is stored; whatever the body makes Pillow raise is told apart.

    Args:
      data: the encoded picture.
      max_pixels: as of `open_rgb`.
      formats: Pillow's names of those that are tried.

    Raises:
      TooManyPixels, BadImage: as `open_rgb`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of damaged EXIF, of many pixels: both are decided here
        try:
            with Image.open(io.BytesIO(data), formats=formats) as image:
                pixels = image.width * image.height
                if max_pixels is not None and pixels > max_pixels:
                    raise TooManyPixels(pixels)
                yield image
        except UnidentifiedImageError as error:
            raise BadImage(f"no readable image of the formats {', '.join(formats)}") from error
        except Image.DecompressionBombError as error:
            raise TooManyPixels(_number_in(str(error))) from error
        except (BadImage, TooManyPixels, MemoryError):
            raise
        except Exception as error:  # decoders raise whatever a damaged file brings about
            said = re.sub(r"0x[0-9a-f]+", "0x", f"{type(error).__name__}: {error}")
            raise BadImage(said[:200] if said.isprintable() else ascii(said)[:200]) from error


def _upright_rgb(image: Image.Image) -> Image.Image:
    image.load()
    return _rgb(_upright(image), _grey_bits(image))


def _rgb(image: Image.Image, bits: int) -> Image.Image:
    if image.mode in ("I", "F"):
        raise BadImage("its pixels are numbers of 32 bits, or signed ones, and no colours")
    if image.mode.startswith("I;16"):  # of which Pillow would make white
        return Image.fromarray((np.asarray(image) >> (bits - 8)).astype(np.uint8)).convert("RGB")
    return image.convert("RGB")


def _grey_bits(image: Image.Image) -> int:
    """Returns of how many bits a grey of more than 8 is; only TIFF has others than 16."""
    tags = getattr(image, "tag_v2", {})
    if not image.mode.startswith("I;16") or not tags:
        return 16
    if tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO:
        raise BadImage("a TIFF of 16 bits whose white is 0")  # which Pillow does not turn around
    return int(tags.get(_BITS, (16,))[0])


def _upright(image: Image.Image) -> Image.Image:
    try:
        is_turned = image.getexif().get(ExifTags.Base.Orientation, 1) != 1
        return ImageOps.exif_transpose(image) if is_turned else image
    except Exception:
        return image


def _number_in(text: str) -> int:
    """Returns the number of pixels of Pillow's message."""
    found = re.search(r"\((\d+) pixels\)", text)
    return int(found[1]) if found else MAX_PIXELS + 1
