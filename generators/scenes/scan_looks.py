"""Tells the shape of a scan, and which colours its surfaces show."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eqforge.generators.scenes import wavefront
from eqforge.generators.scenes.scan_files import ScanFiles
from eqforge.generators.scenes.surfaces import NEUTRAL, name_in_file
from eqforge.generators.scenes.tints import Shown, decoded, encoded, sampled, shown_colours
from eqforge.schemas.errors import InputError
from eqforge.schemas.io.pictures import stored_rgb
from eqforge.schemas.late import numpy as np


@dataclass(frozen=True, kw_only=True, slots=True)
class Looks:
    """What a scan looks like.

    Attributes:
      bounds: the corners of its box with the smallest and the largest coordinates, z up.
      hull: its convex hull, an OBJ file.
      whole: what colours it shows; None where no surface has an area.
      surfaces: by the name of a material, its share of the area, and what colours it shows.
    """

    bounds: tuple[list[float], list[float]]
    hull: bytes
    whole: Shown | None
    surfaces: Mapping[str, tuple[float, Shown]]


def looks_of(files: ScanFiles, axis_up: str, said: str) -> Looks:
    """Returns what a scan looks like.

    Args:
      files: of the scan; of a glTF file, those that were turned.
      axis_up: the axis that points up in its OBJ file, Z or Y.
      said: what an error calls it.

    Raises:
      InputError: it is no mesh that can be read, is flat, or has a texture that cannot be shown.
    """
    import trimesh

    try:
        meshes = _meshes(files)
        corners = _upright(np.concatenate([mesh.vertices for mesh in meshes]), axis_up)
        low, high = corners.min(axis=0), corners.max(axis=0)
    except Exception as error:
        raise _refusal(said, "no mesh that can be read", error) from error
    if not (low < high).all() or not np.isfinite(corners).all():
        raise InputError(f"{said}: it is flat, or has no corners")
    try:
        hull = trimesh.convex.convex_hull(corners)
        points = _points(meshes)
        total = sum(areas.sum() for _, areas in points.values())
        surfaces = {
            name: (float(areas.sum() / total), shown_colours(texels, areas))
            for name, (texels, areas) in points.items()
        }
        whole = shown_colours(*_joined(list(points.values()))) if points else None
    except Exception as error:
        raise _refusal(said, "no body with a texture that can be read", error) from error
    lines = [f"v {x:.6f} {y:.6f} {z:.6f}\n" for x, y, z in hull.vertices]
    lines += [f"f {a} {b} {c}\n" for a, b, c in hull.faces + 1]
    return Looks(
        bounds=(low.round(6).tolist(), high.round(6).tolist()),
        hull="".join(lines).encode(),
        whole=whole,
        surfaces=surfaces,
    )


def _refusal(said: str, what: str, error: Exception) -> InputError:
    reason = (str(error).strip().splitlines() or ["no reason given"])[0]
    return InputError(f"{said}: {what}: {type(error).__name__}: {reason}")


def _meshes(files: ScanFiles) -> list[Any]:
    """Returns the meshes of a file where they stand, in the order of their materials' names."""
    import trimesh

    library = files.data.get(files.library, b"").decode()
    # Trimesh takes options of a texture for a part of its name.
    data = {**files.data, files.library: wavefront.without_options(library).encode()}
    scene: Any = trimesh.load_scene(
        io.BytesIO(files.data[files.mesh]),
        file_type=files.mesh.rpartition(".")[2].lower(),
        resolver=trimesh.resolvers.ZipResolver({name: io.BytesIO(data[name]) for name in data}),
        process=False,
    )
    meshes = [mesh for mesh in scene.dump(concatenate=False) if len(getattr(mesh, "faces", ()))]
    for mesh in meshes:
        scale, offset = wavefront.places_of(library).get(_stored_name(mesh), (1.0, 0.0))
        if getattr(mesh.visual, "uv", None) is not None:
            mesh.visual.uv = np.asarray(mesh.visual.uv) * scale + offset
    return sorted(meshes, key=_stored_name)


def _upright(points: Any, axis_up: str) -> Any:
    """Returns points with z up, as Blender's importer turns them."""
    points = np.asarray(points, np.float64)
    if axis_up == "Z":
        return points
    return np.stack((points[:, 0], -points[:, 2], points[:, 1]), axis=-1)


def _points(meshes: list[Any]) -> dict[str, tuple[Any, Any]]:
    """Returns the colours at points of each surface, and the areas that they stand for."""
    found: dict[str, list[tuple[Any, Any]]] = {}
    for mesh in meshes:
        areas = np.asarray(mesh.area_faces, np.float64)
        if areas.sum() > 0:
            found.setdefault(name_in_file(_stored_name(mesh)), []).append(_colours(mesh, areas))
    return {name: _joined(parts) for name, parts in found.items()}


def _joined(parts: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    texels, areas = zip(*parts, strict=True)
    return np.concatenate(texels), np.concatenate(areas)


def _colours(mesh: Any, areas: Any) -> tuple[Any, Any]:
    material = getattr(mesh.visual, "material", None)
    picture = getattr(material, "image", None) or getattr(material, "baseColorTexture", None)
    places = getattr(mesh.visual, "uv", None)
    if picture is None or places is None:
        return encoded(_plain(material))[None], areas.sum()[None]
    texture = np.asarray(stored_rgb(picture), np.float64) / 255
    if "A" in picture.getbands() and getattr(material, "image", None) is not None:
        # Blender shows black where a texture of an OBJ file is transparent.
        texture[np.asarray(picture.getchannel("A")) == 0] = 0
    corners = np.asarray(places, np.float64)[np.asarray(mesh.faces)]
    texels, stands_for = sampled(corners, areas, texture)
    if getattr(material, "baseColorFactor", None) is not None:
        texels = encoded(decoded(texels) * _plain(material))
    return texels, stands_for


def _plain(material: Any) -> Any:
    """Returns the linear colour of a surface, by which a glTF file multiplies its texture."""
    if material is None:
        return np.array(NEUTRAL)
    colour = getattr(material, "diffuse", getattr(material, "baseColorFactor", None))
    return np.ones(3) if colour is None else np.asarray(colour)[:3] / 255


def _stored_name(mesh: Any) -> str:
    return str(getattr(getattr(mesh.visual, "material", None), "name", None) or "")
