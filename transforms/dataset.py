"""Writes a dataset: its three tables, and then the manifest that says it is complete."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam

from eqforge.schemas import storage
from eqforge.schemas.card import dataset_card
from eqforge.schemas.errors import BuildError
from eqforge.schemas.identity import bucket
from eqforge.schemas.manifest import FILE_NAME, Manifest, StageBooks, close_books, to_json
from eqforge.transforms.reasons import ERROR_PREFIX, is_known
from eqforge.transforms.write import Table, WrittenShard, write_shard

CARD = "README.md"
# A shard of any table of any dataset: what was replaced may have had tables that this one has not.
_SHARD = re.compile(r"(samples|images|captions|rejects)-\d{5}-of-\d{5}\.parquet")


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetTarget:
    """Where a dataset goes and what is known of it before its rows are.

    Attributes:
      output: the dataset's folder or URL.
      header: the manifest without books and files.
      stages: the stages in order; the last one's kept candidates are the samples.
      tables: the tables, among them `samples` and `rejects`.
      max_error_rate: the share of a stage's candidates in [0, 1] that may fail with an exception.
    """

    output: str
    header: Manifest
    stages: tuple[str, ...]
    tables: tuple[Table, ...]
    max_error_rate: float


@dataclass
class WriteTable(beam.PTransform):
    """Groups records by shard and writes every shard of a table, the empty ones too."""

    table: Table
    output: str

    def expand(self, records: beam.PCollection[Any]) -> beam.PCollection[WrittenShard]:
        shards = range(self.table.shards)
        every_shard = records.pipeline | "EveryShard" >> beam.Create(shards) | beam.Map(_no_records)
        keyed = records | "ByShard" >> beam.Map(partial(_by_shard, self.table))
        return (
            (keyed, every_shard)
            | "Flatten" >> beam.Flatten()
            | "GroupByShard" >> beam.GroupByKey()
            | "WriteShard" >> beam.MapTuple(self._write)
        )

    def _write(self, shard: int, groups: Iterable[tuple[Any, ...]]) -> WrittenShard:
        records = (record for group in groups for record in group)
        return write_shard(self.table, shard, records, self.output)


def _by_shard(table: Table, record: Any) -> tuple[int, tuple[Any, ...]]:
    return bucket(table.key(record), table.shards), (record,)


def _no_records(shard: int) -> tuple[int, tuple[Any, ...]]:
    return shard, ()


@dataclass
class WriteDataset(beam.PTransform):
    """Writes every table, and last the manifest, if the books balance.

    Its input is a tuple of collections: the records of each table, in the order of the target's
    tables, and then the books as (stage, (candidates, kept)).
    """

    target: DatasetTarget

    def expand(self, inputs: Any) -> beam.PCollection[str]:
        *records, tallies = inputs
        written = [
            rows | f"Write{table.name.title()}" >> WriteTable(table, self.target.output)
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
    """Checks the books, removes files of older runs, and writes card and manifest.

    Returns:
      The URL of the manifest.

    Raises:
      BuildError: the books do not balance, or too many records failed with an exception.
    """
    reasons: dict[str, Counter[str]] = {}
    for shard in shards:
        for stage, reason, count in shard.counts:
            reasons.setdefault(stage, Counter())[reason] += count
    manifest = _with_tables(target, shards, close_books(target.stages, entered, reasons))
    check_books(manifest, set(reasons) | set(entered), target)
    _remove_strays(target.output, shards)
    storage.write_bytes(storage.join(target.output, CARD), dataset_card(manifest).encode())
    url = storage.join(target.output, FILE_NAME)
    storage.write_bytes(url, to_json(manifest))
    return url


def _with_tables(
    target: DatasetTarget, shards: list[WrittenShard], stages: dict[str, StageBooks]
) -> Manifest:
    tables = {
        name: sorted(
            (shard.file for shard in shards if shard.table == name), key=lambda file: file.path
        )
        for name in (table.name for table in target.tables)
    }
    header = target.header
    return Manifest(
        dataset=header.dataset,
        mode=header.mode,
        config=header.config,
        inputs=header.inputs,
        versions=header.versions,
        stages=stages,
        tables=tables,
        warnings=header.warnings,
    )


def check_books(manifest: Manifest, seen: set[str], target: DatasetTarget) -> None:
    """Checks that every candidate of every stage is accounted for.

    Raises:
      BuildError: it is not, or more than the allowed share of a stage failed with an exception.
    """
    if strange := sorted(seen - set(target.stages)):
        raise BuildError(f"the books name stages nobody declared: {', '.join(strange)}")
    for stage, books in manifest.stages.items():
        if not books.is_balanced():
            raise BuildError(
                f"the books of the stage {stage!r} do not balance: {books.candidates} candidates, "
                f"{books.kept} kept, {books.rejected} rejected"
            )
        unknown = [reason for reason in books.reasons if not is_known(stage, reason)]
        if unknown:
            raise BuildError(f"the stage {stage!r} gave the undocumented reason {unknown[0]!r}")
        failed = sum(n for reason, n in books.reasons.items() if reason.startswith(ERROR_PREFIX))
        if failed > target.max_error_rate * books.candidates:
            raise BuildError(
                f"{failed} of {books.candidates} candidates of the stage {stage!r} failed with an "
                f"exception, more than --max-error-rate {target.max_error_rate}; "
                f"the rejects in {target.output}/data say which and why"
            )
    kept = manifest.stages[target.stages[-1]].kept
    if kept != manifest.num_rows("samples"):
        raise BuildError(f"{kept} candidates were kept, but {manifest.num_rows('samples')} written")


def _remove_strays(output: str, shards: list[WrittenShard]) -> None:
    """Deletes what older runs left in the data folder: other shard counts, half-written files."""
    ours = {shard.file.path.removeprefix("data/") for shard in shards}
    for name in storage.list_files(storage.join(output, "data")):
        is_half = name.startswith(storage.TEMPORARY_PREFIX)
        if name not in ours and (is_half or _SHARD.fullmatch(name)):
            storage.delete(storage.join(output, "data", name))
