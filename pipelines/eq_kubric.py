r"""Eq-Kubric: pairs of rendered scenes that differ in an attribute, a count or a place.

Example:
    eqforge build eq-kubric --pairs 60 --output out/eq-kubric

Source: EqBen, section 4.2 and appendix B.4.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from tyro.conf import OmitArgPrefixes

from eqforge.core.files.cache import cache_folder
from eqforge.core.files.source_file import digest_input
from eqforge.generators.scenes.assets import BUILTIN, AssetLibrary
from eqforge.generators.scenes.kubric_import import check_installed
from eqforge.generators.scenes.propose import SCENES_STAGE, SceneProposer, sample_id_of
from eqforge.generators.scenes.settings import SceneSettings, scene_settings
from eqforge.models.pretrained import device_here
from eqforge.pipelines.base.command import Main
from eqforge.pipelines.base.generated import (
    DrawSettings,
    GeneratedPipeline,
    Numbers,
    made_of,
    most_draws,
    select_pairs,
)
from eqforge.pipelines.base.pilot import PilotCost, PilotUnit
from eqforge.pipelines.base.pipeline import Target
from eqforge.pipelines.base.settings import DatasetConfig, Mode, check_seconds
from eqforge.schemas.records.scenes import RenderSettings, ScenePair
from eqforge.transforms.dataset.plan import PlanFiles, read_plan
from eqforge.transforms.filters.faces import FACES
from eqforge.transforms.filters.images import ImageFilters
from eqforge.transforms.filters.minimality import GateSettings
from eqforge.transforms.filters.pairs import PAIRS_STAGE
from eqforge.transforms.filters.perceptual import PerceptualSettings, prepare_perceptual
from eqforge.transforms.filters.quality import QualitySettings
from eqforge.transforms.generated.pairs import (
    IMAGES_STAGE,
    MEASURED,
    GeneratedRules,
    measure_generated,
)
from eqforge.transforms.generated.render import (
    RENDERED,
    RENDERS_STAGE,
    PlannedPair,
    RenderRules,
    assets_of,
    render_pair,
)
from eqforge.transforms.generated.scene_gates import OFF, SceneGates
from eqforge.transforms.generated.scene_renderer import TIMEOUT_S
from eqforge.transforms.generated.work import PairWork
from eqforge.transforms.oracle.judges import OracleSettings, oracle_warnings, prepare_oracle

if TYPE_CHECKING:
    import apache_beam as beam


@dataclass(frozen=True, kw_only=True)
class _SceneFilters:
    """Which rendered pairs are refused for what their masks show; they come first."""

    scenes: OmitArgPrefixes[SceneGates] = field(default_factory=SceneGates)


@dataclass(frozen=True, kw_only=True)
class RenderedFilters(ImageFilters, _SceneFilters):
    """Which rendered pairs are refused."""

    gates: OmitArgPrefixes[GateSettings] = field(default_factory=GateSettings)
    perceptual: OmitArgPrefixes[PerceptualSettings] = field(default_factory=PerceptualSettings)
    oracle: OmitArgPrefixes[OracleSettings] = field(default_factory=OracleSettings)

    distinct_captions: bool = True
    """Refuse pairs whose two captions say the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(DatasetConfig):
    """Pairs of rendered scenes that differ in an attribute, a count or a place.

    At the defaults a pair takes about 4 s of one core and 0.22 MB: 6,000 take about 7 core hours.
    `eqforge plan eq-kubric` measures it on your machine.
    """

    assets: str = BUILTIN
    """Manifest of the objects and environment pictures, in kubric's form: a path or URL, or
    `builtin` for the objects that eqforge brings. `eqforge assets` checks and fetches them."""

    scenes: OmitArgPrefixes[SceneSettings] = field(default_factory=SceneSettings)
    render: OmitArgPrefixes[RenderSettings] = field(default_factory=RenderSettings)

    render_timeout_s: float = TIMEOUT_S
    """A renderer that gives no sign of life for so long is started anew, once for each pair."""

    draws: OmitArgPrefixes[DrawSettings] = field(default_factory=DrawSettings)
    settings: OmitArgPrefixes[RenderedFilters] = field(default_factory=RenderedFilters)

    def __post_init__(self) -> None:
        """Checks the time limit.

        Raises:
          InputError: it is not more than 0.
        """
        check_seconds("render_timeout_s", self.render_timeout_s)


