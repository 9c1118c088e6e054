"""Reads the records of a file of captioned moments, in any of the forms that people have.

The ending of the file chooses: JSON lines, a JSON array, CSV, TSV, SubRip or WebVTT. Text is UTF-8,
or UTF-16 with a byte order mark. What a record says is not looked at here.
"""

import contextlib
import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eqforge.schemas.errors import InputError
from eqforge.schemas.io.checked import Node, listed, name_of, parse_json
from eqforge.schemas.io.source_file import open_input
from eqforge.schemas.records.scores import compact_json
from eqforge.schemas.sources.subtitles import read_cues

TIMES = ("timestamp_s", "start_s", "end_s")
SUBTITLES = (".srt", ".vtt")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")  # what `surrogateescape` makes of a bad byte
_DETAIL = re.compile(", found|(?<=not valid JSON): ")  # it differs between records of one mistake
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """A record of a file.

    Attributes:
      unit, number: where it stands, such as `line` and 3.
      source: its text, which is the same wherever it stands.
      value: what it says.
      video: the one that its file is named after, if it is.
      problem: why nothing can be read from it; empty if something can.
    """

    unit: str
    number: int
    source: str
    value: Any = None
    video: str = ""
    problem: str = ""


def moment_files(path: Path) -> list[Path]:
    """Returns the files of captions that a path names: itself, or the subtitles below a folder.

    Raises:
      InputError: the folder holds none.
    """
    if not path.is_dir():
        return [path]
    found = [file for file in path.rglob("*") if file.suffix.lower() in SUBTITLES]
    if not found:
        raise InputError(f"{path}: no subtitles in this folder ({' or '.join(SUBTITLES)})")
    return sorted(found)


def read_records(path: Path) -> Iterator[Record]:
    """Yields the records of a file or of a folder of subtitles.

    Raises:
      InputError: the ending is unknown, or a file cannot be read as what it is named.
    """
    readers: dict[str, Callable[[Path], Iterator[Record]]] = {
        ".jsonl": _read_lines,
        ".ndjson": _read_lines,
        ".json": _read_json,
        ".csv": _read_table,
        ".tsv": _read_table,
    }
    for file in moment_files(path):
        suffix = file.suffix.lower()
        if suffix in SUBTITLES:
            yield from _read_subtitles(file, path)
        elif suffix in readers:
            yield from readers[suffix](file)
        else:
            known = ", ".join([*readers, *SUBTITLES])
            raise InputError(f"{path}: its ending says no form of captions; known are {known}")


def problems_listed(problems: Iterable[tuple[str, int, str]]) -> str:
    """Returns the first kinds of problems in the order of the file, after a colon.

    Args:
      problems: unit and number of a record, and what is wrong with it.
    """
    kinds: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for unit, number, problem in sorted(problems):
        kinds.setdefault((unit, _DETAIL.split(problem)[0]), []).append((number, problem))
    named = [
        f"{_places(unit, [number for number, _ in kind])}: {kind[0][1]}"
        for (unit, _), kind in kinds.items()
    ]
    return f": {listed(named)}" if named else ""


def _places(unit: str, numbers: Sequence[int]) -> str:
    """Returns where the same problem stands, such as `lines 1, 2, 3 and 5 more`."""
    first, rest = ", ".join(map(str, numbers[:3])), len(numbers[3:])
    return f"{unit}{'s' * (len(numbers) > 1)} {first}{f' and {rest:,} more' if rest else ''}"


@contextlib.contextmanager
def _opened(path: Path, newline: str | None = None) -> Iterator[io.TextIOWrapper]:
    """Opens a text; of UTF-8 that is none, the bad bytes are surrogates.

    Raises:
      InputError: it cannot be read, or is not UTF-16 though its beginning says so.
    """
    try:
        with open_input(path) as stream:
            assert isinstance(stream, io.BufferedReader)
            encoding, errors = "utf-8-sig", "surrogateescape"
            if stream.peek(2)[:2] in _UTF16:
                encoding, errors = "utf-16", "strict"
            text = io.TextIOWrapper(stream, encoding, errors, newline)
            yield text
            text.detach()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-16 text: {error.reason}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _lines(path: Path, stream: Iterable[str]) -> Iterator[str]:
    """Yields lines; none after the first that is not UTF-8, but all such lines are reported.

    Raises:
      InputError: some are not.
    """
    broken: list[tuple[str, int, str]] = []
    for number, line in enumerate(stream, start=1):
        if not line.isascii() and (found := _NOT_UTF8.search(line)):
            broken.append(("line", number, f"the byte {ord(found[0]) - 0xDC00:#x}"))
        elif not broken:
            yield line
    if broken:
        raise InputError(f"{path}: not UTF-8 text{problems_listed(broken)}")


