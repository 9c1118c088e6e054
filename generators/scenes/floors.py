"""Textured floors of photographic scenes."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import msgspec

from eqforge.core.late import numpy as np
from eqforge.generators.scenes.assets import Place, stage_assets
from eqforge.schemas.records.scenes import FloorTexture, Vector

if TYPE_CHECKING:
    from numpy.typing import NDArray

FAR_ENOUGH = 22.0
"""CIEDE2000 difference of a floor to the nearest of the objects' colours that stands out."""

BRIGHTNESS = (0.85, 1.12)
"""Least and greatest factor on a texture's light."""

HUE = 0.05
"""How far the tint's red, green and blue may lie apart from each other."""

RADIUS_M = (7.0, 9.0)
"""Where the floor goes over into the ground of the environment picture."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FloorFacts:
    """What the manifest says of a floor texture.

    Attributes:
      colour: mean of its linear red, green and blue.
      tile_m: least and greatest side of one tile.
      places: where there are such floors.
      laid: how many pieces lie across it and down it, which may change places; 0 for one that may
        be moved by any length; None for grain without a direction, which may be turned.
    """

    colour: Vector
    tile_m: tuple[float, float]
    places: tuple[Place, ...]
    laid: tuple[int, int] | None


@functools.cache
def floor_facts() -> Mapping[str, FloorFacts]:
    """Returns the floor textures that eqforge brings, by asset id."""
    return {
        key: msgspec.convert(asset.entry["floor"], FloorFacts)
        for key, asset in stage_assets().items()
        if asset.category == "floor"
    }


def draw_floor(
    rng: Random, colours: Collection[Vector], place: Place | None = None
) -> FloorTexture:
    """Draws a floor texture on which objects of some colours stand out, and how it lies.

    Args:
      rng: what to draw with.
      colours: linear red, green and blue in [0, 1] of the objects.
      place: of the environment picture around it; None where that is not known.

    Returns:
      One of the place's floors that are FAR_ENOUGH from all colours; where there is none, the
      farthest.
    """
    names = [name for name, each in floor_facts().items() if place in (None, *each.places)]
    rng.shuffle(names)
    asset = max(names, key=lambda name: min(distance(name, colours), FAR_ENOUGH))
    grey = rng.uniform(*BRIGHTNESS)
    red, green, blue = (round(grey * (1 + rng.uniform(-HUE, HUE) / 2), 3) for _ in range(3))
    return FloorTexture(
        asset=asset,
        tile_m=round(rng.uniform(*floor_facts()[asset].tile_m), 3),
        turn_deg=round(rng.uniform(0.0, 360.0), 2),
        tint=(red, green, blue),
        radius_m=round(rng.uniform(*RADIUS_M), 2),
    )


def distance(floor: str, colours: Collection[Vector]) -> float:
    """Returns the CIEDE2000 difference of a floor to the nearest colour; infinite for none."""
    return min((_difference(floor_facts()[floor].colour, each) for each in colours), default=np.inf)


@functools.cache
def _difference(first: Vector, second: Vector) -> float:
    from skimage.color import deltaE_ciede2000

    # The last bits of a power differ between machines, and must not choose between two floors.
    difference = deltaE_ciede2000(_lab(first), _lab(second))  # type: ignore[no-untyped-call]
    return round(float(difference), 3)


def _lab(colour: Vector) -> NDArray[np.float64]:
    from skimage.color import rgb2lab

    light = np.array(colour)
    shown = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return rgb2lab(shown)
