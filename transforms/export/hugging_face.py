"""A repository folder for the hub: every table that has rows, with its pictures, in true splits.

The default configuration is the table of the samples, each row with its pictures; the others have
the names of their tables. `images` is none: each picture stands in the rows that refer to it.
Tables without rows have no configuration, because `datasets` (5.2) cannot load a split without
rows; the card names them.
"""

import contextlib
import re
from collections.abc import Iterable
from typing import Final

from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.io import storage
from eqforge.schemas.io.checked import name_of
from eqforge.schemas.tables.datasets import table_type
from eqforge.schemas.visible import code_span, quoted
from eqforge.transforms.export.card import CARD, Files, flat_card, header
from eqforge.transforms.export.flat import write_rows
from eqforge.transforms.export.names import renamed
from eqforge.transforms.export.target import Export

_MOST_CARD_BYTES: Final = 4 << 20
_CONFIGS: Final = re.compile(r"^configs:\n(?:[- ].*\n)*", re.MULTILINE)
_SIZES: Final = re.compile(r"^\| table \| rows \| files \|.*\n(?:\|.*\n)*", re.MULTILINE)
_LOADING: Final = re.compile(r"^## Loading\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def refusal(dataset: Dataset, table: str) -> str:
    """Returns why a table cannot be written so; empty where it can."""
    name = dataset.manifest.dataset
    unknown = [each for each in dataset.manifest.tables if table_type(name, each) is None]
    return f"the table {name_of(unknown[0])} is none of a {name} dataset" if unknown else ""


def write(export: Export) -> None:
    """Writes the tables and the card."""
    tables = [export.settings.table, *_others(export)]
    configured: dict[str, list[Files]] = {}
    for table in tables:
        with contextlib.closing(export.of_table(table)) as one:
            configured[table] = write_rows(one, f"{table}-")
    if not export.has(CARD):
        with export.file(CARD) as stream:
            stream.write(_card(export, configured).encode())


def _others(export: Export) -> list[str]:
    """Returns the tables beside the default one that have rows."""
    manifest = export.dataset.manifest
    left_out = (export.settings.table, "images")
    return [name for name in manifest.tables if manifest.num_rows(name) and name not in left_out]


def _card(export: Export, configured: dict[str, list[Files]]) -> str:
    """Returns the dataset's own card, with these files and how to load them."""
    default = next(iter(configured))
    # The dataset's own card tells of rows that may have been left out.
    own = "" if export.settings.redistributable else _own(export.dataset)
    found = own or flat_card(export, configured[default])
    front, _, body = found.removeprefix("---\n").partition("\n---\n")
    configs = header(configured).removeprefix("---\n").removesuffix("---")
    front = _CONFIGS.sub("", f"{front}\n") + configs
    body = _SIZES.sub(lambda _: _sizes(export, configured), body, count=1)
    loading = _loading(export, configured)
    body, replaced = _LOADING.subn(lambda _: f"{loading}\n\n", body, count=1)
    return f"---\n{front}---\n{body}" + ("" if replaced else f"\n{loading}\n")


def _sizes(export: Export, tables: Iterable[str]) -> str:
    """Returns the rows of the tables that are here; files and bytes were those of the dataset."""
    rows = (f"| {name} | {export.dataset.manifest.num_rows(name):,} |" for name in tables)
    return "\n".join(["| table | rows |", "|---|---:|", *rows, ""])


def _own(dataset: Dataset) -> str:
    """Returns the card that the dataset was built with; empty if it has none that can be read."""
    try:
        with storage.open_below(dataset.folder, CARD) as stream:
            text = stream.read(_MOST_CARD_BYTES).decode()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""
    return text if text.startswith("---\n") and "\n---\n" in text else ""


def _loading(export: Export, configured: dict[str, list[Files]]) -> str:
    lines = ["from datasets import load_dataset", "", 'folder = "path/to/folder"']
    for number, (name, files) in enumerate(configured.items()):
        which = "" if number == 0 else f", {quoted(name)}"
        lines += [f"{name} = load_dataset(folder{which}, split={quoted(files[0].split)})"]
    shown = ", ".join(code_span(name) for name in export.pictures.values())
    notes = [
        f"The rows of {code_span(next(iter(configured)))} have their pictures: {shown}."
        if shown
        else "There are no pictures."
    ]
    manifest = export.dataset.manifest
    columns = export.dataset.columns(export.settings.table)
    if moved := renamed(columns, export.pictures.values()):
        names = ", ".join(map(code_span, moved.values()))
        notes += [f"What their files are called in the source stands in {names}."]
    empty = [code_span(name) for name in manifest.tables if not manifest.num_rows(name)]
    if manifest.num_rows("images"):
        notes += ["The table `images` is left out: its pictures stand in the rows."]
    if empty:
        notes += [f"Tables without rows are left out: {', '.join(empty)}."]
    code = "\n".join(lines)
    return f"## Loading\n\n```python\n{code}\n```\n\n{' '.join(notes)}"
