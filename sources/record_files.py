"""Read the records of JSON lines, JSON arrays and tables, whatever their content.

Text is UTF-8, or UTF-16 with a byte order mark.
"""

import contextlib
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from eqforge.core.errors import InputError, readable
from eqforge.core.files.checked import Node, listed, name_of, names_of, parse_json
from eqforge.core.files.source_file import open_input
from eqforge.core.visible import counted
from eqforge.schemas.records.scores import compact_json

TIMES = ("timestamp_s", "start_s", "end_s")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")  # what `surrogateescape` makes of a bad byte
_DETAIL = re.compile("[,;] found|(?<=not valid JSON): ")  # differs between records of one mistake
_LONGEST_LINE: Final = 16 << 20
"""Maximum characters of a record of JSON lines or of a table."""
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """A record of a file.

    Attributes:
      unit, number: its place, such as `line` and 3.
      source: its text, independent of its place.
      video: the video that its file is named after, if any.
      problem: why it cannot be read; else empty.
    """

    unit: str
    number: int
    source: str
    value: Any = None
    video: str = ""
    problem: str = ""

    @property
    def where(self) -> str:
        return f"{self.unit} {self.number}"

    def node(self, file: str) -> Node:
        """Return its content; raise an InputError if it has a problem."""
        if self.problem:
            raise InputError(f"{file}: {self.where}: {self.problem}")
        return Node(file, self.where, self.value)


def problems_listed(problems: Iterable[tuple[str, int, str]]) -> str:
    """Return the first kinds of problems in file order, after a colon."""
    kinds: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for unit, number, problem in sorted(problems):
        kinds.setdefault((unit, _DETAIL.split(problem)[0]), []).append((number, problem))
    named = []  # such as `lines 1, 2, 3 and 5 more: expected a number`
    for (unit, _), kind in kinds.items():
        first, rest = ", ".join(str(number) for number, _ in kind[:3]), len(kind[3:])
        places = f"{unit}{'s' * (len(kind) > 1)} {first}{f' and {rest:,} more' if rest else ''}"
        named.append(f"{places}: {kind[0][1]}")
    return f": {listed(named)}" if named else ""


FEW: Final = 5
"""Bad records allowed in a file of any size, unless none are allowed."""


def allowed_bad(share: float, records: int) -> int:
    """Number of records of a file that may be bad: the larger of a share and FEW; with 0, none."""
    return max(int(share * records), FEW) if share else 0


@contextlib.contextmanager
def _opened(path: Path, newline: str | None = None) -> Iterator[io.TextIOWrapper]:
    """Open a text; bytes that are not UTF-8 become surrogates."""
    try:
        with readable(path), open_input(path) as stream:
            assert isinstance(stream, io.BufferedReader)
            encoding, errors = "utf-8-sig", "surrogateescape"
            if stream.peek(2)[:2] in _UTF16:
                encoding, errors = "utf-16", "strict"
            text = io.TextIOWrapper(stream, encoding, errors, newline)
            yield text
            text.detach()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-16 text: {error.reason}") from error


def _lines(path: Path, stream: Iterable[str]) -> Iterator[str]:
    """Yield lines; none after the first that is not UTF-8, but all such lines are reported."""
    broken: list[tuple[str, int, str]] = []
    for number, line in enumerate(stream, start=1):
        if not line.isascii() and (found := _NOT_UTF8.search(line)):
            broken.append(("line", number, f"invalid byte {ord(found[0]) - 0xDC00:#x}"))
        elif not broken:
            yield line
    if broken:
        raise InputError(f"{path}: not UTF-8 text{problems_listed(broken)}")


def _records(path: Path, stream: io.TextIOWrapper) -> Iterator[str]:
    lines = iter(partial(stream.readline, _LONGEST_LINE + 1), "")
    for number, line in enumerate(_lines(path, lines), start=1):
        if len(line) > _LONGEST_LINE:
            raise InputError(
                f"{path}: line {number} has more than {_LONGEST_LINE:,} characters; put each "
                "record on its own line"
            )
        yield line


def read_content(path: Path) -> str:
    with _opened(path) as stream:
        return "".join(_lines(path, stream))


def first_line(path: Path) -> str:
    with _opened(path, newline="") as stream:
        return stream.readline(csv.field_size_limit())


