r"""Captions to train on, each with a hard positive and a hard negative (Kamath et al., section 5).

Example:
    eqforge build training-captions --captions captions_train2017.json \
        --output out/training --workers 4
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tyro.conf import OmitArgPrefixes

from eqforge.core.errors import InputError
from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.generators.text.hard_negatives.records import NEGATIVE_KINDS, NegativeKind
from eqforge.generators.text.lexicon import load_lexicon
from eqforge.generators.text.wordnet import open_wordnet
from eqforge.pipelines.base.command import Main
from eqforge.pipelines.base.language_model import (
    ModelSettings,
    ask_model,
    check_writer,
    confirm_server,
    cost_lines,
    language_and_model_of_mode,
    written,
)
from eqforge.pipelines.base.pipeline import Target
from eqforge.pipelines.base.settings import Mode
from eqforge.pipelines.base.text import (
    BATCH,
    CaptionDataset,
    JudgedPipeline,
    check_language,
    select_images,
    whole_groups,
)
from eqforge.schemas.tables.texts import TRAINING_TABLE
from eqforge.sources.caption_sources import CaptionRecord, read_captions
from eqforge.transforms.dataset.census import Medium, model_files
from eqforge.transforms.dataset.plan import PlanFiles, read_plan
from eqforge.transforms.dataset.table import Table
from eqforge.transforms.dataset.tables import files_for, table_of
from eqforge.transforms.judges.settings import JudgeSettings
from eqforge.transforms.text.caption_edits import EditRules
from eqforge.transforms.text.perturb import tagger_of
from eqforge.transforms.text.training import TRAINING_TEXTS_STAGE, TrainingRules, captions_of
from eqforge.transforms.text.work import CAPTIONS_STAGE, CaptionBatch

if TYPE_CHECKING:
    import apache_beam as beam


@dataclass(frozen=True, kw_only=True)
class Config(ModelSettings, CaptionDataset):
    """Captions with a hard positive and a hard negative each, to fine-tune models on."""

    lexicon: Path | None = None
    """Your own lexicon of words and replacements, beside the rules."""

    negative_kinds: tuple[NegativeKind, ...] = NEGATIVE_KINDS
    """Kinds of hard negatives that are tried; the caption's seed decides which comes first, and
    negation comes last."""

    judging: OmitArgPrefixes[JudgeSettings] = field(default_factory=JudgeSettings)


class TrainingCaptions(JudgedPipeline[Config]):
    """Captions, each with a hard positive and a hard negative."""

    name = "training-captions"
    Config = Config
    stages = (CAPTIONS_STAGE, TRAINING_TEXTS_STAGE)
    steps = (("edited", "captions"),)

    @classmethod
    def defaults(cls, mode: Mode) -> dict[str, Any]:
        return language_and_model_of_mode(mode)

    def check(self) -> None:
        """Checks ranges, images, tagger, lexicon, WordNet and the model before any work.

        Raises:
          InputError: one of them is invalid or missing.
          MissingExtra: a required package is not installed.
        """
        config = self.config
        if not config.negative_kinds:
            raise InputError("--negative-kinds: name at least one kind")
        self.check_images()
        check_language(config.language)
        tagger_of(config.spacy_model)
        load_lexicon(config.lexicon)
        open_wordnet()
        check_writer(config, config.mode)
        self.judges()

    def plan(self) -> Iterator[CaptionBatch]:
        """Yields the captions in batches of whole images."""
        records = read_captions(self.config.captions, self.config.source)
        images = select_images(records, self.run)
        for captions in whole_groups(images, self.config.judging.batch(BATCH)):
            yield CaptionBatch(captions=captions)

    def measure(self, batch: CaptionBatch) -> dict[str, int]:
        return {"captions": len(batch.captions), "texts at most": 3 * len(batch.captions)}

    def report(self, records: Iterable[CaptionBatch]) -> Iterator[str]:
        yield from super().report(records)
        yield from cost_lines(self.config, self.rules().edits, lambda: self._asked(self.plan()))

    def _asked(self, batches: Iterable[CaptionBatch]) -> Iterator[Sequence[CaptionRecord]]:
        return map(partial(captions_of, self.rules()), batches)

    def confirm(self, plan: PlanFiles) -> None:
        """Checks that images and server can be found, and what judges may be asked."""
        super().confirm(plan)
        self.confirm_judges(plan.counts.get("captions", 0))
        confirm_server(self.config, self.run)

    def media(self, plan: PlanFiles) -> Iterator[Medium]:
        yield from super().media(plan)
        yield from model_files(self.config.model)

    def prepare(self, plan: PlanFiles) -> None:
        """Says what a language model will be asked, and asks a server; see `ask_model`."""
        batches = partial(read_plan, CaptionBatch, plan.files)
        ask_model(self.config, self.rules().edits, lambda: self._asked(batches()))

    def build(self, root: "beam.Pipeline", target: Target) -> None:
        from eqforge.transforms.dataset.steps import ReadPlan, WriteDataset
        from eqforge.transforms.text.steps import MakeTrainingTexts

        _ = (
            root
            | ReadPlan(target.plan_files, CaptionBatch)
            | MakeTrainingTexts(self.rules(), target.notes)
            | WriteDataset(target.dataset)
        )

    def rules(self) -> TrainingRules:
        """Returns how training texts are made."""
        config = self.config
        return TrainingRules(
            edits=EditRules(
                seed=config.run.seed,
                lexicon=None if config.lexicon is None else load_lexicon(config.lexicon),
                kinds=config.negative_kinds,
                spacy_model=config.spacy_model,
                written=written(config, config.run),
            ),
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
"""Builds the dataset as a command line says."""
