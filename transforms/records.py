"""Reads the rows of a dataset back as the records they were written from."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from eqforge.schemas.dataset import Dataset
from eqforge.schemas.tables import IMAGES, PAIR_SAMPLES, REJECTS, ImageRow, PairSample, Reject
from eqforge.schemas.text_tables import (
    HARD_POSITIVES,
    MEASURED_CAPTIONS,
    PERTURBED_CAPTIONS,
    TRAINING_CAPTIONS,
    HardPositiveSample,
    MeasuredCaption,
    PerturbedCaption,
    TrainingCaption,
)
from eqforge.transforms.write import fingerprint_records


@dataclass(frozen=True, slots=True)
class TableType:
    """The columns of a table, and the record that each of its rows was."""

    schema: pa.Schema
    record: type


# By dataset and table; "" stands for all datasets without a table of their own.
_TABLES = {
    ("", "samples"): TableType(PAIR_SAMPLES, PairSample),
    ("", "images"): TableType(IMAGES, ImageRow),
    ("", "rejects"): TableType(REJECTS, Reject),
    ("", "captions"): TableType(MEASURED_CAPTIONS, MeasuredCaption),
    ("retrieval-perturbations", "samples"): TableType(PERTURBED_CAPTIONS, PerturbedCaption),
    ("hard-positives", "samples"): TableType(HARD_POSITIVES, HardPositiveSample),
    ("training-captions", "samples"): TableType(TRAINING_CAPTIONS, TrainingCaption),
}


def table_type(dataset: str, table: str) -> TableType | None:
    """Returns the columns and record of a dataset's table; None where it has no such table."""
    return _TABLES.get((dataset, table), _TABLES.get(("", table)))


def is_as_written(dataset: Dataset, path: str, kind: TableType) -> bool:
    """Tells whether a file holds the records it was written with; pictures are not looked at.

    Raises:
      InputError: the file is missing or damaged.
    """
    return fingerprint_records(kind.schema, _records(dataset, path, kind)) == dataset.fingerprint(
        path
    )


def _records(dataset: Dataset, path: str, kind: TableType) -> Iterator[Any]:
    has_pictures = kind.record is ImageRow
    renamed = {"image": "image.path"} if has_pictures else {}
    columns = [renamed.get(name, name) for name in kind.schema.names]
    for batch in dataset.file_batches(path, columns):
        for row in batch.to_pylist():
            if has_pictures:
                row["suffix"] = row.pop("image")["path"].removeprefix(row["image_id"])
            yield msgspec.convert(row, kind.record)
