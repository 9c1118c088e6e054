r"""Eq-SD: pictures that a diffusion model draws of two prompts that differ in one thing.

Example:
    eqforge build eq-sd --pairs 1513 --device cuda:0 --precision fp16 --output out/eq-sd

Source: EqBen, section 4.2 and appendix B.5. The authors also threw out bad pictures by hand.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tyro.conf import OmitArgPrefixes

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.generators.diffusion.load import revision_of
from eqforge.generators.diffusion.prompts import (
    EDIT_KINDS,
    Language,
    PairCounts,
    PromptPair,
    draw_counts,
    num_pairs,
    prompt_pairs,
    sample_id_of,
)
from eqforge.generators.diffusion.settings import DiffusionSettings, check_precision
from eqforge.generators.diffusion.vocabulary import BUILT_IN, load_vocabulary
from eqforge.models.pretrained import device_here
from eqforge.pipelines.shared import drawn
from eqforge.pipelines.shared.building import build_command
from eqforge.pipelines.shared.draws import Draws, DrawSettings, Numbers, most_draws
from eqforge.pipelines.shared.generated import select_pairs, tables_of
from eqforge.pipelines.shared.pipeline import Pilot, PilotCost, Pipeline, Target
from eqforge.pipelines.shared.settings import DatasetConfig, Mode
from eqforge.schemas.dataset.manifest import WORK
from eqforge.schemas.records.books import Stage
from eqforge.transforms.dataset.census import Medium, model_files
from eqforge.transforms.dataset.plan import PlanFiles
from eqforge.transforms.dataset.table import Table
from eqforge.transforms.filters.faces import FACES
from eqforge.transforms.filters.minimality import GateSettings
from eqforge.transforms.filters.pairs import PAIRS_STAGE
from eqforge.transforms.generated.diffuse import (
    DRAWINGS_STAGE,
    DRAWN,
    TINY,
    DiffuseRules,
    EditSettings,
    diffuse_pair,
    shared_generator,
)
from eqforge.transforms.generated.draw_work import PROMPTS_STAGE, SEEDS_STAGE
from eqforge.transforms.generated.pairs import IMAGES_STAGE, MEASURED
from eqforge.transforms.generated.work import PairWork

if TYPE_CHECKING:
    import apache_beam as beam

NAME = "eq-sd"
PUBLISHED_PAIRS = 1_513

# Most of the picture changes with its scene: these limits would refuse nearly every such pair.
_SPARE_SCENES = (
    "max_changed_area",
    "min_ssim",
    "min_background_ssim",
    "max_luminance_shift",
    "max_phash_distance",
)


@dataclass(frozen=True, kw_only=True)
class DrawingSettings(drawn.DrawnSettings):
    """Which drawn pairs are refused.

    Of 600 pairs of unrelated photographs 96 % differ in more than 0.8 of their area. Between a
    photograph and itself as JPEG of quality 30, or in a static camera's noise, nothing changes.
    """

    scenes_keep_background: bool = False
    """Hold pairs whose scene changes to the limits on how much may change, too."""

    distinct_captions: bool = True
    """Refuse pairs whose two captions say the same."""

    @property
    def scene_gates(self) -> GateSettings:
        """The limits for pairs whose scene changes, and with it most of the picture."""
        if self.scenes_keep_background:
            return self.gates
        return replace(self.gates, **dict.fromkeys(_SPARE_SCENES))


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(DatasetConfig):
    """Pairs of pictures drawn by a diffusion model of two prompts that differ in one thing.

    `--model tiny` makes a tiny model of random weights on the spot, to try everything but the
    pictures; a folder of that name is written `./tiny`.
    """

    pairs: int | None = None
    """Pairs in all; what changes in each is drawn at random. 1,513, as were published, unless
    pairs of a kind are asked for."""

    object_pairs: int | None = None
    """Pairs whose object changes; the kinds that are not asked for then have none."""

    scene_pairs: int | None = None
    """Pairs whose scene changes."""

    attribute_pairs: int | None = None
    """Pairs with an attribute that changes."""

    additions: bool = False
    """Also add a scene or attribute where the first picture has none; the first caption is then
    true of both pictures. Without it, one is exchanged for another."""

    vocabulary: Path | None = None
    """Your own vocabulary, a JSON file like generators/diffusion/data/vocabulary.json, which is
    used without it."""

    diffusion: OmitArgPrefixes[DiffusionSettings] = field(default_factory=DiffusionSettings)
    edit: OmitArgPrefixes[EditSettings] = field(default_factory=EditSettings)
    draws: OmitArgPrefixes[DrawSettings] = field(default_factory=DrawSettings)
    settings: OmitArgPrefixes[DrawingSettings] = field(default_factory=DrawingSettings)

    @property
    def counts(self) -> PairCounts:
        """How many pairs of each kind.

        Raises:
          InputError: a number is negative, or both `pairs` and numbers by kind are given.
        """
        asked = {kind: getattr(self, f"{kind}_pairs") for kind in EDIT_KINDS}
        given = [number for number in (self.pairs, *asked.values()) if number is not None]
        if min(given, default=0) < 0:
            raise InputError(f"{min(given)} pairs: expected 0 or more")
        if any(number is not None for number in asked.values()):
            if self.pairs is not None:
                raise InputError("--pairs: give the number of all pairs, or those of the kinds")
            return PairCounts(**{kind: number or 0 for kind, number in asked.items()})
        return draw_counts(PUBLISHED_PAIRS if self.pairs is None else self.pairs, self.run.seed)


def defaults(mode: Mode) -> dict[str, Any]:
    """Returns the fields that a mode sets.

    The paper names the model and the method, but neither scheduler nor schedules: paper mode takes
    them from the code of the authors of prompt-to-prompt. Its only filter is human judgement.
    """
    if mode == "paper":
        return {
            "additions": True,
            "diffusion": DiffusionSettings(scheduler="pndm"),
            "edit": EditSettings(local_blend=False, alignment="published"),
            "settings": DrawingSettings.off(distinct_captions=False),
        }
    gates = GateSettings(min_changed_area=0.005, max_changed_area=0.8, min_background_ssim=0.5)
    return {"settings": DrawingSettings(faces=FACES.off, gates=gates)}


def plan(config: Config) -> Iterator[PromptPair]:
    """Yields the pairs of prompts that the run settings select.

    Raises:
      InputError: a selection is wrong, or the vocabulary does not give that many pairs.
    """
    if not config.run.only:
        return _drawn(config, config.counts.numbers)
    return _drawn(config, {kind: range(count) for kind, count in _most(config).items()})


def _drawn(config: Config, numbers: Numbers) -> Iterator[PromptPair]:
    """Yields what is drawn under some numbers."""
    language: Language = "published" if config.mode == "paper" else "english"
    vocabulary = load_vocabulary(config.vocabulary or BUILT_IN)
    pairs = prompt_pairs(vocabulary, numbers, config.run.seed, language, config.additions)
    return select_pairs(pairs, attrgetter("sample_id"), config.run)


def _wanted(config: Config) -> dict[str, int]:
    """Returns how many pairs of each kind are asked for."""
    return {kind: len(numbers) for kind, numbers in config.counts.numbers.items()}


def _most(config: Config) -> dict[str, int]:
    """Returns how many pairs of each kind may be drawn."""
    vocabulary = load_vocabulary(config.vocabulary or BUILT_IN)
    wanted = _wanted(config)
    supply = {
        kind: num_pairs(vocabulary, kind, config.run.seed, config.additions) if count else 0
        for kind, count in wanted.items()
    }
    return most_draws(wanted, supply, config.draws)


def inputs(config: Config) -> tuple[Path, ...]:
    """Returns the vocabulary."""
    return (config.vocabulary or BUILT_IN,)


def check(config: Config) -> None:
    """Checks numbers, vocabulary and packages.

    Raises:
      InputError: a setting is wrong, the model's folder is missing, or an oracle cannot be loaded.
      MissingExtra: a required package is not installed.
    """
    _ = config.counts
    load_vocabulary(config.vocabulary or BUILT_IN)
    drawn.check_installed()
    if config.diffusion.model != TINY:
        revision_of(config.diffusion)
    elif config.diffusion.revision is not None:
        raise InputError("--revision: the model `tiny` is made on the spot and has none")
    check_precision(config.diffusion.precision, config.diffusion.device)
    drawn.check_drawn(config.settings)
    drawn.check_one_worker(config.run.workers, config.diffusion.device, "one kind of pairs")


def confirm(config: Config, _plan: PlanFiles) -> None:
    """Loads the model, so that a mistake shows before any work.

    Raises:
      InputError: it cannot be loaded, or the settings do not fit it.
    """
    # The machine that launches a job need not have the workers' device.
    shared_generator(replace(config.diffusion, device=device_here(config.diffusion.device)))
    if config.diffusion.model == TINY:
        drawn.tell(_TINY_WARNING)


def media(config: Config, _plan: PlanFiles) -> Iterator[Medium]:
    """Yields the files of a model that is a folder."""
    yield from model_files(config.diffusion.model)


_TINY_WARNING = drawn.tiny_warning("pictures")
_GATES_WARNING = (
    "Only an oracle or a review can show whether a drawn picture shows what its caption says."
)


def warnings(config: Config) -> Iterator[str]:
    """Yields what a user should know before trusting the pictures."""
    if config.diffusion.model == TINY:
        yield _TINY_WARNING
    yield drawn.exact_warning("A diffusion model draws")
    if config.settings.gates != GateSettings():
        yield _GATES_WARNING
    yield from drawn.drawn_warnings(config.settings)


def unused(config: Config) -> tuple[Stage, ...]:
    """Returns the stages that no pair goes through."""
    return drawn.unused_stages(config.settings)


def measure(_: Config, pair: PromptPair) -> dict[str, int]:
    """Returns what a pair adds to the counts of a plan."""
    return {"pairs": 1, f"with another {pair.kind}": 1}


def rules_of(config: Config, work: str) -> DiffuseRules:
    """Returns how prompts become pairs, with media and finished work below a folder or URL."""
    settings = config.settings
    return DiffuseRules(
        diffusion=config.diffusion,
        edit=config.edit,
        generated=drawn.drawn_rules(
            settings, work, settings.distinct_captions, (("scene", settings.scene_gates),)
        ),
    )


def make(root: "beam.Pipeline", target: Target[Config]) -> "beam.PCollection[PairWork]":
    """Wires what draws, measures and judges the pairs of a plan."""
    from eqforge.transforms.dataset.steps import ReadPlan
    from eqforge.transforms.generated.steps import DiffusePairs, JudgeDrawn

    rules = rules_of(target.config, storage.join(target.config.run.output, WORK))
    return (
        root
        | ReadPlan(target.plan_files, PromptPair)
        | DiffusePairs(rules, target.notes)
        | JudgeDrawn(rules.generated, target.notes)
    )


def build(root: "beam.Pipeline", target: Target[Config]) -> None:
    """Wires the pipeline."""
    from eqforge.transforms.dataset.steps import WriteDataset

    _ = make(root, target) | WriteDataset(target.dataset)


def tables(config: Config, plan: PlanFiles) -> tuple[Table, ...]:
    """Returns the tables, sized for a plan."""
    return tables_of(config.run, plan.counts.get("pairs", 0))


def can_be_drawn(_config: Config, _pair: PromptPair) -> bool:
    """Returns True: every pair can be drawn."""
    return True


def run_pilot(config: Config, pairs: Sequence[PromptPair], folder: str) -> PilotCost:
    """Draws some pairs in a temporary folder and measures what that takes."""
    rules = rules_of(config, folder)
    return drawn.try_drawing(
        load=lambda: shared_generator(config.diffusion),
        draw=lambda: (diffuse_pair(pair, rules) for pair in pairs),
        rules=rules.generated,
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
    media=media,
    warnings=warnings,
    draws=Draws(wanted=_wanted, most=_most, plan=_drawn, sample_id=sample_id_of, make=make),
    build=build,
    tables=tables,
    stages=(PROMPTS_STAGE, DRAWINGS_STAGE, IMAGES_STAGE, PAIRS_STAGE, SEEDS_STAGE),
    unused=unused,
    steps={DRAWN: "pairs", MEASURED: "pairs"},
    pilot=Pilot(
        records="pairs",
        number=0,
        unit="pairs",
        clock="the device",
        is_fit=can_be_drawn,
        run=run_pilot,
    ),
)


def main(argv: list[str]) -> int:
    """Builds the dataset as the command line says."""
    return build_command(PIPELINE, argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
