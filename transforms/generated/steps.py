"""The pipeline steps that render, draw or edit pairs and then judge them."""

from collections.abc import Iterator
from dataclasses import dataclass

import apache_beam as beam

from eqforge.generators.diffusion.prompts import PromptPair
from eqforge.schemas.records.stages import Tally
from eqforge.transforms.engines import progress
from eqforge.transforms.engines.counted_step import CountedStep, WithResource
from eqforge.transforms.engines.placement import on_gpu, with_render_memory
from eqforge.transforms.generated.diffuse import DRAWN, DiffuseRules, diffuse_pair
from eqforge.transforms.generated.draw_work import Drawings, choose_best
from eqforge.transforms.generated.edit import EDITED, edit_photograph
from eqforge.transforms.generated.edit_plan import (
    EditingRules,
    EditWork,
    PhotographBatch,
    plan_edits,
)
from eqforge.transforms.generated.pairs import (
    MEASURED,
    GeneratedRules,
    drop_generated,
    measure_generated,
)
from eqforge.transforms.generated.render import RENDERED, PlannedPair, RenderRules, render_pair
from eqforge.transforms.generated.scene_renderer import SceneRenderer
from eqforge.transforms.generated.work import PairWork


@dataclass
class RenderPairs(beam.PTransform):
    """Renders every proposed pair, both scenes in the same Blender, and judges its masks."""

    rules: RenderRules
    progress_folder: str | None = None

    def expand(self, pairs: beam.PCollection[PlannedPair]) -> beam.PCollection[PairWork]:
        do_fn = WithResource(self.rules.renderer(), self._render)
        render = beam.ParDo(do_fn).with_output_types(PairWork)
        place = with_render_memory if self.rules.render.device == "cpu" else on_gpu
        return pairs | "RenderScenes" >> place(render, pairs.pipeline)

    def _render(self, planned: PlannedPair, renderer: SceneRenderer) -> Iterator[PairWork]:
        if planned.reject is not None:
            tally = Tally(stage=planned.reject.stage, candidates=1, kept=0)
            yield PairWork(proposal=None, rejects=(planned.reject,), tallies=(tally,))
        if planned.pair is not None:
            yield render_pair(planned.pair, self.rules, renderer)
        progress.count(self.progress_folder, RENDERED)


class DiffusePairs(CountedStep[DiffuseRules]):
    """Draws every pair of prompts."""

    counted = DRAWN

    @property
    def uses_gpu(self) -> bool:
        return self.rules.diffusion.device != "cpu" or self.rules.generated.plausibility.uses_gpu

    def make(self, pair: PromptPair) -> Drawings:
        return diffuse_pair(pair, self.rules)


@dataclass
class PlanEdits(beam.PTransform):
    """Turns batches of captions into single edits, for any number of workers."""

    rules: EditingRules

    def expand(self, batches: beam.PCollection[PhotographBatch]) -> beam.PCollection[EditWork]:
        planned = batches | "Plan" >> beam.FlatMap(plan_edits, self.rules)
        return planned | "Spread" >> beam.Reshuffle()


class EditPhotographs(CountedStep[EditingRules]):
    """Makes every planned edit."""

    counted = EDITED

    @property
    def uses_gpu(self) -> bool:
        return self.rules.editor.device != "cpu" or self.rules.generated.plausibility.uses_gpu

    def make(self, work: EditWork) -> Drawings:
        return edit_photograph(work, self.rules)


class _Measured(CountedStep[GeneratedRules]):
    counted = MEASURED

    @property
    def uses_gpu(self) -> bool:
        return self.rules.oracle.uses_gpu or self.rules.perceptual.uses_gpu


class MeasureGenerated(_Measured):
    """Scores and measures made pairs, and queries the requested models."""

    def make(self, work: PairWork) -> PairWork:
        return measure_generated(work, self.rules)


class DropGenerated(CountedStep[GeneratedRules]):
    """Drops measured pairs with a score beyond a limit."""

    def make(self, work: PairWork) -> PairWork:
        return drop_generated(work, self.rules)


class JudgeDrawn(_Measured):
    """Measures and judges the drawings of each pair, and keeps the best."""

    def make(self, drawings: Drawings) -> PairWork:
        return choose_best(drawings, self.rules)
