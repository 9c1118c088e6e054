"""A folder of scores being written: its files, failures and counts."""

import dataclasses
from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eqforge.core.files import storage
from eqforge.evaluation.scoring.index import Index
from eqforge.evaluation.scoring.pictures import Failure
from eqforge.schemas.dataset import score_tables
from eqforge.schemas.dataset.manifest import DataFile
from eqforge.schemas.dataset.score_tables import FILE_STEMS, Counts

GROUP_ROWS = 4_000
METADATA = {"schema_version": "1"}

FailureRow = tuple[str, str, str, str]
"""Table, key, reason and detail."""

DICTIONARY_BYTES = 64 << 20
"""Limit of a column's Parquet dictionary; every row of a grid repeats all captions."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Gathered:
    """What was written to the folder.

    Attributes:
      tables: the files of every table.
      counts: counts of samples, images and captions.
    """

    tables: dict[str, list[DataFile]]
    counts: dict[str, Counts]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Folder:
    """Where tables are written.

    Attributes:
      output: the folder.
      index: the images and captions by number.
      failures: failures of images, by the images' numbers.
    """

    output: str
    index: Index
    failures: Mapping[int, Failure]

    def write(
        self, table: str, number: int, of: int, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
    ) -> DataFile:
        """Writes one file of a table."""
        path = f"data/{FILE_STEMS[table]}-{number:05d}-of-{of:05d}.parquet"
        url, rows = storage.join(self.output, path), 0
        schema = schema.with_metadata(METADATA)
        with (
            storage.open_atomic(url) as stream,
            pq.ParquetWriter(
                stream,
                schema,
                compression="zstd",
                use_dictionary=_texts(schema),
                dictionary_pagesize_limit=DICTIONARY_BYTES,
            ) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
        num_bytes, sha256 = storage.digest(url)
        return DataFile(path=path, rows=rows, num_bytes=num_bytes, sha256=sha256)

    def write_failures(self, rows: list[FailureRow]) -> list[DataFile]:
        """Writes the failures: rows of table, key, reason and detail."""
        schema = score_tables.FAILURES
        columns = [list(column) for column in zip(*rows, strict=True)] or [[]] * len(schema)
        batch = pa.record_batch([pa.array(one, pa.string()) for one in columns], schema=schema)
        return [self.write("failures", 0, 1, schema, [batch])]

    def image_failures(self) -> list[FailureRow]:
        """Returns the rows of the images that failed, sorted by id."""
        return [
            ("images", self.index.images[one.image], one.reason, one.detail)
            for _, one in sorted(self.failures.items())
        ]

    def image_counts(self) -> Counts:
        """Returns how many images were expected, scored and failed."""
        count, failed = len(self.index.images), len(self.failures)
        return Counts(expected=count, scored=count - failed, failed=failed)


def lists_of(values: pa.Array, length: int, count: int) -> pa.Array:
    """Returns an array of lists of one length from their concatenated values."""
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * length)
    return pa.ListArray.from_arrays(offsets, values)


def _texts(schema: pa.Schema) -> list[str]:
    """Returns the Parquet paths of the columns of strings and of lists of strings.

    Only these are dictionary-encoded: scores hardly repeat, so their dictionary would be larger.
    """
    found = []
    for field in schema:
        listed = pa.types.is_list(field.type)
        kind = field.type.value_type if listed else field.type
        if pa.types.is_string(kind) or pa.types.is_dictionary(kind):
            found.append(f"{field.name}.list.element" if listed else field.name)
    return found
