"""Shared by the measures: luma, and the size at which images are measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eqforge.core.late import Image
from eqforge.core.late import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


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


def mean_luma(image: Image.Image) -> float:
    """Returns the mean luma (ITU-R BT.601, 8 bits) of an RGB image, in [0, 255].

    Pillow's integer arithmetic and an exact sum give the same result on every processor.
    """
    return float(np.asarray(image.convert("L")).mean(dtype=np.float64))


def scale_to(image: Image.Image, long_side: int, min_side: int = 1) -> Image.Image:
    """Scales an image so that its longer side is `long_side` and no side is below `min_side`.

    Bilinear; when downscaling, the kernel is widened (antialiased), so every source pixel counts.
    """
    scale = long_side / max(image.size)
    width, height = (max(min_side, round(side * scale)) for side in image.size)
    return image.resize((width, height), Image.Resampling.BILINEAR)
