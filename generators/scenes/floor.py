"""The floor of a photographic scene: a texture that goes over into the environment's own ground."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from eqforge.generators.scenes.shading import Graph
from eqforge.generators.scenes.world import DOME_M, DOME_SIDES, Surround
from eqforge.schemas.records.scenes import FloorTexture, SceneCamera

_SECOND = (2.399, (0.37, 0.71, 0.0))
"""Turn in radians, and offset in tiles, of the texture's second copy."""


def add_floor(
    scene: Any,
    floor: FloorTexture,
    picture: Path,
    surround: Surround,
    camera: SceneCamera,
    resolution: int,
) -> None:
    """Adds the floor to a Blender scene.

    Args:
      scene: the scene in Blender.
      floor: how the texture lies.
      picture: the texture's file.
      surround: the environment.
      camera, resolution: decide how finely the texture is kept: to the size of a pixel.
    """
    import bpy

    texels = _reduced(_read(picture), _pixel_m(camera, resolution) / floor.tile_m)
    image = _image(texels)
    turn = np.linspace(0, 2 * np.pi, DOME_SIDES, endpoint=False)
    mesh = bpy.data.meshes.new("floor")
    rim = [(DOME_M * np.cos(angle), DOME_M * np.sin(angle), 0.0) for angle in turn]
    mesh.from_pydata(rim, [], [tuple(range(DOME_SIDES))])
    material = bpy.data.materials.new("floor")
    mesh.materials.append(material)
    scene.collection.objects.link(bpy.data.objects.new("floor", mesh))
    mean = texels.mean(axis=(0, 1)) * floor.tint
    _shade(Graph(material), floor, image, mean.tolist(), surround)
    material.cycles.emission_sampling = "NONE"


def _shade(
    graph: Graph, floor: FloorTexture, image: Any, mean: list[float], surround: Surround
) -> None:
    place = graph.node("NewGeometry", {}).outputs["Position"]
    away = graph.node("VectorMath", {0: place}, operation="LENGTH").outputs["Value"]
    wave = graph.node("TexNoise", {"Vector": place, "Scale": 0.9, "Detail": 2.0}).outputs[0]
    ragged = graph.math("MULTIPLY_ADD", wave, 1.2 * floor.radius_m, away)
    glow = surround.projected(graph)
    ground = graph.vector("DIVIDE", glow, surround.white)
    texture = graph.vector("MULTIPLY", _untiled(graph, floor, image, place), floor.tint)
    far = graph.ramp(ragged, 1.5 * floor.radius_m, 2.1 * floor.radius_m)
    colour = graph.mixed(far, texture, ground)
    grey = graph.node("RGBToBW", {"Color": texture}).outputs[0]
    bump = graph.node(
        "Bump", {"Height": grey, "Strength": 0.6, "Distance": 0.02 * floor.tile_m}
    ).outputs[0]
    rough = {"Color": colour, "Normal": bump, "Roughness": 0.5}
    seen = graph.node("BsdfDiffuse", rough).outputs[0]
    plain = graph.node("BsdfDiffuse", {"Color": (*mean, 1.0)}).outputs[0]
    path = graph.node("LightPath", {}).outputs["Is Diffuse Ray"]
    near = graph.node("MixShader", {0: path, 1: seen, 2: plain}).outputs[0]
    light = graph.node("Emission", {"Color": glow}).outputs[0]
    beyond = graph.ramp(away, 2.5 * floor.radius_m, 3.5 * floor.radius_m)
    both = graph.node("MixShader", {0: beyond, 1: near, 2: light}).outputs[0]
    graph.node("OutputMaterial", {"Surface": both})


def _untiled(graph: Graph, floor: FloorTexture, image: Any, place: Any) -> Any:
    """Returns the texture's colour, from one of two copies in irregular patches."""
    tiles = graph.scaled(graph.turned(place, -math.radians(floor.turn_deg)), 1 / floor.tile_m)
    turn, offset = _SECOND
    copies = []
    for at in (tiles, graph.vector("ADD", graph.turned(tiles, turn), offset)):
        node = graph.node("TexImage", {"Vector": at})
        node.image = image
        copies.append(node.outputs["Color"])
    patches = graph.node("TexNoise", {"Vector": tiles, "Scale": 0.8, "Detail": 3.0}).outputs[0]
    return graph.mixed(graph.ramp(patches, 0.45, 0.55), *copies)


def _pixel_m(camera: SceneCamera, resolution: int) -> float:
    """Returns the width of a pixel at the point that the camera looks at, in metres."""
    distance = math.dist(camera.position, camera.look_at)
    return distance * camera.sensor_width_mm / camera.focal_length_mm / resolution


def _read(picture: Path) -> NDArray[np.float32]:
    """Reads a texture as linear red, green and blue in [0, 1], float32 [height, width, 3]."""
    with Image.open(picture) as opened:
        shown = np.asarray(opened.convert("RGB"))
    levels = np.arange(256) / 255
    linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
    return linear.astype(np.float32)[shown]


def _reduced(texels: NDArray[np.float32], pixel_tiles: float) -> NDArray[np.float32]:
    """Halves a texture until its texels are about as large as pixels: Blender does not filter."""
    height, width, _ = texels.shape
    while width % 2 == height % 2 == 0 and width > 16 and 1 / width < 0.6 * pixel_tiles:
        height, width = height // 2, width // 2
        texels = texels.reshape(height, 2, width, 2, 3).mean(axis=(1, 3))
    return texels


def _image(texels: NDArray[np.float32]) -> Any:
    """Returns a texture as an image in Blender."""
    import bpy

    height, width, _ = texels.shape
    image = bpy.data.images.new("floor", width, height, float_buffer=True)
    image.colorspace_settings.name = "Linear Rec.709"
    opaque = np.concatenate([texels[::-1], np.ones_like(texels[..., :1])], axis=-1)
    image.pixels.foreach_set(opaque.ravel())
    return image
