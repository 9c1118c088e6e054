"""A finished dataset, open: tables as Arrow, rows as records, images as Pillow, samples joined."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
from PIL import Image

from eqforge.schemas.dataset.manifest import Manifest
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.records import read_records
from eqforge.schemas.dataset.shelf import Shelf, make_shelf
from eqforge.schemas.errors import InputError
from eqforge.schemas.io.checked import name_of
from eqforge.schemas.io.pictures import BadImage, TooManyPixels, open_rgb
from eqforge.schemas.tables.datasets import table_type


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A row of the samples, with its pictures.

    Attributes:
      record: the row; see the dataset's page for its fields.
      images: its pictures by the column that names them, without `_id`, such as `image_0`.
    """

    record: Any
    images: Mapping[str, Image.Image] = field(default_factory=dict)


class OpenDataset:
    """A finished dataset, open for reading.

    Args:
      dataset: what was opened.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def __repr__(self) -> str:
        """Names the dataset, its mode and its tables."""
        about = self.manifest
        tables = ", ".join(f"{about.num_rows(name):,} {name}" for name in about.tables)
        return f"<{about.dataset} ({about.mode}) in {self.folder}: {tables}>"

    def __len__(self) -> int:
        """Returns the number of samples."""
        return self.manifest.num_rows("samples")

    @property
    def folder(self) -> str:
        """Its folder or URL."""
        return self._dataset.folder

    @property
    def manifest(self) -> Manifest:
        """What the dataset says of itself: settings, inputs, versions, books."""
        return self._dataset.manifest

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of its tables."""
        return tuple(self.manifest.tables)

    def table(self, name: str = "samples", columns: Sequence[str] | None = None) -> pa.Table:
        """Returns a table, whole.

        Args:
          name: of the table.
          columns: their names; all without it.

        Raises:
          InputError: there is no such table or column, or a file is missing or damaged.
        """
        self._check(name)
        batches = list(self._dataset.batches(name, columns))
        schema = batches[0].schema if batches else self._dataset.schema(name)
        return pa.Table.from_batches(batches, schema=schema)

    def records(self, name: str = "samples") -> Iterator[Any]:
        """Yields the rows of a table as the records they were; of pictures, without their bytes.

        Raises:
          InputError: there is no such table, or a file is missing or damaged.
        """
        self._check(name)
        kind = table_type(self.manifest.dataset, name)
        if kind is None:
            raise InputError(f"{self.folder}: the records of {name!r} are not known")
        for file in self._dataset.files(name):
            yield from read_records(self._dataset, file.path, kind)

    def samples(self) -> Iterator[Sample]:
        """Yields the samples with their pictures, where the dataset has any.

        Raises:
          InputError: a file is missing or damaged, or a picture does not decode.
        """
        for record in self.records():
            named = {
                column.removesuffix("_id"): getattr(record, column)
                for column in ("image_id", "image_0_id", "image_1_id")
                if getattr(record, column, None) is not None
            }
            yield Sample(record=record, images=self._images(named))

    def image(self, image_id: str) -> Image.Image:
        """Returns a picture in RGB.

        Raises:
          InputError: the dataset has no such picture, or it does not decode.
        """
        return self._images({"": image_id})[""]

    def _images(self, named: Mapping[str, str]) -> dict[str, Image.Image]:
        found = self._shelf.read(list(named.values())) if named else {}
        if lost := [image for image in named.values() if image not in found]:
            raise InputError(f"{self.folder}: no image {name_of(lost[0])}")
        return {name: self._opened(image, found[image]) for name, image in named.items()}

    def _opened(self, image_id: str, data: bytes) -> Image.Image:
        try:
            return open_rgb(data)
        except (BadImage, TooManyPixels) as error:
            raise InputError(f"{self.folder}: image {name_of(image_id)}: {error}") from error

    @cached_property
    def _shelf(self) -> Shelf:
        return make_shelf(self._dataset)

    def _check(self, name: str) -> None:
        if name not in self.manifest.tables:
            raise InputError(f"{self.folder}: no table {name!r}; it has {', '.join(self.tables)}")
