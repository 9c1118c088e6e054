"""The surroundings of a scene's objects: light and floor."""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from random import Random

from eqforge.generators.scenes.assets import AssetLibrary
from eqforge.generators.scenes.environments import draw_environment, place_of
from eqforge.generators.scenes.floors import draw_floor
from eqforge.generators.scenes.settings import SceneSettings
from eqforge.generators.scenes.view import DECIMALS
from eqforge.schemas.records.scenes import (
    Backdrop,
    SceneCamera,
    SceneLight,
    SceneSpec,
    Vector,
)

MUTED: Mapping[str, tuple[Vector, frozenset[str]]] = {
    "light": ((0.60, 0.58, 0.55), frozenset({"white", "grey"})),
    "sand": ((0.50, 0.38, 0.24), frozenset({"yellow", "orange", "brown", "pink", "grey"})),
    "slate": ((0.09, 0.12, 0.16), frozenset({"black", "blue", "grey", "brown", "purple"})),
    "sage": ((0.27, 0.36, 0.24), frozenset({"green", "grey"})),
    "mauve": ((0.36, 0.28, 0.36), frozenset({"purple", "pink", "grey"})),
    "sky": ((0.34, 0.46, 0.56), frozenset({"blue", "grey", "white"})),
}
"""Muted colours of floors and supports, linear RGB, and the palette colours too close to each."""


FLOOR_SIZE_M = 400.0
"""So large that the floor's edges look like a horizon."""


def draw_muted(rng: Random, colours: Collection[str], avoid: str = "") -> str:
    """Draws the name of a muted colour that is close to the fewest of the objects' colours."""
    names = [name for name in MUTED if name != avoid]
    rng.shuffle(names)
    return min(names, key=lambda name: len(MUTED[name][1].intersection(colours)))


def draw_backdrop(settings: SceneSettings, rng: Random, floor: str) -> Backdrop:
    """Returns a floor of a muted colour with one of the environment pictures, if there are any."""
    hdri = rng.choice(settings.hdri) if settings.hdri else None
    return Backdrop(floor_colour=MUTED[floor][0], floor_size=FLOOR_SIZE_M, hdri=hdri)


def draw_light(rng: Random, camera: SceneCamera, backdrop: Backdrop) -> SceneLight:
    """Draws a sun high in the sky, on the camera's side, so that visible sides are lit.

    There is no sun with an environment picture, which has its own light.
    """
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
"""Of photographic scenes, which their environment lights."""


def photographed(
    scenes: tuple[SceneSpec, SceneSpec],
    colours: Collection[Vector],
    settings: SceneSettings,
    library: AssetLibrary,
    rng: Random,
) -> tuple[SceneSpec, SceneSpec]:
    """Returns both scenes of a pair in an environment and on a floor that are drawn for them.

    Args:
      scenes: what stands there, seen by one camera.
      colours: linear red, green and blue of the objects.
      settings: which environment pictures.
      library: where they are.
      rng: what to draw with.

    Raises:
      InputError: an environment picture cannot be read.
    """
    environment = draw_environment(rng, library, settings, scenes[0].camera)
    floor = draw_floor(rng, colours, place_of(environment.asset))
    backdrop = Backdrop(environment=environment, floor=floor)
    first, second = (replace(each, backdrop=backdrop, light=NO_LIGHT) for each in scenes)
    return first, second
