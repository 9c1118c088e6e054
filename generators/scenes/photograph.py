"""Puts a scene's objects into a photographed environment, and sets Cycles to what that needs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eqforge.generators.scenes.floor import add_floor, rim_m
from eqforge.generators.scenes.looks import GLASS_PATHS
from eqforge.generators.scenes.world import light_world
from eqforge.schemas.records.scenes import SceneSpec

_CYCLES: Mapping[str, Any] = {
    "max_bounces": 8,
    "diffuse_bounces": 2,
    "glossy_bounces": 3,
    "transmission_bounces": 8,
    "caustics_reflective": False,
    "caustics_refractive": False,
    "denoising_input_passes": "RGB_ALBEDO_NORMAL",
    "denoising_prefilter": "NONE",
}
"""Settings of Cycles: what more bounces add is not seen; the passes keep textures sharp."""

_WITH_MATERIALS: Mapping[str, Any] = {
    "max_bounces": GLASS_PATHS,
    "transmission_bounces": GLASS_PATHS,
    "transparent_max_bounces": GLASS_PATHS,
    "denoising_prefilter": "ACCURATE",
}
"""Further ones where a material is named: the passes of glass and metal have noise of their own,
and would keep it in the picture."""


def photograph(scene: Any, spec: SceneSpec, pictures: Mapping[str, Path], resolution: int) -> None:
    """Adds light, surroundings and floor of a photographic scene to a Blender scene.

    Args:
      scene: the scene in Blender, with its objects.
      spec: the scene.
      pictures: files of the environment picture and the floor's texture, by asset id.
      resolution: width of the picture in pixels.
    """
    environment, floor = spec.backdrop.environment, spec.backdrop.floor
    assert environment is not None
    assert floor is not None
    radius_m = rim_m(floor, spec.camera)
    surround = light_world(scene, environment, pictures[environment.asset], radius_m)
    add_floor(scene, floor, pictures[floor.asset], surround, spec.camera, resolution)
    for name, value in _CYCLES.items():
        setattr(scene.cycles, name, value)
    if any(each.material is not None for each in spec.objects):
        for name, value in _WITH_MATERIALS.items():
            setattr(scene.cycles, name, value)
