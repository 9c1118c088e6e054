"""Render scenes in a dedicated process, as a child of `scene_renderer`.

Blender must run in the main thread of its own process. One process can serve many requests with
many scenes each. Every scene starts from an emptied Blender, so earlier ones do not affect the
bytes.
"""

import contextlib
import io
import math
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from eqforge.core.errors import InputError
from eqforge.generators.scenes.assets import AssetLibrary
from eqforge.generators.scenes.kubric_import import import_kubric
from eqforge.generators.scenes.overlaps import overlaps
from eqforge.generators.scenes.stage import Placed, Stage, place
from eqforge.schemas.records.scenes import (
    RenderedObject,
    RenderSettings,
    SceneCamera,
    SceneSpec,
    Vector,
)
from eqforge.schemas.records.values import PixelBox


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Scenes to render; `output` is an empty folder for all files, which the parent deletes."""

    scenes: tuple[SceneSpec, ...]
    settings: RenderSettings
    assets: str
    assets_sha256: str | None
    cache: str
    output: str


def render(request: Any, alive: Callable[[], None]) -> Iterator[dict[str, Any]]:
    """Yield one answer per scene of a request, the last one with `input_error` if it fails.

    An answer is {"image": path, "mask": path, "objects": [...], "overlaps": [...]}, or
    {"input_error": message} if the user's input or machine is at fault.
    """
    wanted = msgspec.convert(request, Request)
    output = Path(wanted.output)
    try:
        import_kubric(wanted.output)
        library = _library(wanted.assets, wanted.cache, wanted.assets_sha256)
        with _telling(alive):
            for index, scene in enumerate(wanted.scenes):
                yield _render_scene(scene, wanted, library, output / f"{index:06d}")
    except InputError as error:
        yield {"input_error": str(error)}


_library = lru_cache(maxsize=1)(AssetLibrary)


@contextlib.contextmanager
def _telling(alive: Callable[[], None]) -> Iterator[None]:
    """Call `alive` whenever Cycles reports progress; a hung Cycles reports none."""
    import bpy

    handlers = bpy.app.handlers
    # Blender drops handlers that are not persistent when it is emptied for a scene.
    tell = handlers.persistent(lambda *_: alive())
    handlers.render_stats.append(tell)
    try:
        yield
    finally:
        handlers.render_stats.remove(tell)


def _render_scene(
    spec: SceneSpec, wanted: Request, library: AssetLibrary, path: Path
) -> dict[str, Any]:
    placed = tuple(place(each, library) for each in spec.objects)
    pictures = {each: library.unpack(each).render for each in spec.backdrop.pictures}
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        stage = Stage(spec, placed, pictures, wanted.settings, Path(scratch))
        pixels, numbers = stage.render()
        objects = [
            _measured(spec, each, stage.triangles(index), numbers == index + 1)
            for index, each in enumerate(placed)
        ]
    deep = np.uint8 if len(placed) < 256 else np.uint16
    image, mask = path.with_suffix(".png"), path.with_suffix(".mask.png")
    image.write_bytes(encode_png(pixels))
    mask.write_bytes(encode_png(numbers.astype(deep)))
    return {
        "image": str(image),
        "mask": str(mask),
        "objects": msgspec.to_builtins(objects),
        "overlaps": msgspec.to_builtins(overlaps(placed)),
    }


def _measured(
    spec: SceneSpec, placed: Placed, triangles: NDArray[np.float64], mask: NDArray[np.bool_]
) -> RenderedObject:
    visible = int(np.count_nonzero(mask))
    # A pixel at an edge may count as visible although its centre is just outside the object.
    full = max(visible, full_px(triangles, spec.camera, mask.shape[0]))
    corners = triangles.reshape(-1, 3)
    x, y, z = ((corners.min(axis=0) + corners.max(axis=0)) / 2).tolist()
    return RenderedObject(
        name=placed.spec.name,
        asset=placed.spec.asset,
        box=box_of(mask),
        visible_px=visible,
        full_px=full,
        visible_fraction=visible / full if full else 0.0,
        depth_m=depth_of((x, y, z), spec.camera),
    )


def encode_png(pixels: NDArray[np.unsignedinteger]) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "png")
    return stream.getvalue()


NEAREST_M = 0.1  # near clipping distance: anything nearer is not in the picture; kubric's default

BORDER = 1.0
"""How far beyond the image's edges to count an object's pixels, in image widths: the projection of
an object that extends behind the camera is unbounded."""


def box_of(mask: NDArray[np.bool_]) -> PixelBox | None:
    """Return the box around the pixels of a mask, bool [height, width]; None if there are none."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return None
    x, y = int(columns[0]), int(rows[0])
    return PixelBox(x=x, y=y, width=int(columns[-1]) - x + 1, height=int(rows[-1]) - y + 1)


