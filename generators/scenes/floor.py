"""The floor of a photographic scene: a texture that goes over into the environment's own ground."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqforge.core.files.pictures import read_pixels
from eqforge.generators.scenes.floors import floor_facts
from eqforge.generators.scenes.shading import Graph
from eqforge.generators.scenes.world import DOME_SIDES, Surround
from eqforge.schemas.records.scenes import FloorTexture, SceneCamera

BUMP, BUMP_TILES = 0.6, 0.02
"""How much of the texture's light is taken for height, and how many tiles high white is."""

RIM, BEHIND = 1.7, 1.3
"""Least radius of the whole floor, in radii of the texture, and in the camera's distances."""

FINE_STEPS = 997
"""Moves of a piece that may be moved by any length."""

_SECOND = (2.399, (0.37, 0.71, 0.0))
"""Turn in radians, and offset in tiles, of the texture's second copy."""


def rim_m(floor: FloorTexture, camera: SceneCamera) -> float:
    """Returns the radius of the whole floor, which the dome stands on: the camera is inside."""
    return max(RIM * floor.radius_m, BEHIND * math.hypot(*camera.position))


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
      camera: what sees it.
      resolution: width of the picture; the texture is kept as finely as a pixel of it.
    """
    import bpy

    texels = _reduced(_read(picture), _pixel_m(camera, resolution) / floor.tile_m)
    image = _image(texels)
    turn, radius = np.arange(DOME_SIDES) / DOME_SIDES * 2 * np.pi, rim_m(floor, camera)
    mesh = bpy.data.meshes.new("floor")
    rim = [(radius * np.cos(angle), radius * np.sin(angle), 0.0) for angle in turn]
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
    """Makes the floor's shader: from the middle outwards, texture, lit ground, and shining ground.

    The scene is exposed so that the light on the floor shows white as 1: the radiance of the
    ground in the picture is about its colour. Where no shadow falls any more it just shines, which
    is quicker and has no noise. Light that comes by way of the floor meets one colour.
    """
    radius = floor.radius_m
    place = graph.node("NewGeometry", {}).outputs["Position"]
    away = graph.node("VectorMath", {0: place}, operation="LENGTH").outputs["Value"]
    wave = graph.node("TexNoise", {"Vector": place, "Scale": 0.9, "Detail": 2.0}).outputs[0]
    ragged = graph.math("MULTIPLY_ADD", wave, 0.4 * radius, away)
    glow = surround.projected(graph)
    texture = graph.vector("MULTIPLY", _untiled(graph, floor, image, place), floor.tint)
    colour = graph.mixed(graph.ramp(ragged, 1.15 * radius, 1.6 * radius), texture, glow)
    grey = graph.node("RGBToBW", {"Color": texture}).outputs[0]
    depth = {"Height": grey, "Strength": BUMP, "Distance": BUMP_TILES * floor.tile_m}
    bump = graph.node("Bump", depth).outputs[0]
    seen = graph.node("BsdfDiffuse", {"Color": colour, "Normal": bump, "Roughness": 0.5})
    met = graph.node("BsdfDiffuse", {"Color": (*mean, 1.0)})
    bounced = graph.node("LightPath", {}).outputs["Is Diffuse Ray"]
    lit = graph.node("MixShader", {0: bounced, 1: seen.outputs[0], 2: met.outputs[0]})
    shining = graph.node("Emission", {"Color": glow})
    beyond = graph.ramp(away, 1.5 * radius, RIM * radius)
    both = graph.node("MixShader", {0: beyond, 1: lit.outputs[0], 2: shining.outputs[0]})
    graph.node("OutputMaterial", {"Surface": both.outputs[0]})


def _untiled(graph: Graph, floor: FloorTexture, image: Any, place: Any) -> Any:
    """Returns the texture's colour, in which no tile looks like the one beside it."""
    tiles = graph.scaled(graph.turned(place, -math.radians(floor.turn_deg)), 1 / floor.tile_m)
    facts = floor_facts().get(floor.asset)
    if facts is not None and facts.laid is not None:
        return _exchanged(graph, facts.laid, image, tiles)
    turn, offset = _SECOND
    turned = graph.vector("ADD", graph.turned(tiles, turn), offset)
    copies = [_texel(graph, image, each) for each in (tiles, turned)]
    patches = graph.node("TexNoise", {"Vector": tiles, "Scale": 0.8, "Detail": 3.0}).outputs[0]
    return graph.mixed(graph.ramp(patches, 0.45, 0.55), *copies)


def _exchanged(graph: Graph, laid: tuple[int, int], image: Any, tiles: Any) -> Any:
    """Returns a texture's colour after its pieces have changed places, each by lot."""
    pieces = graph.vector("FLOOR", graph.vector("MULTIPLY", tiles, (*laid, 0.0)))
    lot = graph.node("TexWhiteNoise", {"Vector": pieces}).outputs["Color"]
    steps = [each or FINE_STEPS for each in (*laid, 1)]
    moves = graph.vector("FLOOR", graph.vector("MULTIPLY", lot, steps))
    return _texel(graph, image, graph.vector("ADD", tiles, graph.vector("DIVIDE", moves, steps)))


def _texel(graph: Graph, image: Any, place: Any) -> Any:
    node = graph.node("TexImage", {"Vector": place})
    node.image = image
    return node.outputs["Color"]


def _pixel_m(camera: SceneCamera, resolution: int) -> float:
    """Returns the width of a pixel at the point that the camera looks at, in metres."""
    distance = math.dist(camera.position, camera.look_at)
    return distance * camera.sensor_width_mm / camera.focal_length_mm / resolution


def _read(picture: Path) -> NDArray[np.float32]:
    """Reads a texture as linear red, green and blue in [0, 1], float32 [height, width, 3]."""
    shown = read_pixels(picture.read_bytes())
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
