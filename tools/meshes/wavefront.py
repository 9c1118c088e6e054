"""Writes an object as the files of an asset, in the form of Google Scanned Objects in kubric."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull  # type: ignore[import-untyped]

from eqforge.schemas.records.scenes import Vector
from tools.meshes.shapes import DECIMALS, Points, Solid, corner_normals
from tools.meshes.textures import jpeg

RENDER, SIMULATION = "visual_geometry.obj", "object.urdf"
MATERIALS, COLLISION = "visual_geometry.mtl", "collision_geometry.obj"


@dataclass(frozen=True, kw_only=True, slots=True)
class Surface:
    """A material: linear red, green and blue in [0, 1], roughness and metalness in [0, 1].

    A texture stands in for the colour.
    """

    colour: Vector
    roughness: float = 0.5
    metallic: float = 0.0
    texture: str | None = None


def normalised(solids: Sequence[Solid]) -> list[Solid]:
    """Returns the solids scaled to a largest extent of 1, standing centred on the origin.

    Coordinates are rounded to the precision of the file.
    """
    low, high = _bounds(solids)
    shift = np.array([(low[0] + high[0]) / 2, (low[1] + high[1]) / 2, low[2]])
    scale = 1 / (high - low).max()
    return [
        replace(solid, vertices=np.round((solid.vertices - shift) * scale, DECIMALS) + 0.0)
        for solid in solids
    ]


def asset_files(
    asset_id: str, solids: Sequence[Solid], surfaces: Mapping[str, Surface], licence: str
) -> dict[str, bytes]:
    """Returns the files of an asset by name.

    Args:
      asset_id: its id.
      solids: as `normalised` gives them.
      surfaces: the materials by name.
      licence: its licence.
    """
    used = sorted({solid.material for solid in solids})
    properties = {"id": asset_id, "kwargs": asset_kwargs(solids), "license": licence}
    shown = [texture for name in used if (texture := surfaces[name].texture) is not None]
    return {
        **{f"{texture}.jpg": jpeg(texture) for texture in shown},
        RENDER: _obj(solids).encode(),
        MATERIALS: "".join(_mtl(name, surfaces[name]) for name in used).encode(),
        COLLISION: _hull(solids).encode(),
        SIMULATION: _urdf(asset_id, solids).encode(),
        "data.json": (json.dumps(properties, indent=1, sort_keys=True) + "\n").encode(),
    }


def asset_kwargs(solids: Sequence[Solid]) -> dict[str, Any]:
    """Returns the `kwargs` of a manifest's entry."""
    low, high = _bounds(solids)
    return {
        "bounds": [low.tolist(), high.tolist()],
        "mass": 1.0,
        "render_filename": f"{{asset_dir}}/{RENDER}",
        "simulation_filename": f"{{asset_dir}}/{SIMULATION}",
        "render_import_kwargs": {"axis_forward": "Y", "axis_up": "Z"},
    }


def _bounds(solids: Sequence[Solid]) -> tuple[Points, Points]:
    vertices = np.concatenate([solid.vertices for solid in solids])
    return vertices.min(axis=0), vertices.max(axis=0)


def _obj(solids: Sequence[Solid]) -> str:
    lines = [f"mtllib {MATERIALS}", "o object"]
    normals: dict[str, int] = {}
    mapped: dict[str, int] = {}
    start = 1
    for solid in solids:
        lines.append(f"usemtl {solid.material}")
        lines += [f"v {_numbers(vertex, DECIMALS)}" for vertex in solid.vertices]
        faces = []
        for number, (face, directions) in enumerate(
            zip(solid.faces, corner_normals(solid), strict=True)
        ):
            texts = [f"vn {_numbers(direction, 3)}" for direction in directions]
            lines += [text for text in dict.fromkeys(texts) if text not in normals]
            places = [normals.setdefault(text, len(normals) + 1) for text in texts]
            wraps = [""] * len(face)
            if solid.places:
                said = [f"vt {_numbers(place, 4)}" for place in solid.places[number]]
                lines += [text for text in dict.fromkeys(said) if text not in mapped]
                wraps = [str(mapped.setdefault(text, len(mapped) + 1)) for text in said]
            corners = zip(face, wraps, places, strict=True)
            faces.append("f " + " ".join(f"{start + v}/{t}/{n}" for v, t, n in corners))
        lines += faces
        start += len(solid.vertices)
    return "\n".join([*lines, ""])


def _mtl(name: str, surface: Surface) -> str:
    shown = "" if surface.texture is None else f"map_Kd {surface.texture}.jpg\n"
    return (
        f"newmtl {name}\nKd {_numbers(surface.colour, 4)}\nPr {surface.roughness:g}\n"
        f"Pm {surface.metallic:g}\n{shown}\n"
    )


def _hull(solids: Sequence[Solid]) -> str:
    """Returns the convex hull as an OBJ file: the collision geometry for kubric's physics."""
    points = np.concatenate([solid.vertices for solid in solids])
    hull = ConvexHull(points)
    corners = points[np.sort(hull.vertices)]
    place = {int(vertex): number for number, vertex in enumerate(np.sort(hull.vertices), start=1)}
    lines = [f"v {_numbers(corner, DECIMALS)}" for corner in corners]
    for simplex, equation in zip(hull.simplices, hull.equations, strict=True):
        first, second, third = (int(vertex) for vertex in simplex)
        turn = np.cross(points[second] - points[first], points[third] - points[first])
        if turn @ equation[:3] < 0:
            second, third = third, second
        lines.append(f"f {place[first]} {place[second]} {place[third]}")
    return "\n".join([*lines, ""])


def _urdf(asset_id: str, solids: Sequence[Solid]) -> str:
    """Returns the URDF: one body of 1 kg with the inertia of its box."""
    low, high = _bounds(solids)
    x, y, z = (high - low) ** 2 / 12
    inertia = f'ixx="{y + z:.6f}" iyy="{x + z:.6f}" izz="{x + y:.6f}" ixy="0" ixz="0" iyz="0"'
    centre = _numbers((low + high) / 2, DECIMALS)

    def shape(kind: str, file: str) -> str:
        return f'<{kind}><geometry><mesh filename="{file}"/></geometry></{kind}>'

    return (
        f'<robot name="{asset_id}"><link name="base">\n'
        f'<inertial><origin xyz="{centre}"/><mass value="1"/><inertia {inertia}/></inertial>\n'
        f"{shape('visual', RENDER)}\n{shape('collision', COLLISION)}\n</link></robot>\n"
    )


def _numbers(values: Sequence[float] | Points, decimals: int) -> str:
    # Adding 0 turns -0 into 0, so that equal numbers have equal texts.
    return " ".join(f"{round(float(value), decimals) + 0.0:.{decimals}f}" for value in values)
