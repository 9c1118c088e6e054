"""Put a scene's objects into a photographed environment, and configure Cycles for it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eqforge.core.files.pictures import read_pixels
from eqforge.generators.scenes.looks import GLASS_PATHS, Graph
from eqforge.generators.scenes.palette import decoded
from eqforge.generators.scenes.surroundings import floor_facts
from eqforge.schemas.records.scenes import Environment, FloorTexture, SceneCamera, SceneSpec

VIEWPOINT_M = 1.6  # height from which environment pictures are taken
DOME_SIDES = 96
MAP_PX = 256  # width of the map by which directions of light are drawn
LOWEST = -0.1  # sine of the elevation below which nothing shines: there is the floor


@dataclass(frozen=True, kw_only=True, slots=True)
class Surround:
    """An environment image in Blender, and how the scene uses it."""

    environment: Environment
    image: Any

    def seen(self, graph: Graph, direction: Any) -> Any:
        environment = self.environment
        turned = graph.turned(direction, -math.radians(environment.turn_deg))
        found = graph.node("TexEnvironment", {"Vector": turned})
        found.image = self.image
        clamped = graph.vector("MINIMUM", found.outputs["Color"], (environment.clamp,) * 3)
        return graph.scaled(clamped, environment.exposure)

    def projected(self, graph: Graph) -> Any:
        place = graph.node("NewGeometry", {}).outputs["Position"]
        return self.seen(graph, graph.vector("SUBTRACT", place, (0.0, 0.0, VIEWPOINT_M)))


def light_world(scene: Any, environment: Environment, picture: Path, radius_m: float) -> Surround:
    import bpy
    from mathutils import Vector as BlenderVector

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
    if (sun := environment.sun) is not None:
        lamp = bpy.data.lights.new("sun", "SUN")
        lamp.energy = max(sun.strength)
        lamp.color = [value / lamp.energy for value in sun.strength]
        lamp.angle = math.radians(sun.angle_deg)
        sun_object = bpy.data.objects.new("sun", lamp)
        sun_object.rotation_euler = BlenderVector(sun.direction).to_track_quat("Z", "Y").to_euler()
        scene.collection.objects.link(sun_object)
    _add_dome(scene, surround, radius_m)
    return surround


def _add_dome(scene: Any, surround: Surround, radius_m: float) -> None:
    """Add the hemisphere that the camera sees; it takes no part in lighting."""
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


BUMP, BUMP_TILES = 0.6, 0.02
"""Share of the texture's light read as height, and the height of white in tiles."""

RIM, BEHIND = 1.7, 1.3
"""Minimum radius of the whole floor, in radii of the texture and in camera distances."""

FINE_STEPS = 997  # moves of a piece that may be moved by any length
_SECOND = (2.399, (0.37, 0.71, 0.0))
"""Rotation in radians, and offset in tiles, of the texture's second copy."""


def rim_m(floor: FloorTexture, camera: SceneCamera) -> float:
    return max(RIM * floor.radius_m, BEHIND * math.hypot(*camera.position))


def add_floor(
    scene: Any,
    floor: FloorTexture,
    picture: Path,
    surround: Surround,
    camera: SceneCamera,
    resolution: int,
) -> None:
    import bpy

    linear = decoded(np.arange(256) / 255).astype(np.float32)
    distance = math.dist(camera.position, camera.look_at)
    pixel_m = distance * camera.sensor_width_mm / camera.focal_length_mm / resolution
    texels = linear[read_pixels(picture.read_bytes())]
    height, width, _ = texels.shape
    # Blender does not filter: halve the texture until texels are about as large as pixels.
    pixel_tiles = pixel_m / floor.tile_m
    while width % 2 == height % 2 == 0 and width > 16 and 1 / width < 0.6 * pixel_tiles:
        height, width = height // 2, width // 2
        texels = texels.reshape(height, 2, width, 2, 3).mean(axis=(1, 3))
    image = bpy.data.images.new("floor", width, height, float_buffer=True)
    image.colorspace_settings.name = "Linear Rec.709"
    opaque = np.concatenate([texels[::-1], np.ones_like(texels[..., :1])], axis=-1)
    image.pixels.foreach_set(opaque.ravel())
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
    """Make the floor's shader: from the middle outwards, texture, lit ground and emissive ground.

    At the scene's exposure, the light on the floor shows white as 1, so the radiance of the ground
    in the image is about its colour. Beyond all shadows it only emits, without noise.
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
    """Return the texture's colour, varied so that neighbouring tiles look different."""
    tiles = graph.scaled(graph.turned(place, -math.radians(floor.turn_deg)), 1 / floor.tile_m)
    facts = floor_facts().get(floor.asset)
    if facts is not None and facts.laid is not None:
        # Its pieces swap places at random.
        laid = facts.laid
        pieces = graph.vector("FLOOR", graph.vector("MULTIPLY", tiles, (*laid, 0.0)))
        lot = graph.node("TexWhiteNoise", {"Vector": pieces}).outputs["Color"]
        steps = [each or FINE_STEPS for each in (*laid, 1)]
        moves = graph.vector("FLOOR", graph.vector("MULTIPLY", lot, steps))
        moved = graph.vector("ADD", tiles, graph.vector("DIVIDE", moves, steps))
        return _texel(graph, image, moved)
    turn, offset = _SECOND
    turned = graph.vector("ADD", graph.turned(tiles, turn), offset)
    copies = [_texel(graph, image, each) for each in (tiles, turned)]
    patches = graph.node("TexNoise", {"Vector": tiles, "Scale": 0.8, "Detail": 3.0}).outputs[0]
    return graph.mixed(graph.ramp(patches, 0.45, 0.55), *copies)


def _texel(graph: Graph, image: Any, place: Any) -> Any:
    node = graph.node("TexImage", {"Vector": place})
    node.image = image
    return node.outputs["Color"]


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
"""Settings of Cycles: more bounces would not be visible; the passes keep textures sharp."""

_WITH_MATERIALS: Mapping[str, Any] = {
    "max_bounces": GLASS_PATHS,
    "transmission_bounces": GLASS_PATHS,
    "transparent_max_bounces": GLASS_PATHS,
    "denoising_prefilter": "ACCURATE",
}
"""More settings for named materials: the passes of glass and metal are noisy themselves, and
denoising would keep that noise in the image."""


def photograph(scene: Any, spec: SceneSpec, pictures: Mapping[str, Path], resolution: int) -> None:
    """Add light, surroundings and floor to a Blender scene; `pictures` are files by asset id."""
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
