"""Unpickles annotation files that hold plain containers and NumPy arrays, and nothing else."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from eqforge.schemas.checked import Node
from eqforge.schemas.errors import InputError

# NumPy arrays and scalars as every NumPy since 1.x pickles them; the module moved in 2.0.
_ADMITTED = {
    (f"numpy.{core}.{module}", name)
    for core in ("core", "_core")
    for module, name in (
        ("multiarray", "_reconstruct"),
        ("multiarray", "scalar"),
        ("numeric", "_frombuffer"),
    )
} | {("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode")}


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> Any:
        return admitted_class(super().find_class, module_name, global_name)


def admitted_class(
    find_class: Callable[[str, str], Any], module_name: str, global_name: str
) -> Any:
    """Returns what a pickle asks for by name, if that is part of NumPy's arrays.

    Raises:
      InputError: it is anything else.
    """
    if (module_name, global_name) not in _ADMITTED:
        raise InputError(
            f"it asks for {module_name}.{global_name}; only plain containers and NumPy arrays "
            "are read from a pickle, because anything else can run code"
        )
    if module_name == "_codecs":
        return _encode_latin1
    # Both names resolve in NumPy 2; the old one without its deprecation warning.
    return find_class(module_name.replace("numpy.core", "numpy._core"), global_name)


def _encode_latin1(text: str, encoding: str) -> bytes:
    """Returns the bytes that protocol 2 pickles spell as Latin-1 text."""
    if encoding != "latin1":
        raise InputError(f"it asks for the text encoding {encoding!r}; only latin1 is used")
    return text.encode("latin1")


def load_pickle(path: str | Path) -> Node:
    """Reads a pickle of dicts, lists, tuples, strings, numbers and NumPy arrays.

    Raises:
      InputError: the file cannot be read, is damaged, or asks for any other class or function;
        the message names it. Nothing of such a file is executed.
    """
    try:
        with open(path, "rb") as stream:
            return Node(Path(path).name, "", _load(stream, Path(path).name))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _load(stream: BinaryIO, file: str) -> Any:
    try:
        return _PlainUnpickler(stream).load()
    except Exception as error:
        raise damaged(file, error) from error


def damaged(file: str, error: Exception) -> InputError:
    """Returns the error to raise for a pickle on which the unpickler failed."""
    if isinstance(error, InputError):
        return InputError(f"{file}: {error}")
    return InputError(f"{file}: not a readable pickle: {type(error).__name__}: {error}")
