"""One flat table: each row with its pictures, in Parquet files named by their true splits."""

import contextlib
import io
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.columns import IMAGE, with_metadata
from eqforge.transforms.export.background import in_background
from eqforge.transforms.export.card import DEFAULT, Files, write_card
from eqforge.transforms.export.description import write_description
from eqforge.transforms.export.encode import PictureColumn
from eqforge.transforms.export.names import renamed
from eqforge.transforms.export.target import Export, Piece


def refusal(dataset: Dataset, table: str) -> str:
    """Returns why a table cannot be written so; empty where it can."""
    return ""


def write(export: Export) -> None:
    """Writes the files, a card by which `load_dataset(folder)` finds splits, and Croissant."""
    files = write_rows(export)
    write_card(export, {DEFAULT: files})
    write_description(export, {export.settings.table: "data/*.parquet"})


def write_rows(export: Export, prefix: str = "") -> list[Files]:
    """Writes the rows of all splits below `data`; returns where those of each split are.

    Args:
      export: of the rows.
      prefix: begins the files' names.
    """
    schema = flat_schema(export)
    how = parquet_options(schema, export)
    for split in export.splits:
        for part in export.parts(split):
            path = f"data/{prefix}{part.name}.parquet"
            if export.has(path):
                continue
            with (
                export.file(path, rows=part.rows) as stream,
                pq.ParquetWriter(stream, schema, **how) as writer,
                contextlib.closing(in_background(part.pieces())) as pieces,
            ):
                for piece in pieces:
                    writer.write_table(flat_rows(piece, schema))
    return [
        Files(split=split.name, path=f"data/{prefix}{split.name}-*.parquet")
        for split in export.splits
    ]


def flat_schema(export: Export) -> pa.Schema:
    """Returns the columns: those of the table, and one of pictures for each of their ids."""
    names = renamed(export.schema.names, export.pictures.values())
    fields = [field.with_name(names.get(field.name, field.name)) for field in export.schema]
    pictures = [pa.field(name, IMAGE) for name in export.pictures.values()]
    return with_metadata(pa.schema([*fields, *pictures]), {})


def parquet_options(schema: pa.Schema, export: Export) -> dict[str, Any]:
    """Returns how columns are stored: texts packed, pictures, which do not pack, as they are."""
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


def flat_rows(piece: Piece, schema: pa.Schema) -> pa.Table:
    """Returns rows with their pictures as a table."""
    columns = [column.combine_chunks() for column in piece.rows.columns]
    columns += [_images(pictures) for pictures in piece.pictures.values()]
    return pa.Table.from_arrays(columns, schema=schema)


def _images(pictures: PictureColumn) -> pa.Array:
    """Returns pictures as Hugging Face stores them."""
    paths = pc.binary_join_element_wise(pictures.ids, pictures.suffixes, "")
    mask = pictures.ids.is_null()
    return pa.StructArray.from_arrays([pictures.data, paths], fields=list(IMAGE), mask=mask)
