"""Photographs with one object painted red, blue, purple or brown, all of one luma."""

import functools
from collections.abc import Mapping
from typing import Final

import numpy as np
import scipy.ndimage  # type: ignore[import-untyped]
import skimage.data
from numpy.typing import NDArray
from skimage.color import rgb2lab

Pixels = NDArray[np.uint8]

COLOURS: Final[Mapping[str, tuple[int, int, int]]] = {
    "red": (225, 12, 18),
    "blue": (38, 62, 245),
    "purple": (130, 38, 140),
    "brown": (122, 58, 32),
}
"""Of lumas 70 to 77."""

OBJECTS: Final[Mapping[str, tuple[str, tuple[int, int, int, int], tuple[int, int], float]]] = {
    "suit": ("astronaut", (180, 512, 0, 360), (369, 102), 25),
    "badge": ("astronaut", (340, 430, 130, 215), (390, 170), 30),
    "coffee": ("coffee", (100, 190, 190, 375), (150, 270), 20),
    "tank": ("stereo_motorcycle", (150, 325, 148, 667), (210, 444), 40),
    "eye": ("chelsea", (80, 145, 130, 210), (130, 170), 8),
    "rocket": ("rocket", (120, 425, 290, 350), (250, 320), 12),
}
"""Photograph, the box (y0, y1, x0, x1) that holds the object, a pixel (y, x) of it, and how far
its colour may lie from that pixel's in a* and b*."""


@functools.cache
def region(name: str) -> tuple[Pixels, NDArray[np.bool_]]:
    """Returns a photograph and which pixels its object has."""
    source, (top, bottom, left, right), (y, x), reach = OBJECTS[name]
    found = getattr(skimage.data, source)()
    pixels = found[0] if isinstance(found, tuple) else found
    colours = rgb2lab(pixels)[..., 1:]
    mask = np.hypot(*np.moveaxis(colours - colours[y, x], -1, 0)) < reach
    box = np.zeros_like(mask)
    box[top:bottom, left:right] = True
    return pixels, scipy.ndimage.binary_closing(mask & box, iterations=3)


def painted(name: str, colour: str) -> Pixels:
    """Returns a photograph with its object in a colour, the shading kept."""
    pixels, mask = region(name)
    weights = np.array([0.299, 0.587, 0.114])
    luma = pixels @ weights
    shade = np.clip(luma / np.median(luma[mask]), 0.35, 1)[mask]
    target = np.array(COLOURS[colour]) * 70 / (np.array(COLOURS[colour]) @ weights)
    found = pixels.copy()
    found[mask] = np.rint(shade[:, None] * target)
    return found
