"""Datasets whose pairs a diffusion model draws: settings, checks, rules and trials."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Annotated, Any, Self

from tyro.conf import OmitArgPrefixes

from eqforge.core.errors import InputError, MissingExtra
from eqforge.core.identity import Trace
from eqforge.generators.diffusion.settings import TINY
from eqforge.pipelines.base.generated import GeneratedPipeline, PairFilters, try_making
from eqforge.pipelines.base.pipeline import Configured, Mode, PilotCost, Record
from eqforge.transforms.dataset.census import Medium, model_files
from eqforge.transforms.dataset.plan import PlanFiles
from eqforge.transforms.filters.faces import FACES
from eqforge.transforms.filters.minimality import GateSettings
from eqforge.transforms.filters.pairs import PAIRS_STAGE
from eqforge.transforms.filters.plausibility import PlausibilitySettings, prepare_plausibility
from eqforge.transforms.generated.draw_work import PROMPTS_STAGE, SEEDS_STAGE, Drawings, choose_best
from eqforge.transforms.generated.pairs import IMAGES_STAGE, GeneratedRules, RankSettings
from eqforge.transforms.oracle.judges import oracle_warnings, prepare_oracle

JUDGED_STAGES = (IMAGES_STAGE, PAIRS_STAGE, SEEDS_STAGE)


@dataclass(frozen=True, kw_only=True)
class DrawnSettings(PairFilters):
    """Filters for generated pairs, and selection of the best seed."""

    ranking: Annotated[OmitArgPrefixes[RankSettings], Trace.IF_CHANGED] = field(
        default_factory=RankSettings
    )
    plausibility: Annotated[OmitArgPrefixes[PlausibilitySettings], Trace.IF_CHANGED] = field(
        default_factory=PlausibilitySettings
    )

    @classmethod
    def of_mode(cls, mode: Mode) -> Self:
        if mode == "paper":
            return cls.off(distinct_captions=False)
        # Of 600 pairs of unrelated photographs 96% differ in more than 0.8 of their area. JPEG of
        # quality 30, or a static camera's noise, changes nothing.
        gates = GateSettings(min_changed_area=0.005, max_changed_area=0.8, min_background_ssim=0.5)
        return cls(faces=FACES.off, gates=gates)


class DrawnPipeline(GeneratedPipeline[Configured, Record]):
    """A dataset of pairs that a diffusion model draws or edits, once or several times each.

    Attributes:
      tiny: products of a tiny model, such as `pictures`, for its warning.
    """

    tiny: str

    def __init__(self, config: Configured) -> None:
        super().__init__(config)
        settings = self.config.settings
        used = {
            PROMPTS_STAGE.name: settings.plausibility.plausibility is not None,
            SEEDS_STAGE.name: settings.ranking.seeds > 1,
        }
        self.stages = tuple(stage for stage in self.stages if used.get(stage.name, True))

    @property
    def model(self) -> str:
        raise NotImplementedError

    def load(self) -> None:
        raise NotImplementedError

    def rules(self, work: str) -> Any:
        """Return the rules for turning records into pairs, with files below a folder or URL."""
        raise NotImplementedError

    def drawings(self, records: Sequence[Record], rules: Any) -> Iterator[Drawings]:
        raise NotImplementedError

    def confirm(self, plan: PlanFiles) -> None:
        """Look for photographs and load the models, so that mistakes show before any work."""
        super().confirm(plan)
        self.load()
        if self.model == TINY:
            print(f"\n*** {self._tiny_warning} ***\n", file=sys.stderr)

    def try_records(self, records: Sequence[Record], folder: str) -> PilotCost:
        rules = self.rules(folder)
        return try_making(
            self.load,
            lambda _: (
                choose_best(draws, rules.generated) for draws in self.drawings(records, rules)
            ),
            rules.generated,
        )

    def check_drawn(self, device: str, part: str) -> None:
        """Check packages and models, and that no workers share a GPU; others may build `part`."""
        settings, workers = self.config.settings, self.run.workers
        check_installed()
        self.prepare_models()
        judges = prepare_oracle(settings.oracle).judges
        if settings.ranking.best_by == "oracle_margin" and not judges:
            raise InputError("--best-by oracle_margin needs an oracle; pass one with --oracle")
        prepare_plausibility(settings.plausibility)
        if device != "cpu" and workers > 1:
            raise InputError(
                f"--workers {workers}: {device} is no faster with several workers. Pass "
                f"--workers 1. If you have several GPUs, build {part} on each GPU, in separate "
                "folders."
            )

    def generated_rules(self, work: str, **others: Any) -> GeneratedRules:
        settings = self.config.settings
        plausibility = prepare_plausibility(settings.plausibility)
        return super().generated_rules(
            work, ranking=settings.ranking, plausibility=plausibility, **others
        )

    def media(self, plan: PlanFiles) -> Iterator[Medium]:
        yield from super().media(plan)
        yield from model_files(self.model)

    @property
    def _tiny_warning(self) -> str:
        return (
            f"The {self.tiny} come from a tiny model with random weights, so they do not show what "
            "their captions describe. Use this model only to try the pipeline."
        )

    def warnings(self) -> Iterator[str]:
        settings = self.config.settings
        if self.model == TINY:
            yield self._tiny_warning
        yield (
            "To reproduce the same bytes, use the same kind of device and the same versions of "
            "torch and diffusers. The column `generation` records them."
        )
        yield "Only an oracle or a review can tell whether an image shows what its caption says."
        yield from oracle_warnings(prepare_oracle(settings.oracle))
        if settings.ranking.seeds > 1 and settings.ranking.best_by == "background_ssim":
            yield (
                f"From {settings.ranking.seeds} seeds, the build keeps the drawing that changes "
                "least where nothing should change. It does not compare images with captions. "
                "To compare them, use --best-by oracle_margin."
            )


def check_installed() -> None:
    for package in ("torch", "diffusers", "transformers"):
        if find_spec(package) is None:
            raise MissingExtra(package, "models")
