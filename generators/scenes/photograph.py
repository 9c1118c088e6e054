"""Puts a scene's objects into a photographed environment, and sets Cycles to what that needs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eqforge.generators.scenes.floor import add_floor
from eqforge.generators.scenes.world import light_world
from eqforge.schemas.records.scenes import SceneSpec

MAX_BOUNCES: Mapping[str, int] = {
    "max": 8,
    "diffuse": 2,
    "glossy": 3,
    "transmission": 8,
    "transparent_max": 8,
}


def stand_outdoors(
    scene: Any, spec: SceneSpec, pictures: Mapping[str, Path], resolution: int
) -> None:
    """Adds light, surroundings and floor of a photographic scene to a Blender scene.

    Args:
      scene: the scene in Blender, with its objects.
      spec: the scene.
      pictures: files of the environment picture and the floor's texture, by asset id.
      resolution: width of the picture in pixels.
    """
    environment, floor = spec.backdrop.environment, spec.backdrop.floor
    assert environment is not None
    surround = light_world(scene, environment, pictures[environment.asset])
    if floor is not None:
        add_floor(scene, floor, pictures[floor.asset], surround, spec.camera, resolution)
    for kind, most in MAX_BOUNCES.items():
        name = "max_bounces" if kind == "max" else f"{kind}_bounces"
        setattr(scene.cycles, name.replace("transparent_max_bounces", "transparent_max_bounces"), most)
    scene.cycles.caustics_reflective = scene.cycles.caustics_refractive = False
