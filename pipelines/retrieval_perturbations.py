r"""Captions in every perturbation, and their granularity (Hendriksen et al., sections 3 and 4).

Example:
    eqforge build retrieval-perturbations --captions captions_val2017.json \
        --output out/perturbations --workers 4
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.generators.text.perturbations.catalogue import names_of
from eqforge.generators.text.perturbations.record import PerturbationSettings
from eqforge.generators.text.wordnet import check_wordnet, open_wordnet
from eqforge.pipelines.shared.building import build_command
from eqforge.pipelines.shared.pipeline import Input, Pipeline, Target, files_of
from eqforge.pipelines.shared.text import (
    CaptionDataset,
    batch_captions,
    caption_media,
    check_at_least,
    check_images,
    check_language,
    confirm_captions,
    image_folder,
    language_of_mode,
    media_root,
    select_captions,
)
from eqforge.schemas.tables.texts import (
    MEASURED_TABLE,
    PERTURBED_TABLE,
)
from eqforge.sources.caption_sources import read_captions
from eqforge.sources.own_captions import caption_files
from eqforge.transforms.dataset.plan import PlanFiles
from eqforge.transforms.dataset.table import Table
from eqforge.transforms.dataset.tables import files_for, media_tables, table_of
from eqforge.transforms.text.perturb import PERTURBATIONS_STAGE, PerturbationRules, tagger_of
from eqforge.transforms.text.work import CAPTIONS_STAGE, CaptionBatch

if TYPE_CHECKING:
    import apache_beam as beam

NAME = "retrieval-perturbations"


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(CaptionDataset):
    """Captions in every perturbation, and their granularity, to test image-text retrieval."""

    max_synonyms: int = 1
    """Words that a synonym perturbation replaces at most; the paper's k."""


def plan(config: Config) -> Iterator[CaptionBatch]:
    """Yields the captions in batches."""
    records = read_captions(config.captions, config.source)
    yield from batch_captions(select_captions([records], config.run))


def build(root: "beam.Pipeline", target: Target[Config]) -> None:
    """Wires the pipeline."""
    from eqforge.transforms.dataset.steps import ReadPlan, WriteDataset
    from eqforge.transforms.text.steps import PerturbCaptions

    _ = (
        root
        | ReadPlan(target.plan_files, CaptionBatch)
        | PerturbCaptions(rules(target.config), target.notes)
        | WriteDataset(target.dataset)
    )


def rules(config: Config) -> PerturbationRules:
    """Returns how the captions of a configuration are perturbed."""
    return PerturbationRules(
        seed=config.run.seed,
        spacy_model=config.spacy_model,
        perturbations=PerturbationSettings(mode=config.mode, max_synonyms=config.max_synonyms),
        captions=CaptionSettings(max_tokens=None),
        images=image_folder(config.images, config.run),
        only=config.run.only,
        language=config.language,
    )


def inputs(config: Config) -> Iterator[Input]:
    """Yields the caption file, or those of the folder."""
    return files_of(config.captions, caption_files(config.captions))


def needs(_config: Config) -> None:
    """Looks for WordNet; see check_wordnet."""
    check_wordnet()


def check(config: Config) -> None:
    """Checks ranges, images, tagger and WordNet before any work.

    Raises:
      InputError: one of them is invalid or missing.
    """
    check_at_least("--max-synonyms", config.max_synonyms, 1)
    check_images(config.images, config.run)
    check_language(config.language)
    tagger_of(config.spacy_model)
    open_wordnet()


def measure(config: Config, batch: CaptionBatch) -> dict[str, int]:
    """Returns what a batch adds to the counts of a plan."""
    number = len(batch.captions)
    return {"captions": number, "perturbed captions": number * len(names_of(config.mode))}


def tables(config: Config, plan: PlanFiles) -> tuple[Table, ...]:
    """Returns the tables, sized for a plan."""
    captions = plan.counts.get("captions", 0)
    rows, per_file = captions * len(names_of(config.mode)), config.run.samples_per_file * 10
    return (
        table_of(PERTURBED_TABLE, files_for(rows, per_file)),
        table_of(MEASURED_TABLE, files_for(captions, per_file)),
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
    stages=(CAPTIONS_STAGE, PERTURBATIONS_STAGE),
    steps={"perturbed": "captions"},
)


def main(argv: list[str]) -> int:
    """Builds the dataset as the command line says."""
    return build_command(PIPELINE, argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
