"""Finds near-duplicate images by their perceptual hashes."""

import multiprocessing
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.files.pictures import (
    FILE_SUFFIXES,
    MAX_PIXELS,
    BadImage,
    TooManyPixels,
    read_pixels,
)
from eqforge.core.visible import series
from eqforge.transforms.filters.minimality import HASH_BITS, perceptual_hash

_COMPARED_AT_ONCE = 4_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class HashedFolder:
    """The images of a folder.

    Attributes:
      hashes: perceptual hashes, uint64 [files, 3].
      unreadable: names of files that are not images, or have too many pixels.
    """

    names: tuple[str, ...]
    hashes: NDArray[np.uint64]
    unreadable: tuple[str, ...]


def hash_folder(root: str, workers: int = 1) -> HashedFolder:
    """Hash every image below a folder with `workers` processes; does not follow folder links."""
    if not os.path.isdir(root):
        raise InputError(f"{root}: no such folder")
    names = sorted(
        os.path.relpath(os.path.join(folder, file), root)
        for folder, _, files in os.walk(root)
        for file in files
        if file.lower().endswith(FILE_SUFFIXES)
    )
    if not names:
        raise InputError(
            f"{root} contains no images; expected files ending in {series(FILE_SUFFIXES, 'or')}"
        )
    paths = [os.path.join(root, name) for name in names]
    if workers == 1:
        hashes = [*map(hash_file, paths)]
    else:
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            hashes = [*pool.map(hash_file, paths, chunksize=64)]
    found = list(zip(names, hashes, strict=True))
    readable = [(name, phash) for name, phash in found if phash is not None]
    return HashedFolder(
        names=tuple(name for name, _ in readable),
        hashes=to_numbers(phash for _, phash in readable),
        unreadable=tuple(name for name, phash in found if phash is None),
    )


def hash_file(path: str) -> str | None:
    """Return an image's perceptual hash as in the images table; None if it is not an image."""
    try:
        with open(path, "rb") as stream:
            return perceptual_hash(read_pixels(stream.read(), MAX_PIXELS))
    except (OSError, BadImage, TooManyPixels):
        return None


def to_numbers(hashes: Iterable[str]) -> NDArray[np.uint64]:
    """Return hashes of 48 hexadecimal digits as integers, uint64 [hashes, 3]."""
    rows = []
    for phash in hashes:
        if len(phash) != HASH_BITS // 4:
            raise InputError(
                f"the perceptual hashes have {4 * len(phash)} bits, but this version of eqforge "
                f"compares hashes of {HASH_BITS} bits; build the dataset again"
            )
        rows.append([int(phash[place : place + 16], 16) for place in range(0, len(phash), 16)])
    return np.array(rows, dtype=np.uint64).reshape(-1, HASH_BITS // 64)


def nearest(
    hashes: NDArray[np.uint64], others: NDArray[np.uint64]
) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
    """Return, for each hash, the index of the nearest other, and their Hamming distance.

    Ties go to the first.

    Args:
      hashes: uint64 [n, 3].
      others: uint64 [m, 3], m at least 1.

    Returns:
      Indices in [0, m) and distances in [0, 192], both [n].
    """
    places = np.zeros(len(hashes), dtype=np.intp)
    distances = np.zeros(len(hashes), dtype=np.uint8)
    step = max(1, _COMPARED_AT_ONCE // len(others))
    for start in range(0, len(hashes), step):
        block = slice(start, start + step)
        bits = sum(
            np.bitwise_count(hashes[block, None, word] ^ others[None, :, word])
            for word in range(others.shape[1])
        )
        places[block] = bits.argmin(axis=1)
        distances[block] = np.take_along_axis(bits, places[block, None], axis=1)[:, 0]
    return places, distances
