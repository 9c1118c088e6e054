"""The pictures of finished datasets, read one by one from where they lie in their files.

So a dataset can be made of others without storing their pictures anew: a writer knows a picture by
its id, finds the file by the id, as that is how pictures are dealt out to files, and in the file
the picture by an index of ids, which takes some dozen bytes a picture.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import BuildError, InputError
from eqforge.core.files import storage
from eqforge.core.identity import bucket, sha256_hex
from eqforge.schemas.dataset.reader import Dataset, open_dataset

REMEMBERED = 512
"""So many files' indexes are in memory at a time, of 48 bytes a picture."""

COLUMN = "image.bytes"


@dataclass(frozen=True, slots=True)
class Part:
    """A finished dataset that another is made of.

    Attributes:
      label: what it is called in the other: the name that its user gave it, else that of its
        dataset, with the beginning of the digest of its manifest where two have the same.
      is_named: whether its user named it; the name then begins the `kind` of its samples.
    """

    folder: str
    sha256: str
    label: str
    is_named: bool = False

    def open(self) -> Dataset:
        """Open it; the manifest is read once in a process."""
        return _open(self.folder, self.sha256)


@functools.cache
def _open(folder: str, sha256: str) -> Dataset:
    dataset = open_dataset(folder)
    if dataset.sha256 != sha256:
        raise InputError(f"{folder}: was built again; run the same command again")
    return dataset


@dataclass(frozen=True, slots=True)
class PartPictures:
    """The pictures of some datasets."""

    parts: tuple[Part, ...]

    def get(self, image_id: str, suffix: str) -> bytes:
        """Return the bytes of a picture, whose SHA-256 is its id.

        Raises:
          BuildError: no part has it, or its bytes are others.
        """
        del suffix
        for part, path in self._candidates(image_id):
            start, stop = _index(part, path).find(image_id)
            if start < stop:
                data = _read(part.folder, path, start, stop)
                if sha256_hex(data) == image_id:
                    return data
                raise BuildError(
                    f"{part.open().url(path)}: the bytes of image {image_id} are others; "
                    "eqforge verify looks for all damage"
                )
        raise BuildError(f"no part has the image {image_id}; eqforge verify looks for all damage")

    def path(self, image_id: str, suffix: str) -> str:
        return f"{image_id}{suffix}"

    def _candidates(self, image_id: str) -> Iterator[tuple[Part, str]]:
        """Yield the files in which a picture may be, the likely ones first."""
        others: list[tuple[Part, str]] = []
        for part in self.parts:
            paths = [file.path for file in part.open().files("images")]
            likely = bucket(image_id, len(paths)) if paths else 0
            yield from ((part, path) for path in paths[likely : likely + 1])
            others += [(part, path) for n, path in enumerate(paths) if n != likely]
        yield from others


@dataclass(frozen=True, slots=True, eq=False)
class _Index:
    """Where the pictures of a file lie.

    Attributes:
      ids: of the pictures, in ascending order [n].
      places: the first byte of each, and the first behind it [n, 2].
    """

    ids: NDArray[np.bytes_]
    places: NDArray[np.int64]

    def find(self, image_id: str) -> tuple[int, int]:
        """Return the place of a picture, (0, 0) if the file has none of that id."""
        try:
            wanted = np.array([bytes.fromhex(image_id)], dtype=self.ids.dtype)
        except ValueError:  # an id of a part that is not sound
            return 0, 0
        (number,) = np.searchsorted(self.ids, wanted)
        # Arrays are compared, for a single element loses the zero bytes at its end.
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
