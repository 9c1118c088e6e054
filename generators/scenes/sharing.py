"""What pairs share: a scene with the other steps of a ladder, or all that is said with a twin.

A twin of a pair has its captions, and its things in their places; the camera, the light or the
floor is another one, in both of its scenes. A model that understands the captions answers alike.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from eqforge.generators.scenes.assets import AssetLibrary
from eqforge.generators.scenes.compose import STEEPEST_DEG
from eqforge.generators.scenes.environments import draw_environment, place_of
from eqforge.generators.scenes.families.base import Grouped
from eqforge.generators.scenes.families.registry import FAMILIES
from eqforge.generators.scenes.floors import draw_floor
from eqforge.generators.scenes.settings import SceneSettings
from eqforge.generators.scenes.view import DECIMALS
from eqforge.schemas.records.scenes import (
    Backdrop,
    Kind,
    Nuisance,
    SceneCamera,
    ScenePair,
    Vector,
)

FARTHER, HIGHER_DEG = 1.12, 7.0
"""How much farther away and higher the camera of a twin is."""

TRIES = 30
"""Draws of another environment or floor before it may be the same one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shared:
    """What a pair shares with others.

    Attributes:
      base: the number of the first pair of its group, where there are no twins.
      place: its own among the group.
      twin: what differs from the pair whose twin it is; None where it is none.
      source: the number of the first pair that it shares anything with; None where there is none.
    """

    base: int
    place: int
    twin: Nuisance | None
    source: int | None


def group_of(kind: Kind) -> int:
    """Returns how many pairs of a kind share a scene."""
    family = FAMILIES.get(kind)
    return family.group if isinstance(family, Grouped) else 1


def shared_of(kind: Kind, number: int, twins: Sequence[Nuisance]) -> Shared:
    """Returns what a pair shares: every pair is followed by its twins, every group is in a row."""
    group, variants = group_of(kind), 1 + len(twins)
    content, variant = divmod(number, variants)
    place = content % group
    return Shared(
        base=content - place,
        place=place,
        twin=twins[variant - 1] if variant else None,
        source=None if group * variants == 1 else (content - place) * variants,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What twins are made with.

    Attributes:
      settings: which environment pictures.
      library: where they are.
      colours: linear red, green and blue of the objects.
      rng: what to draw with.
    """

    settings: SceneSettings
    library: AssetLibrary
    colours: Sequence[Vector]
    rng: Random


def twin_of(pair: ScenePair, twin: Nuisance, around: Surroundings) -> ScenePair:
    """Returns a pair's twin.

    Raises:
      InputError: an environment picture cannot be read.
    """
    first, second = pair.scenes
    if twin == "camera":
        camera = _stepped_back(first.camera)
        scenes = (replace(first, camera=camera), replace(second, camera=camera))
    else:
        backdrop = _BACKDROPS[twin](first.backdrop, first.camera, around)
        scenes = (replace(first, backdrop=backdrop), replace(second, backdrop=backdrop))
    return replace(pair, scenes=scenes, twin=twin)


def _stepped_back(camera: SceneCamera) -> SceneCamera:
    """Returns a camera that looks at the same point from farther away and higher up."""
    x, y, z = (a - b for a, b in zip(camera.position, camera.look_at, strict=True))
    flat, far = math.hypot(x, y), FARTHER * math.hypot(x, y, z)
    steep = math.atan2(z, flat)
    higher = min(steep + math.radians(HIGHER_DEG), math.radians(STEEPEST_DEG))
    elevation = max(steep, higher)
    reach = far * math.cos(elevation) / flat
    place = (x * reach, y * reach, far * math.sin(elevation))
    seen = zip(camera.look_at, place, strict=True)
    east, north, up = (round(a + b, DECIMALS) for a, b in seen)
    return replace(camera, position=(east, north, up))


def _other_light(backdrop: Backdrop, camera: SceneCamera, around: Surroundings) -> Backdrop:
    """Returns a backdrop with another environment of its kind, or the same from another side."""
    assert backdrop.environment is not None
    before = backdrop.environment.asset
    found, place = backdrop.environment, place_of(before)
    for _ in range(TRIES):
        drawn = draw_environment(around.rng, around.library, around.settings, camera)
        if place_of(drawn.asset) == place:
            found = drawn
            if drawn.asset != before:
                break
    return replace(backdrop, environment=found)


def _other_floor(backdrop: Backdrop, camera: SceneCamera, around: Surroundings) -> Backdrop:
    """Returns a backdrop with another floor."""
    del camera
    assert backdrop.environment is not None
    assert backdrop.floor is not None
    place = place_of(backdrop.environment.asset)
    found = backdrop.floor
    for each in range(TRIES):
        # Where only one floor lets the objects stand out, any other has to do.
        colours = around.colours if 2 * each < TRIES else ()
        found = draw_floor(around.rng, colours, place)
        if found.asset != backdrop.floor.asset:
            break
    return replace(backdrop, floor=found)


_BACKDROPS: Mapping[Nuisance, Callable[[Backdrop, SceneCamera, Surroundings], Backdrop]] = {
    "light": _other_light,
    "floor": _other_floor,
}
