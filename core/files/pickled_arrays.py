"""Makes the NumPy arrays of a pickle from checked parts.

NumPy's own unpickling trusts what a pickle says about the layout of a type: a few changed bytes
make it read outside the array, or crash. Here an array is made of a shape, a plain type of numbers
or text, and exactly as many bytes as these need.
"""

import math
import pickle
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

_PLAIN_KINDS = "biufcSU"  # booleans, numbers, bytes and text; never references to objects
_MAX_DIMENSIONS = 8


class PickledType:
    """A plain type of array elements, as a pickle describes it in two steps."""

    __slots__ = ("dtype",)

    def __init__(self, name: Any, *_: Any) -> None:
        """Takes the name, such as `f4`; alignment is ignored."""
        if not isinstance(name, str) or len(name) > 16:
            raise pickle.UnpicklingError("an array of a type that is not plain")
        self.dtype: np.dtype[Any] = np.dtype(name)
        if self.dtype.kind not in _PLAIN_KINDS or self.dtype.itemsize == 0:
            raise pickle.UnpicklingError(f"an array of the type {name!r}, which is not plain")

    def __setstate__(self, state: Any) -> None:
        """Takes the byte order; everything else has to say that the type is plain."""
        if not isinstance(state, tuple) or len(state) < 5 or state[2:5] != (None, None, None):
            raise pickle.UnpicklingError("an array of a type with parts")
        if state[1] not in ("<", ">", "=", "|"):
            raise pickle.UnpicklingError("an array of an unknown order of bytes")
        self.dtype = self.dtype.newbyteorder(state[1])


class PickledArray(np.ndarray[Any, Any]):
    """An array that a pickle fills."""

    def __setstate__(self, state: Any) -> None:
        """Takes version, shape, type, order and bytes."""
        if not isinstance(state, tuple) or len(state) != 5:
            raise pickle.UnpicklingError("an array without shape, type, order and bytes")
        _, shape, kind, is_fortran, data = state
        if not isinstance(data, bytes):
            raise pickle.UnpicklingError("an array whose content is not bytes")
        dtype = _checked(kind, shape, len(data))
        super().__setstate__((1, shape, dtype, is_fortran is True, data))  # type: ignore[arg-type]


def _checked(kind: Any, shape: Any, num_bytes: int) -> np.dtype[Any]:
    """Returns the type of an array whose bytes are as many as type and shape need.

    Raises:
      UnpicklingError: they are not.
    """
    if not isinstance(kind, PickledType):
        raise pickle.UnpicklingError("an array without a type")
    sizes = shape if isinstance(shape, tuple) else (None,)
    if len(sizes) > _MAX_DIMENSIONS or not all(type(n) is int and n >= 0 for n in sizes):
        raise pickle.UnpicklingError("an array of a shape that is none")
    if math.prod(sizes) * kind.dtype.itemsize != num_bytes or 0 < num_bytes < math.prod(sizes):
        raise pickle.UnpicklingError("an array whose bytes are not as many as its shape needs")
    return kind.dtype


def _reconstruct(*_: Any) -> NDArray[Any]:
    """Returns the empty array that a pickle fills afterwards."""
    return np.ndarray.__new__(PickledArray, (0,), np.int8)


def _scalar(kind: Any, data: Any) -> Any:
    """Returns the scalar that some bytes encode."""
    if not isinstance(data, bytes):
        raise pickle.UnpicklingError("a number whose content is not bytes")
    return np.frombuffer(data, _checked(kind, (1,), len(data)))[0]


def _from_buffer(data: Any, kind: Any, shape: Any, order: Any) -> NDArray[Any]:
    """Returns the array that some bytes encode."""
    if not isinstance(data, bytes) or order not in ("C", "F"):
        raise pickle.UnpicklingError("an array whose content is not bytes in the order C or F")
    dtype = _checked(kind, shape, len(data))
    layout: Literal["C", "F"] = "F" if order == "F" else "C"
    return np.frombuffer(data, dtype).reshape(shape, order=layout).copy(layout)


def _encode(text: Any, encoding: Any) -> bytes:
    """Returns the bytes that protocol 2 pickles spell as Latin-1 text."""
    if encoding != "latin1" or not isinstance(text, str):
        raise pickle.UnpicklingError(f"text in the encoding {encoding!r}; only latin1 is used")
    return text.encode("latin1")


def _no_bytes(*arguments: Any) -> bytes:
    """Returns empty bytes, which protocol 2 pickles spell as a call without arguments."""
    if arguments:
        raise pickle.UnpicklingError("bytes that are not spelled as text")
    return b""


def _never(*_: Any) -> Any:
    raise pickle.UnpicklingError("an array that is made at once, not from its bytes")


# NumPy arrays and scalars as every NumPy since 1.x pickles them; the module moved in 2.0.
_MAKERS: dict[tuple[str, str], Callable[..., Any]] = {
    (f"numpy.{core}.{module}", name): maker
    for core in ("core", "_core")
    for module, name, maker in (
        ("multiarray", "_reconstruct", _reconstruct),
        ("multiarray", "scalar", _scalar),
        ("numeric", "_frombuffer", _from_buffer),
    )
} | {
    ("numpy", "ndarray"): _never,  # named as the class to reconstruct, never called
    ("numpy", "dtype"): PickledType,
    ("_codecs", "encode"): _encode,
    ("__builtin__", "bytes"): _no_bytes,
}


def array_maker(module_name: str, name: str) -> Callable[..., Any] | None:
    """Returns the function for a name that pickled arrays use; None for any other name."""
    maker = _MAKERS.get((module_name, name))
    return None if maker is None else lambda *arguments: maker(*arguments)
