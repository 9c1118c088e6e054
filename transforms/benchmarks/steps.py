"""The step that imports the items of a benchmark."""

from eqforge.transforms.benchmarks.items import (
    BenchmarkBatch,
    BenchmarkRules,
    BenchmarkWork,
    import_batch,
)
from eqforge.transforms.engines.counted_step import CountedStep


class ImportItems(CountedStep[BenchmarkRules]):
    """Imports batches of items."""

    counted = "imported"

    def size(self, batch: BenchmarkBatch) -> int:
        return len(batch.items)

    def make(self, batch: BenchmarkBatch) -> BenchmarkWork:
        return import_batch(batch, self.rules)