def _content(path: Path) -> str:
    with _opened(path) as stream:
        return "".join(_lines(path, stream))


def _read_lines(path: Path) -> Iterator[Record]:
    with _opened(path) as stream:
        yield from _json_lines(path, _lines(path, stream))


def _json_lines(path: Path, lines: Iterable[str]) -> Iterator[Record]:
    for number, line in enumerate(lines, start=1):
        if text := line.strip():
            try:
                value = parse_json(text, path.name).value
                yield Record(unit="line", number=number, source=text, value=value)
            except InputError as error:
                problem = str(error).removeprefix(f"{path.name}: ")
                yield Record(unit="line", number=number, source=text, problem=problem)


def _read_json(path: Path) -> Iterator[Record]:
    content = _content(path)
    if not content.lstrip().startswith("["):  # JSON lines are given this ending, too
        yield from _json_lines(path, content.split("\n"))
        return
    for number, node in enumerate(parse_json(content, path.name).elements(), start=1):
        source = compact_json(node.value)
        yield Record(unit="entry", number=number, source=source, value=node.value)


def _read_table(path: Path) -> Iterator[Record]:
    form = "TSV" if path.suffix.lower() == ".tsv" else "CSV"
    with _opened(path, newline="") as stream:
        rows = csv.reader(
            _lines(path, stream),
            delimiter="\t" if form == "TSV" else ",",
            skipinitialspace=True,
            strict=True,
        )
        try:
            header = [name.strip() for name in next(rows, [])]
            _check_header(path, header)
            number = rows.line_num + 1
            for cells in rows:
                if any(map(str.strip, cells)):
                    yield _row(number, header, cells)
                number = rows.line_num + 1
        except csv.Error as error:
            raise InputError(f"{path}: line {rows.line_num}: not valid {form}: {error}") from error


def _check_header(path: Path, header: Sequence[str]) -> None:
    """Checks the names of the columns.

    Raises:
      InputError: one is empty or stands twice, or a field that every moment has is missing.
    """
    found = ", ".join(map(name_of, header[:12])) or "no column"
    if missing := {"video", "caption"} - set(header):
        raise InputError(
            f"{path}: line 1: expected a header with the column {max(missing)!r}, found {found}"
        )
    if "" in header:
        raise InputError(
            f"{path}: line 1: column {header.index('') + 1} has no name; name it or leave it out"
        )
    if len(set(header)) != len(header):
        raise InputError(f"{path}: line 1: a column stands twice: {found}")


def _row(number: int, header: Sequence[str], cells: Sequence[str]) -> Record:
    """Returns a row of a table; an empty cell says nothing."""
    if len(cells) != len(header):
        problem = f"expected {len(header)} cells, as the header has, found {len(cells)}"
        return Record(unit="line", number=number, source="\t".join(cells), problem=problem)
    value = {
        name: _number(cell) if name in TIMES else cell
        for name, cell in zip(header, cells, strict=True)
        if cell.strip()
    }
    return Record(unit="line", number=number, source=compact_json(value), value=value)


def _number(cell: str) -> float | str:
    """Returns the number in a cell; other text as it is, for the message."""
    try:
        return float(cell)
    except ValueError:
        return cell


def _read_subtitles(file: Path, root: Path) -> Iterator[Record]:
    """Yields the cues of a file, whose name without its ending is that of the video."""
    name = Path(file.name) if file == root else file.relative_to(root)
    video = Node(str(file), "the video's name", name.with_suffix("").as_posix()).name()
    unit = "line" if file == root else f"{name.as_posix()}: line"
    cues = list(read_cues(_content(file), is_webvtt=file.suffix.lower() == ".vtt"))
    if not cues:
        yield Record(unit=unit, number=1, source="", video=video, problem="no cue in the file")
    for cue in cues:
        times = {"start_s": cue.start_s, "end_s": cue.end_s}
        yield Record(
            unit=unit,
            number=cue.line,
            source=cue.source,
            value={"video": video, "caption": cue.text, **times},
            video=video,
            problem=cue.problem,
        )
