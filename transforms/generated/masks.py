"""Instance masks as PNG files: a number per object, shown by viewers as a colour."""

from __future__ import annotations

import colorsys
import functools
import io
from typing import TYPE_CHECKING, Any

from eqforge.core.files.pictures import opened
from eqforge.core.late import Image
from eqforge.core.late import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

GOLDEN = (5**0.5 - 1) / 2
"""A hue step of this share of the colour circle keeps consecutive numbers' colours distinct."""


def coloured(mask_png: bytes) -> bytes:
    """Return a mask with a palette, so that viewers show colours; the numbers are unchanged.

    A 16-bit mask, of 256 objects or more, cannot have a palette and is returned unchanged.
    """
    numbers = read_numbers(mask_png)
    if numbers.dtype != np.uint8:
        return mask_png
    image = Image.fromarray(numbers)
    image.putpalette(_palette())
    stream = io.BytesIO()
    image.save(stream, "png")
    return stream.getvalue()


@functools.cache
def _palette() -> bytes:
    colours = (colorsys.hsv_to_rgb(number * GOLDEN % 1, 0.75, 1.0) for number in range(1, 256))
    return bytes([0, 0, 0, *(round(255 * part) for colour in colours for part in colour)])


def read_numbers(mask_png: bytes) -> NDArray[np.integer[Any]]:
    """Return the object number of each pixel, 0 for none: integers of shape (height, width)."""
    with opened(mask_png, formats=("PNG",)) as mask:
        return np.asarray(mask)
