"""Convert records of published benchmarks to items, by field names or by a function."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Final

import msgspec

from eqforge.core.files.checked import Node
from eqforge.core.files.foreign_rows import Cell, with_names
from eqforge.core.identity import short_digest
from eqforge.schemas.records.scores import compact_json
from eqforge.schemas.records.values import CornerBox
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.sources.text_pairs import BOX, box_of

SPLIT: Final = "test"
"""Split of records without one, as benchmarks are for testing."""

_LARGEST_ID: Final = 10**40

NOT_CONFIRMED: Final = "not_confirmed"
NO_IMAGE: Final = "no_image"

ORDER: Final = "source_order"
"""Field of `annotation` with a record's position among the records of its kind, from 0."""
ORDERED: Final = frozenset(("eqben", "replace-swap"))
"""Benchmarks whose records have no ids and are identified by position."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkItem:
    """A row of a benchmark, before its images are found.

    Attributes:
      item_id: unique in its benchmark, whatever the order of the records; becomes `sample_id`.
      group: shared by rows of one record, or of one group of questions.
      shown: names in the rows, if they differ from the file names; else empty.
      cells: for each image its table cell, or None for a file; empty if all are files.
      texts: of a pair its two captions; else the true captions, or the question.
      negatives: the false caption; of a question its options.
      box: the part of the image that is meant.
      annotation: the record's other fields, as a JSON object.
      refusal: reason for leaving out a readable row; empty for others.
      problem: why the record cannot be read; the item then has neither images nor texts.
    """

    item_id: str
    split: str = SPLIT
    kind: str = ""
    group: str = ""
    source_id: str | None = None
    images: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    cells: tuple[Cell | None, ...] = ()
    texts: tuple[str, ...] = ()
    negatives: tuple[str, ...] = ()
    answer: str = ""
    box: CornerBox | None = None
    annotation: str = "{}"
    refusal: str = ""
    problem: str = ""

    @property
    def text_id(self) -> str:
        return self.item_id

    @property
    def image(self) -> str:
        return next(iter(self.images), "")

    @property
    def names(self) -> tuple[str, ...]:
        return self.shown or self.images

    @property
    def files(self) -> tuple[str, ...]:
        cells = self.cells or (None,) * len(self.images)
        names = zip(self.images, cells, strict=True)
        return tuple(name for name, cell in names if cell is None and name)


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A published record and its place.

    Attributes:
      key: its key, if it is a member of a JSON object.
      part: the stem of its file's name, such as `swap_obj`.
      place: the path of its file below the given folder.
      number: its position among the records of its kind, from 0, for benchmarks in ORDERED.
      problem: why there are no fields, such as a line that is not valid JSON.
    """

    node: Node
    key: str | None = None
    part: str = ""
    place: str = ""
    number: int = 0
    problem: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """The format of a benchmark's records.

    Attributes:
      fields: required fields; the first form whose fields are present reads the record. Empty for
        records that are arrays.
      array: the content of an array record, in words.
      is_array: returns True for these arrays.
      read: yields the items of a record; only equal records share ids.
      patterns: names of the files to read in a folder; empty for all readable files.
      folders: names of the folders that hold the files, each with files of the same names.
      ignored: names of files to skip in a folder.
      is_one_file: whether ids need no file name, as there is only one or the reader adds it.
      entries: turns a file's content into records, if they are not its elements.
      joined: reads several records together, if they only make sense together.
      numbers: columns of a table that hold numbers.
      optional: fields that are read if present.
    """

    fields: frozenset[str]
    read: Callable[[Entry], Iterator[BenchmarkItem]]
    array: str = ""
    is_array: Callable[[Any], bool] | None = None
    patterns: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    is_one_file: bool = False
    entries: Callable[[Entry], Iterator[Entry]] | None = None
    joined: Callable[[Iterable[Entry]], Iterator[Entry]] | None = None
    numbers: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Fields:
    """The record's fields that hold the parts of an item.

    Attributes:
      images: one, or two of a pair.
      texts: the captions of a pair, else the true captions; or a question.
      ids: candidates for its own id, first match wins; then its key in a JSON object.
      kind: texts joined by `_`, or a function of the record; by default the file's name.
      split: candidates, first match wins.
      noted: fields above that stay in `annotation` too.
      unnoted: other fields that do not.
      suffix: suffix of the images' files, if records omit it.
      without_folder: whether images are named by paths of another machine.
      has_box: whether the fields of BOX give the described part of the image.
      check: returns why the publication leaves a record out, or an empty string; raises
        InputError for a record that does not belong to the benchmark.
    """

    images: tuple[str, ...] = ("image",)
    texts: tuple[str, ...] = ("caption",)
    negatives: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()
    options: str = ""
    ids: tuple[str, ...] = ()
    kind: tuple[str, ...] | Callable[[Entry], str] = ()
    source: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    split: tuple[str, ...] = ("split",)
    noted: tuple[str, ...] = ()
    unnoted: tuple[str, ...] = ()
    suffix: str = ""
    without_folder: bool = False
    may_lack_image: bool = False
    has_box: bool = False
    check: Callable[[Node], str] = lambda node: ""

    @property
    def contents(self) -> tuple[str, ...]:
        return (*self.images, *self.texts, *self.negatives, *self.answer)

    def form(self, *more: str, **how: Any) -> Form:
        """Return the form of these records, which may require more fields."""
        fields = frozenset(self.contents).difference(self.images if self.may_lack_image else ())
        return Form(fields=fields.union(more), read=partial(read_fields, self), **how)


