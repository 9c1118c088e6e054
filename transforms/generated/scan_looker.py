"""Looks at scanned objects with Blender, in a sandboxed child process that serves many of them."""

import functools
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.identity import sha256_hex
from eqforge.core.sandbox.child import Child, ChildDied, ChildTimeout
from eqforge.core.sandbox.sandbox import Sandbox, adjusted
from eqforge.generators.scenes.adopt import Look
from eqforge.generators.scenes.kubric_import import check_installed
from eqforge.generators.scenes.look_child import LOOK_VERSION, Looks
from eqforge.transforms.dataset.ledger import Ledger

FUNCTION = "eqforge.generators.scenes.look_child:look"
MEMORY_GB = 64.0
CPU_S = 1800.0
TIMEOUT_S = 600.0
"""For the steps of one scan: importing millions of triangles takes a minute."""


@functools.cache
def shared_looker() -> "ScanLooker":
    """Return the looker of this process; what it started ends with it."""
    return ScanLooker()


def kept_look(folder: str) -> Look:
    """Return what looks at scans and keeps what it saw, so that a stopped adoption goes on."""
    check_installed()
    looker = shared_looker()
    basis = {"version": LOOK_VERSION, "bpy": version("bpy")}
    ledger = Ledger(root=folder, step="looks", basis=basis)

    def look(files: Mapping[str, bytes], mesh: str, kwargs: Mapping[str, str]) -> Looks:
        digests = {name: sha256_hex(data) for name, data in files.items()}
        inputs = [mesh, dict(kwargs), digests]
        return ledger.remember(inputs, Looks, lambda: looker.look(files, mesh, kwargs))

    return look


class ScanLooker:
    """Report the shapes and colours of scans; its process is started for the first one."""

    def __init__(self) -> None:
        adjusted(Sandbox())
        self._child = Child(FUNCTION, timeout_s=TIMEOUT_S)

    def look(self, files: Mapping[str, bytes], mesh: str, kwargs: Mapping[str, str]) -> Looks:
        check_installed()
        with tempfile.TemporaryDirectory(prefix="eqforge-scan-") as folder:
            for name, data in files.items():
                (Path(folder) / name).write_bytes(data)
            # Blender writes into the folder of temporary files.
            self._child.sandbox = Sandbox(
                read=("/",), write=(tempfile.gettempdir(),), memory_gb=MEMORY_GB, cpu_s=CPU_S
            )
            request = {"file": str(Path(folder) / mesh), "import_kwargs": dict(kwargs)}
            try:
                (answer,) = self._child.ask(request)
            except ChildDied as error:
                raise InputError(f"importing it ends Blender: {error.ending}") from error
            except ChildTimeout as error:
                raise InputError("importing it does not come to an end") from error
        if "input_error" in answer:
            raise InputError(str(answer["input_error"]))
        return msgspec.convert(answer, Looks)
