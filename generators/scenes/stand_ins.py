"""Gives kubric the three functions that it calls of TensorFlow and scikit-learn, without the rest.

Importing both as a whole takes most of the time and the memory of kubric's start. The modules are
put in their place before kubric is imported, in a process that does nothing else. They are what
kubric-nightly 2023.12.27 asks for, and where scikit-learn 1.9 has it.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import shutil
import sys
from types import ModuleType
from typing import Any


def stand_in_for_tensorflow() -> None:
    """Gives `tf.io.gfile.GFile` and `copy`, for local files; TensorFlow need not be installed."""
    tensorflow, files, gfile = (
        _put_module(name) for name in ("tensorflow", "tensorflow.io", "tensorflow.io.gfile")
    )
    tensorflow.io, files.gfile = files, gfile
    gfile.GFile, gfile.copy = _open, _copy


def stand_in_for_sklearn() -> None:
    """Gives scikit-learn's own `murmurhash3_32`, with which Blender's cryptomatte is read."""
    spec = importlib.util.find_spec("sklearn")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = spec.submodule_search_locations[0]
    sklearn = _put_module("sklearn", folder)
    sklearn.utils = _put_module("sklearn.utils", os.path.join(folder, "utils"))
    hashing = importlib.import_module("sklearn.utils.murmurhash")
    sklearn.utils.murmurhash3_32 = hashing.murmurhash3_32


def _put_module(name: str, *path: str) -> Any:
    """Puts an empty module in its place, or a package that finds its modules in a folder."""
    spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
    module: ModuleType = importlib.util.module_from_spec(spec)
    module.__path__ = list(path)
    sys.modules[name] = module
    return module


def _open(name: str | os.PathLike[str], mode: str = "r") -> Any:
    return open(name, mode)


def _copy(
    source: str | os.PathLike[str], target: str | os.PathLike[str], overwrite: bool = False
) -> None:
    if not overwrite and os.path.exists(target):
        raise FileExistsError(target)
    shutil.copyfile(source, target)
