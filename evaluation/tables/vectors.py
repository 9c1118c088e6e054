"""Reads a flat vector of scores, as benchmarks with a server take them, from any usual format."""

import random
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from eqforge.models.pretrained import import_torch
from eqforge.schemas.errors import InputError
from eqforge.schemas.typed_json import read_bytes

SUFFIXES = (".npy", ".pt", ".pth", ".json", ".txt", ".csv")


def read_vector(path: Path) -> NDArray[np.floating[Any]]:
    """Reads a file of numbers.

    Args:
      path: a NumPy array (.npy), a tensor (.pt, .pth), a JSON list, or text with numbers between
        commas or white space (.txt, .csv). Nothing in it is executed.

    Returns:
      The numbers in a row [n], in the file's own precision, or float64 where it is text.

    Raises:
      InputError: the file cannot be read, holds something else, or a number is not finite.
      MissingExtra: a tensor is named and torch is not installed.
    """
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: expected one of {', '.join(SUFFIXES)}")
    try:
        found = _read(path)
    except (OSError, ValueError, TypeError, AttributeError, RuntimeError, EOFError) as error:
        raise InputError(f"{path}: expected numbers alone: {error}") from error
    except Exception as error:
        if type(error).__name__ != "UnpicklingError":
            raise
        raise InputError(f"{path}: expected one tensor, nothing else: {error}") from error
    if found.dtype.kind not in "fiu":
        raise InputError(f"{path}: expected numbers, found {found.dtype}")
    vector: NDArray[Any] = found.ravel()
    exact = vector if vector.dtype.kind == "f" else vector.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(exact))
    if len(bad):
        raise InputError(
            f"{path}: number {bad[0] + 1} is {exact[bad[0]]}; scores have to be finite"
        )
    return exact


def _read(path: Path) -> NDArray[Any]:
    if path.suffix == ".npy":
        loaded: NDArray[Any] = np.load(path, allow_pickle=False)
        return loaded
    if path.suffix in (".pt", ".pth"):
        torch = import_torch()
        tensor = torch.load(path, map_location="cpu", weights_only=True)
        # NumPy has no bfloat16; float32 holds each of its numbers.
        known = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
        return np.asarray(known.numpy())
    if path.suffix == ".json":
        try:
            return np.array(msgspec.json.decode(read_bytes(path), type=list[float]))
        except msgspec.MsgspecError as error:
            raise ValueError(f"not a JSON list of numbers: {error}") from error
    text = read_bytes(path).decode("utf-8").replace(",", " ")
    return np.array(text.split(), dtype=np.float64)


def unshuffle(vector: NDArray[Any], seed: int = 1234) -> NDArray[Any]:
    """Puts a vector back into order that was shuffled by EqBen's published rule.

    The rule shuffles the list 0 … n-1 by Python's `random.Random(seed)` and puts number
    `shuffled[i]` at place i; sorting the list undoes it.
    """
    places = list(range(len(vector)))
    random.Random(seed).shuffle(places)
    return vector[np.argsort(places)]
