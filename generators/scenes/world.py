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
from eqforge.schemas.records.scenes import Environment, Sun, Vector

VIEWPOINT_M = 1.6
"""Height from which environment pictures are taken."""

DOME_M = 25.0
"""Radius of the floor, and of the hemisphere on it."""

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
      white: radiance of a white floor in its light, red, green and blue.
    """

    environment: Environment
    image: Any
    white: Vector

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


def light_world(scene: Any, environment: Environment, picture: Path) -> Surround:
    """Lights a Blender scene by an environment picture and its sun, and puts the dome around it.

    Args:
      scene: the scene in Blender.
      environment: how the picture is turned, clamped and exposed.
      picture: its file, equirectangular.
    """
    import bpy

    image = bpy.data.images.load(str(picture), check_existing=True)
    surround = Surround(environment=environment, image=image, white=_white(environment, image))
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
    _add_dome(scene, surround)
    return surround


def _white(environment: Environment, image: Any) -> Vector:
    """Returns the radiance of a white, flat, matt floor: its irradiance over pi."""
    width, height = image.size
    pixels = np.empty(width * height * 4, np.float32)
    image.pixels.foreach_get(pixels)
    upper = pixels.reshape(height, width, 4)[height // 2 :, :, :3]  # the first row is the lowest
    elevation = (np.arange(len(upper)) + 0.5 + height // 2) / height * np.pi - np.pi / 2
    rows = np.minimum(upper, environment.clamp).mean(axis=1, dtype=np.float64)
    weights = np.sin(elevation) * np.cos(elevation) * 2 * np.pi * np.pi / height
    irradiance = environment.exposure * weights @ rows
    if (sun := environment.sun) is not None:
        irradiance = irradiance + np.multiply(sun.strength, max(0.0, sun.direction[2]))
    red, green, blue = np.round(irradiance / np.pi, 4).tolist()
    return (red, green, blue)


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


def _add_dome(scene: Any, surround: Surround) -> None:
    """Adds the hemisphere that the camera sees; it takes no part in lighting."""
    import bpy

    turn = np.linspace(0, 2 * np.pi, DOME_SIDES, endpoint=False)
    steps = DOME_SIDES // 4
    rings = [
        [
            (DOME_M * np.cos(up) * np.cos(a), DOME_M * np.cos(up) * np.sin(a), DOME_M * np.sin(up))
            for a in turn
        ]
        for up in np.linspace(0, np.pi / 2, steps, endpoint=False)
    ]
    points = [point for ring in rings for point in ring]
    faces = [
        (
            level * DOME_SIDES + side,
            level * DOME_SIDES + (side + 1) % DOME_SIDES,
            (level + 1) * DOME_SIDES + (side + 1) % DOME_SIDES,
            (level + 1) * DOME_SIDES + side,
        )
        for level in range(steps - 1)
        for side in range(DOME_SIDES)
    ]
    faces.append(tuple(range((steps - 1) * DOME_SIDES, steps * DOME_SIDES)))
    mesh = bpy.data.meshes.new("dome")
    mesh.from_pydata(points, [], faces)
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