class EqKubric(GeneratedPipeline[Config]):
    """Pairs of rendered scenes that differ in an attribute, a count or a place."""

    name = "eq-kubric"
    Config = Config
    stages = (SCENES_STAGE, RENDERS_STAGE, IMAGES_STAGE, PAIRS_STAGE)
    steps = ((RENDERED, "pairs"), (MEASURED, "pairs"))
    pilot = PilotUnit(records="pairs", number=2, unit="pairs", clock="this machine with one worker")

    @classmethod
    def defaults(cls, mode: Mode) -> dict[str, Any]:
        """Returns the fields that a mode sets; the paper describes no filter for its renderings.

        Sharpness is not checked in either mode: a rendering of a plain floor is not blurred.
        """
        filters = RenderedFilters(faces=FACES.off, quality=QualitySettings(min_sharpness=None))
        if mode == "paper":
            filters = RenderedFilters.off(scenes=OFF, distinct_captions=False)
        return {"scenes": scene_settings(mode), "settings": filters}

    @property
    def library(self) -> AssetLibrary:
        """The objects and environment pictures."""
        return AssetLibrary(self.config.assets, str(cache_folder() / "assets"))

    @cached_property
    def proposer(self) -> SceneProposer:
        """What arranges pairs of scenes."""
        return SceneProposer(self.config.scenes, self.library, self.config.mode, self.run.seed)

    def inputs(self) -> Iterable[str]:
        """Returns the manifest of assets."""
        return (self.library.url,)

    def check(self) -> None:
        """Checks what a build needs.

        Raises:
          InputError: the manifest cannot be read, lacks what the settings name, or an oracle
            cannot be loaded.
          MissingExtra: kubric, Blender, or what a face detector or oracle needs is not installed.
        """
        check_installed()
        _ = self.proposer
        self.config.settings.prepare()
        prepare_perceptual(self.config.settings.perceptual)
        prepare_oracle(self.config.settings.oracle)

    def warnings(self) -> Iterator[str]:
        scenes = self.config.scenes
        if "material" in scenes.attributes and "attribute" in scenes.kinds:
            yield from self._material_warnings()
        yield from oracle_warnings(prepare_oracle(self.config.settings.oracle))

    def _material_warnings(self) -> Iterator[str]:
        """Yields what is known of pairs of materials: how often they are wrong, what has none."""
        if self.config.scenes.stage == "plain":
            yield (
                "--attributes material: on the plain stage, in 8 of 18 such pairs that were looked "
                "at, the pictures do not show the materials that the captions name"
            )
            return
        some, number = self.proposer.material_nouns
        if self.config.assets != BUILTIN and some < number:
            yield (
                f"--attributes material: of {number} kinds of objects, {some} have such pairs: "
                "their words name two or more `materials`, and let them be recoloured"
            )

    def wanted(self) -> dict[str, int]:
        return {kind: self.config.scenes.pairs_of(kind) for kind in self.config.scenes.kinds}

    def most(self) -> dict[str, int]:
        return most_draws(self.wanted(), self.proposer.supply, self.config.draws)

    def drawn(self, numbers: Numbers) -> Iterator[PlannedPair]:
        """Yields the pairs of scenes of some draws; only those that are selected are arranged."""
        kinds = self.config.scenes.kinds
        named = ((kind, number) for kind in kinds for number in numbers.get(kind, ()))
        for kind, number in select_pairs(named, lambda each: sample_id_of(*each), self.run):
            yield PlannedPair.of(self.proposer.pair(kind, number))

    def sample_id(self, kind: str, number: int) -> str:
        return sample_id_of(kind, number)

    def measure(self, planned: PlannedPair) -> dict[str, int]:
        if planned.pair is None:
            return {"pairs": 1, "rejects": 1}
        changed = planned.pair.change
        is_attribute = planned.pair.kind == "attribute"
        of_attribute = {f"changing {changed}": 1} if is_attribute else {}
        return {"pairs": 1, f"of {planned.pair.kind}": 1, **of_attribute}

    def confirm(self, plan: PlanFiles) -> None:
        """Fetches and unpacks the assets that the plan needs, and tries the GPU.

        Raises:
          InputError: an asset is missing, or not the one that the manifest pins; Cycles finds no
            GPU.
        """
        library = self.library
        used = {asset for pair in _pairs(plan) for asset in assets_of(pair)}
        for asset in sorted(filter(library.__contains__, used)):
            library.unpack(asset)
        # The machine that launches a job need not have the workers' GPU.
        if device_here(self.config.render.device) == "gpu":
            with closing(self.rules("").renderer()) as renderer:
                for pair in islice(_pairs(plan), 1):
                    renderer.render([replace(pair.scenes[0], objects=())])

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
        """Returns how scenes become pairs, with media and finished work below a folder or URL."""
        settings = self.config.settings
        return RenderRules(
            render=self.config.render,
            assets=self.config.assets,
            assets_sha256=digest_input(self.library.url),
            cache=str(cache_folder() / "assets"),
            timeout_s=self.config.render_timeout_s,
            gates=settings.scenes,
            generated=GeneratedRules(
                work=work,
                images=settings,
                gates=settings.gates,
                distinct_captions=settings.distinct_captions,
                perceptual=prepare_perceptual(settings.perceptual),
                oracle=prepare_oracle(settings.oracle),
            ),
        )

    def is_fit(self, planned: PlannedPair) -> bool:
        return planned.pair is not None

    def try_records(self, planned: Sequence[PlannedPair], folder: str) -> PilotCost:
        pairs = [each.pair for each in planned if each.pair is not None]
        rules = self.rules(folder)
        started = time.perf_counter()
        with closing(rules.renderer()) as renderer:
            # An empty scene starts Blender and initialises the device.
            renderer.render([replace(pairs[0].scenes[0], objects=())])
            ready = time.perf_counter()
            works = [render_pair(pair, rules, renderer) for pair in pairs]
            works = [measure_generated(work, rules.generated) for work in works]
            done = time.perf_counter()
        return PilotCost(
            seconds=done - ready,
            num_bytes=sum(work.made.num_bytes for work in works if work.made is not None),
            start_s=ready - started,
            made=made_of(works, rules.generated),
        )


def _pairs(plan: PlanFiles) -> Iterator[ScenePair]:
    planned = read_plan(PlannedPair, plan.files)
    return (each.pair for each in planned if each.pair is not None)


main = Main(EqKubric)
"""Builds the dataset as a command line says."""
