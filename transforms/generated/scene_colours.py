"""Measures in CIE L*a*b* whether an image shows a thing in its captioned colour."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from eqforge.generators.scenes.palette import PALETTE, SHADES, are_distinct, encoded
from eqforge.schemas.records.scenes import Overlap, RenderedObject, SurfaceMaterial
from eqforge.transforms.filters import lab

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eqforge.schemas.records.scenes import Vector


_LIGHTNESS: Final = 14
_COLOUR: Final = 256
"""Weights of squared steps of L* (100 / 255) and of a* and b*. Light and shade change L*, so a step
of it counts as 0.6 of a step of colour.
"""

LEAST_PX: Final = 30
"""With more pixels, a thing's outline is left out, as it mixes with the surroundings."""


def colour_area(pixels: NDArray[np.uint8], mask: NDArray[np.bool_], colour: Vector) -> float:
    """Return the share of the image where a thing may look like a colour of the palette."""
    return (colour_share(pixels, mask, colour) or 0.0) * np.count_nonzero(mask) / mask.size


def colour_share(
    pixels: NDArray[np.uint8], mask: NDArray[np.bool_], colour: Vector
) -> float | None:
    """Return the share of a thing's pixels that a colour of the palette may look like.

    Each pixel is assigned the nearest palette colour in any shade. Pixels count if that is the
    colour, or is easily mistaken for it. Things have other parts, too: a fifth of a purple toy
    house is purple.

    Args:
      pixels: RGB, uint8 [height, width, 3].
      mask: where the thing is visible, bool [height, width].
      colour: linear red, green and blue.

    Returns:
      A share in [0, 1]; None if the thing is not visible, or the palette lacks the colour.
    """
    names = [name for name, known in PALETTE.items() if known == colour]
    if not names or not mask.any():
        return None
    seen = _lab(pixels[core(mask)][None])[0]
    steps = seen[:, None] - _shades()
    distances = (steps**2 * (_LIGHTNESS, _COLOUR, _COLOUR)).sum(axis=-1)
    nearest = distances.argmin(axis=1) // len(SHADES)
    matches = [name == names[0] or not are_distinct(name, names[0]) for name in PALETTE]
    return float(np.array(matches)[nearest].mean(dtype=np.float64))


def core(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return a mask without its outline, or whole if little would be left."""
    import scipy.ndimage  # type: ignore[import-untyped]

    inner: NDArray[np.bool_] = scipy.ndimage.binary_erosion(mask)
    return inner if np.count_nonzero(inner) >= LEAST_PX else mask


@functools.cache
def _shades() -> NDArray[np.int64]:
    linear = np.array([np.array(colour) * shade for colour in PALETTE.values() for shade in SHADES])
    return _lab(np.rint(255 * encoded(np.clip(linear, 0, 1))).astype(np.uint8)[None])[0]


def _lab(pixels: NDArray[np.uint8]) -> NDArray[np.int64]:
    return np.stack([lab.lightness(pixels), *lab.colours(pixels)], axis=-1).astype(np.int64)


BRIGHT = 90
"""The percentile of L* to compare for rubber, which has no highlights."""


def material_contrast(
    materials: tuple[SurfaceMaterial, SurfaceMaterial],
    pictures: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    masks: tuple[NDArray[np.bool_], NDArray[np.bool_]],
) -> float | None:
    """Return how clearly both images show their materials, in multiples of the threshold.

    Wood is redder and yellower than all others, so the medians of a* + b* are compared. Rubber is
    black, so the 90th percentiles of L* are. Metal mirrors light and dark, and is less green than
    glass, so the standard deviation of L* plus the median of a* is.

    Returns:
      1 or more if the difference is clear, negative if it is the wrong way round; None if the
      materials are equal, or the thing is not visible.
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
"""A material, its threshold against other materials, and the measure; the first material in either
image decides.
"""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RenderedView:
    """A rendered scene with its RGB pixels, uint8 [height, width, 3].

    `numbers` is the instance mask, integers [height, width]: 0 is the backdrop, `objects` count
    from 1.
    """

    pixels: NDArray[np.uint8]
    numbers: NDArray[np.integer[Any]]
    objects: tuple[RenderedObject, ...]
    overlaps: tuple[Overlap, ...]

    def mask(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """Return the mask of some objects' visible pixels; objects not in the scene have none."""
        wanted = set(names)
        numbers = [number for number, shown in enumerate(self.objects, 1) if shown.name in wanted]
        return np.isin(self.numbers, numbers)

    def shown(self, name: str) -> RenderedObject:
        return next(shown for shown in self.objects if shown.name == name)