def to_camera(points: NDArray[np.float64], camera: SceneCamera) -> NDArray[np.float64]:
    """Convert points of the scene, [..., 3] in metres, to camera coordinates."""
    back = np.subtract(camera.position, camera.look_at)
    back = back / np.linalg.norm(back)
    right = np.cross((0.0, 0.0, 1.0), back)
    length = np.linalg.norm(right)
    right = right / length if length > 1e-8 else np.array((1.0, 0.0, 0.0))
    up = np.cross(back, right)
    seen: NDArray[np.float64] = (points - np.array(camera.position)) @ np.stack(
        (right, up, back), axis=1
    )
    return seen


def depth_of(point: Vector, camera: SceneCamera) -> float:
    return -float(to_camera(np.array(point), camera)[2])


def full_px(triangles: NDArray[np.float64], camera: SceneCamera, resolution: int) -> int:
    """Count the pixels that a surface covers if nothing hides it, up to `BORDER` beyond the edges.

    A pixel is covered if its centre is. Rasterising the triangles, float64 [triangles, 3 corners,
    3], takes a few milliseconds; rendering the object alone would take Cycles at least 50.
    """
    seen = _before_the_camera(to_camera(triangles, camera))
    focal_px = camera.focal_length_mm / camera.sensor_width_mm * resolution
    flat = seen[..., :2] / -seen[..., 2:] * (focal_px, -focal_px) + resolution / 2
    border = math.ceil(BORDER * resolution)
    low = np.maximum(np.floor(flat.min(axis=(0, 1), initial=np.inf)), -border)
    high = np.minimum(np.ceil(flat.max(axis=(0, 1), initial=-np.inf)), resolution + border)
    if (low >= high).any():
        return 0
    width, height = (high - low).astype(int)
    return covered_px(flat - low, width, height)


def _before_the_camera(triangles: NDArray[np.float64]) -> NDArray[np.float64]:
    inside = triangles[..., 2] <= -NEAREST_M
    count = inside.sum(axis=1)
    pieces = [triangles[count == 3]]
    for wanted in (1, 2):  # corners inside: a triangle or a quadrilateral is left
        which = count == wanted
        lone = np.argmax(inside[which] == (wanted == 1), axis=1)
        order = (lone[:, None] + np.arange(3)) % 3
        tip, left, right = np.moveaxis(
            np.take_along_axis(triangles[which], order[..., None], axis=1), 1, 0
        )
        cut_left, cut_right = _cut(tip, left), _cut(tip, right)
        if wanted == 1:
            pieces.append(np.stack((tip, cut_left, cut_right), axis=1))
        else:
            pieces.append(np.stack((left, right, cut_left), axis=1))
            pieces.append(np.stack((right, cut_right, cut_left), axis=1))
    return np.concatenate(pieces)


def _cut(start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    share = (-NEAREST_M - start[:, 2]) / (end[:, 2] - start[:, 2])
    return start + share[:, None] * (end - start)


def covered_px(triangles: NDArray[np.float64], width: int, height: int) -> int:
    """Count the pixels of an image whose centres lie in at least one triangle.

    Each triangle covers one run of pixels in a row. The cumulative sum of +1 at the start of a run
    and -1 after its end is the number of triangles over a pixel.
    """
    y = triangles[..., 1]
    first = np.clip(np.ceil(y.min(axis=1) - 0.5), 0, height).astype(np.intp)
    last = np.clip(np.ceil(y.max(axis=1) - 0.5), 0, height).astype(np.intp)
    rows_of = np.maximum(last - first, 0)
    owner = np.repeat(np.arange(len(triangles)), rows_of)
    row = np.arange(len(owner)) - np.repeat(np.cumsum(rows_of) - rows_of, rows_of) + first[owner]
    begin, end = _runs(triangles[owner], row + 0.5, width)
    steps = np.zeros((height, width + 1), np.int32)
    np.add.at(steps, (row, begin), 1)
    np.add.at(steps, (row, end), -1)
    return int(np.count_nonzero(np.cumsum(steps, axis=1)))


def _runs(
    triangles: NDArray[np.float64], y: NDArray[np.float64], width: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first pixel of each triangle in its row, and the one after the last.

    Edges are evaluated from the end with the smaller y, whatever the triangle's winding, so that
    two triangles that share an edge leave no gap.
    """
    ends = np.stack((triangles, np.roll(triangles, -1, axis=1)))
    low = np.where(ends[0, ..., 1:] <= ends[1, ..., 1:], ends[0], ends[1])
    high = np.where(ends[0, ..., 1:] <= ends[1, ..., 1:], ends[1], ends[0])
    crosses = (low[..., 1] <= y[:, None]) & (y[:, None] < high[..., 1])
    rise = np.where(crosses, high[..., 1] - low[..., 1], 1.0)
    share = (y[:, None] - low[..., 1]) / rise
    x = low[..., 0] + share * (high[..., 0] - low[..., 0])
    left = np.where(crosses, x, np.inf).min(axis=1, initial=np.inf)
    right = np.where(crosses, x, -np.inf).max(axis=1, initial=-np.inf)
    begin, after = (
        np.clip(np.ceil(edge - 0.5), 0, width).astype(np.intp) for edge in (left, right)
    )
    return begin, np.maximum(begin, after)
