"""Writes the formats of published benchmarks, as `eqforge import` reads them.

Records come from the `write` functions of the importers, so that one module reads and writes a
format. Images go below `images`, under the rows' names if these are safe and unique; otherwise they
are named after the row.
"""

import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eqforge.core.errors import InputError
from eqforge.core.visible import counted, visible
from eqforge.schemas.tables.benchmarks import EQBEN_FOLDERS, EQBEN_SIZES, eqben_subset
from eqforge.sources.benchmarks import eqben
from eqforge.sources.benchmarks.form import Fields, source_order, write_fields
from eqforge.sources.benchmarks.lists import write_checklist
from eqforge.sources.benchmarks.published import RELATION, SUGAR_CREPE, SUGAR_CREPE_PLUS, WINOGROUND
from eqforge.transforms.dataset.sorted_runs import sort_records
from eqforge.transforms.export.formats import Writer
from eqforge.transforms.export.names import is_safe, key_of, split_names
from eqforge.transforms.export.note import NOTES
from eqforge.transforms.export.target import PIECE_ROWS, Export, ExportStream, Record

IMAGES: Final = "images"
SERVER_SEED: Final = 1234
"""Seed of the order in which EqBen's server takes scores; see `eqforge metrics --order`."""

MOST_KINDS: Final = 200
"""Each kind has its own file, and all may be open at once."""

_NEEDS_PNG: Final = "Winoground's own loader opens only images/NAME.png; pass --image-format png"
_EQBEN_COLUMNS: Final = (
    *("dataset", "kind", "source_id", "caption_0", "caption_1", "image_0", "image_1"),
    *("box", "annotation"),
)

Row = dict[str, Any]


def rows_by(export: Export, columns: Sequence[str], place: Callable[[Row], str]) -> Iterator[Row]:
    """Yield all rows, sorted by their place and then by their ids, in bounded memory.

    Args:
      columns: columns to read, if the rows have them; keys are always read.
      place: returns a row's sort text.
    """
    names = _names(export, columns)
    rows = (
        row
        for part in export.all_parts()
        for table in part.tables()
        for row in table.select(names).to_pylist()
    )

    def key(row: Row) -> str:  # NUL sorts before every character of an id
        return "\0".join((place(row), *(row[name] for name in export.keys)))

    return sort_records(rows, Row, key)


def _names(export: Export, columns: Sequence[str]) -> list[str]:
    wanted = {*columns, *export.keys, *export.pictures}
    return [name for name in export.schema.names if name in wanted]


class _Pictures:
    """The written images, each under one name."""

    def __init__(self, export: Export) -> None:
        self._export = export
        self._ids: dict[str, str] = {}

    def put(self, record: Record, column: str, stem: str) -> str:
        """Write an image, if there is one; return its name.

        Args:
          column: `image`, `image_0` or `image_1`.
          stem: fallback name without suffix, distinct for each row.
        """
        picture, name = record.pictures.get(column), record.row.get(column) or ""
        if picture is None:
            return name or stem
        is_cut = record.row.get("box") is not None
        others = (f"{base}{picture.suffix}" for base in (stem, f"{record.key}-{column}"))
        for chosen in (name, *others):
            suffix = PurePosixPath(chosen).suffix.lower().replace(".jpeg", ".jpg")
            fits = suffix == picture.suffix and is_safe(f"{IMAGES}/{chosen}")
            if (chosen == name and is_cut) or not fits:
                continue
            # On some disks, names that differ only in letter case are one file.
            if self._ids.setdefault(chosen.casefold(), picture.image_id) == picture.image_id:
                self._export.put(f"{IMAGES}/{chosen}", picture.data)
                return chosen
        raise InputError(
            f"{self._export.folder}: no file name is left for {column!r} of {record.id!r}; "
            f"other images have the names {stem + picture.suffix!r} and {chosen!r}"
        )


class _Array:
    def __init__(self, stream: ExportStream, is_object: bool = False) -> None:
        self.stream, self._is_object = stream, is_object

    def add(self, record: Any, key: str = "") -> None:
        start = ("{" if self._is_object else "[") if self.stream.rows == 0 else ","
        name = f"{json.dumps(key, ensure_ascii=False)}: " if self._is_object else ""
        text = json.dumps(record, ensure_ascii=False)
        self.stream.write(f"{start}\n{name}{text}".encode())
        self.stream.rows += 1

    def close(self) -> None:
        if self.stream.rows == 0:
            self.stream.write(b"{" if self._is_object else b"[")
        self.stream.write(b"\n}\n" if self._is_object else b"\n]\n")


