"""From drawn pairs to judged ones: each by itself, or the best drawing of each."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eqforge.transforms.engines.composite import Composite
from eqforge.transforms.engines.counted_step import CountedStep
from eqforge.transforms.generated.draw_work import Drawings, choose_best
from eqforge.transforms.generated.pairs import (
    MEASURED,
    DropGenerated,
    GeneratedRules,
    MeasureGenerated,
    measure_generated,
)
from eqforge.transforms.generated.work import PairWork

if TYPE_CHECKING:
    import apache_beam as beam


class ChooseBest(CountedStep[GeneratedRules]):
    """Measures and judges the drawings of a pair, and keeps the best."""

    counted = MEASURED

    @property
    def uses_gpu(self) -> bool:
        return any(
            (
                self.rules.oracle.uses_gpu,
                self.rules.perceptual.uses_gpu,
                self.rules.ranking.uses_gpu,
            )
        )

    def make(self, drawings: Drawings) -> PairWork:
        return choose_best(drawings, self.rules)


def measure_drawn(drawn: PairWork | Drawings, rules: GeneratedRules) -> PairWork:
    """Returns what was drawn with its measures; of several drawings the best one."""
    if isinstance(drawn, Drawings):
        return choose_best(drawn, rules)
    return measure_generated(drawn, rules)


@dataclass
class JudgeDrawn(Composite):
    """Measures and judges what was drawn, as the rules ask for one drawing of each or for several.

    Attributes:
      rules: how pairs are measured and judged.
      notes: the folder of the progress notes.
    """

    rules: GeneratedRules
    notes: str

    def expand(self, drawn: "beam.PCollection[PairWork]") -> "beam.PCollection[PairWork]":
        if self.rules.ranking.settings.is_used:
            return drawn | "ChooseBest" >> ChooseBest(self.rules, self.notes)
        measured = drawn | "MeasurePairs" >> MeasureGenerated(self.rules, self.notes)
        return measured | "DropPairs" >> DropGenerated(self.rules)
