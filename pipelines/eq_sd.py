r"""Eq-SD: pictures that a diffusion model draws of two prompts that differ in one thing.

Example:
    eqforge build eq-sd --pairs 1513 --device cuda:0 --precision fp16 --output out/eq-sd

Source: EqBen, section 4.2 and appendix B.5. The authors also threw out bad pictures by hand.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tyro.conf import OmitArgPrefixes

from eqforge.core.errors import InputError
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
from eqforge.generators.diffusion.vocabulary import BUILT_IN, Vocabulary, load_vocabulary
from eqforge.models.pretrained import device_here
from eqforge.pipelines.base.command import Main
from eqforge.pipelines.base.drawn import (
    DrawnPipeline,
    DrawnSettings,
    check_installed,
    exact_warning,
    try_drawing,
)
from eqforge.pipelines.base.generated import DrawSettings, Numbers, most_draws, select_pairs
from eqforge.pipelines.base.pilot import PilotCost, PilotUnit
from eqforge.pipelines.base.pipeline import Target
from eqforge.pipelines.base.settings import DatasetConfig, Mode
from eqforge.transforms.dataset.census import Medium, model_files
from eqforge.transforms.dataset.plan import PlanFiles
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

_GATES_WARNING = (
    "Only an oracle or a review can show whether a drawn picture shows what its caption says."
)
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
class DrawingSettings(DrawnSettings):
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


class EqSd(DrawnPipeline[Config]):
    """Pairs of pictures drawn of two prompts that differ in an object, a scene or an attribute."""

    name = "eq-sd"
    Config = Config
    stages = (PROMPTS_STAGE, DRAWINGS_STAGE, IMAGES_STAGE, PAIRS_STAGE, SEEDS_STAGE)
    steps = ((DRAWN, "pairs"), (MEASURED, "pairs"))
    pilot = PilotUnit(records="pairs", number=0, unit="pairs", clock="the device")
    tiny = "pictures"

    @classmethod
    def defaults(cls, mode: Mode) -> dict[str, Any]:
        """Returns the fields that a mode sets.

        The paper names the model and the method, but neither scheduler nor schedules: paper mode
        takes them from the code of the authors of prompt-to-prompt. Its only filter is human
        judgement.
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

    def inputs(self) -> tuple[Path, ...]:
        """Returns the vocabulary."""
        return (self.config.vocabulary or BUILT_IN,)

    def check(self) -> None:
        """Checks numbers, vocabulary, packages and models.

        Raises:
          InputError: a setting is wrong, the model's folder is missing, or an oracle cannot be
            loaded.
          MissingExtra: a required package is not installed.
        """
        _, _ = self.config.counts, self.vocabulary
        check_installed()
        diffusion = self.config.diffusion
        if diffusion.model != TINY:
            revision_of(diffusion)
        elif diffusion.revision is not None:
            raise InputError("--revision: the model `tiny` is made on the spot and has none")
        check_precision(diffusion.precision, diffusion.device)
        self.check_drawn(diffusion.device, "one kind of pairs")

    @property
    def vocabulary(self) -> Vocabulary:
        """What prompts are made of."""
        return load_vocabulary(self.config.vocabulary or BUILT_IN)

    def warnings(self) -> Iterator[str]:
        if self.config.diffusion.model == TINY:
            yield self.tiny_warning()
        yield exact_warning("A diffusion model draws")
        if self.config.settings.gates != GateSettings():
            yield _GATES_WARNING
        yield from self.judge_warnings()

    def wanted(self) -> dict[str, int]:
        return {kind: len(numbers) for kind, numbers in self.config.counts.numbers.items()}

    def most(self) -> dict[str, int]:
        wanted, vocabulary = self.wanted(), self.vocabulary
        supply = {
            kind: num_pairs(vocabulary, kind, self.run.seed, self.config.additions) if count else 0
            for kind, count in wanted.items()
        }
        return most_draws(wanted, supply, self.config.draws)

    def drawn(self, numbers: Numbers) -> Iterator[PromptPair]:
        """Yields the selected pairs of prompts of some draws.

        Raises:
          InputError: a selection is wrong, or the vocabulary does not give that many pairs.
        """
        language: Language = "published" if self.config.mode == "paper" else "english"
        additions = self.config.additions
        pairs = prompt_pairs(self.vocabulary, numbers, self.run.seed, language, additions)
        return select_pairs(pairs, attrgetter("sample_id"), self.run)

    def sample_id(self, kind: str, number: int) -> str:
        return sample_id_of(kind, number)

    def measure(self, pair: PromptPair) -> dict[str, int]:
        return {"pairs": 1, f"with another {pair.kind}": 1}

    def confirm(self, plan: PlanFiles) -> None:
        """Loads the model, so that a mistake shows before any work.

        Raises:
          InputError: it cannot be loaded, or the settings do not fit it.
        """
        # The machine that launches a job need not have the workers' device.
        diffusion = self.config.diffusion
        shared_generator(replace(diffusion, device=device_here(diffusion.device)))
        if diffusion.model == TINY:
            self.warn_of_tiny()

    def media(self, plan: PlanFiles) -> Iterator[Medium]:
        yield from model_files(self.config.diffusion.model)

    def make(self, root: "beam.Pipeline", target: Target) -> "beam.PCollection[PairWork]":
        from eqforge.transforms.dataset.steps import ReadPlan
        from eqforge.transforms.generated.steps import DiffusePairs, JudgeDrawn

        rules = self.rules(self.work)
        return (
            root
            | ReadPlan(target.plan_files, PromptPair)
            | DiffusePairs(rules, target.notes)
            | JudgeDrawn(rules.generated, target.notes)
        )

    def rules(self, work: str) -> DiffuseRules:
        """Returns how prompts become pairs, with media and finished work below a folder or URL."""
        scene_gates = (("scene", self.config.settings.scene_gates),)
        return DiffuseRules(
            diffusion=self.config.diffusion,
            edit=self.config.edit,
            generated=self.generated_rules(work, scene_gates),
        )

    def try_records(self, pairs: Sequence[PromptPair], folder: str) -> PilotCost:
        rules = self.rules(folder)
        return try_drawing(
            load=lambda: shared_generator(self.config.diffusion),
            draw=lambda: (diffuse_pair(pair, rules) for pair in pairs),
            rules=rules.generated,
        )


main = Main(EqSd)
"""Builds the dataset as a command line says."""
