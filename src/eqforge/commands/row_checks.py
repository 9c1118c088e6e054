"""Checks of `eqforge verify` within rows, and between related rows."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import is_dataclass
from operator import attrgetter
from typing import Any

from eqforge.core.identity import sha256_hex
from eqforge.generators.text.words import count_words, has_same_words, word_edit
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.values import Span, spans_of
from eqforge.schemas.tables.description import TableType
from eqforge.schemas.tables.pairs import IMAGES_TABLE
from eqforge.schemas.tables.texts import ENCODED_CHARACTERS, PerturbedCaption
from eqforge.schemas.tables.vlue import RetrievalCaption
from eqforge.transforms.dataset.errata import EDITS

MAX_MEASURED = 10_000
"""Rows remeasured per table; in larger tables about this many, chosen by hash."""

_JSON = ("annotation", "parameters", "settings", "spec_0", "spec_1")


def is_measured(key: str, rows: int) -> bool:
    return int(sha256_hex(key.encode())[:8], 16) * rows < MAX_MEASURED << 32


def watched(
    dataset: Dataset, kind: TableType, records: Iterable[Any], found: list[str]
) -> Iterator[Any]:
    """Yield the records of a table unchanged, and add their faults to `found`."""
    rows, images = (dataset.manifest.num_rows(name) for name in (kind.name, IMAGES_TABLE.name))
    for record in records:
        key = kind.key_of(record)
        faults = list(_misfits(record, ""))
        if images and getattr(record, "image_id", "") is None:
            faults.append("image_id is null, although the dataset has images")
        if is_measured(key, rows):
            faults += measured_faults(record)
        found += [f"{kind.name}: {key}: {fault}" for fault in faults]
        yield record


def _misfits(record: Any, place: str) -> Iterator[str]:
    """Yield the columns of a record, and of nested records, that contradict the others."""
    for column, fits in getattr(record, "RULES", {}).items():
        if not fits(record):
            yield f"{place}{column} contradicts other columns"
    for name in record.__dataclass_fields__:
        value = getattr(record, name)
        several = value if isinstance(value, tuple) else (value,)
        if value == "0" * 64:
            yield f"{place}{name} is not a digest"
        elif name in _JSON:
            try:
                json.loads(value)
            except ValueError:
                yield f"{place}{name} is not valid JSON"
        elif several and is_dataclass(several[0]):
            for each in several:
                yield from _misfits(each, f"{place}{name}.")


def measured_faults(record: Any) -> Iterator[str]:
    """Yield the columns that differ from a new measurement of a record's texts."""
    names = record.__dataclass_fields__.keys()
    for first, second, spans_0, spans_1 in EDITS:
        if {first, second, spans_0, spans_1} <= names:
            yield from _edit_faults(record, (first, second), (spans_0, spans_1))
    if isinstance(record, PerturbedCaption):
        end = ENCODED_CHARACTERS if record.mode == "paper" else None
        is_same = has_same_words(record.caption[:end], record.perturbed_caption[:end])
        if record.words_changed == is_same:
            yield f"words_changed is {record.words_changed}, but the texts show the opposite"
    if isinstance(record, RetrievalCaption) and record.words != count_words(record.caption):
        yield f"words is {record.words}, but the caption has {count_words(record.caption)}"


def _edit_faults(record: Any, texts: tuple[str, str], columns: tuple[str, str]) -> Iterator[str]:
    (before, after), spans = attrgetter(*texts)(record), attrgetter(*columns)(record)
    edit, distance = word_edit(before, after), getattr(record, "word_edit_distance", None)
    if distance not in (None, edit.distance):
        yield f"word_edit_distance is {distance}, but the texts differ in {edit.distance} words"
    by_words = spans == (spans_of(edit.spans_0), spans_of(edit.spans_1))
    by_rule = distance is None and _outside(before, spans[0]) == _outside(after, spans[1])
    if not (by_words or by_rule or getattr(record, "repairs", None)):  # such as of an article
        yield f"{' and '.join(columns)} do not mark where the texts differ"


def _outside(text: str, spans: Sequence[Span]) -> list[str] | int:
    """Return the pieces of a text outside spans; its length if spans exceed it."""
    ends = [0, *(span.end for span in spans)]
    starts = [*(span.start for span in spans), len(text)]
    pieces = [text[end:start] for end, start in zip(ends, starts, strict=True)]
    return pieces if max(ends) <= len(text) else -len(text) - 1
