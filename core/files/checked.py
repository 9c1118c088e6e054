"""Read annotation files, and report every defect with file, record and field."""

import json
import math
import re
import reprlib
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from eqforge.core.errors import InputError, readable
from eqforge.core.files.source_file import open_text
from eqforge.core.visible import series

MAX_NAME_CHARS = 300
MAX_SHOWN_CHARS = 80
SHOWN_PROBLEMS = 10
_SHOWN_NAMES = 12
T = TypeVar("T")
_LARGEST_SHOWN = 10**40
_MOST_DEEP = 50

_CONSTANTS = {None: "null", True: "true", False: "false"}
_KINDS = {
    **dict.fromkeys((str, int, float), ""),
    dict: "the object",
    list: "the array",
    tuple: "the array",
}
_BREAKS = re.compile(r" *[\t\n\r]\s*")
_LINE = re.compile(r"(line|row|entry|record) \d+")
_SURROGATE = re.compile("[\ud800-\udfff]")


class _Beginning(reprlib.Repr):
    """Writes the beginning of a value of any size or depth."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxdict = self.maxlist = self.maxtuple = 2 * MAX_SHOWN_CHARS
        self.maxstring = self.maxother = 4 * MAX_SHOWN_CHARS

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        """Keep the members in their order; the base class sorts all of them."""
        if level <= 0:
            return "{...}"
        members = islice(x.items(), MAX_SHOWN_CHARS)
        parts = (f"{self.repr1(k, level - 1)}: {self.repr1(v, level - 1)}" for k, v in members)
        return f"{{{', '.join(parts)}}}"

    def repr_int(self, x: int, level: int) -> str:
        """Shorten large numbers: Python rejects thousands of digits."""
        is_short = -_LARGEST_SHOWN < x < _LARGEST_SHOWN
        return repr(x) if is_short else f"a number of {x.bit_length()} bits"

    def repr_bytes(self, x: bytes, level: int) -> str:
        return repr(x[: self.maxstring])


_BEGINNING = _Beginning()


def shown(value: Any) -> str:
    text = " ".join(_BEGINNING.repr(value).split())  # arrays are shown on several lines
    return text if len(text) <= MAX_SHOWN_CHARS else text[: MAX_SHOWN_CHARS - 3] + "..."


def clipped(text: str) -> str:
    plain = text if text.isprintable() else ascii(text)[1:-1]
    return plain if len(plain) <= MAX_NAME_CHARS else plain[: MAX_NAME_CHARS - 3] + "..."


def name_of(key: Any) -> str:
    is_plain = isinstance(key, str) and len(key) <= MAX_SHOWN_CHARS and key.isprintable()
    return str(key) if is_plain else shown(key)


def names_of(keys: Iterable[Any]) -> str:
    """Return names in quotes and in order, such as `'id' and 'text'`; of many, the first."""
    names = list(map(shown, keys))
    more = len(names) - _SHOWN_NAMES
    few = [*names[:_SHOWN_NAMES], *([f"{more:,} more"] if more > 0 else [])]
    return series(few)


def _described(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return _CONSTANTS[value]
    kind = _KINDS.get(type(value), type(value).__name__)
    return f"{kind} {shown(value)}" if kind else shown(value)


@dataclass(frozen=True, slots=True)
class Node:
    """A value of an annotation file and its place in it.

    Methods check the type. An InputError names the file, the place and the value.

    Attributes:
        where: path of the value inside the file, such as `database.xHr8.annotations[3]`.
    """

    file: str
    where: str
    value: Any

    @property
    def place(self) -> str:
        return f"{self.file}: {self.where}" if self.where else self.file

    def fail(self, expected: str, found: str = "") -> NoReturn:
        """Raise an InputError with the expected and the found value (default: this one)."""
        text = found or _described(self.value)
        stop = ";" if "," in expected else ","
        raise InputError(f"{self.place}: expected {expected}{stop} found {text}")

    def __getitem__(self, key: str) -> "Node":
        members = self.mapping()
        if key not in members:
            raise InputError(
                f"{self.place}: the field {key!r} is missing; found "
                f"{f'only {names_of(sorted(members, key=str))}' if members else 'no fields'}"
            )
        return Node(self.file, self._below(key), members[key])

    def get(self, key: str) -> "Node | None":
        value = self.mapping().get(key)
        return None if value is None else Node(self.file, self._below(key), value)

    def mapping(self) -> dict[Any, Any]:
        return self.value if isinstance(self.value, dict) else self.fail("an object")

    def items(self) -> Iterator[tuple[str, "Node"]]:
        """Yield the members of an object in the file's order."""
        for key, value in self.mapping().items():
            yield (
                Node(self.file, self._below(key), key).name(),
                Node(self.file, self._below(key), value),
            )

    def elements(self) -> Iterator["Node"]:
        if not isinstance(self.value, list | tuple):
            self.fail("an array")
        for position, value in enumerate(self.value):
            yield Node(self.file, f"{self.where}[{position}]", value)

    def text(self) -> str:
        if not isinstance(self.value, str):
            self.fail("a string")
        # JSON can escape half a surrogate pair, which UTF-8 cannot encode.
        if not self.value.isascii() and _SURROGATE.search(self.value):
            self.fail("valid Unicode text")
        return self.value

    def line(self) -> str:
        """Return the text in one line: a break or tab, with spaces around it, becomes a space."""
        text = self.text()
        return _BREAKS.sub(" ", text).strip(" ") if _BREAKS.search(text) else text

    def name(self) -> str:
        """Return an identifier: a short printable string."""
        is_short = isinstance(self.value, str) and 0 < len(self.value) <= MAX_NAME_CHARS
        if is_short and self.value.isprintable():
            return self.value
        self.fail(f"a printable string of 1 to {MAX_NAME_CHARS} characters")

    def number(self) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.fail("a number")
        try:
            number = float(self.value)
        except OverflowError:
            self.fail("a finite number")
        return number if math.isfinite(number) else self.fail("a finite number")

    def integer(self) -> int:
        whole = isinstance(self.value, int) and not isinstance(self.value, bool)
        return self.value if whole else self.fail("a whole number")

    def flag(self) -> bool:
        return self.value if isinstance(self.value, bool) else self.fail("true or false")

    def names(self) -> tuple[str, ...]:
        return tuple(element.name() for element in self.elements())

    def _below(self, key: str) -> str:
        name = name_of(key)
        dot = ": " if _LINE.fullmatch(self.where) else "."
        return f"{self.where}{dot}{name}" if self.where else name


