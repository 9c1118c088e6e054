r"""Eq-Kubric: pairs of rendered scenes that differ in an attribute, a count or a place.

The two scenes of a pair share camera, light and all objects but one. eqforge renders both, and
rejects the pair if the masks do not show what the captions say.

Example:
    eqforge build eq-kubric --pairs 60 --output out/eq-kubric

Source: EqBen, section 4.2 and appendix B.4.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import OmitArgPrefixes

from eqforge.core.files.disk import cache_folder
from eqforge.core.files.source_file import digest_input
from eqforge.core.identity import Trace
from eqforge.core.ranges import expect
from eqforge.generators.scenes.assets import BUILTIN, AssetLibrary
from eqforge.generators.scenes.kubric_import import check_installed
from eqforge.generators.scenes.propose import SCENES_STAGE, SceneProposer
from eqforge.generators.scenes.settings import SceneSettings, scene_settings
from eqforge.models.pretrained import device_here
from eqforge.pipelines.base.command import Main
from eqforge.pipelines.base.generated import (
    DrawSettings,
    GeneratedPipeline,
    Numbers,
    PairFilters,
    select_pairs,
    try_making,
)
from eqforge.pipelines.base.pipeline import DatasetConfig, Mode, PilotCost, PilotUnit, Target
from eqforge.schemas.records.scenes import RenderSettings
from eqforge.transforms.dataset.plan import PlanFiles, read_plan
from eqforge.transforms.filters.faces import FACES
from eqforge.transforms.filters.pairs import PAIRS_STAGE
from eqforge.transforms.filters.quality import QualitySettings
from eqforge.transforms.generated.pairs import IMAGES_STAGE, MEASURED, measure_generated
from eqforge.transforms.generated.render import (
    RENDERED,
    RENDERS_STAGE,
    PlannedPair,
    RenderRules,
    render_pair,
)
from eqforge.transforms.generated.scene_gates import OFF, SceneGates
from eqforge.transforms.generated.scene_renderer import TIMEOUT_S
from eqforge.transforms.generated.work import PairWork
from eqforge.transforms.oracle.judges import oracle_warnings, prepare_oracle

if TYPE_CHECKING:
    import apache_beam as beam


@dataclass(frozen=True, kw_only=True)
class RenderedFilters(PairFilters):
    """Filters for rendered pairs."""

    scenes: OmitArgPrefixes[SceneGates] = field(default_factory=SceneGates)


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(DatasetConfig):
    """Build rendered pairs that differ in an attribute, a count or a location.

    A pair takes 8.3 s on one core and 0.22 MB of storage, so 6,000 pairs take about 14 core hours.
    For an estimate on your machine, run `eqforge plan eq-kubric`.
    """

    assets: Annotated[str, Trace.NAME] = BUILTIN
    """Path or URL of an object manifest in Kubric's format, or `builtin`."""

    scenes: OmitArgPrefixes[SceneSettings] = field(default_factory=SceneSettings)
    render: OmitArgPrefixes[RenderSettings] = field(default_factory=RenderSettings)

    render_timeout_s: Annotated[float, Trace.NONE] = TIMEOUT_S
    """Restart the renderer after this number of seconds without progress, at most once per pair."""

    draws: OmitArgPrefixes[DrawSettings] = field(default_factory=DrawSettings)
    settings: OmitArgPrefixes[RenderedFilters] = field(default_factory=RenderedFilters)


