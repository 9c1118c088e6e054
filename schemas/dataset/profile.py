"""Data for a dataset's documents: its manifest, and facts from its rows."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from eqforge.schemas.dataset.about import (
    ANNOTATION,
    NOTHING_SAID,
    About,
    annotated,
    of_picture,
    of_record,
    origins,
)
from eqforge.schemas.dataset.manifest import Manifest
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.stages import Stage
from eqforge.schemas.tables.benchmark_rows import COMBINED
from eqforge.schemas.tables.datasets import TYPES, dataset_type

UNSTATED: Final = ""
"""Licence of a source that states none."""

_ROWS: Final = 50_000
_LICENCE: Final = "licence"
_SOURCES: Final = ("source_path", "source_id")
_FILES: Final = "sources"
_SECOND: Final = {"image_0": ("image_1",)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """Facts about a dataset from its rows.

    Attributes:
      splits: rows by split, by table, for tables whose rows name a split.
      licences: source files by stated licence; empty if rows have no licence column.
      sources: number of files, or image names, that the samples come from.
      parts: licences and sources of the samples of each dataset, for combined datasets.
    """

    splits: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    licences: Mapping[str, int] = field(default_factory=dict)
    sources: int = 0
    parts: Mapping[str, "Facts"] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """A finished dataset, described.

    Attributes:
      stages: the stages of its counts, with the meaning of each known reason.
      commands: commands that reproduce it, without local folders; none if unknown.
      about: the author's facts.
      pictures: number of images in its rows, if the table `images` has others too.
    """

    manifest: Manifest
    facts: Facts = Facts()
    stages: Sequence[Stage] = ()
    commands: Sequence[str] = ()
    about: About = NOTHING_SAID
    pictures: int | None = None

    def meaning(self, stage: str, reason: str) -> str:
        found = (each.reasons.get(reason, "") for each in self.stages if each.name == stage)
        return next(found, "")

    def parts(self) -> "list[Profile]":
        """Return the datasets that a combined one is ultimately made of, as far as it has them.

        Each has its counts from the combined dataset, its tables, and no author.
        """
        found = []
        for part in self.manifest.parts:
            if part.dataset in TYPES and part.dataset not in COMBINED:
                begins, stages = f"{part.name}: ", self.manifest.stages.items()
                part_stages = {n.removeprefix(begins): b for n, b in stages if n.startswith(begins)}
                manifest = Manifest(
                    dataset=part.dataset,
                    mode=part.mode,
                    config=part.config,
                    inputs=part.inputs,
                    versions=part.versions,
                    stages=part_stages,
                    tables=self.manifest.tables,
                )
                facts = self.facts.parts.get(part.dataset, Facts())
                found.append(Profile(manifest=manifest, facts=facts))
        return found


def of_parts(profile: Profile, describe: Callable[[Profile], Iterable[str]]) -> Iterator[str]:
    """Yield the statements about a dataset or, if it was combined, about its parts.

    Each text appears once, after the names of its parts, unless it is true of all.
    """
    parts = profile.parts()
    if not parts:
        yield from describe(profile)
        return
    found: dict[str, list[Profile]] = {}
    for part in parts:
        for text in describe(part):
            found.setdefault(text, []).append(part)
    for text, group in found.items():
        yield text if len(group) == len(parts) else f"{', '.join(names_of(group))}: {text}"


def names_of(profiles: Iterable[Profile]) -> list[str]:
    return list(dict.fromkeys(each.manifest.dataset for each in profiles))


def read_facts(dataset: Dataset) -> Facts:
    """Read facts about a dataset from its rows; reads few columns.

    The names of all sources are held in memory.
    """
    splits = {table: count_splits(dataset, table) for table in dataset.manifest.tables}
    by_dataset: dict[str, dict[str, str | None]] = {}
    for name, source, licence in _sources(dataset):
        found = by_dataset.setdefault(name, {})
        # Rows of one source may state different licences: the order of the rows must not choose.
        found[source] = min(
            (each for each in (licence, found.get(source)) if each is not None), default=None
        )
    parts = {}
    for name, sources in sorted(by_dataset.items()):
        # None stands for sources that had nowhere to state a licence: counted where others do.
        unknown = UNSTATED if any(sources.values()) else None
        source_licences = (unknown if each is None else each for each in sources.values())
        counts = Counter(each for each in source_licences if each is not None)
        parts[name] = Facts(licences=dict(sorted(counts.items())), sources=len(sources))
    licences = sum((Counter(part.licences) for part in parts.values()), Counter[str]())
    return Facts(
        splits={table: found for table, found in splits.items() if found},
        licences=dict(sorted(licences.items())),
        sources=sum(part.sources for part in parts.values()),
        parts=parts if dataset.manifest.dataset in COMBINED else {},
    )


def count_splits(dataset: Dataset, table: str) -> dict[str, int]:
    """Return the number of rows of each split, sorted; none without a split column."""
    if "split" not in dataset.columns(table):
        return {}
    counted: Counter[str] = Counter()
    for batch in dataset.batches(table, ["split"], _ROWS):
        for pair in batch.column("split").value_counts().to_pylist():
            counted[pair["values"]] += pair["counts"]
    return dict(sorted(counted.items()))


def _sources(dataset: Dataset) -> Iterator[tuple[str, str, str | None]]:
    """Yield dataset and source of the samples with the licence, with few duplicates."""
    schema = dataset.schema("samples")
    places = _places(schema, dataset_type(dataset.manifest.dataset).image)
    if not places:
        return
    others = [name for name in ("dataset", ANNOTATION) if name in schema.names]
    columns = dict.fromkeys(name.partition(".")[0] for place in places for name in place)
    for batch in dataset.batches("samples", [*columns, *others], _ROWS):
        flat = pa.Table.from_batches([batch]).flatten()
        annotations = _annotated(flat)
        for number, place in enumerate(places):
            names = [*place, *(name for name in others if name != ANNOTATION)]
            licences = [_stated_in(each, number, place, len(places)) for each in annotations]
            table = flat.select(names).append_column(ANNOTATION, pa.array(licences, pa.string()))
            grouped = table.group_by(table.column_names, use_threads=False)
            for row in grouped.aggregate([]).to_pylist():
                if row[place[0]] is not None:
                    yield row.get("dataset", ""), row[place[0]], _licence_of(row, place)


def _annotated(rows: pa.Table) -> list[dict[str, Any]]:
    if ANNOTATION not in rows.column_names:
        return [{}] * rows.num_rows
    texts = rows.column(ANNOTATION).to_pylist()
    return [annotated(text) if "licen" in (text or "") else {} for text in texts]


def _stated_in(
    annotation: Mapping[str, Any], number: int, place: Sequence[str], count: int
) -> str | None:
    """Return the licence in an annotation for one of a row's sources; None without one.

    Args:
      number: position among the row's sources.
      place: the columns of the source; where one states its licence, that is its lineage.
      count: number of the row's sources.
    """
    row_licences, lineage = of_record(annotation), origins(annotation) if len(place) == 1 else []
    if not row_licences and not lineage:
        return None
    licences = of_picture(row_licences, lineage, number, count)
    return UNSTATED if None in licences else _together(licences)


def _licence_of(row: Mapping[str, str | None], place: Sequence[str]) -> str | None:
    licence = row[ANNOTATION]
    if len(place) == 1:
        return licence
    column_licence = row[place[1]]
    is_unstated = licence == UNSTATED or (not column_licence and "." in place[1])
    return UNSTATED if is_unstated else _together((column_licence, licence))


def _together(licences: Iterable[str | None]) -> str:
    return ", ".join(sorted({each for each in licences if each}))


def _places(schema: pa.Schema, image: str) -> list[tuple[str, ...]]:
    nested = _nested(schema)
    if nested or "generation" in schema.names:  # generated images have no source
        return nested
    named = next((name for name in (image, *_SOURCES) if name in schema.names), None)
    if named is None:
        return []
    names = [named, *(name for name in _SECOND.get(named, ()) if name in schema.names)]
    return [(name, _LICENCE) if _LICENCE in schema.names else (name,) for name in names]


def _nested(schema: pa.Schema) -> list[tuple[str, ...]]:
    return [
        (f"{column.name}.{_SOURCES[0]}", f"{column.name}.{_LICENCE}")
        for column in schema
        if pa.types.is_struct(column.type) and column.type.get_field_index(_LICENCE) >= 0
        if column.type.get_field_index(_SOURCES[0]) >= 0
    ]


def unit_of_sources(profile: Profile) -> str:
    parts = profile.parts()
    if parts:
        units = set(map(unit_of_sources, parts))
        return units.pop() if len(units) == 1 else _FILES
    known = dataset_type(profile.manifest.dataset)
    schema = known.table("samples").schema
    is_named = known.image in schema.names and not _nested(schema)
    return "named pictures" if is_named and known.image != _SOURCES[1] else _FILES
