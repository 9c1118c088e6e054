r"""Eq-Kubric: pairs of rendered scenes that differ in an attribute, a count or a place.

Example:
    eqforge build eq-kubric --pairs 60 --output out/eq-kubric

Source: EqBen, section 4.2 and appendix B.4.
"""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from tyro.conf import OmitArgPrefixes

from eqforge.core.files import storage
from eqforge.core.files.cache import cache_folder
from eqforge.core.files.source_file import digest_input
from eqforge.generators.scenes.assets import BUILTIN, AssetLibrary
from eqforge.generators.scenes.kubric_import import check_installed
from eqforge.generators.scenes.propose import SCENES_STAGE, SceneProposer, sample_id_of
from eqforge.generators.scenes.settings import SceneSettings, scene_settings
from eqforge.models.pretrained import device_here
from eqforge.pipelines.shared.building import build_command
from eqforge.pipelines.shared.draws import Draws, DrawSettings, Numbers, most_draws
from eqforge.pipelines.shared.generated import made_of, select_pairs, tables_of
from eqforge.pipelines.shared.pipeline import Pilot, PilotCost, Pipeline, Target
from eqforge.pipelines.shared.settings import DatasetConfig, Mode, check_seconds
from eqforge.schemas.dataset.manifest import WORK
from eqforge.schemas.records.scenes import Kind, RenderSettings, ScenePair
from eqforge.transforms.dataset.plan import PlanFiles, read_plan
from eqforge.transforms.dataset.table import Table
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

NAME = "eq-kubric"


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


def defaults(mode: Mode) -> dict[str, Any]:
    """Returns the fields that a mode sets; the paper describes no filter for its renderings.

    Sharpness is not checked in either mode: a rendering of a plain floor is not blurred.
    """
    filters = RenderedFilters(faces=FACES.off, quality=QualitySettings(min_sharpness=None))
    if mode == "paper":
        filters = RenderedFilters.off(scenes=OFF, distinct_captions=False)
    return {"scenes": scene_settings(mode), "settings": filters}


def check(config: Config) -> None:
    """Checks what a build needs.

    Raises:
      InputError: the manifest cannot be read, lacks what the settings name, or an oracle cannot
        be loaded.
      MissingExtra: kubric, Blender, or what a face detector or an oracle needs is not installed.
    """
    check_installed()
    _proposer(config)
    config.settings.prepare()
    prepare_perceptual(config.settings.perceptual)
    prepare_oracle(config.settings.oracle)


def warnings(config: Config) -> Iterator[str]:
    """Yields what a user should know before trusting the numbers."""
    if "material" in config.scenes.attributes and "attribute" in config.scenes.kinds:
        yield from _material_warnings(config)
    yield from oracle_warnings(prepare_oracle(config.settings.oracle))


def _material_warnings(config: Config) -> Iterator[str]:
    """Yields what is known of pairs of materials: how often they are wrong, what has none."""
    if config.scenes.stage == "plain":
        yield (
            "--attributes material: on the plain stage, in 8 of 18 such pairs that were looked at, "
            "the pictures do not show the materials that the captions name"
        )
        return
    some, number = _proposer(config).material_nouns
    if config.assets != BUILTIN and some < number:
        yield (
            f"--attributes material: of {number} kinds of objects, {some} have such pairs: their "
            "words name two or more `materials`, and let them be recoloured"
        )


def _library(config: Config) -> AssetLibrary:
    return AssetLibrary(config.assets, str(cache_folder() / "assets"))


def _proposer(config: Config) -> SceneProposer:
    return SceneProposer(config.scenes, _library(config), config.mode, config.run.seed)


def plan(config: Config) -> Iterator[PlannedPair]:
    """Yields the pairs of scenes that the run settings select; only these are arranged."""
    counts = _most(config) if config.run.only else _wanted(config)
    yield from _drawn(config, {kind: range(count) for kind, count in counts.items()})


def _drawn(config: Config, numbers: Numbers) -> Iterator[PlannedPair]:
    """Yields what is drawn under some numbers."""
    proposer = _proposer(config)
    named = ((kind, number) for kind in config.scenes.kinds for number in numbers.get(kind, ()))
    for kind, number in select_pairs(named, _named, config.run):
        yield PlannedPair.of(proposer.pair(kind, number))


def _named(numbered: tuple[Kind, int]) -> str:
    return sample_id_of(*numbered)


def _wanted(config: Config) -> dict[str, int]:
    """Returns how many pairs of each kind are asked for."""
    return {kind: config.scenes.pairs_of(kind) for kind in config.scenes.kinds}


def _most(config: Config) -> dict[str, int]:
    """Returns how many pairs of each kind may be drawn."""
    return most_draws(_wanted(config), _proposer(config).supply, config.draws)


