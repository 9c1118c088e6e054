"""Imports the published packages of kubric and Blender.

Blender must be imported and used in the main thread of its own process: elsewhere it crashes with a
segmentation fault.
"""

import importlib
import importlib.util
import os
import platform
import sys
from typing import Any

from eqforge.core.errors import InputError, MissingExtra
from eqforge.generators.scenes.stand_ins import stand_in_for_sklearn, stand_in_for_tensorflow

EXTRA = "render"
BLENDERS = {(3, 11): "4.2", (3, 13): "5.2"}
"""The long-term release that is installed with each Python; the others have none."""

PACKAGES = ("bpy", "kubric", "OpenEXR", "sklearn", "trimesh")
SYSTEM_PACKAGES = (
    *("libx11-6", "libxrender1", "libxxf86vm1", "libxfixes3", "libxi6"),
    *("libxkbcommon0", "libsm6", "libgl1", "libgomp1"),
)
"""Debian packages of the shared libraries that Blender is linked with."""


def check_installed() -> None:
    """Checks that the packages are installed, without importing them.

    Raises:
      MissingExtra: one is not.
      InputError: one is not, and there is none for this machine.
    """
    for package in PACKAGES:
        if importlib.util.find_spec(package) is None:
            if refusal := no_blender():
                raise InputError(refusal)
            raise MissingExtra(package, EXTRA)


def no_blender() -> str:
    """Returns why no Blender can be installed here, and what can be done; empty if one can."""
    if sys.version_info[:2] not in BLENDERS:
        here = ".".join(map(str, sys.version_info[:2]))
        there = " or ".join(
            f"Python {major}.{minor} (Blender {blender})"
            for (major, minor), blender in BLENDERS.items()
        )
        return f"Rendering needs {there}, and this is Python {here}"
    if (sys.platform, platform.machine()) == ("linux", "aarch64"):
        return "Blender is not built for Linux on ARM64: render on x86-64 or a Mac"
    return ""


def import_kubric(scratch: str) -> None:
    """Imports Blender and kubric; afterwards any module may import them by name.

    Args:
      scratch: folder for Blender's temporary files, until the next call.

    Raises:
      MissingExtra: a package is not installed.
      InputError: a shared library of the system is missing.
    """
    check_installed()
    if "kubric" not in sys.modules:
        _import_blender(scratch)
        stand_in_for_tensorflow()
        stand_in_for_sklearn()
        importlib.import_module("kubric")
    bpy: Any = sys.modules["bpy"]
    bpy.context.preferences.filepaths.temporary_directory = scratch


def _import_blender(scratch: str) -> None:
    os.environ["TMPDIR"] = scratch  # Blender makes its folder on import
    try:
        bpy: Any = importlib.import_module("bpy")
    except ImportError as error:
        raise InputError(
            f"Blender cannot be loaded: {error}; it needs shared libraries of the system: "
            f"apt-get install {' '.join(SYSTEM_PACKAGES)}"
        ) from error
    bpy.ops.wm.read_factory_settings(use_empty=True)  # ignores the user's settings
