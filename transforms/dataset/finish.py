"""Writes a dataset: its tables, then the manifest that marks it as complete."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from eqforge.core.files import storage
from eqforge.schemas.dataset.manifest import (
    FILE_NAME,
    NEXT,
    WORK,
    Certificate,
    Manifest,
    load_manifest,
    to_json,
)
from eqforge.schemas.records.books import Stage
from eqforge.transforms.dataset.balance import balanced_manifest
from eqforge.transforms.dataset.census import keep_census
from eqforge.transforms.dataset.errata import (
    ApplyErrata,
    by_sample,
    kinds_of,
    used_work,
)
from eqforge.transforms.dataset.replace import (
    check_files,
    is_complete,
    publish,
    remove_strays,
)
from eqforge.transforms.dataset.sorted_runs import PART_BYTES, Run
from eqforge.transforms.dataset.table import Table, WrittenShard
from eqforge.transforms.engines.composite import Composite

if TYPE_CHECKING:
    import apache_beam as beam

    from eqforge.schemas.dataset.reader import Dataset


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetTarget:
    """Where a dataset goes, and what is known about it before its rows are.

    Attributes:
      output: the dataset's folder or URL.
      header: the manifest without books and files.
      stages: the stages in order; the last one's kept candidates are the samples.
      tables: the tables, among them `samples` and `rejects`.
      max_error_rate: the share of a stage's candidates in [0, 1] that may fail with an exception.
      replaces: whether a finished dataset is there, to be kept until this one is complete.
      commands: the command lines that make the dataset again; empty if they are not known.
      left: ids of the samples that people decided on and did not drop.
      certify: measures what the manifest certifies on the written tables; None for nothing.
    """

    output: str
    header: Manifest
    stages: tuple[Stage, ...]
    tables: tuple[Table, ...]
    max_error_rate: float
    replaces: bool = False
    commands: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    certify: "Callable[[Dataset], Certificate] | None" = None

    @property
    def place(self) -> str:
        """The folder in which the dataset is written."""
        return storage.join(self.output, NEXT) if self.replaces else self.output


@dataclass
class WriteTable(Composite):
    """Groups records by shard and writes every shard of a table, including empty ones."""

    table: Table
    target: DatasetTarget
    part_bytes: int = PART_BYTES

    def expand(self, records: "beam.PCollection[Any]") -> "beam.PCollection[WrittenShard]":
        import apache_beam as beam

        from eqforge.transforms.dataset.sort_runs import SortRuns

        shards = range(self.table.shards)
        every_shard = records.pipeline | "EveryShard" >> beam.Create(shards) | beam.Map(_no_runs)
        sort = SortRuns(self.table, _parts(self.target.output), self.part_bytes)
        runs = records | "SortRuns" >> beam.ParDo(sort)
        return (
            (runs, every_shard)
            | "Flatten" >> beam.Flatten()
            | "GroupByShard" >> beam.GroupByKey()
            | "WriteShard" >> beam.MapTuple(self._write)
        )

    def _write(self, shard: int, groups: Iterable[tuple[Run, ...]]) -> WrittenShard:
        from eqforge.transforms.dataset.write import write_runs

        runs = (run for group in groups for run in group)
        return write_runs(self.table, shard, runs, self.target.output, self.target.place)


def _no_runs(shard: int) -> tuple[int, tuple[Run, ...]]:
    return shard, ()


@dataclass
class WriteDataset(Composite):
    """Writes every table, and finally the manifest if the books balance.

    Its input is a tuple of collections: the records of each table, in the order of the target's
    tables, then the books as (stage, (candidates, kept)). `part_bytes` is as for `RunSorter`.
    """

    target: DatasetTarget
    part_bytes: int = PART_BYTES

    def expand(self, inputs: Any) -> "beam.PCollection[str]":
        import apache_beam as beam

        errata = by_sample(self.target.header.errata)
        if self.target.header.errata:
            inputs = inputs | "Errata" >> ApplyErrata(
                errata, kinds_of(self.target.header.dataset, _names(self.target))
            )
        *records, tallies = inputs
        written = [
            rows | f"Write{table.name.title()}" >> WriteTable(table, self.target, self.part_bytes)
            for rows, table in zip(records, self.target.tables, strict=True)
        ]
        books = tallies | "AddUpBooks" >> beam.CombinePerKey(_add)
        return (
            (*written, books)
            | "FlattenResults" >> beam.Flatten()
            | "ToOnePlace" >> beam.Map(_to_one_place)
            | "GroupResults" >> beam.GroupByKey()
            | "WriteManifest" >> beam.MapTuple(partial(_finish, self.target))
        )


@dataclass
class WriteWorks(Composite):
    """Writes the rows of finished works into their tables, then the manifest.

    A work is what was made from a record of the plan: `rows(table, dataset)` returns its rows in a
    table, and `tallies` holds its books.
    """

    target: DatasetTarget

    def expand(self, works: "beam.PCollection[Any]") -> "beam.PCollection[str]":
        import apache_beam as beam

        dataset = self.target.header.dataset
        if self.target.header.errata:
            works = works | "DropPictures" >> beam.Map(
                used_work, self.target.header, _names(self.target)
            )
        rows = [
            works | table.name.title() >> beam.FlatMap(_rows, table.name, dataset)
            for table in self.target.tables
        ]
        tallies = works | "Tallies" >> beam.FlatMap(_tallies)
        return (*rows, tallies) | "WriteTables" >> WriteDataset(self.target)


def _names(target: DatasetTarget) -> tuple[str, ...]:
    """Returns the names of the tables."""
    return tuple(table.name for table in target.tables)


def _rows(work: Any, table: str, dataset: str) -> Iterator[Any]:
    yield from work.rows(table, dataset)


def _tallies(work: Any) -> Iterator[tuple[str, tuple[int, int]]]:
    yield from ((each.stage, (each.candidates, each.kept)) for each in work.tallies)


def _add(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    candidates = kept = 0
    for some_candidates, some_kept in pairs:
        candidates, kept = candidates + some_candidates, kept + some_kept
    return candidates, kept


def _to_one_place(result: Any) -> tuple[int, Any]:
    return 0, result


def _finish(target: DatasetTarget, _: int, results: Iterable[Any]) -> str:
    collected = list(results)
    shards = [result for result in collected if isinstance(result, WrittenShard)]
    entered = {stage: counts for stage, counts in (r for r in collected if isinstance(r, tuple))}
    return finish_dataset(target, shards, entered)


def finish_dataset(
    target: DatasetTarget, shards: list[WrittenShard], entered: dict[str, tuple[int, int]]
) -> str:
    """Checks the books, removes files of older runs, and writes the card and the manifest.

    If there is a finished dataset, this one replaces it as the last step. The function is
    idempotent: an engine may repeat it.

    Returns:
      The URL of the manifest.

    Raises:
      BuildError: the books do not balance, too many records failed with an exception, or a file
        is missing.
    """
    manifest = balanced_manifest(target, shards, entered)
    url = storage.join(target.output, FILE_NAME)
    if target.replaces and _is_in_place(manifest, target.output):
        return url
    remove_strays(target.place, (shard.file for shard in shards))
    check_files(manifest, target.place)
    manifest = _certified(target, manifest)
    _describe(target, manifest)
    check_files(manifest, target.place)  # the folder may have been moved away meanwhile
    keep_census(target.output, manifest)
    storage.write_bytes(storage.join(target.place, FILE_NAME), to_json(manifest))
    if target.replaces:
        publish(target.output)
    delete_parts(target.output)
    return url


def _is_in_place(manifest: Manifest, output: str) -> bool:
    """Tells whether a dataset has already replaced another, and is not waiting beside it."""
    if is_complete(manifest, storage.join(output, NEXT)):
        return False
    is_there = storage.exists(storage.join(output, FILE_NAME))
    if not is_there or not is_complete(manifest, output):
        return False
    return replace(load_manifest(output), certificate=manifest.certificate) == manifest


def _certified(target: DatasetTarget, manifest: Manifest) -> Manifest:
    """Returns the manifest with what is certified of the written tables."""
    from eqforge.schemas.dataset.reader import Dataset

    if target.certify is None:
        return manifest
    written = Dataset(folder=target.place, manifest=manifest)
    return replace(manifest, certificate=target.certify(written))


def _describe(target: DatasetTarget, manifest: Manifest) -> None:
    """Writes the documents of a dataset whose tables are written."""
    from eqforge.schemas.dataset.documents import write_documents
    from eqforge.schemas.dataset.profile import Profile, read_facts
    from eqforge.schemas.dataset.reader import Dataset

    manifest = msgspec.json.decode(to_json(manifest), type=Manifest)  # as others will read it
    facts = read_facts(Dataset(folder=target.place, manifest=manifest))
    profile = Profile(
        manifest=manifest, facts=facts, stages=target.stages, commands=target.commands
    )
    write_documents(profile, target.place)


def delete_parts(output: str) -> None:
    """Deletes the part files of sorted runs, which no other run can use."""
    storage.delete_folder(_parts(output))


def _parts(output: str) -> str:
    return storage.join(output, WORK, "parts")
