"""The pipeline steps that import published benchmarks."""

from eqforge.transforms.dataset.tables import BatchWork
from eqforge.transforms.engines.counted_step import CountedStep
from eqforge.transforms.imports import benchmarks, vlue


class ImportItems(CountedStep[benchmarks.BenchmarkRules]):
    """Imports batches of items of a benchmark."""

    counted = "imported"

    def size(self, batch: benchmarks.BenchmarkBatch) -> int:
        return len(batch.items)

    def make(self, batch: benchmarks.BenchmarkBatch) -> BatchWork:
        return benchmarks.import_batch(batch, self.rules)


class ImportVlue(CountedStep[vlue.VlueRules]):
    """Imports batches of items of VLUE."""

    counted = "imported"

    def size(self, batch: vlue.VlueBatch) -> int:
        return len(batch.items)

    def make(self, batch: vlue.VlueBatch) -> vlue.VlueWork:
        return vlue.import_batch(batch, self.rules)
