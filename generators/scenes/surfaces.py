"""Changes the colour or material of objects in Blender."""

import re
from collections.abc import Collection, Iterator
from typing import Any

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
      colour: linear red, green and blue in [0, 1]; replaces a texture.
      material: the properties of the surface apart from its colour.
      parts: names of the materials to change; None for all of them.
    """
    if not made.material_slots:
        made.data.materials.append(_principled("surface", NEUTRAL))
    if colour is None and material is None:
        return
    for inputs in _inputs(made, parts):
        if colour is not None:
            _set(inputs["Base Color"], (*colour, 1.0))
        for name, value in _SURFACES[material].items() if material is not None else ():
            _set(inputs[name], value)


def changed_slots(made: Any, parts: Collection[str] | None) -> list[Any]:
    """Returns the slots of an object's materials that are among its parts, or all for None."""
    if not made.material_slots:
        made.data.materials.append(_principled("surface", NEUTRAL))
    return [slot for slot in made.material_slots if parts is None or _name_of(slot) in parts]


def _inputs(made: Any, parts: Collection[str] | None) -> Iterator[Any]:
    """Yields the shader inputs of each part."""
    for slot in changed_slots(made, parts):
        shader = None if slot.material is None else _shader(slot.material)
        if shader is None:
            slot.material = _principled(_name_of(slot) or "surface", NEUTRAL)
            shader = _shader(slot.material)
        yield shader.inputs


def _name_of(slot: Any) -> str:
    return "" if slot.material is None else _name_in_file(slot.material.name)


def _name_in_file(name: str) -> str:
    """Removes the number that Blender appends to a material's name if it is taken."""
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
