"""Reads the rows of a dataset back as the records they were written from."""

from collections.abc import Iterator
from typing import Any

import msgspec

from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.description import TableType


def read_records(dataset: Dataset, path: str, kind: TableType) -> Iterator[Any]:
    """Yields the records of a file; pictures come without their bytes, which are not read.

    Raises:
      InputError: the file is missing or damaged.
      msgspec.ValidationError: a row does not fit the table's record.
    """
    renamed = {"image": "image.path"} if kind.holds_pictures else {}
    columns = [renamed.get(name, name) for name in kind.schema.names]
    for batch in dataset.file_batches(path, columns):
        for row in batch.to_pylist():
            if kind.holds_pictures:
                row["suffix"] = row.pop("image")["path"].removeprefix(row[kind.key[0]])
            yield msgspec.convert(row, kind.record)
