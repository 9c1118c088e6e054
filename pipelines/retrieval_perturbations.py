r"""Captions in every perturbation, and their granularity (Hendriksen et al., sections 3 and 4).

Example:
    eqforge build retrieval-perturbations --captions captions_val2017.json \
        --output out/perturbations --workers 4
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from more_itertools import batched

from eqforge.core.ranges import expect
from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.generators.text.perturbations.catalogue import names_of
from eqforge.generators.text.perturbations.record import PerturbationSettings
from eqforge.generators.text.wordnet import check_wordnet
from eqforge.pipelines.base.command import Main
from eqforge.pipelines.base.pipeline import Mode
from eqforge.pipelines.base.text import (
    BATCH,
    CaptionDataset,
    TextPipeline,
    language_of_mode,
    select_captions,
)
from eqforge.schemas.tables.texts import MEASURED_TABLE, PERTURBED_TABLE
from eqforge.sources.caption_sources import read_captions
from eqforge.transforms.dataset.plan import PlanFiles
from eqforge.transforms.dataset.tables import Table, files_for, table_of
from eqforge.transforms.text.perturb import PERTURBATIONS_STAGE, PerturbationRules, perturb_batch
from eqforge.transforms.text.work import CAPTIONS_STAGE, CaptionBatch


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(CaptionDataset):
    """Build perturbed captions, with their level of detail, to test image-text retrieval."""

    max_synonyms: int = 1
    """Maximum number of words that a synonym perturbation replaces (k in the paper)."""


class RetrievalPerturbations(TextPipeline[Config, CaptionBatch]):
    """Captions in every perturbation, and their granularity."""

    name = "retrieval-perturbations"
    Config = Config
    basics = ("images", "max-synonyms", "language", "workers", "sample", "overwrite", "mode")
    record = CaptionBatch
    make = staticmethod(perturb_batch)
    stages = (CAPTIONS_STAGE, PERTURBATIONS_STAGE)
    steps = (("perturbed", "captions"),)

    @classmethod
    def defaults(cls, mode: Mode) -> dict[str, Any]:
        return language_of_mode(mode)

    def check(self) -> None:
        expect(self.config, "max_synonyms", self.config.max_synonyms >= 1, "1 or more")
        self.check_captions()
        check_wordnet()

    def plan(self) -> Iterator[CaptionBatch]:
        records = read_captions(self.config.captions, self.config.source)
        for batch in batched(select_captions([records], self.run), BATCH):
            yield CaptionBatch(captions=batch)

    def measure(self, batch: CaptionBatch) -> dict[str, int]:
        number = len(batch.captions)
        return {"captions": number, "perturbed captions": number * self._ways}

    @property
    def _ways(self) -> int:
        return len(names_of(self.config.mode))

    def rules(self) -> PerturbationRules:
        config = self.config
        return PerturbationRules(
            seed=config.run.seed,
            spacy_model=config.spacy_model,
            perturbations=PerturbationSettings(mode=config.mode, max_synonyms=config.max_synonyms),
            captions=CaptionSettings(max_tokens=None),
            images=self.image_folder(),
            only=config.run.only,
            language=config.language,
        )

    def tables(self, plan: PlanFiles) -> tuple[Table, ...]:
        captions, per_file = plan.counts.get("captions", 0), self.run.samples_per_file * 10
        return (
            table_of(PERTURBED_TABLE, files_for(captions * self._ways, per_file)),
            table_of(MEASURED_TABLE, files_for(captions, per_file)),
            *self.media_tables(captions),
        )


main = Main(RetrievalPerturbations)
