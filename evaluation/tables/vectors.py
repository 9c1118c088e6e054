"""Reads a flat vector of scores, as benchmarks with a server take them, from any usual format."""

import random
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.files.typed_json import decode, read_bytes
from eqforge.evaluation.tables.sample_scores import LARGEST_SCORE
from eqforge.models.arrays import TENSORS, read_array

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
      MissingExtra: the file is a tensor and torch is not installed.
    """
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: expected one of {', '.join(SUFFIXES)}")
    try:
        found = _read(path)
    except ValueError as error:
        raise InputError(f"{path}: expected numbers alone: {shown(str(error))}") from error
    vector: NDArray[Any] = found.ravel()
    exact = vector if vector.dtype.kind == "f" else vector.astype(np.float64)
    bad = np.flatnonzero(~(np.abs(exact.astype(np.float64)) <= LARGEST_SCORE))
    if len(bad):
        raise InputError(
            f"{path}: number {bad[0] + 1} is {exact[bad[0]]}; scores have to be "
            f"finite and within {LARGEST_SCORE:g}"
        )
    return exact


def _read(path: Path) -> NDArray[Any]:
    if path.suffix in (".npy", *TENSORS):
        return read_array(path)
    if path.suffix == ".json":
        return np.array(decode(read_bytes(path), list[float], str(path)), dtype=np.float64)
    text = read_bytes(path).decode("utf-8").replace(",", " ")
    return np.array(text.split(), dtype=np.float64)


def unshuffle(vector: NDArray[Any], seed: int = 1234) -> NDArray[Any]:
    """Undoes the shuffling of a vector by EqBen's published rule.

    The rule shuffles the list 0 … n-1 by Python's `random.Random(seed)` and puts number
    `shuffled[i]` at place i; sorting the list undoes it.
    """
    places = list(range(len(vector)))
    random.Random(seed).shuffle(places)
    return vector[np.argsort(places)]
