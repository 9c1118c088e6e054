"""Instance masks as PNG files: a number for every object, which viewers show as colours."""

import colorsys
import functools
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from eqforge.schemas.io.pictures import opened

GOLDEN = (5**0.5 - 1) / 2
"""Steps of this share of the colour circle keep neighbouring numbers' colours well apart."""


def coloured(mask_png: bytes) -> bytes:
    """Returns a mask with a colour for each number, as viewers show it; the numbers stay.

    A mask of 16 bits, of 256 objects or more, has no room for a palette and stays as it is.
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
    """Returns the number of the object at every pixel, of shape (height, width); 0 is none."""
    with opened(mask_png, formats=("PNG",)) as mask:
        return np.asarray(mask)
