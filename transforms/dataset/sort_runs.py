"""The step that sorts a table's records, each worker those of its bundles."""

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from eqforge.core.files import storage
from eqforge.transforms.dataset.sorted_runs import Run, RunSorter
from eqforge.transforms.dataset.table import Table


class SortRuns(beam.DoFn):
    """Turns records into sorted runs; memory per bundle is bounded in bytes, not in records.

    Args:
      table: whose records they are.
      parts: the folder of part files.
      part_bytes: see RunSorter.
    """

    def __init__(self, table: Table, parts: str, part_bytes: int) -> None:
        self.table, self.part_bytes = table, part_bytes
        self.part = storage.join(parts, f"{table.name}-")

    def start_bundle(self) -> None:
        key, shards = self.table.key, self.table.shards
        self.sorter = RunSorter(key, shards, self.part, part_bytes=self.part_bytes)

    def process(self, record: Any) -> Iterator[tuple[int, tuple[Run, ...]]]:
        for shard, run in self.sorter.add(record):
            yield shard, (run,)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for shard, run in self.sorter.flush():
            yield GlobalWindows.windowed_value((shard, (run,)))
