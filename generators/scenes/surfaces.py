"""Change the colour or material of objects in Blender."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from eqforge.core.errors import InputError
from eqforge.generators.scenes.palette import (
    decoded,
    encoded,
    recoloured,
    recoloured_pixels,
    sampled,
    shown_colours,
)
from eqforge.schemas.records.scenes import SurfaceMaterial, Vector

_OPAQUE = 0.5  # least alpha of what is seen, and transmission of what is seen through
_DARK = 0.02  # mean of a texture of light up to which its surface shows reflected light
_ROUGH = 0.15  # roughness from which on metal shows its own colour
NEUTRAL: Vector = (0.5, 0.5, 0.5)  # colour of an object whose asset has no material

_SURFACES: dict[SurfaceMaterial, dict[str, float]] = {
    "rubber": {
        "Metallic": 0.0,
        "Roughness": 0.7,
        "Specular IOR Level": 0.33,
        "IOR": 1.25,
        "Transmission Weight": 0.0,
    },
    "metal": {
        "Metallic": 1.0,
        "Roughness": 0.2,
        "Specular IOR Level": 0.5,
        "IOR": 2.5,
        "Transmission Weight": 0.0,
    },
    "glass": {
        "Metallic": 0.0,
        "Roughness": 0.02,
        "Specular IOR Level": 0.5,
        "IOR": 1.45,
        "Transmission Weight": 1.0,
    },
    "wooden": {"Metallic": 0.0, "Roughness": 0.6, "Transmission Weight": 0.0},
}
"""Rubber and metal match kubric's MOVi workers, which have no glass; wood is matt, since the plain
stage has no textures."""


def override_surface(
    obj: Any,
    colour: Vector | None,
    material: SurfaceMaterial | None,
    parts: Collection[str] | None = None,
) -> None:
    slots = changed_slots(obj, parts)
    if colour is None and material is None:
        return
    for slot in slots:
        shader = None if slot.material is None else _shader(slot.material)
        if shader is None:
            slot.material = _principled(_name_of(slot) or "surface")
            shader = _shader(slot.material)
        inputs = shader.inputs
        if colour is not None:
            _paint(obj, slot, inputs["Base Color"], colour)
        for name, value in _SURFACES[material].items() if material is not None else ():
            _set(inputs[name], value)


def changed_slots(obj: Any, parts: Collection[str] | None) -> list[Any]:
    if not obj.material_slots:
        obj.data.materials.append(_principled("surface"))
    return [slot for slot in obj.material_slots if parts is None or _name_of(slot) in parts]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Seen:
    """What a surface shows: its area, and its colours at some points.

    Attributes:
      texels: sRGB in [0, 1], [points, 3]. None if unknown: the surface mixes a texture with other
        colours, glows, mirrors or is transparent.
      areas: [points], the area that each point stands for.
    """

    area: float
    texels: Any
    areas: Any


def seen_colours(obj: Any) -> Iterator[tuple[str, Seen]]:
    for slot in obj.material_slots:
        _, areas = _triangles(obj, slot.slot_index)
        texels, stands_for = np.zeros((0, 3)), np.zeros(0)
        shader = None if slot.material is None else _shader(slot.material)
        if shader is not None:
            base = shader.inputs["Base Color"]
            shown = [link.from_node for link in base.links if link.from_node.type == "TEX_IMAGE"]
            if shown and _texture_of(base) is None:
                name = shown[0].image.name if shown[0].image else ""
                raise InputError(f"its texture {name} cannot be read")
            if areas.sum() > 0 and _is_plain(shader):
                texels, stands_for = _seen(obj, slot, base, areas)
        name = "" if slot.material is None else slot.material.name
        yield name, Seen(area=float(areas.sum()), texels=texels, areas=stands_for)


def _is_plain(shader: Any) -> bool:
    inputs = shader.inputs
    alpha, base = inputs["Alpha"], inputs["Base Color"]
    texture = _texture_of(base)
    is_opaque = alpha.default_value >= _OPAQUE
    if alpha.links:
        is_opaque = texture is not None and alpha.links[0].from_node == texture
    return bool(
        is_opaque
        and not _shines(inputs["Emission Color"], inputs["Emission Strength"].default_value)
        and not _mirrors(inputs)
        and not inputs["Transmission Weight"].links
        and inputs["Transmission Weight"].default_value < _OPAQUE
        and (not base.links or (texture is not None and _layout(texture) is not None))
    )


def _shines(colour: Any, strength: float) -> bool:
    """Return True if a surface emits light; ignores small lamps in a dark texture."""
    if not colour.links or strength <= 0:
        return strength > 0 and max(colour.default_value[:3]) > 0
    texture = _texture_of(colour)
    return texture is None or strength * _texels(texture.image)[..., :3].mean() > _DARK


def _mirrors(inputs: Any) -> bool:
    metallic, roughness = inputs["Metallic"], inputs["Roughness"]
    is_metal = bool(metallic.links) or metallic.default_value > _OPAQUE
    return is_metal and not roughness.links and roughness.default_value < _ROUGH


def _seen(obj: Any, slot: Any, base: Any, areas: Any) -> tuple[Any, Any]:
    texture = _texture_of(base)
    if texture is None:
        return encoded(np.array(base.default_value[:3], np.float64))[None], areas.sum()[None]
    texels = _texels(texture.image)
    colours = _encoded(texture.image, texels)
    links = (link for socket in texture.outputs for link in socket.links)
    is_cut = any(link.from_socket.name == "Alpha" for link in links)
    if not is_cut and texture.image.alpha_mode == "STRAIGHT":
        # Blender shows black where a texture is transparent and its surface is not.
        colours = np.where(texels[..., 3:] > 0, colours, 0)
    corners, of_unwrapped = _unwrapped(obj, slot.slot_index, texture)
    if not len(corners):
        return np.zeros((0, 3)), np.zeros(0)
    picture = np.concatenate((colours, texels[..., 3:]), axis=-1)
    points, stands_for = sampled(corners, of_unwrapped, picture, texture.extension)
    if is_cut:
        stands_for = np.where(points[:, 3] >= _OPAQUE, stands_for, 0.0)
    return points[:, :3], stands_for


def _paint(obj: Any, slot: Any, socket: Any, colour: Vector) -> None:
    import bpy

    texture = _texture_of(socket)
    if texture is None:
        _set(socket, (*colour, 1.0))
        return
    corners, areas = _unwrapped(obj, slot.slot_index, texture)
    if not areas.sum() > 0:
        _set(socket, (*colour, 1.0))
        return
    image = texture.image
    texels = _texels(image)
    seen = _encoded(image, texels)
    shown = shown_colours(*sampled(corners, areas, seen, texture.extension))
    if image.is_float:
        painted = recoloured(seen, shown, colour)
    else:
        painted = recoloured_pixels(np.rint(255 * seen).astype(np.uint8), shown, colour)
    result = texels.copy()
    result[..., :3] = painted if _is_encoded(image) else decoded(painted)
    changed = bpy.data.images.new(image.name, *image.size, alpha=True, float_buffer=image.is_float)
    changed.colorspace_settings.name = image.colorspace_settings.name
    changed.alpha_mode = image.alpha_mode
    changed.pixels.foreach_set(np.ascontiguousarray(result[::-1], np.float32).ravel())
    changed.update()
    texture.image = changed


def _texels(image: Any) -> Any:
    """Return an image as Blender holds it, float32 [height, width, 4]."""
    texels = np.empty(4 * image.size[0] * image.size[1], np.float32)
    image.pixels.foreach_get(texels)
    return texels.reshape(image.size[1], image.size[0], 4)[::-1]  # Blender's first row is below


def _is_encoded(image: Any) -> bool:
    """Return True if Blender holds an image in sRGB; more than 8 bits are linear light."""
    return not image.is_float and image.colorspace_settings.name == "sRGB"


def _encoded(image: Any, texels: Any) -> Any:
    colours = texels[..., :3]
    return colours if _is_encoded(image) else encoded(np.clip(colours, 0, 1))


def _texture_of(socket: Any) -> Any:
    for link in socket.links:
        node = link.from_node
        if node.type == "TEX_IMAGE" and node.image is not None and min(node.image.size) > 0:
            return node
    return None


def _layout(texture: Any) -> tuple[str | None, list[tuple[Any, Any]]] | None:
    """Return the UV layer, rotations and offsets of an image on a mesh; None if there is more."""
    steps: list[tuple[Any, Any]] = []
    links = texture.inputs["Vector"].links
    while links:
        node = links[0].from_node
        if node.type == "UVMAP":
            return node.uv_map or None, steps[::-1]
        if node.type == "TEX_COORD" and links[0].from_socket.name == "UV":
            break
        if node.type != "MAPPING":
            return None
        by, turn, to = (
            np.array(node.inputs[name].default_value) for name in ("Scale", "Rotation", "Location")
        )
        cos, sin = np.cos(turn[2]), np.sin(turn[2])
        steps.append((np.array(((cos, -sin), (sin, cos))) * by[:2], to[:2]))
        links = node.inputs["Vector"].links
    return None, steps[::-1]


def _triangles(obj: Any, slot: int) -> tuple[Any, Any]:
    mesh = obj.data
    mesh.calc_loop_triangles()
    count = len(mesh.loop_triangles)
    loops, areas = np.empty(3 * count, np.int32), np.empty(count, np.float32)
    slots = np.empty(count, np.int32)
    mesh.loop_triangles.foreach_get("loops", loops)
    mesh.loop_triangles.foreach_get("area", areas)
    mesh.loop_triangles.foreach_get("material_index", slots)
    # Blender uses the last material for an index that has none.
    slots = np.minimum(slots, max(len(obj.material_slots) - 1, 0))
    return loops.reshape(-1, 3)[slots == slot], areas[slots == slot].astype(np.float64)


def _unwrapped(obj: Any, slot: int, texture: Any) -> tuple[Any, Any]:
    name, steps = _layout(texture) or (None, [])
    layers = obj.data.uv_layers
    layer = layers.active if name is None else layers.get(name)
    if layer is None:
        return np.zeros((0, 3, 2)), np.zeros(0)
    places = np.empty(2 * len(obj.data.loops), np.float32)
    layer.uv.foreach_get("vector", places)
    loops, areas = _triangles(obj, slot)
    corners = places.reshape(-1, 2)[loops].astype(np.float64)
    for turn, to in steps:
        corners = corners @ turn.T + to
    return corners, areas


def _name_of(slot: Any) -> str:
    return "" if slot.material is None else name_in_file(slot.material.name)


def name_in_file(name: str) -> str:
    """Strip the number that Blender appends to a material name that is taken."""
    return re.sub(r"\.\d{3,}$", "", name)


def _shader(material: Any) -> Any:
    nodes = material.node_tree.nodes if material.use_nodes else ()
    return next((node for node in nodes if node.type == "BSDF_PRINCIPLED"), None)


def _principled(name: str) -> Any:
    import bpy

    material = bpy.data.materials.new(name)
    material.use_nodes = True
    _set(_shader(material).inputs["Base Color"], (*NEUTRAL, 1.0))
    return material


def _set(socket: Any, value: Any) -> None:
    for link in list(socket.links):
        socket.id_data.links.remove(link)
    socket.default_value = value
