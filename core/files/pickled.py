"""Reads pickles of plain containers and NumPy arrays, in the caged process of `untrusted`."""

import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

import msgspec
from more_itertools import batched

from eqforge.core.errors import InputError
from eqforge.core.files import untrusted
from eqforge.core.files.checked import Node, clipped, shown
from eqforge.core.files.source_file import open_seekable
from eqforge.core.files.untrusted import Unreadable

_READER: Final = f"{__name__}:members"
_AT_ONCE: Final = 1_000
_FREE_BYTES: Final = 16 << 20
"""What members may take as JSON whatever the file's length; they may refer to the same parts."""

# NumPy arrays and scalars as every NumPy since 1.x pickles them.
_NAMES: Final = frozenset(
    [
        *(("numpy", "ndarray"), ("numpy", "dtype")),
        *(("_codecs", "encode"), ("__builtin__", "bytes"), ("builtins", "bytes")),
        *(("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct")),
        *(("numpy.core.multiarray", "scalar"), ("numpy._core.multiarray", "scalar")),
        *(("numpy.core.numeric", "_frombuffer"), ("numpy._core.numeric", "_frombuffer")),
    ]
)


def read_members(path: str | Path) -> Iterator[tuple[str, Node]]:
    """Yields key and value of each member of a pickled dict; arrays become lists.

    Raises:
      InputError: the file cannot be read, is damaged, or asks for a class or function that makes
        no array; the message names it. Nothing of such a file is executed in this process.
    """
    file = Path(path).name
    try:
        with open_seekable(path) as stream:
            for part in untrusted.read(_READER, stream, free=_FREE_BYTES):
                for key, value in msgspec.json.decode(part):
                    yield Node(file, shown(key), key).name(), Node(file, str(key), value)
    except Unreadable as error:
        raise InputError(f"{file}: not a readable pickle: {clipped(str(error))}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


class _Unpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Returns what makes a part of an array, and refuses to return anything else."""
        if (module_name, global_name) not in _NAMES:
            raise Unreadable(
                f"it asks for {clipped(module_name)}.{clipped(global_name)}; only plain containers "
                "and NumPy arrays are read from a pickle, because anything else can run code"
            )
        return super().find_class(module_name, global_name)


def members(stream: IO[bytes]) -> Iterator[memoryview]:
    """Yields members of a pickled dict, some at a time, as JSON; runs in the child."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's about the names of its old modules
        whole = _Unpickler(stream).load()
    if not isinstance(whole, dict):
        raise Unreadable(f"expected a dict, found {type(whole).__name__}")
    for some in batched(whole.items(), _AT_ONCE):
        yield memoryview(msgspec.json.encode(some, enc_hook=_plain))


def _plain(value: Any) -> Any:
    import numpy as np

    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufU":
        return value.tolist()
    raise Unreadable(f"it holds a {type(value).__name__}, which no annotation has")
