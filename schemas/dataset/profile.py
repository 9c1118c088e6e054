"""What the documents of a dataset are written from: its manifest, and what its rows say."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from eqforge.schemas.dataset.about import NOTHING_SAID, About
from eqforge.schemas.dataset.manifest import Manifest
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.books import Stage
from eqforge.schemas.tables.datasets import dataset_type

UNSTATED: Final = ""
"""Stands for the licence of a source that states none."""

_ROWS: Final = 50_000
_LICENCE: Final = "licence"
_SOURCES: Final = ("source_path", "source_id")
_SECOND: Final = {"image_0": ("image_1",)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What the rows of a dataset say of it as a whole.

    Attributes:
      splits: rows by split, by table; of tables whose rows name one.
      licences: source files by the licence that they state; empty where rows have no such column.
      sources: how many files, or names of images, the samples come from.
    """

    splits: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    licences: Mapping[str, int] = field(default_factory=dict)
    sources: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """A finished dataset, described.

    Attributes:
      manifest: of the dataset.
      facts: what its rows say.
      stages: the stages of its books, with the meaning of each reason, as far as they are known.
      command: the command that makes it again, without folders of a machine; empty if not known.
      about: what its author says.
    """

    manifest: Manifest
    facts: Facts = Facts()
    stages: Sequence[Stage] = ()
    command: str = ""
    about: About = NOTHING_SAID

    def meaning(self, stage: str, reason: str) -> str:
        """Returns the sentence that explains a reason; empty if there is none."""
        found = (each.reasons.get(reason, "") for each in self.stages if each.name == stage)
        return next(found, "")


def read_facts(dataset: Dataset) -> Facts:
    """Returns what the rows of a dataset say of it, reading few columns.

    The names of all sources are held in memory.

    Raises:
      InputError: a file is missing or damaged.
    """
    splits = {table: _splits(dataset, table) for table in dataset.manifest.tables}
    sources = dict(_sources(dataset))
    licences = Counter(sources.values()) if _has_licences(dataset) else {}
    return Facts(
        splits={table: found for table, found in splits.items() if found},
        licences=dict(sorted(licences.items())),
        sources=len(sources),
    )


def _splits(dataset: Dataset, table: str) -> dict[str, int]:
    """Returns the rows of a table by split; none where they name none."""
    if "split" not in dataset.columns(table):
        return {}
    counted: Counter[str] = Counter()
    for batch in dataset.batches(table, ["split"], _ROWS):
        for pair in batch.column("split").value_counts().to_pylist():
            counted[pair["values"]] += pair["counts"]
    return dict(sorted(counted.items()))


def _sources(dataset: Dataset) -> Iterator[tuple[str, str]]:
    """Yields the sources of the samples with their licences, with few duplicates."""
    schema = dataset.schema("samples")
    places = _places(schema, dataset_type(dataset.manifest.dataset).image)
    columns = dict.fromkeys(name.partition(".")[0] for place in places for name in place)
    for batch in dataset.batches("samples", list(columns), _ROWS) if columns else ():
        flat = pa.Table.from_batches([batch]).flatten()
        for place in places:
            grouped = flat.select(list(place)).group_by(list(place), use_threads=False)
            for row in grouped.aggregate([]).to_pylist():
                source, licence = row[place[0]], row[place[1]] if len(place) > 1 else None
                if source is not None:
                    yield source, licence or UNSTATED


def _places(schema: pa.Schema, image: str) -> list[tuple[str, ...]]:
    """Returns the columns that name a source, each with that of its licence, if there is one."""
    nested: list[tuple[str, ...]] = [
        (f"{column.name}.{_SOURCES[0]}", f"{column.name}.{_LICENCE}")
        for column in schema
        if pa.types.is_struct(column.type) and column.type.get_field_index(_LICENCE) >= 0
        if column.type.get_field_index(_SOURCES[0]) >= 0
    ]
    if nested or "generation" in schema.names:  # what is made up has no source
        return nested
    named = next((name for name in (image, *_SOURCES) if name in schema.names), None)
    if named is None:
        return []
    names = [named, *(name for name in _SECOND.get(named, ()) if name in schema.names)]
    return [(name, _LICENCE) if _LICENCE in schema.names else (name,) for name in names]


def _has_licences(dataset: Dataset) -> bool:
    schema = dataset.schema("samples")
    return any(len(place) > 1 for place in _places(schema, ""))
