"""Renders scenes and inspects scanned objects with Blender, in reused child processes."""

import contextlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from eqforge.core.errors import BuildError, EqforgeError, InputError
from eqforge.core.files import storage
from eqforge.core.identity import sha256_hex
from eqforge.core.ledger import Ledger
from eqforge.core.sandbox.child import (
    MOST_MESSAGE_BYTES,
    Child,
    ChildDied,
    ChildFailed,
    ChildTimeout,
)
from eqforge.core.sandbox.sandbox import Sandbox, adjusted
from eqforge.generators.scenes.assets import is_remote
from eqforge.generators.scenes.kubric_import import check_installed
from eqforge.generators.scenes.look_child import LOOK_VERSION, Looks
from eqforge.schemas.records.scenes import Overlap, RenderedObject, RenderSettings, SceneSpec

if TYPE_CHECKING:
    from eqforge.generators.scenes.adopt import Look

RENDER = "eqforge.generators.scenes.render_child:render"
MEMORY_GB = 64.0
CPU_S = 24 * 3600.0
"""Address space of a renderer, and CPU time for the scenes of one request."""

TIMEOUT_S = 300.0
"""Cycles reports at least every 30 s, but other programs may use its cores."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Render:
    """A rendered scene: an 8-bit RGB image, an instance mask, and each object's appearance.

    The mask has the object number of each pixel, 8-bit (16-bit from 256 objects on): from 1 in the
    order of the scene, and 0 for the backdrop.
    """

    image_png: bytes
    mask_png: bytes
    objects: tuple[RenderedObject, ...]
    overlaps: tuple[Overlap, ...]


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    image: str
    mask: str
    objects: tuple[RenderedObject, ...]
    overlaps: tuple[Overlap, ...]


class SceneKillsRenderer(EqforgeError):
    """A scene ended two renderers, one after the other, or left both hanging."""

    def __init__(self, index: int, cause: ChildDied | ChildTimeout) -> None:
        super().__init__(f"the renderer failed twice on scene {index}: {cause}")
        self.index, self.cause = index, cause

    def __reduce__(self) -> tuple[type["SceneKillsRenderer"], tuple[int, Exception]]:
        return type(self), (self.index, self.cause)


class SceneRenderer:
    """Renders scenes; its process starts with the first one.

    A pickled copy, or one inherited by a forked process, starts its own process. Only one thread
    may use it at a time.

    Args:
      assets: path or URL of the manifest of assets, or `builtin`.
      cache: local folder for unpacked assets.
      timeout_s: longest silence of the renderer, in seconds; then it is considered hung.
    """

    def __init__(
        self,
        settings: RenderSettings,
        *,
        assets: str,
        cache: str,
        assets_sha256: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._settings, self._assets, self._cache = settings, assets, cache
        self._assets_sha256 = assets_sha256
        self._child = Child(RENDER, timeout_s=timeout_s)

    def _sandbox(self) -> Sandbox | None:
        """Return the renderer's sandbox: it may read everything, and write only where needed.

        It fetches assets missing from the cache, so it has network access if they are in a store. A
        GPU has no sandbox: its driver starts programs and shares memory with the kernel.
        """
        if self._settings.device == "gpu":
            return None
        with contextlib.suppress(OSError):  # the renderer reports it
            os.makedirs(self._cache, exist_ok=True)
        return Sandbox(
            read=("/",),
            write=(tempfile.gettempdir(), self._cache, "/dev/shm"),  # for kubric's semaphore
            network=is_remote(self._assets),
            memory_gb=MEMORY_GB,
            cpu_s=CPU_S,
        )

    def render(self, scenes: Sequence[SceneSpec]) -> tuple[Render, ...]:
        """Render scenes, such as both of a pair.

        A renderer that dies or hangs is replaced once per scene; finished renders are kept.

        Raises:
          SceneKillsRenderer: it died or hung twice on the same scene.
          InputError: an asset, the device or a system library is missing.
          MissingExtra: a package is not installed.
          ChildFailed: a scene raised another exception.
          BuildError: no renderer starts.
        """
        check_installed()
        self._child.sandbox = self._sandbox()
        renders: list[Render] = []
        is_second_try = False
        while len(renders) < len(scenes):
            done = len(renders)
            try:
                self._append_renders(scenes[done:], renders)
            except (ChildDied, ChildTimeout) as error:
                if is_second_try and len(renders) == done:
                    raise SceneKillsRenderer(done, error) from error
                is_second_try = True
            except BuildError as error:
                if is_second_try or not isinstance(error.__cause__, ChildDied):
                    raise
                is_second_try = True
        return tuple(renders)

    def close(self) -> None:
        self._child.close()

    def _append_renders(self, scenes: Sequence[SceneSpec], renders: list[Render]) -> None:
        with tempfile.TemporaryDirectory(prefix="eqforge-render-") as folder:
            request = {
                "scenes": msgspec.to_builtins(list(scenes)),
                "settings": msgspec.to_builtins(self._settings),
                "assets": self._assets,
                "assets_sha256": self._assets_sha256,
                "cache": self._cache,
                "output": folder,
            }
            for answer in self._child.ask(request):
                renders.append(_read(answer, folder))


def _read(answer: Any, folder: str) -> Render:
    if isinstance(answer, dict) and "input_error" in answer:
        raise InputError(str(answer["input_error"]))
    try:
        found = msgspec.convert(answer, _Answer)
        image, mask = _written(found.image, folder), _written(found.mask, folder)
    except (msgspec.ValidationError, InputError, OSError) as error:
        raise ChildFailed(f"no answer: {error}") from error
    return Render(image_png=image, mask_png=mask, objects=found.objects, overlaps=found.overlaps)


def _written(path: str, folder: str) -> bytes:
    """Read a regular file in a folder; only the last part of `path` is used."""
    with storage.open_below(folder, os.path.basename(path)) as file:
        content = file.read(MOST_MESSAGE_BYTES + 1)
    if len(content) > MOST_MESSAGE_BYTES:
        raise ChildFailed(f"a picture larger than {MOST_MESSAGE_BYTES:,} bytes")
    return content


LOOK_TIMEOUT_S = 600.0
"""For the steps of one scan: importing millions of triangles takes a minute."""


def kept_look(folder: str) -> "Look":
    """Return a scan inspector that keeps its results, so that a stopped adoption resumes."""
    check_installed()
    looker = ScanLooker()
    basis = {"version": LOOK_VERSION, "bpy": version("bpy")}
    ledger = Ledger(root=folder, step="looks", basis=basis)

    def look(files: Mapping[str, bytes], mesh: str, kwargs: Mapping[str, str]) -> Looks:
        digests = {name: sha256_hex(data) for name, data in files.items()}
        inputs = [mesh, dict(kwargs), digests]
        return ledger.remember(inputs, Looks, lambda: looker.look(files, mesh, kwargs))

    return look


class ScanLooker:
    """Reports the shapes and colours of scans; its process starts with the first one."""

    def __init__(self) -> None:
        adjusted(Sandbox())
        self._child = Child("eqforge.generators.scenes.look_child:look", timeout_s=LOOK_TIMEOUT_S)

    def look(self, files: Mapping[str, bytes], mesh: str, kwargs: Mapping[str, str]) -> Looks:
        check_installed()
        with tempfile.TemporaryDirectory(prefix="eqforge-scan-") as folder:
            for name, data in files.items():
                (Path(folder) / name).write_bytes(data)
            # Blender writes into the folder of temporary files.
            self._child.sandbox = Sandbox(
                read=("/",), write=(tempfile.gettempdir(),), memory_gb=MEMORY_GB, cpu_s=1800.0
            )
            request = {"file": str(Path(folder) / mesh), "import_kwargs": dict(kwargs)}
            try:
                (answer,) = self._child.ask(request)
            except ChildDied as error:
                raise InputError(f"Blender crashed during the import: {error.ending}") from error
            except ChildTimeout as error:
                raise InputError("Blender took too long to import the mesh") from error
        if "input_error" in answer:
            raise InputError(str(answer["input_error"]))
        return msgspec.convert(answer, Looks)
