"""Joins two images into one, for models that take a single image."""

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]


def side_by_side(left: Pixels, right: Pixels, gap_px: int = 0) -> Pixels:
    """Returns two images side by side at the same height.

    The taller one is scaled down to the height of the other by Pillow's bicubic filter, keeping its
    aspect ratio; nothing is cropped. Images of equal height are not resampled.

    Args:
      left: uint8 of shape (height, width, 3), RGB.
      right: the same.
      gap_px: width of a white bar between them; the paper has none.

    Returns:
      uint8 of shape (smaller height, sum of widths and gap, 3), RGB.

    Source: EqBen, section 5.5, which concatenates the images of a pair horizontally.
    """
    height = min(len(left), len(right))
    bar = np.full((height, gap_px, 3), 255, dtype=np.uint8)
    return np.concatenate([_of_height(left, height), bar, _of_height(right, height)], axis=1)


def _of_height(pixels: Pixels, height: int) -> Pixels:
    from PIL import Image

    if len(pixels) == height:
        return pixels
    width = max(1, round(pixels.shape[1] * height / len(pixels)))
    image = Image.fromarray(pixels, "RGB")
    return np.asarray(image.resize((width, height), Image.Resampling.BICUBIC))
