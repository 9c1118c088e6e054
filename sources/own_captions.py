"""Reads a user's own captions of images: tables, JSON arrays, JSON lines, Hugging Face's folders.

A record has a field `caption`, and may have `image`, `id` and `split`; others are left out. For
`caption` may stand `text`, for `image` `file_name` or `filename`, and a caption may be a list. An
id may be a whole number. In a table these are the columns, and an empty cell says nothing.
"""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node, name_of
from eqforge.core.files.typed_json import decode
from eqforge.schemas.records.scores import compact_json
from eqforge.sources.hugging_face import FORMS, RowFolder, row_folder
from eqforge.sources.record_files import (
    Record,
    first_line,
    read_json,
    read_json_lines,
    read_table,
)

TABLES: Final = (".csv", ".tsv")
LINES: Final = (".jsonl", ".ndjson")
KNOWN: Final = (
    "own captions are a table (.csv, .tsv), a JSON array (.json) or JSON Lines (.jsonl, .ndjson) "
    "with a column caption; others are COCO's captions_*.json, a Karpathy split (dataset_*.json), "
    "Flickr30k's results_*.token, results.csv (image_name| comment_number| comment) or "
    "flickr_annotations_30k.csv (raw, filename, split), and a folder of Hugging Face's"
)
"""What captions may be, for messages."""

_IMAGES = ("image", "file_name", "filename")
CAPTIONS = ("caption", "text")


class OwnCaption(msgspec.Struct, frozen=True):
    """A caption as the user wrote it.

    Attributes:
      image: the image's file, relative to the images folder; empty if the user named none.
      caption: the caption.
      id: unique in the source; None if the user gave none.
      split: its split.
    """

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
    """Returns the files of captions that a path names: itself, or those of a folder.

    Raises:
      InputError: a file of the folder is missing, or it is none of Hugging Face's.
    """
    if (rows := row_folder(path)) is not None:
        return rows.files
    return [path] if not path.is_dir() else _known(path).files


def header_of(path: Path) -> set[str]:
    """Returns the columns of a CSV or TSV file, as its first line names them.

    Raises:
      InputError: the file cannot be read.
    """
    line = first_line(path).rstrip("\r\n")
    try:
        cells = next(csv.reader([line], delimiter=_delimiter(path), skipinitialspace=True), [])
    except csv.Error:  # said with its line by the reader
        return set()
    return {cell.strip() for cell in cells}


def read_own_file(path: Path) -> Iterator[OwnCaption]:
    """Yields the captions of a table, a JSON array or JSON lines, as the ending says.

    Raises:
      InputError: the file cannot be read as that, or a record is no caption; the message names it.
    """
    for record in file_records(path):
        yield from captions_of(path.name, record)


def read_own_folder(path: Path) -> Iterator[OwnCaption]:
    """Yields the captions of one of Hugging Face's folders, or of a split of one.

    Raises:
      InputError: it is none, a table cannot be read, or a row has no caption.
    """
    for record in folder_records(path):
        yield from captions_of(path.name, record)


def file_records(path: Path) -> Iterator[Record]:
    """Yields the records of a table, a JSON array or JSON lines, as the ending says.

    Raises:
      InputError: the file cannot be read as that.
    """
    readers: dict[str, Callable[[Path], Iterator[Record]]] = {
        **dict.fromkeys(TABLES, _read_table),
        ".json": read_json,
    }
    return readers.get(path.suffix.lower(), read_json_lines)(path)


def folder_records(path: Path) -> Iterator[Record]:
    """Yields the rows of one of Hugging Face's folders, or of a split of one.

    Raises:
      InputError: it is none, or a table cannot be read.
    """
    return _known(path).rows("image")


def _known(path: Path) -> RowFolder:
    if (rows := row_folder(path)) is None:
        raise InputError(f"{path}: no captions in this folder; expected {FORMS}; or name a file")
    return rows


def _delimiter(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","


def _read_table(path: Path) -> Iterator[Record]:
    """Yields the rows of a table; one whose caption is empty has an empty one.

    Raises:
      InputError: it has no column of captions, or is no table.
    """
    columns = header_of(path)
    name = next((name for name in CAPTIONS if name in columns), CAPTIONS[0])
    try:
        for record in read_table(path, {name}, ()):
            if not record.problem:
                record.value.setdefault(name, "")
            yield record
    except InputError as error:
        raise InputError(str(error) if name in columns else f"{error}; {KNOWN}") from error


def captions_of(file: str, record: Record) -> Iterator[OwnCaption]:
    """Yields the captions of a record: one, or several where they are a list.

    Raises:
      InputError: the record is no caption; the message names it.
    """
    where = f"{record.unit} {record.number}"
    if record.problem:
        raise InputError(f"{file}: {where}: {record.problem}")
    members = Node(file, where, record.value).mapping()
    known = {name: members[name] for name in _Fields.__struct_fields__ if name in members}
    found = decode(compact_json(known).encode(), _Fields, file, where)
    caption = found.text if found.caption is None else found.caption
    if caption is None:
        columns = ", ".join(map(name_of, [*members][:12])) or "none"
        raise InputError(
            f"{file}: {where}: expected one of the columns {', '.join(CAPTIONS)}; found {columns}"
        )
    several = isinstance(caption, list)
    own_id = None if found.id in (None, "") else str(found.id)
    for number, each in enumerate(caption if isinstance(caption, list) else [caption]):
        yield OwnCaption(
            image=next(filter(None, (getattr(found, name) for name in _IMAGES)), ""),
            caption=each,
            id=f"{own_id}/{number}" if several and own_id is not None else own_id,
            split=found.split or "all",
        )
