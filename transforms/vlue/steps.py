"""The step that imports the items of VLUE."""

from eqforge.transforms.engines.counted_step import CountedStep
from eqforge.transforms.vlue.items import VlueBatch, VlueRules, VlueWork, import_batch


class ImportVlue(CountedStep[VlueRules]):
    """Imports batches of items."""

    counted = "imported"

    def size(self, batch: VlueBatch) -> int:
        return len(batch.items)

    def make(self, batch: VlueBatch) -> VlueWork:
        return import_batch(batch, self.rules)
