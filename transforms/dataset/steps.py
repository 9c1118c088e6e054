"""The first and last steps of every pipeline: read the plan, write the dataset."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, get_type_hints

import apache_beam as beam
from apache_beam.transforms.combiners import TupleCombineFn
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from eqforge.core.files import storage
from eqforge.schemas.tables.description import TableType
from eqforge.schemas.tables.pairs import ImageRow
from eqforge.transforms.dataset.combine import merge_images
from eqforge.transforms.dataset.errata import (
    Errata,
    by_sample,
    kept,
    kinds_of,
    rejected,
    tally,
    used_work,
)
from eqforge.transforms.dataset.finish import DatasetTarget, finish_dataset, parts_of
from eqforge.transforms.dataset.parts import CombineRules, Piece, convert_piece
from eqforge.transforms.dataset.plan import list_plan_file, read_planned_record
from eqforge.transforms.dataset.sorted_runs import Run, RunSorter
from eqforge.transforms.dataset.tables import BatchWork, Table, WrittenShard
from eqforge.transforms.dataset.write import write_runs
from eqforge.transforms.engines import progress
from eqforge.transforms.engines.counted_step import CountedStep
from eqforge.transforms.engines.placement import on_gpu


@dataclass
class ReadPlan(beam.PTransform):
    """Distributes the records of a plan to the workers, which read them."""

    files: tuple[str, ...]
    kind: type

    def expand(self, root: beam.Pipeline) -> beam.PCollection[Any]:
        return (
            root
            | "PlanFiles" >> beam.Create(self.files, reshuffle=False)
            | "ListPlanFile" >> beam.FlatMap(list_plan_file)
            | "DealOut" >> beam.Reshuffle()
            | "ReadPlanned" >> beam.Map(partial(read_planned_record, self.kind))
        )


@dataclass
class MakeRows(beam.PTransform):
    """Makes the rows of each batch of texts, and counts its texts when done.

    Attributes:
      make: returns the rows of a batch, given the rules.
      counted: the texts' name in the progress display.
    """

    make: Callable[[Any, Any], Any]
    rules: Any
    counted: str
    progress_folder: str

    def expand(self, batches: beam.PCollection[Any]) -> beam.PCollection[Any]:
        step = beam.Map(self._make).with_output_types(get_type_hints(self.make)["return"])
        judging = getattr(self.rules, "judging", None)
        if judging is not None and judging.uses_gpu:
            step = on_gpu(step, batches.pipeline)
        return batches | "Make" >> step

    def _make(self, batch: Any) -> Any:
        rows = self.make(batch, self.rules)
        progress.count(self.progress_folder, self.counted, len(batch))
        return rows


class TakeOver(CountedStep[CombineRules]):
    """Copies rows of finished datasets, piece by piece."""

    counted = "combined"

    def size(self, piece: Piece) -> int:
        return piece.size if piece.table == "samples" else 0

    def make(self, piece: Piece) -> BatchWork:
        return convert_piece(piece, self.rules)


@dataclass
class WriteDataset(beam.PTransform):
    """Writes the rows of finished works into their tables, then the manifest.

    A work is the result of one plan record: `rows(table, dataset)` returns its rows in a table, and
    `tallies` holds its counts.
    """

    target: DatasetTarget

    def expand(self, works: beam.PCollection[Any]) -> beam.PCollection[str]:
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
        return (*rows, tallies) | WriteTables(self.target)


@dataclass
class WriteCombined(beam.PTransform):
    """Writes the rows of pieces; an image that several parts have gets one row."""

    target: DatasetTarget

    def expand(self, works: beam.PCollection[BatchWork]) -> beam.PCollection[str]:
        rows = []
        for table in self.target.tables:
            found = works | table.name.title() >> beam.FlatMap(_rows, table.name, "")
            if table.name == "images":
                found = (
                    found
                    | beam.WithKeys(attrgetter("image_id")).with_output_types(tuple[str, ImageRow])
                    | "GroupImages" >> beam.GroupByKey()
                    | "MergeImages" >> beam.MapTuple(merge_images)
                )
            rows.append(found)
        tallies = works | "Tallies" >> beam.FlatMap(_tallies)
        return (*rows, tallies) | WriteTables(self.target)


@dataclass
class WriteTables(beam.PTransform):
    """Writes every table, and finally the manifest if the counts add up.

    Its input is a tuple of collections: the records of each table, in the order of the target's
    tables, then the counts as (stage, (candidates, kept)).
    """

    target: DatasetTarget

    def expand(self, inputs: Any) -> beam.PCollection[str]:
        header = self.target.header
        if header.errata:
            kinds = kinds_of(header.dataset, _names(self.target))
            inputs = inputs | "Errata" >> ApplyErrata(by_sample(header.errata), kinds)
        *records, tallies = inputs
        written = [
            rows | f"Write{table.name.title()}" >> WriteTable(table, self.target)
            for rows, table in zip(records, self.target.tables, strict=True)
        ]
        counts = tallies | "AddUpCounts" >> beam.CombinePerKey(TupleCombineFn(sum, sum))
        return (
            (*written, counts)
            | "FlattenResults" >> beam.Flatten()
            | "ToOnePlace" >> beam.WithKeys(0)
            | "GroupResults" >> beam.GroupByKey()
            | "WriteManifest" >> beam.MapTuple(partial(_finish, self.target))
        )


@dataclass
class ApplyErrata(beam.PTransform):
    """Corrects samples, and turns dropped ones into rejects; its input is that of `WriteTables`."""

    errata: Errata
    kinds: tuple[TableType, ...]

    def expand(self, inputs: Any) -> Any:
        *records, tallies = inputs
        found = dict(zip((kind.name for kind in self.kinds), records, strict=True))
        samples, rejects = found["samples"], found["rejects"]
        counted = samples | "TallyErrata" >> beam.FlatMap(tally, self.errata)
        dropped = samples | "Reject" >> beam.FlatMap(rejected, self.errata)
        for kind in self.kinds:
            if kind.name == "samples" or "sample_id" in kind.references:
                step = f"Correct{kind.name.title()}"
                found[kind.name] = found[kind.name] | step >> beam.FlatMap(kept, self.errata)
        found["rejects"] = (rejects, dropped) | "WithErrata" >> beam.Flatten()
        return (*found.values(), (tallies, counted) | "TalliesOfAll" >> beam.Flatten())


@dataclass
class WriteTable(beam.PTransform):
    """Groups records by shard and writes every shard of a table, including empty ones."""

    table: Table
    target: DatasetTarget

    def expand(self, records: beam.PCollection[Any]) -> beam.PCollection[WrittenShard]:
        no_runs: list[tuple[int, tuple[Run, ...]]] = [(n, ()) for n in range(self.table.shards)]
        every_shard = records.pipeline | "EveryShard" >> beam.Create(no_runs)
        runs = records | "SortRuns" >> beam.ParDo(SortRuns(self.table, self.target.output))
        return (
            (runs, every_shard)
            | "Flatten" >> beam.Flatten()
            | "GroupByShard" >> beam.GroupByKey()
            | "WriteShard" >> beam.MapTuple(self._write)
        )

    def _write(self, shard: int, groups: Iterable[tuple[Run, ...]]) -> WrittenShard:
        runs = (run for group in groups for run in group)
        return write_runs(self.table, shard, runs, self.target.output, self.target.place)


class SortRuns(beam.DoFn):
    """Turns records into sorted runs; memory per bundle is bounded in bytes, not in records."""

    def __init__(self, table: Table, output: str) -> None:
        self.table = table
        self.part = storage.join(parts_of(output), f"{table.name}-")

    def start_bundle(self) -> None:
        self.sorter = RunSorter(self.table.key, self.table.shards, self.part)

    def process(self, record: Any) -> Iterator[tuple[int, tuple[Run, ...]]]:
        for shard, run in self.sorter.add(record):
            yield shard, (run,)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for shard, run in self.sorter.flush():
            yield GlobalWindows.windowed_value((shard, (run,)))


def _names(target: DatasetTarget) -> tuple[str, ...]:
    return tuple(table.name for table in target.tables)


def _rows(work: Any, table: str, dataset: str) -> Iterator[Any]:
    yield from work.rows(table, dataset)


def _tallies(work: Any) -> Iterator[tuple[str, tuple[int, int]]]:
    yield from ((each.stage, (each.candidates, each.kept)) for each in work.tallies)


def _finish(target: DatasetTarget, _: int, results: Iterable[Any]) -> str:
    collected = list(results)
    shards = [result for result in collected if isinstance(result, WrittenShard)]
    entered = {stage: counts for stage, counts in (r for r in collected if isinstance(r, tuple))}
    return finish_dataset(target, shards, entered)