def _write_array(export: Export, path: str, records: Iterable[Any]) -> None:
    with export.file(path) as stream:
        array = _Array(stream)
        for record in records:
            array.add(record)
        array.close()


def _write_winoground(export: Export) -> None:
    pictures, other_names = _Pictures(export), set[str]()
    with export.file("examples.jsonl") as stream:
        for number, record in enumerate(_records(export)):
            names = {
                f"image_{n}": pictures.put(record, f"image_{n}", f"ex_{number}_img_{n}")
                for n in (0, 1)
            }
            shown = {name for column, name in names.items() if record.pictures.get(column)}
            other_names |= {name for name in shown if not name.endswith(".png")}
            bare = {n: name.removesuffix(".png") for n, name in names.items() if "." in name}
            names |= {n: name for n, name in bare.items() if "." not in name}
            own_id = _own_id(export, record, number)
            written = write_fields(WINOGROUND, record.row | names, id=own_id)
            written |= {"tag": record.row.get("kind") or ""}
            stream.write(json.dumps(written, ensure_ascii=False).encode() + b"\n")
            stream.rows += 1
    if other_names:
        count = counted(len(other_names), "images")
        print(
            f"examples.jsonl: the file names of {count} keep their suffix. {_NEEDS_PNG}",
            file=sys.stderr,
        )


def _write_eqben(export: Export) -> None:
    pictures, single, found = _Pictures(export), list[tuple[str, str]](), Counter[str]()

    def place(row: Row) -> str:  # in the order of the subsets, then its own
        subset = _subset(row)
        number = list(EQBEN_SIZES).index(subset) if subset else len(EQBEN_SIZES)
        return "\0".join((f"{number}", row.get("kind") or "", f"{source_order(row):012d}"))

    def records() -> Iterator[Record]:
        names = _names(export, _EQBEN_COLUMNS)
        schema = pa.schema([export.schema.field(name) for name in names])
        rows = rows_by(export, _EQBEN_COLUMNS, place)
        while batch := list(islice(rows, PIECE_ROWS)):
            for piece in export.joined(pa.Table.from_pylist(batch, schema=schema)):
                yield from export.records(piece)

    def written() -> Iterator[Any]:
        for record in records():
            row = record.row | _eqben_names(record, pictures)
            yield eqben.write(row)
            found[_subset(row)] += 1
            single.extend((row[f"image_{i}"], row[f"caption_{c}"]) for i in (0, 1) for c in (0, 1))

    _write_array(export, "eqben.json", written())
    random.Random(SERVER_SEED).shuffle(single)
    entries = ({"image": image, "caption": caption} for image, caption in single)
    _write_array(export, "eqben_random.json", entries)
    if message := _not_eqben(found):
        print(visible(f"eqben_random.json: {message}"), file=sys.stderr)


def _subset(row: Row) -> str:
    kind, dataset = row.get("kind") or "", row["dataset"]
    return eqben_subset(kind) or eqben_subset(f"{dataset}/{kind}" if kind else dataset)


def _eqben_names(record: Record, pictures: _Pictures) -> dict[str, str]:
    row, subset = record.row, _subset(record.row)
    kind = row.get("kind") or row["dataset"]
    folder = EQBEN_FOLDERS.get(subset) or split_names([kind]).popitem()[1]
    names = {}
    for column in ("image_0", "image_1"):
        name = row.get(column) or ""
        is_there = not subset or eqben_subset(name.partition("/")[0]) == subset
        chosen = record if is_there else replace(record, row=row | {column: None})
        stem = f"{folder}/{record.key}-{column.removeprefix('image_')}"
        names[column] = pictures.put(chosen, column, stem)
    return names


def _not_eqben(found: Counter[str]) -> str:
    if found == Counter(EQBEN_SIZES):
        return ""
    parts = [
        f"{found[name]:,} of {size:,} pairs of {name}"
        for name, size in EQBEN_SIZES.items()
        if found[name] != size
    ]
    other = f", and {counted(found[''], 'pairs')} without a subset" if found[""] else ""
    return (
        "EqBen's server and `eqforge metrics --format eqben` need all seven subsets to be "
        f"complete. This dataset has {', '.join(parts)}{other}."
    )


