"""Measures whether two pictures of a thing show it made of the two materials that captions name.

Both pictures have the same light, floor and surroundings, so that one is the other's measure. What
is compared was chosen on 60 pairs and judged on 172 others (docs/datasets/eq-kubric.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from eqforge.core.late import numpy as np
from eqforge.schemas.records.scenes import SurfaceMaterial
from eqforge.transforms.filters import lab
from eqforge.transforms.generated.scene_colours import core

if TYPE_CHECKING:
    from numpy.typing import NDArray

BRIGHT = 90
"""The percentile of L* that is compared with rubber's: it shines nowhere."""


def material_contrast(
    materials: tuple[SurfaceMaterial, SurfaceMaterial],
    pictures: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    masks: tuple[NDArray[np.bool_], NDArray[np.bool_]],
) -> float | None:
    """Returns how plainly both pictures show their materials, in multiples of what is plain.

    Wood is redder and yellower than all others: the medians of a* + b* are compared. Rubber is
    black: the 90th percentiles of L* are. Metal mirrors light and dark, and is less green than
    glass: the standard deviation of L* plus the median of a* is.

    Args:
      materials: what the thing is said to be made of in the first and in the second picture.
      pictures: uint8 [height, width, 3], RGB.
      masks: where the thing is seen in them, bool [height, width].

    Returns:
      1 or more where the difference is plain, negative where it is the wrong way round; None where
      the materials are the same, or the thing is not seen.
    """
    if materials[0] == materials[1] or not all(mask.any() for mask in masks):
        return None
    for one, plain, measure in _MEASURES:
        if one in materials:
            first, second = map(measure, pictures, map(core, masks))
            return (first - second if materials[0] == one else second - first) / plain
    return None


def _warmth(pixels: NDArray[np.uint8], where: NDArray[np.bool_]) -> float:
    return sum(float(np.median(plane[where])) for plane in lab.colours(pixels))


def _brightness(pixels: NDArray[np.uint8], where: NDArray[np.bool_]) -> float:
    return float(np.percentile(lab.lightness(pixels)[where], BRIGHT)) * 100 / 255


def _mirroring(pixels: NDArray[np.uint8], where: NDArray[np.bool_]) -> float:
    spread = float(lab.lightness(pixels)[where].std(dtype=np.float64)) * 100 / 255
    return spread + float(np.median(lab.colours(pixels)[0][where]))


_Measure = Callable[["NDArray[np.uint8]", "NDArray[np.bool_]"], float]
_MEASURES: tuple[tuple[SurfaceMaterial, float, _Measure], ...] = (
    ("wooden", 8.0, _warmth),
    ("rubber", -12.0, _brightness),
    ("metal", 2.0, _mirroring),
)
"""A material, the least difference from another one that is plain, and what differs; the first
material that one of the pictures has decides."""
