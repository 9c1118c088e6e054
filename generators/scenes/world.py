"""The environment picture of a photographic scene: its light, its sun, and the dome it is seen on.

The picture is thought to be taken from a point above the scene's middle. What it shows below the
horizon is projected from there onto the floor, the rest onto a hemisphere around the scene, so that
the two meet without a seam.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eqforge.generators.scenes.shading import Graph
from eqforge.schemas.records.scenes import Environment, Sun

VIEWPOINT_M = 1.6
"""Height from which environment pictures are taken."""

DOME_SIDES = 96
MAP_PX = 256
"""Width of the map by which directions of light are drawn."""

LOWEST = -0.1
"""Sine of the elevation below which nothing shines: there is the floor."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Surround:
    """An environment picture in Blender.

    Attributes:
      environment: how the scene uses it.
      image: the picture, loaded in Blender.
    """

    environment: Environment
    image: Any

    def seen(self, graph: Graph, direction: Any) -> Any:
        """Returns, in a shader, the radiance from a direction."""
        environment = self.environment
        turned = graph.turned(direction, -math.radians(environment.turn_deg))
        found = graph.node("TexEnvironment", {"Vector": turned})
        found.image = self.image
        clamped = graph.vector("MINIMUM", found.outputs["Color"], (environment.clamp,) * 3)
        return graph.scaled(clamped, environment.exposure)

    def projected(self, graph: Graph) -> Any:
        """Returns, in the shader of a surface, the radiance that the picture shows there."""
        place = graph.node("NewGeometry", {}).outputs["Position"]
        return self.seen(graph, graph.vector("SUBTRACT", place, (0.0, 0.0, VIEWPOINT_M)))


def light_world(scene: Any, environment: Environment, picture: Path, radius_m: float) -> Surround:
    """Lights a Blender scene by an environment picture and its sun, and puts the dome around it.

    Args:
      scene: the scene in Blender.
      environment: how the picture is turned, clamped and exposed.
      picture: its file, equirectangular.
      radius_m: of the dome.
    """
    import bpy

    image = bpy.data.images.load(str(picture), check_existing=True)
    surround = Surround(environment=environment, image=image)
    graph = Graph(scene.world)
    direction = graph.node("TexCoord", {}).outputs["Generated"]
    height = graph.node("SeparateXYZ", {"Vector": direction}).outputs["Z"]
    above = graph.math("GREATER_THAN", height, LOWEST)
    sky = {"Color": surround.seen(graph, direction), "Strength": above}
    graph.node("OutputWorld", {"Surface": graph.node("Background", sky).outputs[0]})
    scene.world.cycles.sampling_method = "MANUAL"
    scene.world.cycles.sample_map_resolution = MAP_PX
    if environment.sun is not None:
        _add_sun(scene, environment.sun)
    _add_dome(scene, surround, radius_m)
    return surround


def _add_sun(scene: Any, sun: Sun) -> None:
    """Adds a sun lamp; one of strength pi shows a white surface that faces it as 1."""
    import bpy
    from mathutils import Vector as BlenderVector

    lamp = bpy.data.lights.new("sun", "SUN")
    lamp.energy = max(sun.strength)
    lamp.color = [value / lamp.energy for value in sun.strength]
    lamp.angle = math.radians(sun.angle_deg)
    made = bpy.data.objects.new("sun", lamp)
    made.rotation_euler = BlenderVector(sun.direction).to_track_quat("Z", "Y").to_euler()
    scene.collection.objects.link(made)


def _add_dome(scene: Any, surround: Surround, radius_m: float) -> None:
    """Adds the hemisphere that the camera sees; it takes no part in lighting."""
    import bpy

    around, rings = np.arange(DOME_SIDES), DOME_SIDES // 4
    up, turn = np.meshgrid(np.arange(rings) / rings * np.pi / 2, around / DOME_SIDES * 2 * np.pi)
    points = np.stack([np.cos(up) * np.cos(turn), np.cos(up) * np.sin(turn), np.sin(up)], axis=-1)
    corners = np.arange(points[..., 0].size).reshape(DOME_SIDES, rings)
    following = np.roll(corners, -1, axis=0)
    edges = (corners[:, :-1], following[:, :-1], following[:, 1:], corners[:, 1:])
    faces = np.stack(edges, axis=-1).reshape(-1, 4).tolist()
    vertices = (radius_m * points.reshape(-1, 3)).tolist()
    mesh = bpy.data.meshes.new("dome")
    mesh.from_pydata(vertices, [], [*faces, corners[:, -1].tolist()])
    dome = bpy.data.objects.new("dome", mesh)
    material = bpy.data.materials.new("dome")
    mesh.materials.append(material)
    graph = Graph(material)
    glow = graph.node("Emission", {"Color": surround.projected(graph)})
    graph.node("OutputMaterial", {"Surface": glow.outputs[0]})
    material.cycles.emission_sampling = "NONE"
    for ray in ("diffuse", "glossy", "transmission", "volume_scatter", "shadow"):
        setattr(dome, f"visible_{ray}", False)
    scene.collection.objects.link(dome)
