"""Read a user's own captions of images: tables, JSON arrays, JSON lines, Hugging Face's folders.

A record has a field `caption`, and may have `image`, `id` and `split`; other fields are ignored.
`text` is accepted for `caption`, `file_name` or `filename` for `image`, and a list for a caption.
An id may be a whole number. Tables have these columns, and empty cells are ignored.
"""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import names_of
from eqforge.core.files.typed_json import decode
from eqforge.core.visible import series
from eqforge.schemas.records.scores import compact_json
from eqforge.sources.hugging_face import FORMS, RowFolder, row_folder
from eqforge.sources.record_files import Record, first_line, read_json, read_json_lines, read_table

TABLES: Final = (".csv", ".tsv")
LINES: Final = (".jsonl", ".ndjson")
KNOWN: Final = (
    "Put your own captions in a column or key named caption, in a .csv, .tsv, .json, .jsonl or "
    ".ndjson file. Published formats: COCO's captions_*.json; Karpathy's dataset_*.json; "
    "Flickr30k's results_*.token, results.csv (image_name| comment_number| comment) and "
    "flickr_annotations_30k.csv (raw, filename, split); MS-COCO-FG and Flickr30k-FG ({image: "
    "[captions]}); a Hugging Face folder."
)
"""Supported caption formats, for messages."""

_IMAGES = ("image", "file_name", "filename")
CAPTIONS = ("caption", "text")


class OwnCaption(msgspec.Struct, frozen=True):
    """A caption as the user wrote it; without an image, `image` is empty."""

    image: str
    caption: str
    id: str | None = None
    split: str = "all"


class _Fields(msgspec.Struct, frozen=True):
    image: str | None = None
    file_name: str | None = None
    filename: str | None = None
    caption: str | list[str] | None = None
    text: str | list[str] | None = None
    id: str | int | None = None
    split: str | None = None


def caption_files(path: Path) -> list[Path]:
    if (rows := row_folder(path)) is not None:
        return rows.files
    return [path] if not path.is_dir() else _known(path).files


def header_of(path: Path) -> set[str]:
    line = first_line(path).rstrip("\r\n")
    try:
        delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
        cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:  # said with its line by the reader
        return set()
    return {cell.strip() for cell in cells}


def read_own(path: Path) -> Iterator[OwnCaption]:
    for record in own_records(path):
        yield from captions_of(path.name, record)


def own_records(path: Path) -> Iterator[Record]:
    """Yield the records of a table, a JSON array or JSON lines, or the rows of a folder."""
    if path.is_dir() or row_folder(path) is not None:
        return _known(path).rows("image")
    readers: dict[str, Callable[[Path], Iterator[Record]]] = {
        **dict.fromkeys(TABLES, _read_table),
        ".json": read_json,
    }
    return readers.get(path.suffix.lower(), read_json_lines)(path)


def _known(path: Path) -> RowFolder:
    if (rows := row_folder(path)) is None:
        raise InputError(
            f"{path}: this folder contains no captions. Pass a file, or a folder with {FORMS}."
        )
    return rows


def _read_table(path: Path) -> Iterator[Record]:
    """Yield the rows of a table; an empty cell of a caption is an empty caption."""
    columns = header_of(path)
    name = next((name for name in CAPTIONS if name in columns), CAPTIONS[0])
    try:
        for record in read_table(path, {name}, ()):
            if not record.problem:
                record.value.setdefault(name, "")
            yield record
    except InputError as error:
        raise InputError(str(error) if name in columns else f"{error}. {KNOWN}") from error


def captions_of(file: str, record: Record) -> Iterator[OwnCaption]:
    where, members = record.where, record.node(file).mapping()
    known = {name: members[name] for name in _Fields.__struct_fields__ if name in members}
    found = decode(compact_json(known).encode(), _Fields, file, where)
    caption = found.text if found.caption is None else found.caption
    if caption is None:
        expected = f"the column {series(map(repr, CAPTIONS), 'or')}"
        found_columns = f"only {names_of(members)}" if members else "no columns"
        raise InputError(f"{file}: {where}: expected {expected}; found {found_columns}")
    several = isinstance(caption, list)
    own_id = None if found.id in (None, "") else str(found.id)
    for number, each in enumerate(caption if isinstance(caption, list) else [caption]):
        yield OwnCaption(
            image=next(filter(None, (getattr(found, name) for name in _IMAGES)), ""),
            caption=each,
            id=f"{own_id}/{number}" if several and own_id is not None else own_id,
            split=found.split or "all",
        )
