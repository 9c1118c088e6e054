"""Packages that not every machine has, and that are slow to import."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest


class _Package(ModuleType):
    def __getattr__(self, name: str) -> Any:
        # pytest looks for its marks in whatever a file of tests holds.
        if name.startswith("_") and name != "__version__":
            raise AttributeError(name)
        return getattr(import_module(self.__name__), name)


def optional(module: str) -> Any:
    """Skip a file of tests where a package is missing; import it when a test first uses it.

    `pytest.importorskip` imports at collection: 2 s for torch, 2 s more for diffusers.
    """
    package = module.partition(".")[0]
    if find_spec(package) is None:
        pytest.skip(f"could not import {package!r}", allow_module_level=True)
    return _Package(module)