def _write_by_kind(export: Export, *, fields: Fields, is_object: bool = False) -> None:
    pictures, kinds = _Pictures(export), _kinds(export)
    with ExitStack() as files:
        arrays = {
            kind: _Array(files.enter_context(export.file(f"{name}.json")), is_object)
            for kind, name in kinds.items()
        }
        for record in _records(export):
            array = arrays[record.row.get("kind") or ""]
            own_id = _own_id(export, record, array.stream.rows)
            name = pictures.put(record, "image", record.key)
            more = {} if is_object else {"id": own_id}
            array.add(write_fields(fields, record.row | {"image": name}, **more), str(own_id))
        for array in arrays.values():
            array.close()


def _write_aro(export: Export) -> None:
    """Write one file; a crop of an image becomes an image."""
    pictures = _Pictures(export)

    def records() -> Iterator[Any]:
        for record in _records(export):
            name = pictures.put(record, "image", record.key)
            box = None if record.pictures.get("image") else record.row.get("box")
            written = write_fields(RELATION, record.row | {"image": name, "box": box})
            if "attributes" not in written:  # ARO's reader wants a relation; others have a kind
                written = {"relation_name": record.row.get("kind") or ""} | written
            yield written

    _write_array(export, f"{export.dataset.manifest.dataset}.json", records())


def _write_vl_checklist(export: Export) -> None:
    """Write a file for each kind of the rows, in VL-CheckList's folders if the kinds name these."""
    pictures = _Pictures(export)
    for kind, path in _tree(_kinds(export)).items():
        rows = (
            record.row | {"image": pictures.put(record, "image", record.key)}
            for record in _records_of(export, kind)
        )
        _write_array(export, path, write_checklist(rows))


def _kinds(export: Export) -> dict[str, str]:
    """Return the kinds of the rows, each with a file name that is distinct in any letter case."""
    whole = export.dataset.manifest.dataset
    if "kind" not in export.schema.names:
        return {"": whole}
    found: set[str] = set()
    for batch in export.dataset.batches(export.settings.table, ["kind"], 50_000):
        found |= {kind or "" for kind in batch.column(0).unique().to_pylist()}
    if len(found) > MOST_KINDS:
        raise InputError(
            f"{export.dataset.folder} has {len(found):,} kinds of rows, but "
            f"--format {export.settings.format} writes one file per kind, and at most "
            f"{MOST_KINDS:,} files; choose a different format"
        )
    names = split_names(found - {""})
    if "" in found:
        for kind, name in names.items():
            if name.casefold() == whole.casefold():
                names[kind] = key_of(kind).replace("-", "_")
        names[""] = whole
    return names


def _tree(kinds: dict[str, str]) -> dict[str, str]:
    """Return the path of each kind's file: the kind itself unless another file needs that place."""
    safe = {kind: f"{name}.json" for kind, name in kinds.items()}
    paths = {kind: f"{kind}.json" for kind in kinds if is_safe(f"{kind}.json")}
    paths.pop("", None)
    times = Counter(path.casefold() for path in paths.values())
    files = NOTES | {path.casefold() for path in (*safe.values(), *paths.values())}
    for kind, path in paths.items():
        folded = path.casefold()
        above = {parent.as_posix() for parent in PurePosixPath(folded).parents}
        others = NOTES | {path.casefold() for each, path in safe.items() if each != kind}
        if times[folded] == 1 and folded not in others and not above & (files | {IMAGES}):
            safe[kind] = path
    return safe


def _own_id(export: Export, record: Record, number: int) -> int | str:
    name = record.id
    for part in (export.dataset.manifest.dataset, record.row.get("kind")):
        if part == export.dataset.manifest.dataset and not name.startswith(f"{part}/"):
            return number
        name = name.removeprefix(f"{part}/")
    is_number = name.isascii() and name.isdigit() and str(int(name)) == name
    return int(name) if is_number else name


def _records(export: Export) -> Iterator[Record]:
    for part in export.all_parts():
        yield from part.records()


def _records_of(export: Export, kind: str) -> Iterator[Record]:
    for part in export.all_parts():
        for rows in part.tables():
            if "kind" in rows.column_names:
                rows = rows.filter(pc.equal(pc.fill_null(rows.column("kind"), ""), kind))
            if rows.num_rows:
                for piece in export.joined(rows):
                    yield from export.records(piece)


WRITERS: Final = {
    "winoground": Writer(_write_winoground),
    "eqben": Writer(_write_eqben),
    "sugar-crepe": Writer(partial(_write_by_kind, fields=SUGAR_CREPE, is_object=True)),
    "sugar-crepe-plus": Writer(partial(_write_by_kind, fields=SUGAR_CREPE_PLUS)),
    "aro": Writer(_write_aro),
    "vl-checklist-tree": Writer(_write_vl_checklist),
}