def confirm(config: Config, plan: PlanFiles) -> None:
    """Fetches and unpacks the assets that the plan needs, and tries the GPU.

    Raises:
      InputError: an asset is missing, or not the one that the manifest pins; Cycles finds no GPU.
    """
    library = _library(config)
    used = {asset for pair in _pairs(plan) for asset in assets_of(pair)}
    for asset in sorted(filter(library.__contains__, used)):
        library.unpack(asset)
    # The machine that launches a job need not have the workers' GPU.
    if device_here(config.render.device) == "gpu":
        with closing(rules_of(config, "").renderer()) as renderer:
            for pair in islice(_pairs(plan), 1):
                renderer.render([replace(pair.scenes[0], objects=())])


def _pairs(plan: PlanFiles) -> Iterator[ScenePair]:
    planned = read_plan(PlannedPair, plan.files)
    return (each.pair for each in planned if each.pair is not None)


def inputs(config: Config) -> Iterable[str]:
    """Returns the manifest of assets."""
    return (_library(config).url,)


def measure(_: Config, planned: PlannedPair) -> dict[str, int]:
    """Returns what a pair adds to the counts of a plan."""
    if planned.pair is None:
        return {"pairs": 1, "rejects": 1}
    changed = planned.pair.change
    is_attribute = planned.pair.kind == "attribute"
    of_attribute = {f"changing {changed}": 1} if is_attribute else {}
    return {"pairs": 1, f"of {planned.pair.kind}": 1, **of_attribute}


def rules_of(config: Config, work: str) -> RenderRules:
    """Returns how scenes become pairs, with media and finished work below a folder or URL."""
    settings, library = config.settings, _library(config)
    return RenderRules(
        render=config.render,
        assets=config.assets,
        assets_sha256=digest_input(library.url),
        cache=str(cache_folder() / "assets"),
        timeout_s=config.render_timeout_s,
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


def make(root: "beam.Pipeline", target: Target[Config]) -> "beam.PCollection[PairWork]":
    """Wires what renders, measures and judges the pairs of a plan."""
    from eqforge.transforms.dataset.steps import ReadPlan
    from eqforge.transforms.generated.steps import DropGenerated, MeasureGenerated, RenderPairs

    rules = rules_of(target.config, storage.join(target.config.run.output, WORK))
    return (
        root
        | ReadPlan(target.plan_files, PlannedPair)
        | RenderPairs(rules, target.notes)
        | MeasureGenerated(rules.generated, target.notes)
        | DropGenerated(rules.generated)
    )


def build(root: "beam.Pipeline", target: Target[Config]) -> None:
    """Wires the pipeline."""
    from eqforge.transforms.dataset.steps import WriteDataset

    _ = make(root, target) | WriteDataset(target.dataset)


def tables(config: Config, plan: PlanFiles) -> tuple[Table, ...]:
    """Returns the tables, sized for a plan."""
    return tables_of(config.run, plan.counts.get("pairs", 0))


def is_arranged(_config: Config, planned: PlannedPair) -> bool:
    """Tells whether a pair can be rendered."""
    return planned.pair is not None


def run_pilot(config: Config, planned: Sequence[PlannedPair], folder: str) -> PilotCost:
    """Renders some pairs in a temporary folder and measures what that takes."""
    pairs = [each.pair for each in planned if each.pair is not None]
    rules = rules_of(config, folder)
    renderer, started = rules.renderer(), time.perf_counter()
    try:
        # An empty scene starts Blender and initialises the device.
        renderer.render([replace(pairs[0].scenes[0], objects=())])
        ready = time.perf_counter()
        works = [render_pair(pair, rules, renderer) for pair in pairs]
        works = [measure_generated(work, rules.generated) for work in works]
        done = time.perf_counter()
    finally:
        renderer.close()
    return PilotCost(
        seconds=done - ready,
        num_bytes=sum(work.made.num_bytes for work in works if work.made is not None),
        start_s=ready - started,
        made=made_of(works, rules.generated),
    )


PIPELINE = Pipeline(
    name=NAME,
    config=Config,
    defaults=defaults,
    inputs=inputs,
    check=check,
    plan=plan,
    measure=measure,
    confirm=confirm,
    warnings=warnings,
    draws=Draws(wanted=_wanted, most=_most, plan=_drawn, sample_id=sample_id_of, make=make),
    build=build,
    tables=tables,
    stages=(SCENES_STAGE, RENDERS_STAGE, IMAGES_STAGE, PAIRS_STAGE),
    steps={RENDERED: "pairs", MEASURED: "pairs"},
    pilot=Pilot(
        records="pairs",
        number=2,
        unit="pairs",
        clock="this machine with one worker",
        is_fit=is_arranged,
        run=run_pilot,
    ),
)


def main(argv: list[str]) -> int:
    """Builds the dataset as the command line says."""
    return build_command(PIPELINE, argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
