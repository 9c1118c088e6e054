"""JSON lines: one file for each split, one row a line, pictures beside them where asked for."""

import json
from collections.abc import Iterator
from typing import Any

from eqforge.schemas.dataset.reader import Dataset
from eqforge.transforms.export.encode import Picture
from eqforge.transforms.export.names import renamed
from eqforge.transforms.export.rows import Split
from eqforge.transforms.export.target import Export


def refusal(dataset: Dataset, table: str) -> str:
    """Returns why a table cannot be written so; empty where it can."""
    return ""


def write(export: Export) -> None:
    """Writes `test.jsonl` and so on; with pictures, their paths stand in the rows."""
    for split in export.splits:
        path = f"{split.name}.jsonl"
        if export.has(path) and not export.settings.image_files:
            continue
        with export.file(path, rows=split.rows) as stream:
            for line in _lines(export, split):
                stream.write(line)


def _lines(export: Export, split: Split) -> Iterator[bytes]:
    """Yields the lines of many rows at a time."""
    if not export.settings.image_files:
        for part in export.parts(split):
            for table in part.tables():
                yield b"".join(json_text(row) + b"\n" for row in table.to_pylist())
        return
    columns = renamed(export.schema.names, export.pictures.values())
    for record in export.records_of(split):
        row = {columns.get(name, name): value for name, value in record.row.items()}
        row |= {name: put_picture(export, each) for name, each in record.pictures.items()}
        yield json_text(row) + b"\n"


def put_picture(export: Export, picture: Picture | None) -> str | None:
    """Writes a picture below `images` where it is not there yet; returns its path."""
    if picture is None:
        return None
    path = f"images/{picture.image_id[:2]}/{picture.image_id}{picture.suffix}"
    export.put(path, picture.data)
    return path


def json_text(row: dict[str, Any]) -> bytes:
    """Returns a row as JSON in UTF-8; nothing else is escaped than JSON has to."""
    return json.dumps(row, ensure_ascii=False).encode()