def read_json_lines(path: Path) -> Iterator[Record]:
    with _opened(path) as stream:
        yield from _json_lines(path, _records(path, stream))


def _json_lines(path: Path, lines: Iterable[str]) -> Iterator[Record]:
    for number, line in enumerate(lines, start=1):
        if text := line.strip():
            try:
                value = parse_json(text, path.name, nan_is_null=True).value
                yield Record(unit="line", number=number, source=text, value=value)
            except InputError as error:
                problem = str(error).removeprefix(f"{path.name}: ")
                yield Record(unit="line", number=number, source=text, problem=problem)


def is_json_lines(path: Path) -> bool:
    """Return True if a file holds one JSON value per line, whatever its suffix."""
    with _opened(path) as stream:
        first, more = stream.readline(_LONGEST_LINE), stream.readline(_LONGEST_LINE)
    try:
        json.loads(first)
        return bool(more.strip())
    except (ValueError, RecursionError):
        return False


def read_json(path: Path) -> Iterator[Record]:
    content = read_content(path)
    if not content.lstrip().startswith("["):  # JSON lines are given this ending, too
        yield from _json_lines(path, content.split("\n"))
        return
    for number, node in enumerate(
        parse_json(content, path.name, nan_is_null=True).elements(), start=1
    ):
        source = compact_json(node.value)
        yield Record(unit="entry", number=number, source=source, value=node.value)


def read_table(
    path: Path,
    required: AbstractSet[str],
    numbers: Collection[str] = TIMES,
    *,
    has_index: bool = False,
    keeps_empty: bool = False,
) -> Iterator[Record]:
    """Yield the rows of a CSV file, or of a TSV file by its suffix.

    Args:
        numbers: columns that hold numbers; others hold text.
        keeps_empty: read an empty text cell as empty text; by default it is missing.
        has_index: skip a first column without a name, which holds pandas' row numbers.
    """
    is_tsv, header_line = path.suffix.lower() == ".tsv", first_line(path)
    # The most frequent sign of the header, on a tie that of the file's ending.
    delimiter = max(("\t" if is_tsv else ",", *";\t,|"), key=header_line.count)
    with _opened(path, newline="") as stream:
        rows = csv.reader(
            _records(path, stream), delimiter=delimiter, skipinitialspace=True, strict=True
        )
        try:
            header = [name.strip() for name in next(rows, [])]
            skipped = int(has_index and header[:1] == [""])
            _check_header(path, header[skipped:], required)
            number = rows.line_num + 1
            for cells in rows:
                if any(map(str.strip, cells)):
                    yield _row(number, header[skipped:], cells[skipped:], numbers, keeps_empty)
                number = rows.line_num + 1
        except csv.Error as error:
            form = "TSV" if is_tsv else "CSV"
            raise InputError(f"{path}: line {rows.line_num}: not valid {form}: {error}") from error


def _check_header(path: Path, header: Sequence[str], required: AbstractSet[str]) -> None:
    if missing := required - set(header):
        found = f"found only {names_of(header)}" if any(header) else "found no column"
        raise InputError(
            f"{path}: line 1: expected a header with the column {max(missing)!r}; {found}"
        )
    if "" in header:
        raise InputError(
            f"{path}: line 1: column {header.index('') + 1} has no name; name the column or "
            "remove it"
        )
    for name, count in Counter(header).items():
        if count > 1:
            raise InputError(f"{path}: line 1: the column {name_of(name)!r} appears twice")


def _row(
    number: int,
    header: Sequence[str],
    cells: Sequence[str],
    numbers: Collection[str],
    keeps_empty: bool,
) -> Record:
    if len(cells) != len(header):
        problem = f"expected {counted(len(header), 'cells')}, as in the header, found {len(cells)}"
        return Record(unit="line", number=number, source="\t".join(cells), problem=problem)
    value = {
        name: _number(cell) if name in numbers else cell
        for name, cell in zip(header, cells, strict=True)
        if cell.strip() or (keeps_empty and name not in numbers)
    }
    return Record(unit="line", number=number, source=compact_json(value), value=value)


def _number(cell: str) -> float | str:
    """Return the number in a cell; other text unchanged, for the message."""
    try:
        return float(cell)
    except ValueError:
        return cell
