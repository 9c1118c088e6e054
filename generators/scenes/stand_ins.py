"""Replaces TensorFlow and scikit-learn with the three functions of theirs that kubric calls.

Importing both packages takes most of the time and memory of kubric's start. The stand-ins are
installed before kubric is imported, in a process that does nothing else. They fit the imports of
kubric-nightly 2023.12.27 and the layout of scikit-learn 1.9.
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
    """Provides `tf.io.gfile.GFile` and `copy` for local files; TensorFlow need not be installed."""
    tensorflow, files, gfile = (
        _put_module(name) for name in ("tensorflow", "tensorflow.io", "tensorflow.io.gfile")
    )
    tensorflow.io, files.gfile = files, gfile
    gfile.GFile, gfile.copy = _open, _copy


def stand_in_for_sklearn() -> None:
    """Provides scikit-learn's `murmurhash3_32`, which kubric needs to read cryptomattes."""
    spec = importlib.util.find_spec("sklearn")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = spec.submodule_search_locations[0]
    sklearn = _put_module("sklearn", folder)
    sklearn.utils = _put_module("sklearn.utils", os.path.join(folder, "utils"))
    hashing = importlib.import_module("sklearn.utils.murmurhash")
    sklearn.utils.murmurhash3_32 = hashing.murmurhash3_32


def _put_module(name: str, *path: str) -> Any:
    """Registers and returns an empty package; it finds submodules in a folder, if one is given."""
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