def read_all(records: Iterable[Any], read: Callable[..., T]) -> list[T]:
    """Read every record, a tuple of arguments; report the first ten wrong records together."""
    found, problems = [], []
    for record in records:
        try:
            found.append(read(*record))
        except InputError as error:
            problems.append(str(error))
    if problems:
        raise InputError(listed(problems))
    return found


def listed(problems: Sequence[str]) -> str:
    more = [f"and {len(problems) - SHOWN_PROBLEMS:,} more"] * (len(problems) > SHOWN_PROBLEMS)
    return "; ".join([*problems[:SHOWN_PROBLEMS], *more])


def parse_json(text: str, file: str, where: str = "", *, nan_is_null: bool = False) -> Node:
    """Parse strict JSON: no duplicate keys, and no NaN or Infinity unless `nan_is_null`."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            twice = next(
                key for key, count in Counter(key for key, _ in pairs).items() if count > 1
            )
            raise ValueError(f"the key {shown(twice)} appears twice in one object")
        return members

    def constant(name: str) -> None:
        if not nan_is_null:
            raise ValueError(f"{name} is not a JSON number")

    try:
        return Node(
            file, where, json.loads(text, object_pairs_hook=unique, parse_constant=constant)
        )
    except (ValueError, RecursionError) as error:
        place = f"{file}: {where}" if where else file
        why = f": not valid JSON: {error}" if text.strip() else " is empty"
        raise InputError(f"{place}{why}") from error


def read_text(path: str | Path) -> str:
    try:
        with readable(path), open_text(path, encoding="utf-8-sig", newline="") as stream:
            return stream.read()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text: {error}") from error


def read_text_lines(path: str | Path) -> list[str]:
    """Return the lines of a UTF-8 text file, without LF or CRLF.

    `str.splitlines` also splits at U+2028, U+0085 and others, which a caption may contain.
    """
    text = read_text(path)
    lines = text.removesuffix("\n").split("\n") if text else []
    return [line.removesuffix("\r") for line in lines]


def read_toml(path: str | Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(read_text(path))
        nested: list[Any] = [values]
        for _ in range(_MOST_DEEP):  # keys such as `a.a.a` nest without recursion in the parser
            parts = (v.values() if isinstance(v, dict) else v for v in nested)
            nested = [v for v in chain.from_iterable(parts) if isinstance(v, dict | list)]
        if nested:
            raise RecursionError
        return values
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits
        why = "its values are nested too deeply" if isinstance(error, RecursionError) else error
        raise InputError(f"{path}: cannot be read as TOML: {why}") from error


def load_json(path: str | Path) -> Node:
    return parse_json(read_text(path), Path(path).name)
