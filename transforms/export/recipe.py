"""A recipe: the settings, the inputs' digests and the records of a dataset, without pictures.

`eqforge build --recipe` makes the rest from the user's own sources, and compares.
"""

import contextlib
from dataclasses import replace
from typing import Any, Final

import pyarrow.parquet as pq

from eqforge.schemas.dataset.manifest import DataFile, to_json
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.recipe import (
    FILE_NAME,
    FORMAT,
    recorded,
    recorded_columns,
    recorded_schema,
    tables_of,
)
from eqforge.schemas.tables.combined import COMBINED
from eqforge.transforms.export.rows import Split
from eqforge.transforms.export.target import Export

_OPTIONS: Final[dict[str, Any]] = {
    "compression": "zstd",
    "compression_level": 3,
    "write_page_index": True,
}


def refusal(dataset: Dataset, table: str) -> str:
    """Returns why a dataset cannot be written so; empty where it can."""
    if dataset.manifest.dataset in COMBINED:
        return "a combined dataset is made from datasets: write a recipe of each part"
    if table != "samples":
        return "a recipe has the records of all tables; leave --table out"
    return ""


def write(export: Export) -> None:
    """Writes the records of each table in the order of their ids, and then `recipe.json`."""
    manifest = export.dataset.manifest
    tables = {table: _write_table(export, table) for table in tables_of(manifest)}
    if not export.has(FILE_NAME):
        # Errata hold texts; the digest of their file stands among the inputs.
        recipe = replace(manifest, format=FORMAT, tables=tables, errata=[])
        with export.file(FILE_NAME) as stream:
            stream.write(to_json(recipe))


def _write_table(export: Export, table: str) -> list[DataFile]:
    """Writes the records of a table; returns their files."""
    files = []
    with contextlib.closing(export.of_table(table)) as one:
        columns = recorded_columns(export.dataset.manifest.dataset, table, one.schema)
        schema = recorded_schema(one.schema, columns)
        rows = export.dataset.manifest.num_rows(table)
        for part in one.parts(Split(value=None, name=table, rows=rows)):
            path = f"records/{part.name}.parquet"
            if not export.has(path):
                with (
                    export.file(path, rows=part.rows) as stream,
                    pq.ParquetWriter(stream, schema, **_OPTIONS) as writer,
                ):
                    for rows_of_part in part.tables():
                        for batch in rows_of_part.combine_chunks().to_batches():
                            writer.write_batch(recorded(batch, columns))
            done = export.done(path)
            files.append(
                DataFile(path=path, rows=done.rows, num_bytes=done.num_bytes, sha256=done.sha256)
            )
    return files
