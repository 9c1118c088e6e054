"""Changes the colour or material of objects in Blender."""

import re
from collections.abc import Collection, Iterator
from typing import Any

from eqforge.generators.scenes.tints import (
    decoded,
    encoded,
    recoloured,
    recoloured_pixels,
    sampled,
    shown_colours,
)
from eqforge.schemas.late import numpy as np
from eqforge.schemas.records.scenes import SurfaceMaterial, Vector

NEUTRAL: Vector = (0.5, 0.5, 0.5)
"""Colour of an object whose asset has no material."""

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
"""Rubber and metal are as in kubric's MOVi workers, which have no glass; wood is a matt surface:
the plain stage has no textures."""


def override_surface(
    made: Any,
    colour: Vector | None,
    material: SurfaceMaterial | None,
    parts: Collection[str] | None = None,
) -> None:
    """Replaces an object's colour, material or both; None keeps the asset's own.

    Args:
      made: the object in Blender.
      colour: linear red, green and blue in [0, 1]; of a texture, replaces the main colour.
      material: the properties of the surface apart from its colour.
      parts: names of the materials to change; None for all of them.
    """
    if not made.material_slots:
        made.data.materials.append(_principled("surface", NEUTRAL))
    if colour is None and material is None:
        return
    for slot, inputs in _inputs(made, parts):
        if colour is not None:
            _paint(made, slot, inputs["Base Color"], colour)
        for name, value in _SURFACES[material].items() if material is not None else ():
            _set(inputs[name], value)


def changed_slots(made: Any, parts: Collection[str] | None) -> list[Any]:
    """Returns the slots of an object's materials that are among its parts, or all for None."""
    if not made.material_slots:
        made.data.materials.append(_principled("surface", NEUTRAL))
    return [slot for slot in made.material_slots if parts is None or _name_of(slot) in parts]


def _paint(made: Any, slot: Any, socket: Any, colour: Vector) -> None:
    """Gives a surface a colour, or its texture another main colour where it has one."""
    texture = _texture_of(socket)
    if texture is None:
        _set(socket, (*colour, 1.0))
        return
    image = texture.image
    # A picture of more than 8 bits is held in linear light, whatever its colour space is called.
    is_encoded = not image.is_float and image.colorspace_settings.name == "sRGB"
    texels = np.empty(4 * image.size[0] * image.size[1], np.float32)
    image.pixels.foreach_get(texels)
    texels = texels.reshape(image.size[1], image.size[0], 4)[::-1]  # Blender's first row is below
    seen = texels[..., :3] if is_encoded else encoded(np.clip(texels[..., :3], 0, 1))
    corners, areas = _unwrapped(made, slot.slot_index)
    corners = _laid(texture, corners)
    if not areas.sum() > 0:
        _set(socket, (*colour, 1.0))
        return
    shown = shown_colours(*sampled(corners, areas, seen))
    if image.is_float:
        painted = recoloured(seen, shown, colour)
    else:
        painted = recoloured_pixels(np.rint(255 * seen).astype(np.uint8), shown, colour)
    result = texels.copy()
    result[..., :3] = painted if is_encoded else decoded(painted)
    texture.image = _image_like(image, result[::-1])


def _texture_of(socket: Any) -> Any:
    """Returns the node of the picture that a shader's input shows, or None."""
    for link in socket.links:
        node = link.from_node
        if node.type == "TEX_IMAGE" and node.image is not None and min(node.image.size) > 0:
            return node
    return None


def _laid(texture: Any, corners: Any) -> Any:
    """Returns where a picture is read at texture coordinates, which a node may scale and move."""
    for link in texture.inputs["Vector"].links:
        if link.from_node.type == "MAPPING":
            inputs = link.from_node.inputs
            scale, offset = (
                np.array(inputs[name].default_value)[:2] for name in ("Scale", "Location")
            )
            return corners * scale + offset
    return corners


def _unwrapped(made: Any, slot: int) -> tuple[Any, Any]:
    """Returns the texture coordinates and the areas of the triangles that have a material."""
    mesh = made.data
    mesh.calc_loop_triangles()
    count = len(mesh.loop_triangles)
    loops, areas = np.empty(3 * count, np.int32), np.empty(count, np.float32)
    slots = np.empty(count, np.int32)
    mesh.loop_triangles.foreach_get("loops", loops)
    mesh.loop_triangles.foreach_get("area", areas)
    mesh.loop_triangles.foreach_get("material_index", slots)
    if mesh.uv_layers.active is None:
        return np.zeros((0, 3, 2)), np.zeros(0)
    places = np.empty(2 * len(mesh.loops), np.float32)
    mesh.uv_layers.active.uv.foreach_get("vector", places)
    corners = places.reshape(-1, 2)[loops.reshape(-1, 3)]
    return corners[slots == slot].astype(np.float64), areas[slots == slot].astype(np.float64)


def _image_like(image: Any, texels: Any) -> Any:
    """Returns a new picture in Blender; the texels' first row is below."""
    import bpy

    made = bpy.data.images.new(image.name, *image.size, alpha=True, float_buffer=image.is_float)
    made.colorspace_settings.name = image.colorspace_settings.name
    made.alpha_mode = image.alpha_mode
    made.pixels.foreach_set(np.ascontiguousarray(texels, np.float32).ravel())
    made.update()
    return made


def _inputs(made: Any, parts: Collection[str] | None) -> Iterator[tuple[Any, Any]]:
    """Yields each part's slot, and the inputs of its shader."""
    for slot in changed_slots(made, parts):
        shader = None if slot.material is None else _shader(slot.material)
        if shader is None:
            slot.material = _principled(_name_of(slot) or "surface", NEUTRAL)
            shader = _shader(slot.material)
        yield slot, shader.inputs


def _name_of(slot: Any) -> str:
    return "" if slot.material is None else name_in_file(slot.material.name)


def name_in_file(name: str) -> str:
    """Returns a material's name without the number that Blender appends if it is taken."""
    return re.sub(r"\.\d{3,}$", "", name)


def _shader(material: Any) -> Any:
    nodes = material.node_tree.nodes if material.use_nodes else ()
    return next((node for node in nodes if node.type == "BSDF_PRINCIPLED"), None)


def _principled(name: str, colour: Vector) -> Any:
    import bpy

    material = bpy.data.materials.new(name)
    material.use_nodes = True
    _set(_shader(material).inputs["Base Color"], (*colour, 1.0))
    return material


def _set(socket: Any, value: Any) -> None:
    """Sets a shader input, and removes any texture linked to it."""
    for link in list(socket.links):
        socket.id_data.links.remove(link)
    socket.default_value = value
