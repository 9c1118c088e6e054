r"""Captions to train on, each with a hard positive and a hard negative (Kamath et al., section 5).

Example:
    eqforge build training-captions --captions captions_train2017.json \
        --output out/training --workers 4
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import OmitArgPrefixes

from eqforge.core.errors import InputError
from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.generators.text.hard_negatives.records import NEGATIVE_KINDS, NegativeKind
from eqforge.generators.text.lexicon import load_lexicon
from eqforge.generators.text.wordnet import check_wordnet, open_wordnet
from eqforge.pipelines.shared.building import build_command
from eqforge.pipelines.shared.language_model import (
    ModelSettings,
    ask_model,
    check_writer,
    confirm_server,
    cost_lines,
    language_and_model_of_mode,
    written,
)
from eqforge.pipelines.shared.pipeline import Input, Pipeline, Target, files_of
from eqforge.pipelines.shared.text import (
    BATCH,
    CaptionDataset,
    batch_images,
    caption_media,
    check_images,
    check_language,
    confirm_captions,
    confirm_judges,
    image_folder,
    judgements_table,
    judging,
    media_root,
    select_images,
)
from eqforge.schemas.tables.texts import TRAINING_TABLE
from eqforge.sources.caption_sources import read_captions
from eqforge.sources.own_captions import caption_files
from eqforge.transforms.dataset.census import Medium, model_files
from eqforge.transforms.dataset.plan import PlanFiles, read_plan
from eqforge.transforms.dataset.table import Table
from eqforge.transforms.dataset.tables import files_for, media_tables, table_of
from eqforge.transforms.judges.settings import JudgeSettings, Judging
from eqforge.transforms.text.caption_edits import EditRules
from eqforge.transforms.text.perturb import tagger_of
from eqforge.transforms.text.training import TRAINING_TEXTS_STAGE, TrainingRules, captions_of
from eqforge.transforms.text.work import CAPTIONS_STAGE, CaptionBatch

if TYPE_CHECKING:
    import apache_beam as beam

NAME = "training-captions"


@dataclass(frozen=True, kw_only=True)
class Config(ModelSettings, CaptionDataset):
    """Captions with a hard positive and a hard negative each, to fine-tune models on."""

    lexicon: Path | None = None
    """Your own lexicon of words and replacements, beside the rules."""

    negative_kinds: tuple[NegativeKind, ...] = NEGATIVE_KINDS
    """Kinds of hard negatives that are tried; the caption's seed decides which comes first, and
    negation comes last."""

    judging: OmitArgPrefixes[JudgeSettings] = field(default_factory=JudgeSettings)


def plan(config: Config) -> Iterator[CaptionBatch]:
    """Yields the captions in batches of whole images."""
    records = read_captions(config.captions, config.source)
    yield from batch_images(select_images(records, config.run), config.judging.batch(BATCH))


def build(root: "beam.Pipeline", target: Target[Config]) -> None:
    """Wires the pipeline."""
    from eqforge.transforms.dataset.steps import ReadPlan, WriteDataset
    from eqforge.transforms.text.steps import MakeTrainingTexts

    _ = (
        root
        | ReadPlan(target.plan_files, CaptionBatch)
        | "EditCaptions" >> MakeTrainingTexts(rules(target.config), target.notes)
        | WriteDataset(target.dataset)
    )


def rules(config: Config) -> TrainingRules:
    """Returns how the training captions of a configuration are made."""
    return TrainingRules(
        edits=EditRules(
            seed=config.run.seed,
            lexicon=None if config.lexicon is None else load_lexicon(config.lexicon),
            kinds=config.negative_kinds,
            spacy_model=config.spacy_model,
            written=written(config, config.run),
        ),
        captions=CaptionSettings(),
        images=image_folder(config.images, config.run),
        only=config.run.only,
        language=config.language,
        judging=_judging(config),
    )


def _judging(config: Config) -> Judging | None:
    return judging(config.judging, config.images, config.run, by_rules=_is_by_rules(config))


def _is_by_rules(config: Config) -> bool:
    """Tells whether rules make texts in the mode and language that their precision is of."""
    return config.mode != "paper" and config.language == "en"


def prepare(config: Config, plan: PlanFiles) -> None:
    """Says what a language model will be asked, and asks a server; see `ask_model`."""
    made = rules(config)
    ask_model(config, made.edits, lambda: map(partial(captions_of, made), _batches(plan)))


def cost(config: Config) -> Iterator[str]:
    """Yields what a language model would be asked."""
    made = rules(config)
    yield from cost_lines(config, made.edits, lambda: map(partial(captions_of, made), plan(config)))


def _batches(plan: PlanFiles) -> Iterator[CaptionBatch]:
    return read_plan(CaptionBatch, plan.files)


def inputs(config: Config) -> Iterator[Input]:
    """Yields the caption file, or those of the folder, and the user's lexicon."""
    yield from files_of(config.captions, caption_files(config.captions))
    if config.lexicon is not None:
        yield config.lexicon


def needs(_config: Config) -> None:
    """Looks for WordNet; see check_wordnet."""
    check_wordnet()


def check(config: Config) -> None:
    """Checks ranges, images, tagger, lexicon, WordNet and the model before any work.

    Raises:
      InputError: one of them is invalid or missing.
      MissingExtra: a required package is not installed.
    """
    if not config.negative_kinds:
        raise InputError("--negative-kinds: name at least one kind")
    check_images(config.images, config.run)
    check_language(config.language)
    tagger_of(config.spacy_model)
    load_lexicon(config.lexicon)
    open_wordnet()
    check_writer(config, config.mode)
    _judging(config)


def confirm(config: Config, plan: PlanFiles) -> None:
    """Checks that images and server can be found, and what judges may be asked."""
    confirm_captions(config, plan)
    confirm_judges(config.judging, plan.counts.get("captions", 0))
    confirm_server(config, config.run)


def media(config: Config, plan: PlanFiles) -> Iterator[Medium]:
    """Yields the images of a plan's captions, and the files of a language model from a folder."""
    yield from caption_media(config, plan)
    yield from model_files(config.model)


def measure(_: Config, batch: CaptionBatch) -> dict[str, int]:
    """Returns what a batch adds to the counts of a plan."""
    return {"captions": len(batch.captions), "texts at most": 3 * len(batch.captions)}


def tables(config: Config, plan: PlanFiles) -> tuple[Table, ...]:
    """Returns the tables, sized for a plan."""
    captions = plan.counts.get("captions", 0)
    shards = files_for(3 * captions, config.run.samples_per_file * 10)
    return (
        table_of(TRAINING_TABLE, shards),
        *judgements_table(config.judging, shards, by_rules=_is_by_rules(config)),
        *media_tables(captions, None if config.images is None else media_root(config.run)),
    )


PIPELINE = Pipeline(
    name=NAME,
    config=Config,
    defaults=language_and_model_of_mode,
    inputs=inputs,
    needs=needs,
    check=check,
    confirm=confirm,
    media=media,
    prepare=prepare,
    cost=cost,
    plan=plan,
    measure=measure,
    build=build,
    tables=tables,
    stages=(CAPTIONS_STAGE, TRAINING_TEXTS_STAGE),
    steps={"edited": "captions"},
)


def main(argv: list[str]) -> int:
    """Builds the dataset as the command line says."""
    return build_command(PIPELINE, argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
