r"""Eq-SD: pairs drawn from two prompts that differ in an object, a scene or an attribute.

Stable Diffusion draws both images from the same noise, and the first image's attention guides the
second (prompt-to-prompt).

Example:
    eqforge build eq-sd --pairs 1513 --device cuda:0 --precision fp16 --output out/eq-sd

Source: EqBen, section 4.2 and appendix B.5.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tyro.conf import OmitArgPrefixes

from eqforge.generators.diffusion.load import revision_of
from eqforge.generators.diffusion.prompts import (
    Language,
    PromptPair,
    num_pairs,
    prompt_pairs,
    wanted_counts,
)
from eqforge.generators.diffusion.settings import DiffusionSettings, EditSettings, check_precision
from eqforge.generators.diffusion.vocabulary import BUILT_IN, Vocabulary, load_vocabulary
from eqforge.models.pretrained import device_here
from eqforge.pipelines.base.command import Main
from eqforge.pipelines.base.drawn import JUDGED_STAGES, DrawnPipeline, DrawnSettings
from eqforge.pipelines.base.generated import DrawSettings, Numbers, select_pairs
from eqforge.pipelines.base.pipeline import DatasetConfig, Mode, PilotUnit, Target
from eqforge.transforms.generated.diffuse import (
    DRAWINGS_STAGE,
    DRAWN,
    DiffuseRules,
    diffuse_pair,
    shared_generator,
)
from eqforge.transforms.generated.draw_work import PROMPTS_STAGE, Drawings
from eqforge.transforms.generated.pairs import MEASURED
from eqforge.transforms.generated.work import PairWork

if TYPE_CHECKING:
    import apache_beam as beam


@dataclass(frozen=True, kw_only=True)
class DrawingSettings(DrawnSettings):
    """Filters for generated pairs, and selection of the best seed."""

    scenes_keep_background: bool = False
    """Also apply limits such as --max-changed-area to pairs with different scenes, to preserve the
    background."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(DatasetConfig):
    """Build pairs of images generated from two prompts that differ in one detail.

    `--model tiny` creates a small model with random weights. It lets you test everything except
    image quality.
    """

    pairs: int | None = None
    """Number of pairs of random kinds (default: 1,513). Do not combine this option with
    --object-pairs, --scene-pairs or --attribute-pairs."""

    object_pairs: int | None = None
    """Number of pairs in which the object changes. If you set the number for one kind, the
    numbers for the other kinds default to 0."""

    scene_pairs: int | None = None
    """Number of pairs in which the scene changes."""

    attribute_pairs: int | None = None
    """Number of pairs in which an attribute changes."""

    additions: bool = False
    """Also generate pairs whose second caption adds a scene or attribute. The first caption of
    these pairs is true of both images."""

    vocabulary: Path | None = None
    """JSON vocabulary file, in the format of generators/diffusion/data/vocabulary.json."""

    diffusion: OmitArgPrefixes[DiffusionSettings] = field(default_factory=DiffusionSettings)
    edit: OmitArgPrefixes[EditSettings] = field(default_factory=EditSettings)
    draws: OmitArgPrefixes[DrawSettings] = field(default_factory=DrawSettings)
    settings: OmitArgPrefixes[DrawingSettings] = field(default_factory=DrawingSettings)


class EqSd(DrawnPipeline[Config, PromptPair]):
    """Pairs of images drawn from two prompts that differ in an object, a scene or an attribute."""

    name = "eq-sd"
    Config = Config
    basics = (
        "pairs",
        "model",
        "device",
        "precision",
        "seeds",
        "size-px",
        "oracle",
        "workers",
        "mode",
    )
    stages = (PROMPTS_STAGE, DRAWINGS_STAGE, *JUDGED_STAGES)
    steps = ((DRAWN, "pairs"), (MEASURED, "pairs"))
    pilot = PilotUnit(records="pairs", number=0, unit="pairs", clock="the device")
    tiny = "pictures"

    @classmethod
    def defaults(cls, mode: Mode) -> dict[str, Any]:
        # The paper names the model and the method, but neither scheduler nor schedules: they are
        # those of the code of prompt-to-prompt's authors. Its only filter is human judgement.
        settings = {"settings": DrawingSettings.of_mode(mode)}
        if mode == "corrected":
            return settings
        return {
            **settings,
            "additions": True,
            "diffusion": DiffusionSettings(scheduler="pndm"),
            "edit": EditSettings(local_blend=False, alignment="published"),
        }

    def inputs(self) -> tuple[Path, ...]:
        return (self.config.vocabulary or BUILT_IN,)

    def check(self) -> None:
        _, _ = self.pair_counts(), self.vocabulary
        diffusion = self.config.diffusion
        check_precision(diffusion.precision, diffusion.device)
        self.check_drawn(diffusion.device, "one kind of pairs")
        revision_of(diffusion)

    @property
    def vocabulary(self) -> Vocabulary:
        return load_vocabulary(self.config.vocabulary or BUILT_IN)

    @property
    def model(self) -> str:
        return self.config.diffusion.model

    def pair_counts(self) -> dict[str, int]:
        config = self.config
        counts = {"object": config.object_pairs, "scene": config.scene_pairs,
                 "attribute": config.attribute_pairs}  # fmt: skip
        return wanted_counts(config.pairs, counts, self.run.seed)

    def supply(self, kind: str) -> int:
        return num_pairs(self.vocabulary, kind, self.run.seed, self.config.additions)

    def planned_pairs(self, numbers: Numbers) -> Iterator[PromptPair]:
        language: Language = "published" if self.config.mode == "paper" else "english"
        seed, additions = self.run.seed, self.config.additions
        pairs = prompt_pairs(self.vocabulary, numbers, seed, language, additions)
        return select_pairs(pairs, attrgetter("sample_id"), self.run)

    def measure(self, pair: PromptPair) -> dict[str, int]:
        return {"pairs": 1, f"with another {pair.kind}": 1}

    def load(self) -> None:
        diffusion = self.config.diffusion
        shared_generator(replace(diffusion, device=device_here(diffusion.device)))

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
        settings = self.config.settings
        scenes = settings.gates
        if not settings.scenes_keep_background:
            scenes = scenes.without_background()
        return DiffuseRules(
            diffusion=self.config.diffusion,
            edit=self.config.edit,
            generated=self.generated_rules(work, kind_gates=(("scene", scenes),)),
        )

    def drawings(self, records: Sequence[PromptPair], rules: DiffuseRules) -> Iterator[Drawings]:
        return (diffuse_pair(pair, rules) for pair in records)


main = Main(EqSd)
