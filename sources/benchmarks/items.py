"""Find the files of a published benchmark, and yield its items with unique ids."""

import contextlib
import fnmatch
import itertools
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node, listed, name_of, names_of, parse_json, read_text, shown
from eqforge.core.files.foreign_rows import read_rows, with_names
from eqforge.core.files.shards import SUFFIX as SHARD
from eqforge.core.files.source_file import ENDINGS, inner_name
from eqforge.core.identity import short_digest
from eqforge.core.visible import nearest, series
from eqforge.schemas.dataset.manifest import EXPORT_NOTE, FILE_NAME, WORK
from eqforge.sources.benchmarks.form import BenchmarkItem, Entry, Form
from eqforge.sources.benchmarks.published import FORMS
from eqforge.sources.benchmarks.recognise import describe_record, form_of
from eqforge.sources.hugging_face import RowFolder, row_folder
from eqforge.sources.record_files import (
    Record,
    allowed_bad,
    is_json_lines,
    read_json_lines,
    read_table,
)
from eqforge.sources.web_dataset import read_shard, shards_of

SUFFIXES: Final = (
    *(".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".arrow", ".feather", ".ipc"),
)
_PACKED: Final = (".zip", ".tgz", ".gz", ".bz2", ".xz", ".zst", ".7z", ".rar")
_SHEETS: Final = (".xlsx", ".xls", ".ods", ".numbers")
_ALL_BAD: Final = 100
"""If this many first records are all bad, the file has a different form."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Columns:
    """Columns of a user's table that hold the fields of a form: pairs of field and column."""

    names: tuple[tuple[str, str], ...] = ()

    def named(self, value: Any) -> Any:
        """Return a record with its columns renamed to the form's fields.

        A column `images[0]` is the first of a list `images`. A column becomes `own NAME` if its
        name is a field that is assigned to another column.
        """
        if not self.names or not isinstance(value, dict):
            return value
        columns = {column: field for field, column in self.names}
        value = {n: part for n, part in _elements(value).items() if n in columns} | value
        fields = set(columns.values())
        return {
            columns.get(name, f"own {name}" if name in fields else name): part
            for name, part in value.items()
        }

    def check(self, seen: AbstractSet[str], source: Path) -> None:
        for field, column in self.names:
            if column not in seen:
                columns = f"its columns are {names_of(sorted(seen))}"
                raise InputError(
                    f"--columns {field}={column}: {source} has no column "
                    f"{name_of(column)!r}; {columns if seen else 'its records have no keys'}"
                    f"{nearest(column, seen)}"
                )


def _elements(record: dict[str, Any]) -> dict[str, Any]:
    lists = {name: value for name, value in record.items() if isinstance(value, list)}
    return {f"{name}[{n}]": one for name, found in lists.items() for n, one in enumerate(found)}


NAMED: Final = Columns()


def parse_columns(texts: Sequence[str], known: Sequence[str]) -> Columns:
    """Return the columns named by texts such as `caption_0=left_text`."""
    names = []
    for text in texts:
        field, mark, column = text.partition("=")
        if not (mark and field and column):
            raise InputError(f"--columns {text}: expected FIELD=COLUMN, such as {known[0]}=text")
        if field not in known:
            hint = nearest(field, known) or f"; the fields are {series(known)}"
            raise InputError(f"--columns {text}: unknown field {name_of(field)!r}{hint}")
        names.append((field, column))
    for side in zip(*names, strict=True):
        if len(set(side)) < len(side):
            raise InputError(f"--columns: {max(side, key=side.count)!r} appears twice")
    return Columns(names=tuple(names))


def benchmark_files(source: Path, forms: Sequence[Form]) -> list[Path]:
    """Return the files of a benchmark, sorted by name.

    Args:
        source: a file, a folder of files, or a folder of Hugging Face's `datasets`.
    """
    if (rows := rows_of(source, forms)) is not None:
        return rows.files
    if shards := shards_in(source, forms):
        return shards
    if source.is_file():
        if (suffix := _suffix(source)) not in SUFFIXES:
            is_packed = suffix in _PACKED or source.suffix.lower() in _PACKED
            advice = "; unpack it, and pass the file or folder inside" if is_packed else ""
            advice = "; save its sheet as CSV" if suffix in _SHEETS else advice
            raise InputError(
                f"{source}: expected a file that ends in {series(SUFFIXES, 'or')}{advice}"
            )
        return [source]
    if not source.is_dir():
        raise InputError(f"{source}: no such file or folder")
    files = _files_in(source, forms)
    if not files:
        patterns = _patterns(forms)
        wanted = series(patterns or [f"files that end in {series(SUFFIXES, 'or')}"], "or")
        found = names_of(sorted(path.name for path in source.iterdir())) or "nothing"
        with contextlib.suppress(InputError):
            for path in _files_in(source, ())[:1]:
                for entry in itertools.islice(_of_file(path, ()), 1):
                    fields = describe_record(entry.node.value, forms)
                    found += f". The first record of {name_of(path.name)} contains {fields}"
        raise InputError(f"{source}: expected {wanted}; found {found}")
    return files


def read_entries(source: Path, forms: Sequence[Form], columns: Columns = NAMED) -> Iterator[Entry]:
    _check_columns(source, forms, columns)
    for entry in _entries(source, forms):
        value = columns.named(entry.node.value)
        yield replace(entry, node=replace(entry.node, value=value))


def _check_columns(source: Path, forms: Sequence[Form], columns: Columns) -> None:
    """Check that the named columns exist, reading as few records as possible."""
    left = {column for _, column in columns.names}
    seen: set[str] = set()
    for entry in _entries(source, forms) if left else ():
        if isinstance(entry.node.value, dict):
            seen.update(map(str, entry.node.value), _elements(entry.node.value))
        if left <= seen:
            return
    columns.check(seen, source)


def _entries(source: Path, forms: Sequence[Form]) -> Iterator[Entry]:
    if (rows := rows_of(source, forms)) is not None:
        # Some test sets are called `train` on the hub, because `datasets` has this default.
        if not _name_splits(forms) and len({table.split for table in rows.tables}) == 1:
            rows = rows.one_split()
        for record in rows.rows("image", has_cells=True):
            yield Entry(node=record.node(source.name))
        return
    root = source if source.is_dir() else source.parent
    for path in benchmark_files(source, forms):
        table = path.with_name(inner_name(path))
        place = table.relative_to(root).as_posix()
        for entry in _of_file(path, forms):
            yield replace(entry, part=table.stem, place=place)


def _name_splits(forms: Iterable[Form]) -> bool:
    return any("split" in form.optional for form in forms)


def shards_in(source: Path, forms: Sequence[Form]) -> list[Path]:
    return [] if source.is_dir() and _files_in(source, forms) else shards_of(source)


def rows_of(source: Path, forms: Sequence[Form]) -> RowFolder | None:
    if source.is_file() or (source.is_dir() and _patterns(forms) and _files_in(source, forms)):
        return None
    return row_folder(source)


def _patterns(forms: Sequence[Form]) -> list[str]:
    return [pattern for form in forms for pattern in form.patterns]


def _files_in(source: Path, forms: Sequence[Form]) -> list[Path]:
    patterns = [f"*/{pattern}" for pattern in _patterns(forms)] or ["*"]
    tables = {
        path: path.with_suffix("") if path.suffix == ".gz" else path for path in source.rglob("*")
    }
    return sorted(
        path
        for path, table in tables.items()
        if table.suffix.lower() in SUFFIXES
        and (table == path or table not in tables)
        and any(fnmatch.fnmatch(f"/{table.relative_to(source).as_posix()}", p) for p in patterns)
        and not any(
            (source / part / FILE_NAME).exists() or (source / part / WORK).exists()
            for part in path.relative_to(source).parents
        )
        and path.name != EXPORT_NOTE
        and not any(fnmatch.fnmatch(path.name, p) for form in forms for p in form.ignored)
        and path.is_file()
    )


def _suffix(path: Path) -> str:
    return PurePosixPath(inner_name(path)).suffix.lower()


def _of_file(path: Path, forms: Sequence[Form]) -> Iterator[Entry]:
    suffix = _suffix(path)
    if suffix == SHARD:
        yield from _of_records(path, read_shard(path, has_split=_name_splits(forms)))
    elif suffix == ".json" and not is_json_lines(path):
        yield from _of_json(parse_json(read_text(path), path.name, nan_is_null=True), forms)
    elif suffix in (".csv", ".tsv"):
        numbers = [name for form in forms for name in form.numbers]
        rows = read_table(path, set(), numbers, has_index=True, keeps_empty=True)
        yield from _of_records(path, rows)
    elif suffix in (".parquet", ".arrow", ".feather", ".ipc"):
        if path.suffix.lower() in ENDINGS:
            raise InputError(
                f"{path} contains a compressed {suffix} file; unpack it, and pass the unpacked file"
            )
        for number, row in enumerate(read_rows(path, has_cells=True), start=1):
            yield Entry(node=Node(path.name, f"row {number}", row))
    else:
        yield from _of_records(path, read_json_lines(path))


def _of_records(path: Path, records: Iterator[Record]) -> Iterator[Entry]:
    for record in records:
        value = record.source if record.problem else record.value
        yield Entry(node=Node(path.name, record.where, value), problem=record.problem)


def _of_json(root: Node, forms: Sequence[Form]) -> Iterator[Entry]:
    entries = next((form.entries for form in forms if form.entries is not None), None)
    if entries is not None:
        yield from entries(Entry(node=root))
    elif not isinstance(root.value, dict):
        yield from (Entry(node=node) for node in root.elements())
    elif (table := _only_table(root)) is not None:
        yield from (Entry(node=node) for node in table.elements())
    elif not any(form.fields and form.fields <= root.value.keys() for form in forms):
        yield from (Entry(node=node, key=key) for key, node in root.items())
    elif (rows := _transposed(root.value)) is not None:
        yield from (Entry(node=Node(root.file, f"row {key}", row)) for key, row in rows.items())
    else:
        yield Entry(node=Node(root.file, "the only record", root.value))


def _only_table(root: Node) -> Node | None:
    """Return the only list of objects in a file, such as {"version": 1, "data": [...]}."""
    tables = [
        node
        for _, node in root.items()
        if isinstance(node.value, list) and node.value and isinstance(node.value[0], dict)
    ]
    return tables[0] if len(tables) == 1 else None


def _transposed(columns: dict[str, Any]) -> dict[str, dict[str, Any]] | None:
    """Return the rows of a table as pandas' `to_json` writes it: {column: {row: cell}}."""
    keys = [column.keys() for column in columns.values() if isinstance(column, dict)]
    if len(keys) < len(columns) or any(each != keys[0] for each in keys):
        return None
    return {row: {name: cells[row] for name, cells in columns.items()} for row in keys[0]}


def read_items(
    benchmark: str, source: Path, columns: Columns = NAMED, max_bad_share: float = 0.0
) -> Iterator[BenchmarkItem]:
    """Yield the rows of a benchmark, a key of BENCHMARKS, in the order of its files.

    A record that matches none of the benchmark's forms, or lacks a field, becomes an item with a
    `problem`. A `max_bad_share` of 0 stops at the first; see `allowed_bad`.
    """
    forms, names = FORMS[benchmark], _Names()
    number = records = 0
    bad: dict[str, list[str]] = {}
    count, first = 0, None
    for form, entry, problem in _with_forms(forms, read_entries(source, forms, columns)):
        records += 1
        try:
            if problem is not None:
                raise problem
            items = list(form.read(entry))
        except InputError as error:
            if max_bad_share == 0:
                raise
            count += 1
            first = first or error
            if count == records == _ALL_BAD:
                raise first from error
            reason = str(error).removeprefix(entry.node.place).lstrip(".: ")
            bad.setdefault(reason, []).append(entry.node.place)
            name = f"unreadable#{short_digest(with_names(entry.node.value))}"
            items = [BenchmarkItem(item_id=name, problem=reason)]
        is_named = entry.part and not form.is_one_file
        prefix = f"{benchmark}/{entry.part}/" if is_named else f"{benchmark}/"
        suffix = names.suffix(entry, f"{prefix}{items[0].item_id}") if items else ""
        for item in items:
            number += 1
            group = item.group and f"{prefix}{item.group}{suffix}"
            cells = item.cells if any(item.cells) else ()
            item_id = f"{prefix}{item.item_id}{suffix}"
            yield replace(item, item_id=item_id, group=group, cells=cells)
    if not number:
        raise InputError(f"{source} contains no records")
    if first is not None and count == records:
        raise first
    if count > (allowed := allowed_bad(max_bad_share, records)):
        problems = [
            f"{places[0]}{f' and {len(places) - 1:,} more' if places[1:] else ''}: {reason}"
            for reason, places in bad.items()
        ]
        raise InputError(
            f"{source}: {count:,} of {records:,} records cannot be read, but --max-error-rate "
            f"{max_bad_share:g} allows {f'{allowed:,}' if allowed else 'none'}. Fix the records, "
            f"or raise --max-error-rate. The errors: {listed(problems)}"
        )


def _with_forms(
    forms: tuple[Form, ...], entries: Iterable[Entry]
) -> Iterator[tuple[Form, Entry, InputError | None]]:
    """Yield each record with its form, or with the first form and an error if none matches.

    Forms that join records receive them all at once.
    """

    def checked() -> Iterator[tuple[Form, Entry, InputError | None]]:
        for entry in entries:
            try:
                if entry.problem:
                    raise InputError(f"{entry.node.place}: {entry.problem}")
                yield form_of(forms, entry), entry, None
            except InputError as error:
                yield forms[0], entry, error

    join = next((form.joined for form in forms if form.joined is not None), None)
    if join is None:
        yield from checked()
        return
    bad: list[tuple[Form, Entry, InputError | None]] = []
    plain = [forms[0]]

    def good() -> Iterator[Entry]:
        for form, entry, problem in checked():
            if problem is None:
                plain[:] = [form]
                yield entry
            else:
                bad.append((form, entry, problem))

    for entry in join(good()):
        yield from bad
        bad.clear()
        yield plain[0], entry, None
    yield from bad


class _Names:
    """Numbers equal records with the same name; different records raise an error."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, int, str]] = {}

    def suffix(self, entry: Entry, name: str) -> str:
        digest = short_digest(with_names(entry.node.value))
        origin = entry.node.place
        known, count, place = self._seen.get(name, (digest, 0, origin))
        if known != digest:
            raise InputError(
                f"{origin}: the id {shown(name)} already appears in {place}. Choose a column "
                "of unique ids with --columns id=NAME, or import the files separately and combine "
                "the datasets."
            )
        self._seen[name] = digest, count + 1, place
        if not count:
            return ""
        numbered = f"{name}-{count + 1}"
        if self._seen.setdefault(numbered, (digest, 1, origin))[0] != digest:
            raise InputError(
                f"{origin}: the id {shown(name)} appears {count + 1} times. eqforge cannot "
                f"rename this record to {shown(numbered)}, because another record has that id. "
                "Change one of the ids."
            )
        return numbered.removeprefix(name)