def read_fields(fields: Fields, entry: Entry) -> Iterator[BenchmarkItem]:
    node, kind = entry.node, fields.kind
    pictures = [
        ("", (None,))
        if node.get(name) is None and name in fields.unnoted
        else picture(entry, name, fields.suffix)
        for name in fields.images
    ]
    images = tuple(
        PurePosixPath(name).name if fields.without_folder and cell is None else name
        for name, (cell,) in pictures
    )
    kinds = kind if isinstance(kind, tuple) else ()
    used = (*fields.contents, *fields.ids, *kinds, *fields.source, *fields.group, *fields.split)
    used += (*fields.unnoted, *(BOX if fields.has_box else ()), fields.options)
    yield BenchmarkItem(
        item_id=record_id(entry, images[0], own_id(node, *fields.ids) or entry.key),
        split=text(node, *fields.split, default=SPLIT),
        kind="_".join(filter(None, (_joined(node, name) for name in kinds)))
        if kinds
        else kind(entry)
        if callable(kind)
        else entry.part,
        source_id=own_id(node, *fields.source),
        group=own_id(node, *fields.group) or "",
        images=images,
        cells=tuple(cell for _, cells in pictures for cell in cells),
        texts=tuple(node[name].text() for name in fields.texts),
        negatives=(
            *(node[name].text() for name in fields.negatives),
            *(_options(node, fields.options) if fields.options else ()),
        ),
        # Some benchmarks write the answers 0 and 1 as numbers.
        answer="".join(
            str(node[name].integer()) if isinstance(node[name].value, int) else node[name].text()
            for name in fields.answer
        ),
        box=box_of(node) if fields.has_box else None,
        annotation=rest(node, *(name for name in used if name not in fields.noted)),
        refusal=fields.check(node),
    )


def write_fields(fields: Fields, row: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    if len(fields.images) > 1:
        columns = ("image_0", "image_1", "caption_0", "caption_1")
    else:
        rewording = ("hard_positive",) if len(fields.texts) > 1 else ()
        columns = ("image", "caption", *rewording, "hard_negative")
    record = {name: row[column] for name, column in zip(fields.contents, columns, strict=True)}
    return kept(row) | more | record | (box_fields(row) if fields.has_box else {})


def box_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    if (box := row.get("box")) is None:
        return {}
    corner, size = (box["x0"], box["y0"]), (box["x1"] - box["x0"], box["y1"] - box["y0"])
    return dict(zip(BOX, (*corner, *size), strict=True))


def _joined(node: Node, name: str) -> str:
    found = node.get(name)
    if found is not None and isinstance(found.value, list):
        return "_".join(element.text() for element in found.elements())
    return text(node, name)


def _options(node: Node, name: str) -> Iterator[str]:
    """Yield the texts of a list, which a table without lists holds as JSON text."""
    if (found := node.get(name)) is None or found.value == "":
        return
    if isinstance(found.value, str):
        try:
            found = replace(found, value=msgspec.json.decode(found.value, type=list[str]))
        except (msgspec.DecodeError, RecursionError):
            found.fail('options as a JSON list of strings, such as ["red", "blue"]')
    yield from (element.text() for element in found.elements())


def record_id(entry: Entry, image: str, stated_id: str | None) -> str:
    """Return the name of a record: its own id, or its image and a digest of its content."""
    if stated_id is not None:
        return stated_id
    digest, stem = short_digest(with_names(entry.node.value)), PurePosixPath(image).stem
    return f"{stem}#{digest}" if stem else digest


def own_id(node: Node, *names: str) -> str | None:
    for name in names:
        if (found := node.get(name)) is not None and found.value != "":
            value = found.value
            if isinstance(value, float) and math.isfinite(value) and value == int(value):
                value = int(value)
            is_number = isinstance(value, int) and not isinstance(value, bool)
            return str(value) if is_number and abs(value) < _LARGEST_ID else found.name()
    return None


def rest(node: Node, *used: str, **extras: Any) -> str:
    """Return the fields of a record that have no column, as a JSON object.

    Args:
        extras: entries to add; a field of the record with the same name becomes `own NAME`.
    """
    return compact_json(
        extras
        | {
            f"own {name}" if name in extras else name: value
            for name, value in node.mapping().items()
            if name not in used and not _holds_cells(value)
        }
    )


def _holds_cells(value: Any) -> bool:
    return isinstance(value, Cell) or (isinstance(value, list) and any(map(_holds_cells, value)))


def kept(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that `rest` kept on import, without the position."""
    if row.get("dataset") not in BENCHMARKS:
        return {}
    fields = json.loads(row["annotation"])
    if row["dataset"] in ORDERED and fields.pop(ORDER, None) is not None:
        key = f"own {ORDER}"
        fields |= {ORDER: fields.pop(key)} if key in fields else {}
    return fields


def source_order(row: Mapping[str, Any]) -> int:
    if row.get("dataset") not in ORDERED:
        return 0
    found = json.loads(row["annotation"]).get(ORDER)
    return found if isinstance(found, int) and found >= 0 else 0


def text(node: Node, *names: str, default: str = "") -> str:
    """Return the first of some fields that is text in the record; else the default."""
    for name in names:
        if (found := node.get(name)) is not None and found.value != "":
            return found.text() if isinstance(found.value, str) else str(found.value)
    return default


def picture(entry: Entry, field: str, suffix: str = "") -> tuple[str, tuple[Cell | None]]:
    """Return the name of a record's image, and its cell if the table itself holds it."""
    node = entry.node[field]
    if isinstance(node.value, list):
        if len(node.value) != 1:
            node.fail(f"one image (choose it with --columns {field}={field}[0])")
        node = replace(node, value=node.value[0])
    if isinstance(node.value, Cell):
        return node.value.name, (node.value,)
    name = node.text()
    if "/" not in name:  # a path of Windows
        name = name.replace("\\", "/")
    return name if PurePosixPath(name).suffix or not name else name + suffix, (None,)
