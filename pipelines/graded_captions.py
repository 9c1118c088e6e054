r"""Captions with one, two, three ... rewordings, and as many false edits.

Example:
    eqforge build graded-captions --captions captions_val2017.json \
        --output out/graded --workers 4
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eqforge.core.errors import InputError
from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.generators.text.graded.steps import FALSE_KINDS, FAMILIES, FalseKind, Family
from eqforge.generators.text.wordnet import check_wordnet, open_wordnet
from eqforge.pipelines.shared.building import build_command
from eqforge.pipelines.shared.pipeline import Input, Pipeline, Target, files_of
from eqforge.pipelines.shared.text import (
    CaptionDataset,
    batch_images,
    caption_media,
    check_at_least,
    check_images,
    check_language,
    confirm_captions,
    image_folder,
    language_of_mode,
    media_root,
    select_images,
)
from eqforge.schemas.tables.graded import GRADED_TABLE
from eqforge.sources.caption_sources import read_captions
from eqforge.sources.own_captions import caption_files
from eqforge.transforms.dataset.plan import PlanFiles
from eqforge.transforms.dataset.table import Table
from eqforge.transforms.dataset.tables import files_for, media_tables, table_of
from eqforge.transforms.text.distances import text_models
from eqforge.transforms.text.grade import LADDERS_STAGE, LadderRules
from eqforge.transforms.text.perturb import tagger_of
from eqforge.transforms.text.work import CAPTIONS_STAGE, CaptionBatch

if TYPE_CHECKING:
    import apache_beam as beam

NAME = "graded-captions"


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(CaptionDataset):
    """Captions with one, two, three rewordings and as many false edits, to fit thresholds to."""

    levels: int = 3
    """Edits in the texts of the last level; each level has one more than the one below."""

    least_levels: int | None = None
    """Ladders of fewer levels are rejects: by default those without all of --levels, so that each
    level has as many rows, of the same captions. 1 keeps the smaller ones too."""

    positive_families: tuple[Family, ...] = FAMILIES
    """Families of rewordings that ladders are made of."""

    negative_kinds: tuple[FalseKind, ...] = FALSE_KINDS
    """Kinds of false edits that ladders are made of; one kind alone gives a scale of that kind."""

    embedding: str | None = None
    """A dual encoder whose vectors of captions are compared: clip:MODEL, siglip:MODEL and so on, as
    eqforge score takes it, where MODEL is a folder that transformers saved, or ID@COMMIT."""

    entailment: str | None = None
    """A classifier of natural language inference, nli:MODEL, that says how likely each text follows
    from its caption; MODEL is a folder that transformers saved, or ID@COMMIT."""


def plan(config: Config) -> Iterator[CaptionBatch]:
    """Yields the captions in batches of whole images."""
    records = read_captions(config.captions, config.source)
    yield from batch_images(select_images(records, config.run))


def build(root: "beam.Pipeline", target: Target[Config]) -> None:
    """Wires the pipeline."""
    from eqforge.transforms.dataset.steps import ReadPlan, WriteDataset
    from eqforge.transforms.text.steps import MakeLadders

    _ = (
        root
        | ReadPlan(target.plan_files, CaptionBatch)
        | MakeLadders(rules(target.config), target.notes)
        | WriteDataset(target.dataset)
    )


def rules(config: Config) -> LadderRules:
    """Returns how the ladders of a configuration are made."""
    return LadderRules(
        seed=config.run.seed,
        levels=config.levels,
        least=_least(config),
        positive_families=config.positive_families,
        negative_kinds=config.negative_kinds,
        spacy_model=config.spacy_model,
        captions=CaptionSettings(max_tokens=None),
        images=image_folder(config.images, config.run),
        models=text_models(config.embedding, config.entailment),
        only=config.run.only,
        language=config.language,
    )


def _least(config: Config) -> int:
    return config.levels if config.least_levels is None else config.least_levels


def inputs(config: Config) -> Iterator[Input]:
    """Yields the caption file, or those of the folder."""
    return files_of(config.captions, caption_files(config.captions))


def needs(_config: Config) -> None:
    """Looks for WordNet; see check_wordnet."""
    check_wordnet()


def check(config: Config) -> None:
    """Checks ranges, images, tagger, WordNet and the models before any work.

    Raises:
      InputError: one of them is invalid or missing.
      MissingExtra: a required package is not installed.
    """
    check_at_least("--levels", config.levels, 1)
    if not 1 <= _least(config) <= config.levels:
        raise InputError(f"--least-levels {_least(config)}: expected 1 to {config.levels}")
    for flag in ("positive_families", "negative_kinds"):
        if not getattr(config, flag):
            raise InputError(f"--{flag.replace('_', '-')}: name at least one")
    check_images(config.images, config.run)
    check_language(config.language)
    tagger_of(config.spacy_model)
    open_wordnet()
    text_models(config.embedding, config.entailment)


def measure(config: Config, batch: CaptionBatch) -> dict[str, int]:
    """Returns what a batch adds to the counts of a plan."""
    captions = len(batch.captions)
    return {"captions": captions, "rows at most": captions * config.levels}


def tables(config: Config, plan: PlanFiles) -> tuple[Table, ...]:
    """Returns the tables, sized for a plan."""
    captions = plan.counts.get("captions", 0)
    shards = files_for(captions * config.levels, config.run.samples_per_file * 10)
    return (
        table_of(GRADED_TABLE, shards),
        *media_tables(captions, None if config.images is None else media_root(config.run)),
    )


PIPELINE = Pipeline(
    name=NAME,
    config=Config,
    defaults=language_of_mode,
    inputs=inputs,
    needs=needs,
    check=check,
    confirm=confirm_captions,
    media=caption_media,
    plan=plan,
    measure=measure,
    build=build,
    tables=tables,
    stages=(CAPTIONS_STAGE, LADDERS_STAGE),
    steps={"graded": "captions"},
)


def main(argv: list[str]) -> int:
    """Builds the dataset as the command line says."""
    return build_command(PIPELINE, argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
