"""An open dataset: tables as Arrow, rows as records, images as Pillow, samples joined."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any

import msgspec
import pyarrow as pa
from more_itertools import map_reduce
from PIL import Image

from eqforge.core.errors import InputError
from eqforge.core.files.checked import name_of
from eqforge.core.files.pictures import BadImage, TooManyPixels, open_rgb
from eqforge.schemas.dataset.manifest import Manifest
from eqforge.schemas.dataset.reader import Dataset, read_records
from eqforge.schemas.dataset.shelf import Shelf, make_shelf
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.datasets import table_type


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A row of the table `samples`, joined with the other tables.

    Attributes:
      record: the row. docs/reference/tables.md describes its fields.
      images: RGB images of the sample, by column name without `_id`, such as `image_0`.
      rows: referenced rows of other tables, by column name without `_id`, such as `region`.
      details: rows of other tables that refer to the sample, such as VLUE's findings, by table.
    """

    record: Any
    images: Mapping[str, Image.Image] = field(default_factory=dict)
    rows: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Sequence[Any]] = field(default_factory=dict)


class OpenDataset:
    """A finished dataset, open for reading."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def __repr__(self) -> str:
        about = self.manifest
        mode = "" if about.dataset in BENCHMARKS else f" ({about.mode})"
        tables = ", ".join(f"{about.num_rows(name):,} {name}" for name in about.tables)
        return f"<{about.dataset}{mode} in {self.folder}: {tables}>"

    def __len__(self) -> int:
        """Number of samples."""
        return self.manifest.num_rows("samples")

    @property
    def folder(self) -> str:
        """Folder or URL of the dataset."""
        return self._dataset.folder

    @property
    def manifest(self) -> Manifest:
        """Settings, inputs, versions and counts by stage."""
        return self._dataset.manifest

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables."""
        return tuple(self.manifest.tables)

    def table(self, name: str = "samples", columns: Sequence[str] | None = None) -> pa.Table:
        """Read a whole table, or some of its columns.

        Raises:
          InputError: there is no such table or column, or a file is missing or damaged.
        """
        self._check(name)
        batches = list(self._dataset.batches(name, columns))
        schema = batches[0].schema if batches else self._dataset.schema(name)
        return pa.Table.from_batches(batches, schema=schema)

    def records(self, name: str = "samples") -> Iterator[Any]:
        """Yield the rows of a table as records. Image records do not contain the image bytes.

        Raises:
          InputError: there is no such table, or a file is missing or damaged.
        """
        self._check(name)
        kind = table_type(self.manifest.dataset, name)
        if kind is None:
            raise InputError(
                f"{self.folder}: this version of eqforge cannot read the table {name!r}"
            )
        try:
            for file in self._dataset.files(name):
                yield from read_records(self._dataset, file.path, kind)
        except msgspec.ValidationError as error:
            raise InputError(
                f"{self.folder}: a row of the table {name!r} is invalid: {error}"
            ) from error

    def samples(self) -> Iterator[Sample]:
        """Yield the samples with their images and the related rows of other tables.

        Raises:
          InputError: a file is missing or damaged, or an image cannot be decoded.
        """
        kind = table_type(self.manifest.dataset, "samples")
        references = {} if kind is None else kind.references
        rows = {
            table: self._by_key(table) for table in {*references.values()} - {"images", "masks"}
        }
        details = self._details()
        for record in self.records():
            named = {
                column: key for column in references if (key := getattr(record, column)) is not None
            }
            yield Sample(
                record=record,
                images=self._images({c: k for c, k in named.items() if references[c] == "images"}),
                rows={
                    _without_id(column): self._row(rows, references[column], key)
                    for column, key in named.items()
                    if references[column] in rows
                },
                details={
                    table: found
                    for table, by_sample in details.items()
                    if (found := by_sample.get(record.sample_id))
                },
            )

    def _row(self, rows: Mapping[str, Mapping[str, Any]], table: str, key: str) -> Any:
        if key not in rows[table]:
            raise InputError(f"{self.folder}: the table {table} has no row {name_of(key)}")
        return rows[table][key]

    def _by_key(self, table: str) -> dict[str, Any]:
        kind = table_type(self.manifest.dataset, table)
        assert kind is not None
        return {kind.key_of(record): record for record in self.records(table)}

    def _details(self) -> dict[str, dict[str, list[Any]]]:
        found: dict[str, dict[str, list[Any]]] = {}
        for table in self.tables:
            kind = table_type(self.manifest.dataset, table)
            if kind is not None and kind.references.get("sample_id") == "samples":
                found[table] = map_reduce(self.records(table), attrgetter("sample_id"))
        return found

    def image(self, image_id: str) -> Image.Image:
        """Read an image in RGB.

        Raises:
          InputError: the dataset has no such image, or the image cannot be decoded.
        """
        return self._images({"image_id": image_id})["image"]

    def _images(self, named: Mapping[str, str]) -> dict[str, Image.Image]:
        found = self._shelf.read(list(named.values())) if named else {}
        if lost := [image for image in named.values() if image not in found]:
            raise InputError(f"{self.folder} has no image {name_of(lost[0])}")
        return {_without_id(c): self._opened(image, found[image]) for c, image in named.items()}

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
            raise InputError(
                f"{self.folder} has no table {name!r}; the tables are {', '.join(self.tables)}"
            )


def _without_id(column: str) -> str:
    return column.removesuffix("_id")
