"""Luminance at a fixed measuring size: the one view of an image that its measures share."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def check_pixels(pixels: NDArray[Any]) -> None:
    """Checks that an array is an RGB image.

    Raises:
      ValueError: the array is not uint8 of shape (height, width, 3), or it is empty.
    """
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise ValueError(
            "expected a uint8 array of shape (height, width, 3), no side 0; "
            f"found {pixels.dtype} of shape {pixels.shape}"
        )


def luma_image(pixels: NDArray[np.uint8]) -> Image.Image:
    """Returns the luma of RGB pixels (ITU-R BT.601, 8 bits), at the same size.

    Pillow's integer arithmetic gives the same bytes on every processor.

    Raises:
      ValueError: see check_pixels.
    """
    check_pixels(pixels)
    return Image.fromarray(pixels).convert("L")


def scale_to(image: Image.Image, long_side: int, min_side: int = 1) -> Image.Image:
    """Scales an image so that its longer side is `long_side` and no side is below `min_side`.

    Bilinear; when shrinking, the kernel grows with the step, so that every source pixel counts.
    """
    scale = long_side / max(image.size)
    width, height = (max(min_side, round(side * scale)) for side in image.size)
    return image.resize((width, height), Image.Resampling.BILINEAR)
