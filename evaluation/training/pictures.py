"""Random access to the images of a dataset, which Parquet does not offer.

They are copied once into one memory-mapped Arrow file, so that reading an image reads only its own
bytes and no process holds all of them.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import name_of
from eqforge.core.files.pictures import BadImage, TooManyPixels, read_pixels
from eqforge.schemas.dataset.reader import Dataset

_SCHEMA = pa.schema([pa.field("image_id", pa.string()), pa.field("data", pa.large_binary())])


def copy_pictures(dataset: Dataset, image_ids: Iterable[str], path: Path) -> None:
    """Writes the encoded bytes of some images of a dataset into one Arrow file; nulls become empty.

    Raises:
      InputError: the dataset lacks one of them.
    """
    missing = set(image_ids)
    with (
        storage.open_atomic(str(path)) as stream,
        pa.ipc.new_file(stream, _SCHEMA) as writer,
    ):
        for batch in dataset.batches("images", ["image_id", "image"], rows=100):
            rows = [row for row in batch.to_pylist() if row["image_id"] in missing]
            missing.difference_update(row["image_id"] for row in rows)
            data = [(row["image"] or {}).get("bytes") or b"" for row in rows]
            columns = [[row["image_id"] for row in rows], data]
            writer.write_batch(pa.record_batch(columns, schema=_SCHEMA))
        if missing:
            raise InputError(
                f"{dataset.folder}: {len(missing)} images of its samples are not in it, such as "
                f"{name_of(min(missing))}; eqforge verify looks for all damage"
            )


class Pictures:
    """Reads images by id from a file that `copy_pictures` wrote.

    Args:
      path: the file; every process with a copy of this object maps it itself.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open()

    def __getstate__(self) -> Path:
        """Pickles only the path."""
        return self._path

    def __setstate__(self, path: Path) -> None:
        """Maps the file in the new process."""
        self._path = path
        self._open()

    def _open(self) -> None:
        reader = pa.ipc.open_file(pa.memory_map(str(self._path)))
        self._batches = [reader.get_batch(n) for n in range(reader.num_record_batches)]
        self._places = {
            name: (n, row)
            for n, batch in enumerate(self._batches)
            for row, name in enumerate(batch["image_id"].to_pylist())
        }

    def read(self, image_id: str) -> bytes:
        """Returns the encoded bytes of an image."""
        number, row = self._places[image_id]
        data: bytes = self._batches[number]["data"][row].as_py()
        return data

    def pixels(self, image_id: str) -> NDArray[np.uint8]:
        """Returns an image, uint8 of shape (height, width, 3), RGB.

        Raises:
          InputError: it cannot be decoded, or exceeds Pillow's limit for decompression bombs.
        """
        try:
            return read_pixels(self.read(image_id))
        except (BadImage, TooManyPixels) as error:
            raise InputError(f"image {name_of(image_id)} cannot be decoded: {error}") from error


def prepare(processor: Any, pictures: Pictures, image_ids: Sequence[str]) -> NDArray[np.float32]:
    """Returns preprocessed images, float32 of shape (images, 3, height, width)."""
    from eqforge.models.pretrained import prepare_pixels
    from eqforge.models.scorer import Picture

    made = [
        prepare_pixels(processor, Picture(key=name, pixels=pictures.pixels(name)))
        for name in image_ids
    ]
    return np.stack(made)
