"""ImageFolder: the pictures of each split in a folder, and its rows in `metadata.jsonl` there.

`datasets` guesses the types of such a file from its first rows, and refuses splits for which it
guesses others. So nested values are JSON in a text, and so is a column that has no value in one
split and values in another; of texts, no value is an empty text there.
"""

import functools
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from eqforge.schemas.dataset.reader import Dataset
from eqforge.transforms.export.card import DEFAULT, Files, write_card
from eqforge.transforms.export.encode import Picture
from eqforge.transforms.export.json_lines import json_text
from eqforge.transforms.export.names import picture_references, renamed
from eqforge.transforms.export.rows import Split, merged
from eqforge.transforms.export.target import Export


def refusal(dataset: Dataset, table: str) -> str:
    """Returns why a table cannot be written so; empty where it can."""
    if picture_references(dataset, table):
        return ""
    return (
        "expected rows with pictures; build or import the dataset with --images FOLDER, or take "
        "jsonl"
    )


def write(export: Export) -> None:
    """Writes `test/metadata.jsonl` and the pictures beside it, and so on, and a card."""
    unsure = _unsure(export)
    for split in export.splits:
        with export.file(f"data/{split.name}/metadata.jsonl", rows=split.rows) as stream:
            for line in _lines(export, split, unsure):
                stream.write(line)
    files = [Files(split=each.name, path=f"data/{each.name}/**") for each in export.splits]
    write_card(export, {DEFAULT: files})


def _lines(export: Export, split: Split, unsure: set[str]) -> Iterator[bytes]:
    pictures = export.pictures.values()
    names = renamed(export.schema.names, pictures)
    for record in export.records_of(split):
        row: dict[str, Any] = {}
        for column, picture in record.pictures.items():
            key = "file_name" if column == "image" else f"{column}_file_name"
            row[key] = _put(export, split, picture)
        for name, value in record.row.items():
            row[names.get(name, name)] = _sure(value, export, name) if name in unsure else value
        yield json_text(row) + b"\n"


def _sure(value: Any, export: Export, name: str) -> str:
    """Returns a value of an unsure column as a text."""
    if pa.types.is_string(export.schema.field(name).type):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _put(export: Export, split: Split, picture: Picture | None) -> str | None:
    """Writes a picture where it is not there yet; returns its name."""
    if picture is None:
        return None
    name = picture.image_id + picture.suffix
    export.put(f"data/{split.name}/{name}", picture.data)
    return name


def _unsure(export: Export) -> set[str]:
    """Returns the columns whose type `datasets` would not guess in the same way everywhere."""
    nested: set[str] = {each.name for each in export.schema if pa.types.is_nested(each.type)}
    counted = [_valued(export, split) for split in export.splits]
    everywhere = functools.reduce(set[str].__and__, counted)
    return nested | (set[str]().union(*counted) - everywhere)


def _valued(export: Export, split: Split) -> set[str]:
    """Returns the columns that have a value in a split."""
    found: set[str] = set()
    for rows in merged(export.dataset, export.settings.table, export.keys, split):
        found |= {n for n in rows.column_names if rows.column(n).null_count < rows.num_rows}
    return found
