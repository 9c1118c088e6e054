"""Choose the light and the floor around a scene's objects."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from eqforge.generators.scenes.assets import AssetLibrary, Place, stage_assets
from eqforge.generators.scenes.environments import draw_environment, place_of
from eqforge.generators.scenes.palette import lab_of
from eqforge.generators.scenes.settings import SceneSettings
from eqforge.generators.scenes.view import DECIMALS
from eqforge.schemas.records.scenes import (
    Backdrop,
    FloorTexture,
    SceneCamera,
    SceneLight,
    SceneSpec,
    Vector,
)

if TYPE_CHECKING:
    pass


MUTED: Mapping[str, tuple[Vector, frozenset[str]]] = {
    "light": ((0.60, 0.58, 0.55), frozenset({"white", "grey"})),
    "sand": ((0.50, 0.38, 0.24), frozenset({"yellow", "orange", "brown", "pink", "grey"})),
    "slate": ((0.09, 0.12, 0.16), frozenset({"black", "blue", "grey", "brown", "purple"})),
    "sage": ((0.27, 0.36, 0.24), frozenset({"green", "grey"})),
    "mauve": ((0.36, 0.28, 0.36), frozenset({"purple", "pink", "grey"})),
    "sky": ((0.34, 0.46, 0.56), frozenset({"blue", "grey", "white"})),
}
"""Muted colours of floors and supports, linear RGB, and the palette colours too close to each."""


FLOOR_SIZE_M = 400.0  # so large that the floor's edges look like a horizon


def draw_muted(rng: Random, colours: Collection[str], avoid: str = "") -> str:
    names = [name for name in MUTED if name != avoid]
    rng.shuffle(names)
    return min(names, key=lambda name: len(MUTED[name][1].intersection(colours)))


def draw_backdrop(settings: SceneSettings, rng: Random, floor: str) -> Backdrop:
    hdri = rng.choice(settings.hdri) if settings.hdri else None
    return Backdrop(floor_colour=MUTED[floor][0], floor_size=FLOOR_SIZE_M, hdri=hdri)


def draw_light(rng: Random, camera: SceneCamera, backdrop: Backdrop) -> SceneLight:
    """Draw a high sun on the camera's side, to light visible sides; off in environments."""
    elevation = math.radians(rng.uniform(45.0, 70.0))
    azimuth = math.atan2(camera.position[1], camera.position[0]) + rng.uniform(-1.6, 1.6)
    flat = 10 * math.cos(elevation)
    position = (flat * math.cos(azimuth), flat * math.sin(azimuth), 10 * math.sin(elevation))
    x, y, z = (round(value, DECIMALS) for value in position)
    return SceneLight(
        sun_position=(x, y, z),
        sun_intensity=round(rng.uniform(1.6, 2.2), 2) if backdrop.hdri is None else 0.0,
        ambient=round(rng.uniform(0.4, 0.5), 2),
    )


NO_LIGHT = SceneLight(sun_position=(0.0, 0.0, 1.0), sun_intensity=0.0, ambient=0.0)
"""For photographic scenes, which their environment lights."""


def photographed(
    scenes: tuple[SceneSpec, SceneSpec],
    colours: Collection[Vector],
    settings: SceneSettings,
    library: AssetLibrary,
    rng: Random,
) -> tuple[SceneSpec, SceneSpec]:
    environment = draw_environment(rng, library, settings, scenes[0].camera)
    floor = draw_floor(rng, colours, place_of(environment.asset))
    backdrop = Backdrop(environment=environment, floor=floor)
    first, second = (replace(each, backdrop=backdrop, light=NO_LIGHT) for each in scenes)
    return first, second


FAR_ENOUGH = 22.0  # CIEDE2000 difference of a floor to the nearest colour that stands out
BRIGHTNESS = (0.85, 1.12)  # least and greatest factor on a texture's light
HUE = 0.05  # how far the tint's red, green and blue may lie apart from each other
RADIUS_M = (7.0, 9.0)  # where the floor goes over into the ground of the environment picture


@dataclass(frozen=True, kw_only=True, slots=True)
class FloorFacts:
    """The manifest's facts about a floor texture.

    Attributes:
      colour: mean of its linear red, green and blue.
      tile_m: minimum and maximum side of one tile.
      laid: number of interchangeable pieces across and down the tile; 0 for any length. None for
        grain without a direction, which may be rotated.
    """

    colour: Vector
    tile_m: tuple[float, float]
    places: tuple[Place, ...]
    laid: tuple[int, int] | None


@functools.cache
def floor_facts() -> Mapping[str, FloorFacts]:
    return {
        key: msgspec.convert(asset.entry["floor"], FloorFacts)
        for key, asset in stage_assets().items()
        if asset.category == "floor"
    }


def draw_floor(
    rng: Random, colours: Collection[Vector], place: Place | None = None
) -> FloorTexture:
    """Draw a floor texture on which objects of some colours stand out, and its layout.

    Choose among the place's floors that are FAR_ENOUGH from all colours, or take the farthest.
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
    """Return the CIEDE2000 difference of a floor to the nearest colour; infinite for none."""
    return min((_difference(floor_facts()[floor].colour, each) for each in colours), default=np.inf)


@functools.cache
def _difference(first: Vector, second: Vector) -> float:
    from skimage.color import deltaE_ciede2000

    # The last bits of a power differ between machines, and must not choose between two floors.
    colours = (lab_of(np.array(each)) for each in (first, second))
    difference = deltaE_ciede2000(*colours)  # type: ignore[no-untyped-call]
    return round(float(difference), 3)
