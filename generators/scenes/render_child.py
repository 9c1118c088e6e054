"""Renders scenes in a process that does nothing else; the other side is `scene_renderer`.

Blender must run in the main thread of its own process. The process may serve many requests with
many scenes each: every scene is built in an emptied Blender, so that earlier ones do not affect the
bytes.
"""

import contextlib
import io
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
from eqforge.generators.scenes.instances import box_of, depth_of, full_px
from eqforge.generators.scenes.kubric_import import import_kubric
from eqforge.generators.scenes.overlaps import overlaps
from eqforge.generators.scenes.stage import Placed, Stage, place
from eqforge.schemas.records.scenes import RenderedObject, RenderSettings, SceneSpec


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to render scenes.

    Attributes:
      scenes: the scenes, rendered in this order.
      settings: how to render them.
      assets, cache: arguments of `AssetLibrary`.
      output: an empty folder for the pictures and all other files; the parent deletes it.
    """

    scenes: tuple[SceneSpec, ...]
    settings: RenderSettings
    assets: str
    cache: str
    output: str


def render(request: Any, alive: Callable[[], None]) -> Iterator[dict[str, Any]]:
    """Yields one answer per scene of a request.

    An answer is {"image": path, "mask": path, "objects": [...], "overlaps":
    [...]}, or
    {"input_error": message} if the user's input or machine is at fault; that one is the last.

    Args:
      request: a `Request` as JSON values.
      alive: called for every step that Cycles reports, at least every 30 s.
    """
    wanted = msgspec.convert(request, Request)
    output = Path(wanted.output)
    try:
        import_kubric(wanted.output)
        library = _library(wanted.assets, wanted.cache)
        with _telling(alive):
            for index, scene in enumerate(wanted.scenes):
                yield _render_scene(scene, wanted, library, output / f"{index:06d}")
    except InputError as error:
        yield {"input_error": str(error)}


@lru_cache(maxsize=1)
def _library(manifest: str, cache: str) -> AssetLibrary:
    return AssetLibrary(manifest, cache)


@contextlib.contextmanager
def _telling(alive: Callable[[], None]) -> Iterator[None]:
    """Calls `alive` whenever Cycles reports progress; if it hangs, it reports none."""
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
    """Encodes uint8 or uint16 [height, width], or uint8 [height, width, 3], as PNG."""
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "png")
    return stream.getvalue()
