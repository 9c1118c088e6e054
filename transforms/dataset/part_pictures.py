"""Reads images of finished datasets one by one from their Parquet files.

So a combined dataset needs no second copy of the images. An image's id decides its file; an index
of ids, 48 bytes per image, then gives its place in the file.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import BuildError, InputError
from eqforge.core.files import storage
from eqforge.core.files.table_file import ADVICE
from eqforge.core.identity import bucket, sha256_hex
from eqforge.schemas.dataset.reader import Dataset, open_dataset

REMEMBERED = 512
"""Number of file indexes kept in memory, at 48 bytes per image."""

COLUMN = "image.bytes"


@dataclass(frozen=True, slots=True)
class Part:
    """A finished dataset that goes into a combined one.

    Attributes:
      label: its name in the combined dataset: the user's name for it, else its dataset's, with the
        start of its manifest's digest if two are equal.
      is_named: whether the user named it; the name then begins the `kind` of its samples.
    """

    folder: str
    sha256: str
    label: str
    is_named: bool = False

    def open(self) -> Dataset:
        """Open the dataset; each process reads the manifest once."""
        return _open(self.folder, self.sha256)


@functools.cache
def _open(folder: str, sha256: str) -> Dataset:
    dataset = open_dataset(folder)
    if dataset.sha256 != sha256:
        raise InputError(f"{folder} was rebuilt while this command ran; run the command again")
    return dataset


@dataclass(frozen=True, slots=True)
class PartPictures:
    """The images of some finished datasets."""

    parts: tuple[Part, ...]

    def get(self, image_id: str, suffix: str) -> bytes:
        """Return the bytes of an image, whose SHA-256 is its id."""
        del suffix
        for part, path in self._candidates(image_id):
            start, stop = _index(part, path).find(image_id)
            if start < stop:
                data = _read(part.folder, path, start, stop)
                if sha256_hex(data) == image_id:
                    return data
                raise BuildError(
                    f"{part.open().url(path)}: the bytes of image {image_id} have changed; {ADVICE}"
                )
        raise BuildError(f"no part contains the image {image_id}; {ADVICE}")

    def path(self, image_id: str, suffix: str) -> str:
        return f"{image_id}{suffix}"

    def _candidates(self, image_id: str) -> Iterator[tuple[Part, str]]:
        others: list[tuple[Part, str]] = []
        for part in self.parts:
            paths = [file.path for file in part.open().files("images")]
            likely = bucket(image_id, len(paths)) if paths else 0
            yield from ((part, path) for path in paths[likely : likely + 1])
            others += [(part, path) for n, path in enumerate(paths) if n != likely]
        yield from others


@dataclass(frozen=True, slots=True, eq=False)
class _Index:
    """Where the images of a file lie.

    Attributes:
      ids: image ids in ascending order [n].
      places: the first byte of each image, and the first byte after it [n, 2].
    """

    ids: NDArray[np.bytes_]
    places: NDArray[np.int64]

    def find(self, image_id: str) -> tuple[int, int]:
        """Return the byte range of an image; (0, 0) if the file lacks it."""
        try:
            wanted = np.array([bytes.fromhex(image_id)], dtype=self.ids.dtype)
        except ValueError:  # an id of a part that is not sound
            return 0, 0
        (number,) = np.searchsorted(self.ids, wanted)
        # Compare arrays: a single element would lose its trailing zero bytes.
        if not (self.ids[number : number + 1] == wanted).any():
            return 0, 0
        start, stop = self.places[number]
        return int(start), int(stop)


@functools.lru_cache(maxsize=REMEMBERED)
def _index(part: Part, path: str) -> _Index:
    ids: list[bytes] = []
    lengths = []
    with part.open().open_file(path) as opened:
        for group in range(opened.num_groups):
            table = opened.group(group, ["image_id", "num_bytes"])
            ids += map(bytes.fromhex, table.column("image_id").to_pylist())
            lengths.append(table.column("num_bytes").to_numpy().astype(np.int64))
        starts = opened.places(COLUMN, lengths)
    found = np.array(ids, dtype="S32")
    order = np.argsort(found)
    first, size = starts[order], np.concatenate([*lengths, np.zeros(0, np.int64)])[order]
    return _Index(found[order], np.stack([first, first + size], axis=1))


def _read(folder: str, path: str, start: int, stop: int) -> bytes:
    if not storage.is_local(folder):
        return storage.read_range(storage.join(folder, path), start, stop)
    with storage.open_below(folder, path) as stream:
        stream.seek(start)
        return stream.read(stop - start)
