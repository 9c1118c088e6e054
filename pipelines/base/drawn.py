"""Datasets whose pairs a diffusion model draws: settings, checks, rules and trials."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from tyro.conf import OmitArgPrefixes

from eqforge.core.errors import InputError, MissingExtra
from eqforge.pipelines.base.generated import GeneratedPipeline, made_of
from eqforge.pipelines.base.pilot import PilotCost
from eqforge.pipelines.base.pipeline import Configured
from eqforge.schemas.records.books import Stage
from eqforge.transforms.filters.images import ImageFilters
from eqforge.transforms.filters.minimality import GateSettings
from eqforge.transforms.filters.perceptual import PerceptualSettings, prepare_perceptual
from eqforge.transforms.filters.plausibility import PlausibilitySettings, prepare_plausibility
from eqforge.transforms.generated.draw_work import PROMPTS_STAGE, SEEDS_STAGE, Drawings, choose_best
from eqforge.transforms.generated.pairs import GeneratedRules, RankSettings
from eqforge.transforms.oracle.judges import OracleSettings, oracle_warnings, prepare_oracle


@dataclass(frozen=True, kw_only=True)
class DrawnSettings(ImageFilters):
    """Which drawn pairs are refused, and which drawing of a pair is kept."""

    gates: OmitArgPrefixes[GateSettings] = field(default_factory=GateSettings)
    perceptual: OmitArgPrefixes[PerceptualSettings] = field(default_factory=PerceptualSettings)
    oracle: OmitArgPrefixes[OracleSettings] = field(default_factory=OracleSettings)
    ranking: OmitArgPrefixes[RankSettings] = field(default_factory=RankSettings)
    plausibility: OmitArgPrefixes[PlausibilitySettings] = field(
        default_factory=PlausibilitySettings
    )


class DrawnPipeline(GeneratedPipeline[Configured]):
    """A dataset of pairs that a diffusion model draws or edits, one or several times each."""

    config: Any

    tiny = ""
    """What a tiny model makes, such as pictures, for its warning."""

    def check_drawn(self, device: str, part: str) -> None:
        """Checks packages, the models that measure, and that no two workers share a GPU.

        Args:
          device: of the model that draws, as torch names it.
          part: what every GPU may build instead.

        Raises:
          InputError: a model cannot be loaded, or several workers share an accelerator.
          MissingExtra: a package is not installed.
        """
        settings, workers = self.config.settings, self.run.workers
        settings.prepare()
        prepare_perceptual(settings.perceptual)
        judges = prepare_oracle(settings.oracle).judges
        if settings.ranking.best_by == "oracle_margin" and not judges:
            raise InputError(
                "--best-by oracle_margin needs a model that judges: name it with --oracle"
            )
        prepare_plausibility(settings.plausibility)
        if device != "cpu" and workers > 1:
            raise InputError(
                f"--workers {workers}: every worker would load the model onto {device} once more, "
                "and they would wait for each other; one is as fast. To use more GPUs, build "
                f"{part} on each, in folders of their own"
            )

    def generated_rules(
        self, work: str, kind_gates: tuple[tuple[str, GateSettings], ...] = ()
    ) -> GeneratedRules:
        """Returns how drawn pairs are measured and judged.

        Args:
          work: the folder or URL of media and finished work.
          kind_gates: kinds of pairs with limits of their own.
        """
        settings = self.config.settings
        return GeneratedRules(
            work=work,
            images=settings,
            gates=settings.gates,
            kind_gates=kind_gates,
            distinct_captions=settings.distinct_captions,
            perceptual=prepare_perceptual(settings.perceptual),
            oracle=prepare_oracle(settings.oracle),
            ranking=settings.ranking,
            plausibility=prepare_plausibility(settings.plausibility),
        )

    def tiny_warning(self) -> str:
        """Returns what is to be known of what a tiny model makes."""
        return (
            f"The {self.tiny} come from a tiny model with random weights, made to try the "
            "pipeline. They show nothing of what their captions say."
        )

    def warn_of_tiny(self) -> None:
        """Prints the warning of a tiny model, which has to be seen before any work."""
        print(f"\n*** {self.tiny_warning()} ***\n", file=sys.stderr)

    def judge_warnings(self) -> Iterator[str]:
        """Yields what a user should know of the models that measure."""
        settings = self.config.settings
        yield from oracle_warnings(prepare_oracle(settings.oracle))
        if settings.ranking.seeds > 1 and settings.ranking.best_by == "background_ssim":
            yield (
                f"The best of {settings.ranking.seeds} seeds is the one that differs least where "
                "nothing is to change, whatever its images show. --best-by oracle_margin compares "
                "them with their captions."
            )

    def used_stages(self) -> tuple[Stage, ...]:
        """Returns the stages that pairs go through."""
        settings = self.config.settings
        used = {
            PROMPTS_STAGE.name: settings.plausibility.plausibility is not None,
            SEEDS_STAGE.name: settings.ranking.seeds > 1,
        }
        return tuple(stage for stage in self.stages if used.get(stage.name, True))


def exact_warning(maker: str) -> str:
    """Returns what is to be known of the bytes that a maker makes."""
    return (
        f"{maker} the same bytes again only on the same kind of device with the same versions of "
        "torch and diffusers; the column `generation` names them."
    )


def check_installed() -> None:
    """Checks that the packages that draw are installed.

    Raises:
      MissingExtra: a package is not installed.
    """
    for package in ("torch", "diffusers", "transformers"):
        if find_spec(package) is None:
            raise MissingExtra(package, "models")


def try_drawing(
    load: Callable[[], object], draw: Callable[[], Iterable[Drawings]], rules: GeneratedRules
) -> PilotCost:
    """Draws and measures some pairs, and returns what that took.

    Args:
      load: loads the models.
      draw: yields drawn pairs.
      rules: how they are measured.
    """
    started = time.perf_counter()
    load()
    loaded = time.perf_counter()
    made = [choose_best(drawn, rules) for drawn in draw()]
    return PilotCost(
        seconds=time.perf_counter() - loaded,
        num_bytes=sum(i.num_bytes for work in made if work.made for i in work.made.images),
        start_s=loaded - started,
        made=made_of(made, rules),
    )
