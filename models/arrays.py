"""Read one array or tensor from an untrusted file, in memory bounded by the file's size.

A file may declare more data than it has: an `.npy` of 10^13 numbers, a tensor whose one stored
number stands for 3 billion, an archive that unpacks to more.
"""

from __future__ import annotations

import contextlib
import os
import warnings
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eqforge.core.errors import InputError, MissingExtra
from eqforge.core.files.source_file import BoundedReader, open_plain
from eqforge.core.visible import shortened
from eqforge.models.pretrained import import_torch

if TYPE_CHECKING:
    from numpy.typing import NDArray

TENSORS = (".pt", ".pth")
_NPY, _ZIP = b"\x93NUMPY", b"PK"
MAX_REASON_CHARS = 300
_UNPACKED = 200
"""An archive takes up to this many times its own size in memory."""


def read_array(path: Path) -> NDArray[Any]:
    """Read an array of numbers (.npy) or a tensor (.pt, .pth); nothing in the file is executed.

    The dtype is the file's; bfloat16, which NumPy lacks, becomes float32.
    """
    is_tensor = path.suffix in TENSORS
    try:
        found = _tensor(path) if is_tensor else _npy(path)
    except (InputError, MissingExtra):
        raise
    except Exception as error:  # a damaged file can make readers raise anything
        raise _unreadable(path, "a single tensor or array", error) from error
    if found.dtype.kind not in "fiu":
        raise InputError(f"{path}: expected real numbers, found {shortened(str(found.dtype), 80)}")
    return np.array(found)


def _unreadable(path: Path, expected: str, error: Exception) -> InputError:
    message = shortened(" ".join(str(error).split()), MAX_REASON_CHARS)
    kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
    return InputError(f"{path} cannot be read as {expected}: {kind}{message}")


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with zipfile.ZipFile(path) as archive:
            if (
                sum(part.file_size for part in archive.infolist())
                > _UNPACKED * os.stat(path).st_size
            ):
                raise ValueError("its arrays do not fit in memory")
        with np.load(path, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except Exception as error:  # as above
        raise _unreadable(path, "arrays of numbers and strings", error) from error


def _npy(path: Path) -> NDArray[Any]:
    with open_plain(path) as stream:
        begins = stream.read(len(_NPY))
    if begins != _NPY:
        is_archive = begins.startswith(_ZIP)
        reason = "it is an archive of arrays (.npz); save a single array with numpy.save"
        raise ValueError(reason if is_archive else "it is not an .npy file")
    # A memory map is never larger than its file, whatever the header says.
    with np.errstate(over="ignore"):
        try:
            found: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        except ValueError as error:
            if "Python objects" not in str(error):
                raise
            raise InputError(
                f"{path}: expected numbers, found Python objects; save the array with a numeric "
                "type, such as numpy.float32"
            ) from error
        return found


def _tensor(path: Path) -> NDArray[Any]:
    torch = import_torch()
    with open_plain(path) as stream:
        num_bytes = os.fstat(stream.fileno()).st_size
    is_zip = zipfile.is_zipfile(path)
    if is_zip:
        with zipfile.ZipFile(path) as archive:
            if any(part.compress_type != zipfile.ZIP_STORED for part in archive.infolist()):
                raise ValueError("it is compressed, so torch.save did not write it")
    # Memory-mapped, an archive's storages are parts of the file, and nothing is unpacked.
    with warnings.catch_warnings(), contextlib.ExitStack() as opened:
        warnings.simplefilter("ignore")  # about pickles that torch did not write
        source: Any = path
        if not is_zip:
            source = opened.enter_context(BoundedReader(open_plain(path), num_bytes))
        tensor = torch.load(source, map_location="cpu", weights_only=True, mmap=is_zip or None)
    if not isinstance(tensor, torch.Tensor):
        raise ValueError(f"it contains a {type(tensor).__name__}")
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
        raise ValueError("it is sparse or quantized, or has no numbers")
    stored = tensor.untyped_storage().nbytes()
    if tensor.numel() * tensor.element_size() > stored:
        raise ValueError(f"it declares {tensor.numel():,} numbers, but has only {stored:,} bytes")
    known = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
    return np.asarray(known.detach().numpy())
