"""Parquet formats: one flat table, a repository folder for the hub, and recipes.

A flat table holds each row with its images, in files named by their true splits. The hub's folder
has every table with rows: samples are the default configuration, other tables have configurations
of their own, and images are stored in the rows that refer to them. `datasets` (5.2) cannot load a
split without rows, so tables without rows have no configuration; the card names them.

`datasets` would decode images and choose row groups by its version, so pyarrow writes.
"""

import contextlib
import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eqforge.core.files.checked import shown
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
from eqforge.schemas.tables.benchmark_rows import COMBINED
from eqforge.schemas.tables.columns import IMAGE, with_metadata
from eqforge.schemas.tables.datasets import table_type
from eqforge.transforms.export.card import DEFAULT, Files, write_card, write_description
from eqforge.transforms.export.formats import RECIPE, Writer
from eqforge.transforms.export.names import renamed
from eqforge.transforms.export.rows import Split
from eqforge.transforms.export.target import Export

_RECIPE_OPTIONS: Final[dict[str, Any]] = {
    "compression": "zstd",
    "compression_level": 3,
    "write_page_index": True,
}


def _write_flat(export: Export) -> None:
    files = _write_rows(export)
    write_card(export, {DEFAULT: files})
    table = export.settings.table
    write_description(export, {table: "data/*.parquet"}, {table: export.schema})


def _refuse_unknown_tables(dataset: Dataset, table: str) -> str:
    name = dataset.manifest.dataset
    unknown = [each for each in dataset.manifest.tables if table_type(name, each) is None]
    return f"{name} datasets have no table {shown(unknown[0])}" if unknown else ""


def _write_hub(export: Export) -> None:
    manifest, first = export.dataset.manifest, export.settings.table
    others = [n for n in manifest.tables if manifest.num_rows(n) and n not in (first, "images")]
    configured: dict[str, list[Files]] = {}
    schemas: dict[str, pa.Schema] = {}
    for table in (first, *others):
        with contextlib.closing(export.of_table(table)) as one:
            configured[table] = _write_rows(one, f"{table}-")
            schemas[table] = one.schema
    export.schema = schemas[first]
    write_card(export, configured)
    patterns = {table: f"data/{table}-*.parquet" for table in configured}
    write_description(export, patterns, schemas)


def _write_rows(export: Export, prefix: str = "") -> list[Files]:
    export.leave_out_empty()
    names = renamed(export.schema.names, export.pictures.values())
    fields = [field.with_name(names.get(field.name, field.name)) for field in export.schema]
    pictures = [pa.field(name, IMAGE) for name in export.pictures.values()]
    schema = with_metadata(pa.schema([*fields, *pictures]), {})
    options = _options(schema, export)
    for part in export.all_parts():
        path = f"data/{prefix}{part.name}.parquet"
        if export.has(path):
            continue
        with (
            export.file(path, rows=part.rows) as stream,
            pq.ParquetWriter(stream, schema, **options) as writer,
            ThreadPoolExecutor(1) as thread,
        ):
            # While this thread writes a piece, another makes the next one.
            pieces = part.pieces()
            coming = thread.submit(next, pieces, None)
            while (piece := coming.result()) is not None:
                coming = thread.submit(next, pieces, None)
                columns = [column.combine_chunks() for column in piece.rows.columns]
                for images in piece.pictures.values():
                    paths = pc.binary_join_element_wise(images.ids, images.suffixes, "")
                    columns.append(
                        pa.StructArray.from_arrays(
                            [images.data, paths], fields=list(IMAGE), mask=images.ids.is_null()
                        )
                    )
                writer.write_table(pa.Table.from_arrays(columns, schema=schema))
    return [
        Files(split=split.name, path=f"data/{prefix}{split.name}-*.parquet")
        for split in export.splits
    ]


def _options(schema: pa.Schema, export: Export) -> dict[str, Any]:
    """Return storage options: texts are compressed; images, which do not compress, are not."""
    stream = io.BytesIO()
    pq.write_metadata(schema, stream)
    leaves = pq.read_metadata(stream).schema
    names = [leaves.column(number).path for number in range(len(leaves))]
    pictures = tuple(f"{name}." for name in export.pictures.values())
    texts = [name for name in names if not name.startswith(pictures or "\0")]
    return {
        "compression": {name: "zstd" if name in texts else "none" for name in names},
        "compression_level": dict.fromkeys(texts, 1),
        "use_dictionary": texts,
        "write_statistics": texts,
        "write_page_index": True,
    }


def _refuse_recipe(dataset: Dataset, table: str) -> str:
    if dataset.manifest.dataset in COMBINED:
        return "a combined dataset has no recipe; write one recipe for each part"
    if table != "samples":
        return "a recipe contains the records of all tables; omit --table"
    return ""


def _write_recipe(export: Export) -> None:
    """Write the records of each table in the order of their ids, and then `recipe.json`.

    `eqforge build --recipe` rebuilds the rest from the user's own sources, and compares.
    """
    manifest = export.dataset.manifest
    tables = {table: _write_records(export, table) for table in tables_of(manifest)}
    if not export.has(FILE_NAME):
        # Errata hold texts; the inputs include the digest of their file.
        recipe = replace(manifest, format=FORMAT, tables=tables, errata=[])
        with export.file(FILE_NAME) as stream:
            stream.write(to_json(recipe))


def _write_records(export: Export, table: str) -> list[DataFile]:
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
                    pq.ParquetWriter(stream, schema, **_RECIPE_OPTIONS) as writer,
                ):
                    for rows_of_part in part.tables():
                        for batch in rows_of_part.combine_chunks().to_batches():
                            writer.write_batch(recorded(batch, columns))
            files.append(export.done(path))
    return files


WRITERS: Final = {
    "pairs": Writer(_write_flat),
    "hf": Writer(_write_hub, _refuse_unknown_tables),
    RECIPE: Writer(_write_recipe, _refuse_recipe),
}
