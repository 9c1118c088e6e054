"""The Croissant descriptions of exports in Parquet: their own files, and what is known of the rows.

What the description of the dataset says as a whole, its author's words among it, is taken along.
Where rows were left out, what it says of all of them is said of those that are here instead.
"""

from collections.abc import Sequence
from typing import Any, Final

from eqforge.core.files import storage
from eqforge.schemas.dataset.croissant import (
    FILE_NAME,
    as_text,
    file_object,
    file_set,
    read_said,
    said_of,
)
from eqforge.schemas.dataset.croissant_records import record_set
from eqforge.schemas.dataset.manifest import MAX_BYTES
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.statements import with_amount
from eqforge.schemas.tables.datasets import table_type
from eqforge.transforms.export.names import picture_columns, renamed
from eqforge.transforms.export.part import left_out, profile_of_part, step
from eqforge.transforms.export.target import Export

_OF_ALL_ROWS: Final = ("description", "rai:dataCollectionRawData")
"""What a description of a dataset says of rows that an export may have left out."""
_STEPS: Final = "rai:dataPreprocessingProtocol"
_LIMITS: Final = "rai:dataLimitations"


def write_description(export: Export, patterns: dict[str, str]) -> None:
    """Writes the description of the files that are there, unless it is there; see `croissant`.

    Args:
      export: whose tables are complete.
      patterns: the pattern of the files of each table.
    """
    if export.has(FILE_NAME):
        return
    files = [file for file in export.files if file.path.endswith(".parquet")]
    sets = [file_set(table, pattern) for table, pattern in patterns.items()]
    records = [_records(export.dataset, table) for table in patterns]
    text = as_text(_said(export), [*map(file_object, files), *sets], records)
    with export.file(FILE_NAME) as stream:
        stream.write(text.encode())


def _records(dataset: Dataset, table: str) -> dict[str, Any]:
    """Returns the record set of a table whose rows have their pictures."""
    kind = table_type(dataset.manifest.dataset, table)
    assert kind is not None
    schema, pictures = dataset.schema(table), picture_columns(dataset, table).values()
    return record_set(kind, schema, renamed(schema.names, pictures), pictures)


def _said(export: Export) -> dict[str, Any]:
    """Returns what is said of the whole."""
    own = _own(export.dataset)
    is_part = export.settings.redistributable
    said = dict(own) if own and not is_part else _of_part(export, own)
    steps = [*([step(export)] if is_part else []), *_changes(export)]
    limits = [left_out(export)] if is_part else []
    for name, more in ((_STEPS, steps), (_LIMITS, limits)):
        if more:
            before = said.get(name, [])
            said[name] = [*(before if isinstance(before, list) else [before]), *more]
    return said


def _own(dataset: Dataset) -> dict[str, Any]:
    """Returns what the description beside a dataset says; nothing if it has none to be read."""
    try:
        with storage.open_below(dataset.folder, FILE_NAME) as stream:
            return read_said(stream.read(MAX_BYTES).decode())
    except (FileNotFoundError, ValueError, RecursionError):
        return {}


def _of_part(export: Export, own: dict[str, Any]) -> dict[str, Any]:
    """Returns what is said of the rows that are here, and of the whole by its own description."""
    profile = profile_of_part(export)
    kept = {name: value for name, value in own.items() if name not in _OF_ALL_ROWS}
    words, has_amount = with_amount(str(own.get("description", "")), profile)
    return said_of(profile) | kept | ({"description": words} if has_amount else {})


def _changes(export: Export) -> Sequence[str]:
    """Returns what was done to the pictures."""
    side, form = export.settings.max_side, export.settings.image_format
    scaled = [f"Pictures whose longer side has more than {side} pixels were scaled down to that."]
    encoded = [f"Pictures in another format were encoded as {form.upper()}."]
    return [*(scaled if side else []), *(encoded if form != "keep" else [])]
