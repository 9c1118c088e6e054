"""What the reader of a published benchmark is, and the items that it yields."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from eqforge.core.files.cells import Cell, with_names
from eqforge.core.files.checked import Node
from eqforge.core.identity import short_digest
from eqforge.schemas.records.scores import compact_json
from eqforge.schemas.records.values import CornerBox
from eqforge.schemas.tables.benchmarks import BENCHMARKS

SPLIT: Final = "test"
"""The split of records that name none: benchmarks are for testing."""

_LARGEST_ID: Final = 10**40

NOT_CONFIRMED: Final = "not_confirmed"

ORDER: Final = "source_order"
"""The field of `annotation` with a record's place among those of its kind, from 0."""
ORDERED: Final = frozenset(("eqben", "replace-swap"))
"""Benchmarks whose rows have such a place: their records have no ids, and are known by it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkItem:
    """A row of a benchmark, before its pictures are found.

    Attributes:
      item_id: unique in its benchmark, whatever the order of the records; becomes `sample_id`.
      split, kind: as in `BenchmarkPair`.
      group: what rows of one record, or of one group of questions, share.
      source_id: as in `BenchmarkPair`.
      images: the names of the image, or of the two.
      shown: what rows call them, where their files are called otherwise; empty where not.
      cells: for each image where it lies in a table, None for a file; empty where all are files.
      texts: of a pair its two captions; of others the true ones, or the question.
      negatives: the false caption; of a question its options.
      answer: of a question.
      box: the part of the image that is meant.
      annotation: the record's other fields, as a JSON object.
      refusal: the reason for which the publication leaves the row out; empty where it does not.
    """

    item_id: str
    split: str = SPLIT
    kind: str = ""
    group: str = ""
    source_id: str | None = None
    images: tuple[str, ...]
    shown: tuple[str, ...] = ()
    cells: tuple[Cell | None, ...] = ()
    texts: tuple[str, ...]
    negatives: tuple[str, ...] = ()
    answer: str = ""
    box: CornerBox | None = None
    annotation: str = "{}"
    refusal: str = ""

    @property
    def text_id(self) -> str:
        """The id, under the name common to all kinds of texts."""
        return self.item_id

    @property
    def image(self) -> str:
        """The first image."""
        return self.images[0]

    @property
    def names(self) -> tuple[str, ...]:
        """What rows call the images."""
        return self.shown or self.images

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the images that are files."""
        cells = self.cells or (None,) * len(self.images)
        names = zip(self.images, cells, strict=True)
        return tuple(name for name, cell in names if cell is None and name)


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A published record and its place.

    Attributes:
      node: its fields.
      key: its key, if it stands in a JSON object.
      part: the stem of its file's name, such as `swap_obj`.
      place: the path of its file below the folder that was named.
      number: its place among the records of its kind, from 0, of benchmarks in ORDERED.
    """

    node: Node
    key: str | None = None
    part: str = ""
    place: str = ""
    number: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """How the records of a benchmark look.

    Attributes:
      fields: those that every record has; the first form whose fields are there reads it. Empty for
        records that are arrays.
      array: of records that are arrays, what is in one, in words.
      is_array: tells whether a value is such an array.
      read: yields the items of a record, with ids that are unique but for equal records.
      patterns: names of the files that are read of a folder; all that can be read if empty.
      ignored: names of files that are not read of a folder.
      is_one_file: whether ids need not begin with the file's name: there is but one, or the
        reader says it.
      entries: turns what a file holds into records, where they are not its elements.
      joined: reads several records together, where they only make sense so.
      numbers: columns of a table that hold numbers.
      optional: other fields that are read where they are there.
    """

    fields: frozenset[str]
    read: Callable[[Entry], Iterator[BenchmarkItem]]
    array: str = ""
    is_array: Callable[[Any], bool] | None = None
    patterns: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    is_one_file: bool = False
    entries: Callable[[Entry], Iterator[Entry]] | None = None
    joined: Callable[[Iterable[Entry]], Iterator[Entry]] | None = None
    numbers: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


def record_id(entry: Entry, image: str, own: str | None) -> str:
    """Returns the name of a record: its own id, or its image and a digest of its content."""
    if own is None:
        digest = short_digest(with_names(entry.node.value))
        stem = PurePosixPath(image).stem
        return f"{stem}#{digest}" if stem else digest
    return own


def own_id(node: Node, *names: str) -> str | None:
    """Returns the first of some fields that a record has, a text or a whole number; None for none.

    Raises:
      InputError: it is neither.
    """
    for name in names:
        if (found := node.get(name)) is not None and found.value != "":
            value = found.value
            if isinstance(value, float) and math.isfinite(value) and value == int(value):
                value = int(value)
            is_number = isinstance(value, int) and not isinstance(value, bool)
            return str(value) if is_number and abs(value) < _LARGEST_ID else found.name()
    return None


def rest(node: Node, *used: str, **told: Any) -> str:
    """Returns the fields of a record that have no column, as a JSON object.

    Args:
      node: the record.
      used: its fields that have a column.
      told: what stands beside them; a field of the record that is called so becomes `own NAME`.
    """
    return compact_json(
        told
        | {
            f"own {name}" if name in told else name: value
            for name, value in node.mapping().items()
            if name not in used and not isinstance(value, Cell)
        }
    )


def kept(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields that `rest` kept when a row was imported, without its place."""
    if row.get("dataset") not in BENCHMARKS:
        return {}
    fields = json.loads(row["annotation"])
    if row["dataset"] in ORDERED and fields.pop(ORDER, None) is not None:
        own = f"own {ORDER}"
        fields |= {ORDER: fields.pop(own)} if own in fields else {}
    return fields


def source_order(row: Mapping[str, Any]) -> int:
    """Returns the place of an imported row among those of its kind; 0 where it has none."""
    if row.get("dataset") not in ORDERED:
        return 0
    found = json.loads(row["annotation"]).get(ORDER)
    return found if isinstance(found, int) and found >= 0 else 0


def with_rest(row: Mapping[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """Returns a record with the fields that `rest` kept when its row was imported."""
    return kept(row) | record


def text(node: Node, *names: str, default: str = "") -> str:
    """Returns the first of some fields that a record has as text; the default if it has none."""
    for name in names:
        if (found := node.get(name)) is not None and found.value != "":
            return found.text() if isinstance(found.value, str) else str(found.value)
    return default


def picture(entry: Entry, field: str, suffix: str = "") -> tuple[str, tuple[Cell | None]]:
    """Returns the name of a record's picture, and where it lies if that is in the table itself.

    Args:
      entry: the record.
      field: that names or holds the picture.
      suffix: of its file, where the name has none.
    """
    node = entry.node[field]
    if isinstance(node.value, Cell):
        return node.value.name, (node.value,)
    name = node.text()
    return name if PurePosixPath(name).suffix or not name else name + suffix, (None,)
