"""Decode large JSON annotation files straight into typed records, skipping other fields.

Caption files reach hundreds of megabytes, mostly of fields that eqforge never reads. Typed decoding
keeps only the named fields: the 591,753 captions of COCO's training set take about a tenth of the
memory of plain Python lists.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from eqforge.core.errors import InputError, readable
from eqforge.core.files.checked import clipped, name_of, names_of, shown
from eqforge.core.files.source_file import open_input, read_input
from eqforge.core.visible import series

T = TypeVar("T")

_KINDS = {
    "array": "a list",
    "object": "an object",
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
}
_MESSAGES = (
    (re.compile(r"Expected `str` matching regex '\\\\S'"), "expected a string that is not blank"),
    (re.compile(r"Expected `str` matching regex .*"), "the string has the wrong form"),
    (re.compile(r"Expected `([^`]*)`, got `([^`]*)`"), "expected {0}, found {1}"),
    (re.compile(r"Expected `([^`]*)`(.*)"), "expected {0}{1}"),
    (re.compile(r"Object missing required field `(.*)`"), "the field '{0}' is missing"),
    (re.compile(r"Invalid enum value (.*)"), "unknown value {0}"),
    (re.compile(r"Invalid RFC3339 encoded date"), "expected a date such as 2026-11-23"),
    (re.compile(r"Object contains unknown field `(.*)`"), "unknown field '{0}'"),
)
_ANY_KEY = "[...]"
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_PLACE = re.compile(r"^(?P<what>.*) - at `\$(?P<where>.*)`$", re.DOTALL)


def read_bytes(path: str | Path) -> bytes:
    with readable(path):
        return read_input(path)


def read_lines(path: str | Path) -> Iterator[tuple[int, bytes]]:
    """Stream the lines of a file that are not blank, numbered from 1."""
    with readable(path), open_input(path) as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                yield number, line


def text_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Stream the lines of a UTF-8 file as text, without line ends; see `read_lines`."""
    for number, line in read_lines(path):
        try:
            yield number, line.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{Path(path).name}: line {number}: not UTF-8 text: {error}"
            ) from error


def decode(data: bytes, type_: type[T], file: str, where: str = "") -> T:
    """Decode UTF-8 JSON as `type_`; fields that the type does not name are skipped.

    Args:
        type_: a msgspec struct, a dataclass or a container of them.
        where: place of the value in the file, for messages, such as `line 3`.
    """
    prefix = f"{file}: {where}" if where else file
    try:
        return msgspec.json.decode(_without_mark(data), type=type_)
    except msgspec.ValidationError as error:
        found = _PLACE.match(str(error))
        place, problem = (found["where"], found["what"]) if found else ("", str(error))
        named, value = _resolved(place, data, type_)
        location = f": {clipped(named.lstrip('.'))}" if named else ""
        known = () if place else getattr(type_, "__struct_fields__", ())
        matches = ((pattern.fullmatch(problem), words) for pattern, words in _MESSAGES)
        match, words = next((each for each in matches if each[0]), (None, ""))
        message = clipped(words.format(*map(_kind, match.groups())) if match else problem)
        if ", got `" in problem and type(value) in (str, int, float):
            message = f"{message.rpartition(', found ')[0]}, found {shown(value)}"
        message += _found(problem, value, known)
        if "Invalid enum value" in problem and isinstance(type_, type):
            choices = get_args(get_type_hints(type_).get(place.lstrip(".")))
            message += f"; expected {series(map(repr, choices), 'or')}" if choices else ""
        raise InputError(f"{prefix}{location}: {message}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        text = str(error).replace("Input data was truncated", "unexpected end of data")
        why = clipped(text.removeprefix("JSON is malformed: "))
        raise InputError(f"{prefix}: not valid JSON: {why}") from error


def _kind(name: str) -> str:
    return " or ".join(_KINDS.get(part, part) for part in name.split(" | "))


def _resolved(place: str, data: bytes, type_: Any) -> tuple[str, Any]:
    """Return a place and its value (None if unknown); msgspec omits the outermost key."""
    try:
        if place.startswith(_ANY_KEY) and get_origin(type_) is dict:
            parts = msgspec.json.decode(_without_mark(data), type=dict[str, msgspec.Raw])
            rest = place.removeprefix(_ANY_KEY)
            key = next(key for key in parts if not _fits(parts[key], get_args(type_)[1]))
            return name_of(key) + rest, _at(parts[key], rest)
        return place, _at(_without_mark(data), place)
    except (ValueError, LookupError, TypeError, RecursionError, StopIteration):
        return place, None  # the key is unknown, or the rest is invalid JSON


def _fits(data: msgspec.Raw, type_: Any) -> bool:
    try:
        msgspec.json.decode(data, type=type_)
    except msgspec.DecodeError:
        return False
    return True


def _at(data: bytes | msgspec.Raw, place: str) -> Any:
    value = msgspec.json.decode(data)
    for name, number in _STEP.findall(place):
        value = value[int(number)] if number else value[name]
    return value


def _found(problem: str, value: Any, known: Sequence[str]) -> str:
    """Describe a found value for a message: the value, the fields of an object, or a length."""
    if "unknown field" in problem and known:
        return f"; expected {', '.join(known)}"
    if "missing required field" in problem and isinstance(value, dict):
        return f"; found {f'only {names_of(value)}' if value else 'none'}"
    if "length" in problem and isinstance(value, list):
        return f", found {len(value):,}"
    return ""


def _without_mark(data: bytes) -> bytes:
    return data.removeprefix(b"\xef\xbb\xbf")
