"""A repository folder for the hub: every table that has rows, with its pictures, in true splits.

The default configuration is the table of the samples, each row with its pictures; the others have
the names of their tables. `images` is none: each picture stands in the rows that refer to it.
Tables without rows have no configuration, because `datasets` (5.2) cannot load a split without
rows; the card names them.
"""

import contextlib

from eqforge.core.files.checked import name_of
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.datasets import table_type
from eqforge.transforms.export.card import Files, write_card
from eqforge.transforms.export.description import write_description
from eqforge.transforms.export.flat import write_rows
from eqforge.transforms.export.target import Export


def refusal(dataset: Dataset, table: str) -> str:
    """Returns why a table cannot be written so; empty where it can."""
    name = dataset.manifest.dataset
    unknown = [each for each in dataset.manifest.tables if table_type(name, each) is None]
    return f"the table {name_of(unknown[0])} is none of a {name} dataset" if unknown else ""


def write(export: Export) -> None:
    """Writes the tables, the card and the description in Croissant."""
    tables = [export.settings.table, *_others(export)]
    configured: dict[str, list[Files]] = {}
    for table in tables:
        with contextlib.closing(export.of_table(table)) as one:
            configured[table] = write_rows(one, f"{table}-")
    write_card(export, configured)
    write_description(export, {table: f"data/{table}-*.parquet" for table in tables})


def _others(export: Export) -> list[str]:
    """Returns the tables beside the default one that have rows."""
    manifest = export.dataset.manifest
    left_out = (export.settings.table, "images")
    return [name for name in manifest.tables if manifest.num_rows(name) and name not in left_out]
