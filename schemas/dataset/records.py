"""Reads the rows of a dataset back as the records they were written from."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa

from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.description import TableType


def read_records(dataset: Dataset, path: str, kind: TableType) -> Iterator[Any]:
    """Yields the records of a file; pictures come without their bytes, which are not read.

    Raises:
      InputError: the file is missing or damaged.
      msgspec.ValidationError: a row does not fit the table's record.
    """
    for batch in dataset.file_batches(path, columns_of(kind)):
        yield from records_of(batch, kind)


def columns_of(kind: TableType) -> list[str]:
    """Returns the columns that the records of a table are read from."""
    renamed = {"image": "image.path"} if kind.holds_pictures else {}
    return [renamed.get(name, name) for name in kind.schema.names]


def records_of(batch: pa.RecordBatch, kind: TableType) -> Iterator[Any]:
    """Yields the records of rows with the columns of `columns_of`.

    Raises:
      msgspec.ValidationError: a row does not fit the table's record.
    """
    for row in batch.to_pylist():
        if kind.holds_pictures:
            row["suffix"] = row.pop("image")["path"].removeprefix(row[kind.key[0]])
        yield msgspec.convert(row, kind.record)
