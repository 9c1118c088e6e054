"""Inspect scanned objects in Blender, as a child process of `scene_renderer`.

One importer reads shapes, textures and their layout, so captions and colours match the rendering.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from eqforge.core.errors import InputError
from eqforge.generators.scenes.blender import import_mesh
from eqforge.generators.scenes.palette import shown_colours
from eqforge.generators.scenes.surfaces import Seen, name_in_file, seen_colours

LOOK_VERSION = 1  # raised where the same scan looks otherwise; a stopped adoption looks anew


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to inspect a mesh; all files it needs are in the mesh's folder."""

    file: str
    import_kwargs: dict[str, str]


class Surface(msgspec.Struct, frozen=True, kw_only=True):
    """What one material of a mesh shows: its share of the area, split by colour.

    There are no colours if they cannot be measured or changed, such as a texture mixed with others.
    """

    share: float
    colours: dict[str, float]


class Looks(msgspec.Struct, frozen=True, kw_only=True):
    """The appearance of a scan.

    Attributes:
      low, high: the corners of its box with the smallest and the largest coordinates, z up.
      hull: its convex hull, an OBJ file.
      colours: shares of the whole area by colour, largest first.
    """

    low: tuple[float, float, float]
    high: tuple[float, float, float]
    hull: str
    colours: dict[str, float]
    surfaces: dict[str, Surface]


def look(request: Any, alive: Callable[[], None]) -> Iterator[dict[str, Any]]:
    """Yield a scan's `Looks` as a dict, or {"input_error": reason} if it cannot be read."""
    wanted = msgspec.convert(request, Request)
    try:
        mesh = _imported(wanted)
        alive()
        yield msgspec.to_builtins(_looks(mesh, alive))
    except InputError as error:
        yield {"input_error": str(error).replace(wanted.file, Path(wanted.file).name)}
    except Exception as error:
        # The importers raise whatever a damaged file makes them.
        lines = [line for line in str(error).splitlines() if line and "Location: " not in line]
        reason = (lines or ["no reason given"])[-1].strip()
        yield {"input_error": f"the mesh cannot be read: {type(error).__name__}: {reason[:300]}"}


def _imported(wanted: Request) -> Any:
    import bpy

    bpy.ops.wm.read_factory_settings(use_empty=True)
    with contextlib.suppress(OSError):  # the process is ended before Blender would remove it
        os.rmdir(bpy.app.tempdir)
    obj = import_mesh(wanted.file, wanted.import_kwargs)
    if obj.data.shape_keys is not None or obj.modifiers:
        raise InputError(
            "the mesh has a skeleton or shape keys; apply the pose, and save the mesh again"
        )
    return obj


def _looks(obj: Any, alive: Callable[[], None]) -> Looks:
    import trimesh

    corners = np.empty(3 * len(obj.data.vertices), np.float32)
    obj.data.vertices.foreach_get("co", corners)
    points = corners.reshape(-1, 3).astype(np.float64)
    if not len(points) or not np.isfinite(points).all():
        raise InputError("the mesh has no vertices, or a vertex without a finite position")
    if not len(obj.data.polygons):
        raise InputError("the mesh has no faces")
    low, high = points.min(axis=0), points.max(axis=0)
    if not (low < high).all():
        raise InputError("it is flat")
    hull = trimesh.convex.convex_hull(points)
    alive()
    lines = [f"v {x:.6f} {y:.6f} {z:.6f}\n" for x, y, z in hull.vertices]
    lines += [f"f {a} {b} {c}\n" for a, b, c in hull.faces + 1]
    seen = [(name_in_file(name), each) for name, each in seen_colours(obj)]
    total = max(sum(each.area for _, each in seen), 1e-12)
    surfaces = {}
    for name in dict(seen):
        parts = [each for other, each in seen if other == name]
        area = sum(each.area for each in parts)
        colours = _shares(parts, max(area, 1e-12))
        surfaces[name] = Surface(share=area / total, colours=colours)
    return Looks(
        low=tuple(low.round(6).tolist()),
        high=tuple(high.round(6).tolist()),
        hull="".join(lines),
        colours=_shares([each for _, each in seen], total),
        surfaces=surfaces,
    )


def _shares(parts: list[Seen], total: float) -> dict[str, float]:
    areas = np.concatenate([each.areas for each in parts] or [np.zeros(0)])
    if not areas.sum() > 0:
        return {}
    texels = np.concatenate([each.texels for each in parts])
    known = areas.sum() / total
    shown = shown_colours(texels, areas)
    return {name: round(float(share * known), 6) for name, share in shown.shares.items()}
