"""Tells the forms that captions of images come in, by the ending and the first fields of a file."""

import codecs
from pathlib import Path
from typing import Literal

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import name_of
from eqforge.core.files.typed_json import decode, read_bytes
from eqforge.sources.hugging_face import row_folder
from eqforge.sources.own_captions import CAPTIONS, KNOWN, LINES, TABLES, header_of

Source = Literal[
    "coco", "karpathy", "flickr30k-token", "flickr30k-csv", "own", "text-pairs", "hugging-face"
]


class _Shape(msgspec.Struct):
    images: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    annotations: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def detect_source(path: str | Path) -> Source:
    """Detects the format of a caption file by its suffix, and of JSON and CSV by their fields.

    Raises:
      InputError: the suffix is unknown, the JSON is of no format, or a folder is of none.
    """
    path = Path(path)
    if path.is_dir() or row_folder(path) is not None:
        return "hugging-face"
    match path.suffix.lower():
        case ".json":
            return _detect_json(path)
        case ".csv":
            return "flickr30k-csv" if _is_flickr(header_of(path)) else "own"
        case ".token" | ".txt":
            return "flickr30k-token"
        case ending if ending in (*TABLES, *LINES):
            return "own"
    raise InputError(f"{path}: its ending says no form of captions; {KNOWN}; or name its --source")


def _detect_json(path: Path) -> Source:
    """Tells COCO and Karpathy from an array, or lines, of own captions.

    Raises:
      InputError: the file is JSON of another form, or none.
    """
    data = read_bytes(path)
    first = data.removeprefix(codecs.BOM_UTF8).lstrip().partition(b"\n")[0].rstrip()
    if not first.startswith(b"{"):
        return "own"
    try:
        shape = decode(data, _Shape, path.name)
    except InputError:
        if first.endswith(b"}"):  # JSON lines are given this ending, too
            return "own"
        raise
    if shape.images is msgspec.UNSET:
        fields = decode(data, dict[str, msgspec.Raw], path.name)
        if not fields.keys().isdisjoint(CAPTIONS):  # a single line
            return "own"
        found = ", ".join(map(name_of, [*fields][:12])) or "none"
        raise InputError(f"{path.name}: the field 'images' is missing; found {found}; {KNOWN}")
    return "karpathy" if shape.annotations is msgspec.UNSET else "coco"


def _is_flickr(columns: set[str]) -> bool:
    """Tells the two published tables of Flickr30k by their header."""
    if {"raw", "filename", "split"} <= columns:
        return "caption" not in columns
    return {name.replace(" ", "") for name in columns} == {"image_name|comment_number|comment"}
