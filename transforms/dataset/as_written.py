"""Reads the rows of a dataset back as the records they were written from."""

from collections.abc import Iterator
from typing import Any

import msgspec

from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.pairs import ImageRow
from eqforge.schemas.tables.rendered import MaskRow
from eqforge.schemas.tables.types import TableType
from eqforge.transforms.dataset.write import fingerprint_records

# Tables with pictures: the record that each row was, and the column that names the picture.
_MEDIA_IDS: dict[type, str] = {ImageRow: "image_id", MaskRow: "mask_id"}


def is_as_written(dataset: Dataset, path: str, kind: TableType) -> bool:
    """Tells whether a file holds the records it was written with; pictures are not looked at.

    Raises:
      InputError: the file is missing or damaged.
    """
    return fingerprint_records(kind.schema, _records(dataset, path, kind)) == dataset.fingerprint(
        path
    )


def _records(dataset: Dataset, path: str, kind: TableType) -> Iterator[Any]:
    media_id = _MEDIA_IDS.get(kind.record)
    renamed = {"image": "image.path"} if media_id is not None else {}
    columns = [renamed.get(name, name) for name in kind.schema.names]
    for batch in dataset.file_batches(path, columns):
        for row in batch.to_pylist():
            if media_id is not None:
                row["suffix"] = row.pop("image")["path"].removeprefix(row[media_id])
            yield msgspec.convert(row, kind.record)
