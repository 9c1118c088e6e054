"""Puts two images side by side, as one image for a model that takes one."""

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]


def side_by_side(left: Pixels, right: Pixels, gap_px: int = 0) -> Pixels:
    """Returns two images in one row, of one height.

    The taller one is scaled down to the height of the other, its proportions kept, by Pillow's
    bicubic filter; nothing is cut off. Images of one height stay as they are, pixel by pixel.

    Args:
      left: uint8 of shape (height, width, 3), RGB.
      right: the same.
      gap_px: width of a white bar between them; the paper has none.

    Returns:
      uint8 of shape (least height, widths and gap, 3).

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