class EqKubric(GeneratedPipeline[Config, PlannedPair]):
    """Pairs of rendered scenes that differ in an attribute, a count or a place."""

    name = "eq-kubric"
    Config = Config
    basics = ("pairs", "kinds", "attributes", "resolution", "samples", "assets", "workers", "mode")
    stages = (SCENES_STAGE, RENDERS_STAGE, IMAGES_STAGE, PAIRS_STAGE)
    steps = ((RENDERED, "pairs"), (MEASURED, "pairs"))
    pilot = PilotUnit(records="pairs", number=2, unit="pairs", clock="this machine with one worker")

    @classmethod
    def defaults(cls, mode: Mode) -> dict[str, Any]:
        # A rendering of a plain floor is not blurred, and the paper describes no filter at all.
        filters = RenderedFilters(faces=FACES.off, quality=QualitySettings(min_sharpness=None))
        if mode == "paper":
            filters = RenderedFilters.off(scenes=OFF, distinct_captions=False)
        return {"scenes": scene_settings(mode), "settings": filters}

    @property
    def library(self) -> AssetLibrary:
        return AssetLibrary(self.config.assets, str(cache_folder() / "assets"))

    @cached_property
    def proposer(self) -> SceneProposer:
        return SceneProposer(self.config.scenes, self.library, self.config.mode, self.run.seed)

    def inputs(self) -> Iterable[str]:
        return (self.library.url,)

    def check(self) -> None:
        timeout_s = self.config.render_timeout_s
        expect(self.config, "render_timeout_s", timeout_s > 0, "more than 0 seconds")
        check_installed()
        _ = self.proposer
        self.prepare_models()

    def warnings(self) -> Iterator[str]:
        yield from self.proposer.warnings()
        yield from oracle_warnings(prepare_oracle(self.config.settings.oracle))

    def pair_counts(self) -> dict[str, int]:
        return {kind: self.config.scenes.pairs_of(kind) for kind in self.config.scenes.kinds}

    def supply(self, kind: str) -> int:
        return self.proposer.supply[kind]

    def planned_pairs(self, numbers: Numbers) -> Iterator[PlannedPair]:
        kinds = self.config.scenes.kinds
        named = ((kind, number) for kind in kinds for number in numbers.get(kind, ()))
        for kind, number in select_pairs(named, lambda each: self.sample_id(*each), self.run):
            yield PlannedPair.of(self.proposer.pair(kind, number))  # only those are arranged

    def measure(self, planned: PlannedPair) -> dict[str, int]:
        return planned.counts

    def confirm(self, plan: PlanFiles) -> None:
        """Fetch and unpack the assets that the plan needs, and try the GPU."""
        planned = read_plan(PlannedPair, plan.files)
        self.library.unpack_all(asset for each in planned for asset in each.assets)
        first = next((each.pair for each in read_plan(PlannedPair, plan.files) if each.pair), None)
        # The machine that launches a job need not have the workers' GPU.
        if first is not None and device_here(self.config.render.device) == "gpu":
            with self.rules("").started(first):
                pass

    def make(self, root: "beam.Pipeline", target: Target) -> "beam.PCollection[PairWork]":
        from eqforge.transforms.dataset.steps import ReadPlan
        from eqforge.transforms.generated.steps import DropGenerated, MeasureGenerated, RenderPairs

        rules = self.rules(self.work)
        return (
            root
            | ReadPlan(target.plan_files, PlannedPair)
            | RenderPairs(rules, target.notes)
            | MeasureGenerated(rules.generated, target.notes)
            | DropGenerated(rules.generated)
        )

    def rules(self, work: str) -> RenderRules:
        return RenderRules(
            render=self.config.render,
            assets=self.config.assets,
            assets_sha256=digest_input(self.library.url),
            cache=str(cache_folder() / "assets"),
            timeout_s=self.config.render_timeout_s,
            gates=self.config.settings.scenes,
            generated=self.generated_rules(work),
        )

    def is_fit(self, planned: PlannedPair) -> bool:
        return planned.pair is not None

    def try_records(self, planned: Sequence[PlannedPair], folder: str) -> PilotCost:
        rules, pairs = self.rules(folder), [each.pair for each in planned if each.pair is not None]
        with ExitStack() as stack:
            return try_making(
                lambda: stack.enter_context(rules.started(pairs[0])),
                lambda renderer: (
                    measure_generated(render_pair(pair, rules, renderer), rules.generated)
                    for pair in pairs
                ),
                rules.generated,
            )


main = Main(EqKubric)
