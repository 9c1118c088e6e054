"""The steps of a pipeline over captions: each wires the function of its name, batch by batch."""

from eqforge.transforms.dataset.tables import BatchWork
from eqforge.transforms.engines.counted_step import CountedStep
from eqforge.transforms.text.hard_positive_samples import HardPositiveRules
from eqforge.transforms.text.hard_positives import make_hard_positives
from eqforge.transforms.text.image_texts import TextsBatch
from eqforge.transforms.text.perturb import PerturbationRules, perturb_batch
from eqforge.transforms.text.training import TrainingRules, make_training_texts
from eqforge.transforms.text.work import CaptionBatch


class PerturbCaptions(CountedStep[PerturbationRules]):
    """Perturbs and measures batches of captions."""

    counted = "perturbed"

    def size(self, batch: CaptionBatch) -> int:
        return len(batch.captions)

    def make(self, batch: CaptionBatch) -> BatchWork:
        return perturb_batch(batch, self.rules)


class MakeHardPositives(CountedStep[HardPositiveRules]):
    """Makes the hard positives of batches of images."""

    counted = "reworded"

    @property
    def uses_gpu(self) -> bool:
        return self.rules.judging is not None and self.rules.judging.uses_gpu

    def size(self, batch: TextsBatch) -> int:
        return len(batch.images)

    def make(self, batch: TextsBatch) -> BatchWork:
        return make_hard_positives(batch, self.rules)


class MakeTrainingTexts(CountedStep[TrainingRules]):
    """Makes the training texts of batches of captions."""

    counted = "edited"

    @property
    def uses_gpu(self) -> bool:
        return self.rules.judging is not None and self.rules.judging.uses_gpu

    def size(self, batch: CaptionBatch) -> int:
        return len(batch.captions)

    def make(self, batch: CaptionBatch) -> BatchWork:
        return make_training_texts(batch, self.rules)
