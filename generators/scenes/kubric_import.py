"""Import the published packages of kubric and Blender.

Import and use Blender in the main thread of its own process; elsewhere it crashes with a
segmentation fault.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import platform
import shutil
import sys
from types import ModuleType
from typing import Any

from eqforge.core.errors import InputError, MissingExtra

EXTRA = "render"
BLENDERS = {(3, 11): "4.2", (3, 13): "5.2"}
"""Blender's long-term release for each Python version that has one."""

PACKAGES = ("bpy", "kubric", "OpenEXR", "sklearn", "trimesh")
SYSTEM_PACKAGES = (
    *("libx11-6", "libxrender1", "libxxf86vm1", "libxfixes3", "libxi6"),
    *("libxkbcommon0", "libsm6", "libgl1", "libgomp1"),
)


def check_installed() -> None:
    for package in PACKAGES:
        if importlib.util.find_spec(package) is None:
            if refusal := no_blender():
                raise InputError(refusal)
            raise MissingExtra(package, EXTRA)


def no_blender() -> str:
    """Say why Blender cannot be installed here, and what to do; empty if it can."""
    if sys.version_info[:2] not in BLENDERS:
        version = ".".join(map(str, sys.version_info[:2]))
        supported = " or ".join(
            f"Python {major}.{minor} (Blender {blender})"
            for (major, minor), blender in BLENDERS.items()
        )
        return f"rendering needs {supported}, but this is Python {version}"
    if (sys.platform, platform.machine()) == ("linux", "aarch64"):
        return "Blender does not support Linux on ARM64; render on x86-64 or a Mac"
    return ""


def import_kubric(scratch: str) -> None:
    """Import Blender and kubric; `scratch` holds temporary files until the next call."""
    check_installed()
    if "kubric" not in sys.modules:
        os.environ["TMPDIR"] = scratch  # Blender makes its folder on import
        try:
            blender: Any = importlib.import_module("bpy")
        except ImportError as error:
            raise InputError(
                f"Blender cannot be loaded: {error}. To install the system libraries that it "
                f"needs, run `apt-get install {' '.join(SYSTEM_PACKAGES)}`."
            ) from error
        blender.ops.wm.read_factory_settings(use_empty=True)  # ignores the user's settings
        stand_in_for_tensorflow()
        stand_in_for_sklearn()
        importlib.import_module("kubric")
    bpy: Any = sys.modules["bpy"]
    bpy.context.preferences.filepaths.temporary_directory = scratch


def stand_in_for_tensorflow() -> None:
    """Provide TensorFlow's `GFile` and `copy` for local files: all that kubric 2023.12.27 calls."""
    tensorflow, files, gfile = (
        _put_module(name) for name in ("tensorflow", "tensorflow.io", "tensorflow.io.gfile")
    )
    tensorflow.io, files.gfile = files, gfile

    def copy(source: str, target: str, overwrite: bool = False) -> None:
        if not overwrite and os.path.exists(target):
            raise FileExistsError(target)
        shutil.copyfile(source, target)

    gfile.GFile, gfile.copy = open, copy


def stand_in_for_sklearn() -> None:
    """Provide `murmurhash3_32` of scikit-learn 1.9, which kubric needs to read cryptomattes."""
    spec = importlib.util.find_spec("sklearn")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = spec.submodule_search_locations[0]
    sklearn = _put_module("sklearn", folder)
    sklearn.utils = _put_module("sklearn.utils", os.path.join(folder, "utils"))
    hashing = importlib.import_module("sklearn.utils.murmurhash")
    sklearn.utils.murmurhash3_32 = hashing.murmurhash3_32


def _put_module(name: str, *path: str) -> Any:
    spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
    module: ModuleType = importlib.util.module_from_spec(spec)
    module.__path__ = list(path)
    sys.modules[name] = module
    return module
