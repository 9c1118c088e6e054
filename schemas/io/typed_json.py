"""Decodes large JSON annotation files straight into typed records, skipping other fields.

Caption files reach hundreds of megabytes, most of it fields that eqforge never reads. Decoding by
type keeps only the named fields: the 591,753 captions of COCO's training set take about a tenth of
the memory of plain Python lists.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from eqforge.schemas.errors import InputError
from eqforge.schemas.io.checked import clipped, name_of
from eqforge.schemas.io.source_file import open_input, read_input

T = TypeVar("T")

_PLACE = re.compile(r"^(?P<what>.*) - at `\$(?P<where>.*)`$", re.DOTALL)


def read_bytes(path: str | Path) -> bytes:
    """Reads a file.

    Raises:
      InputError: it is missing, not a file or not readable.
    """
    try:
        return read_input(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def read_lines(path: str | Path) -> Iterator[tuple[int, bytes]]:
    """Streams the lines of a file that are not blank, with their numbers from 1.

    Raises:
      InputError: the file is missing, not a file or not readable.
    """
    try:
        with open_input(path) as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield number, line
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def decode(data: bytes, type_: type[T], file: str, where: str = "") -> T:
    """Decodes UTF-8 JSON as `type_`; fields that the type does not name are skipped.

    Args:
      data: one JSON value.
      type_: a msgspec struct, a dataclass or a container of them.
      file: name of the file, for messages.
      where: place of the value in the file, for messages, such as `line 3`.

    Raises:
      InputError: the value is not JSON, or not of the type; the message names record and field.
    """
    prefix = f"{file}: {where}" if where else file
    try:
        return msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=type_)
    except msgspec.ValidationError as error:
        found = _PLACE.match(str(error))
        place, what = (found["where"], found["what"]) if found else ("", str(error))
        there = "" if place else _fields(data, what, type_)
        raise InputError(
            f"{prefix}{': ' + place.lstrip('.') if place else ''}: {clipped(what)}{there}"
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{prefix}: not valid JSON: {clipped(str(error))}") from error


def _fields(data: bytes, what: str, type_: Any) -> str:
    """Returns the fields of a record that lacks one, or those it may have, for a message."""
    if "unknown field" in what and (known := getattr(type_, "__struct_fields__", ())):
        return f"; expected {', '.join(known)}"
    if "missing required field" not in what:
        return ""
    try:
        names = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""  # what follows the missing field may not be JSON
    return f"; found {', '.join(map(name_of, names)) or 'none'}"
