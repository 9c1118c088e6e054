r"""Captions to train on, each with a hard positive and a hard negative (Kamath et al., section 5).

Example:
    eqforge build training-captions --captions captions_train2017.json \
        --output out/training --workers 4
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import OmitArgPrefixes

from eqforge.core.errors import InputError
from eqforge.core.identity import Trace
from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.generators.text.hard_negatives.lexicon import NEGATIVE_KINDS, NegativeKind
from eqforge.generators.text.wordnet import check_wordnet
from eqforge.pipelines.base.command import Main
from eqforge.pipelines.base.text import BATCH, CaptionDataset, select_images, whole_groups
from eqforge.pipelines.base.written import ModelSettings, WrittenPipeline
from eqforge.schemas.tables.texts import TRAINING_TABLE
from eqforge.sources.caption_sources import read_captions
from eqforge.transforms.dataset.plan import PlanFiles
from eqforge.transforms.dataset.tables import Table, files_for, table_of
from eqforge.transforms.judges.settings import JudgeSettings
from eqforge.transforms.text.training import (
    TRAINING_TEXTS_STAGE,
    TrainingRules,
    captions_of,
    make_training_texts,
)
from eqforge.transforms.text.work import CAPTIONS_STAGE, CaptionBatch


@dataclass(frozen=True, kw_only=True)
class Config(ModelSettings, CaptionDataset):
    """Build captions, each with a hard positive and a hard negative, to fine-tune models."""

    lexicon: Path | None = None
    """File of words and replacements to add to the rules."""

    negative_kinds: tuple[NegativeKind, ...] = NEGATIVE_KINDS
    """Kinds of hard negatives to write. The kinds are tried in random order, but negation is always
    tried last."""

    judging: Annotated[OmitArgPrefixes[JudgeSettings], Trace.IF_CHANGED] = field(
        default_factory=JudgeSettings
    )


class TrainingCaptions(WrittenPipeline[Config, CaptionBatch]):
    """Captions, each with a hard positive and a hard negative."""

    name = "training-captions"
    Config = Config
    basics = ("images", "model", "negative-kinds", "verify", "workers", "sample", "overwrite")
    record = CaptionBatch
    make = staticmethod(make_training_texts)
    stages = (CAPTIONS_STAGE, TRAINING_TEXTS_STAGE)
    steps = (("edited", "captions"),)
    judged = "captions"
    captions_of = staticmethod(captions_of)

    def check(self) -> None:
        if not self.config.negative_kinds:
            raise InputError("--negative-kinds: name at least one kind")
        self.check_edits()
        check_wordnet()

    def plan(self) -> Iterator[CaptionBatch]:
        records = read_captions(self.config.captions, self.config.source)
        images = select_images(records, self.run)
        for captions in whole_groups(images, self.config.judging.batch(BATCH)):
            yield CaptionBatch(captions=captions)

    def measure(self, batch: CaptionBatch) -> dict[str, int]:
        return {"captions": len(batch.captions), "texts at most": 3 * len(batch.captions)}

    def rules(self) -> TrainingRules:
        config = self.config
        return TrainingRules(
            edits=self.edit_rules(kinds=config.negative_kinds),
            captions=CaptionSettings(),
            images=self.image_folder(),
            only=config.run.only,
            language=config.language,
            judging=self.judges(),
        )

    def tables(self, plan: PlanFiles) -> tuple[Table, ...]:
        captions = plan.counts.get("captions", 0)
        shards = files_for(3 * captions, self.run.samples_per_file * 10)
        return (
            table_of(TRAINING_TABLE, shards),
            *self.judgements_table(shards),
            *self.media_tables(captions),
        )


main = Main(TrainingCaptions)
