"""Reads a user's own captions of images: JSON lines, and folders of Hugging Face's."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from eqforge.schemas.errors import InputError
from eqforge.schemas.io.checked import Node, name_of
from eqforge.schemas.io.typed_json import decode, read_lines
from eqforge.schemas.sources.hugging_face import FORMS, RowFolder, row_folder

_IMAGES = ("image", "file_name", "filename")
_CAPTIONS = ("caption", "text")


class OwnCaption(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A caption as the user wrote it.

    Attributes:
      image: the image's file, relative to the images folder.
      caption: the caption.
      id: unique in the source; None if the user gave none.
      split: its split.
    """

    image: str
    caption: str
    id: str | None = None
    split: str = "all"


def caption_files(path: Path) -> list[Path]:
    """Returns the files of captions that a path names: itself, or those of a folder.

    Raises:
      InputError: a file of the folder is missing, or it is none of Hugging Face's.
    """
    if (rows := row_folder(path)) is not None:
        return rows.files
    return [path] if not path.is_dir() else _known(path).files


def read_own_lines(path: Path) -> Iterator[OwnCaption]:
    """Yields the captions of JSON lines.

    Raises:
      InputError: a line is none; the message names it.
    """
    for number, data in read_lines(path):
        yield decode(data, OwnCaption, path.name, f"line {number}")


def read_own_folder(path: Path) -> Iterator[OwnCaption]:
    """Yields the captions of one of Hugging Face's folders, or of a split of one.

    Raises:
      InputError: it is none, a table cannot be read, or a row has no image or caption.
    """
    for record in _known(path).rows("image"):
        where = f"{record.unit} {record.number}"
        if record.problem:
            raise InputError(f"{path.name}: {where}: {record.problem}")
        yield from _captions(Node(path.name, where, record.value))


def _known(path: Path) -> RowFolder:
    if (rows := row_folder(path)) is None:
        raise InputError(f"{path}: no captions in this folder; expected {FORMS}; or name a file")
    return rows


def _captions(row: Node) -> Iterator[OwnCaption]:
    image, caption = _first(row, _IMAGES).text(), _first(row, _CAPTIONS)
    own_id, split = row.get("id"), row.get("split")
    name = None if own_id is None else _id(own_id)
    several = isinstance(caption.value, list)
    for number, each in enumerate(caption.elements() if several else (caption,)):
        yield OwnCaption(
            image=image,
            caption=each.text(),
            id=f"{name}/{number}" if several and name is not None else name,
            split="all" if split is None else split.text(),
        )


def _first(row: Node, names: tuple[str, ...]) -> Node:
    """Returns the first of some fields that a row has."""
    for name in names:
        if (node := row.get(name)) is not None:
            return node
    found = ", ".join(map(name_of, row.mapping())) or "none"
    raise InputError(
        f"{row.file}: {row.where}: expected one of the columns {', '.join(names)}; found {found}"
    )


def _id(node: Node) -> str:
    return str(node.integer()) if isinstance(node.value, int) else node.text()
