r"""VLUE's out-of-distribution test sets, or your own in their form (Zhou et al., section 3.2).

Example:
    eqforge build vlue --retrieval itr_vlue_test.json --nlvr2 nlvr2_vlue_test.json \
        --vqa vqa_vlue_test.json --captioning caption_vlue_test.json --output out/vlue
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from eqforge.core.errors import InputError
from eqforge.core.shell import MediaRoot
from eqforge.pipelines.shared.building import build_command
from eqforge.pipelines.shared.pipeline import Pipeline, Target
from eqforge.pipelines.shared.settings import DatasetConfig
from eqforge.pipelines.shared.text import (
    BATCH,
    check_at_least,
    check_images,
    confirm_images,
    image_folder,
    images_folder,
    media_root,
    select_captions,
)
from eqforge.schemas.tables.vlue import (
    FINDINGS_TABLE,
    ITEMS_TABLE,
    TASK_TABLES,
    TASKS,
    Task,
)
from eqforge.sources.vlue import read_answer_list, read_vlue
from eqforge.transforms.dataset.census import IMAGES, Medium, media_in
from eqforge.transforms.dataset.plan import PlanFiles, read_plan
from eqforge.transforms.dataset.table import Table
from eqforge.transforms.dataset.tables import files_for, media_tables, table_of
from eqforge.transforms.vlue.images import match_name
from eqforge.transforms.vlue.items import ANNOTATIONS_STAGE, VlueBatch, VlueRules
from eqforge.transforms.vlue.lints import MIN_WORDS

if TYPE_CHECKING:
    import apache_beam as beam

NAME = "vlue"
COUNTED: dict[Task, str] = {
    "retrieval": "captions to retrieve",
    "nlvr2": "statements",
    "vqa": "questions",
    "captioning": "images to caption",
    "grounding": "phrases",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(DatasetConfig):
    """VLUE's test sets, or your own in their form, with what breaks the annotation rules."""

    retrieval: Path | None = None
    """Retrieval: a JSON array of {"image": "a.jpg", "caption": ["...", ...]}."""

    nlvr2: Path | None = None
    """Statements: {"sentence": "...", "images": ["a.jpg", "b.jpg"], "label": "True"}."""

    vqa: Path | None = None
    """Questions: {"question_id": 7, "question": "...", "image": "a.jpg", "answer": "yes"}."""

    captioning: Path | None = None
    """Images to caption: {"image_id": 16, "image": "a.jpg", "caption": ["...", ...]}."""

    grounding: Path | None = None
    """Phrases: {"ref_id": 3, "image": "a.jpg", "text": "...", "bbox": [x, y, width, height]}."""

    answer_list: Path | None = None
    """The answers that a VQA classifier can give: a JSON array, or one a line. Questions with
    another answer are findings; without the list they are not looked for."""

    min_words: int = MIN_WORDS
    """Words that a caption should have at least; fewer are a finding."""

    images: MediaRoot | None = None
    """Folder of the images, here or in a store, or tar shards: they are embedded, and an item whose
    image is missing is a reject. Without it the rows name the images alone. Names match in any form
    of Unicode, but not on a web server, which lists none."""


def plan(config: Config) -> Iterator[VlueBatch]:
    """Yields the items in batches, task by task."""
    from more_itertools import batched

    files = (read_vlue(task, path) for task, path in _files(config).items())
    for batch in batched(select_captions(files, config.run), BATCH):
        yield VlueBatch(items=tuple(batch))


def _files(config: Config) -> dict[Task, Path]:
    """Returns the file of each task that has one."""
    named: dict[Task, Path | None] = {task: getattr(config, task) for task in TASKS}
    return {task: path for task, path in named.items() if path is not None}


def build(root: "beam.Pipeline", target: Target[Config]) -> None:
    """Wires the pipeline."""
    from eqforge.transforms.dataset.steps import ReadPlan, WriteDataset
    from eqforge.transforms.vlue.steps import ImportVlue

    _ = (
        root
        | ReadPlan(target.plan_files, VlueBatch)
        | "ImportItems" >> ImportVlue(rules(target.config), target.notes)
        | WriteDataset(target.dataset)
    )


def rules(config: Config) -> VlueRules:
    """Returns how the items of a configuration are imported."""
    return VlueRules(
        by_image=config.mode == "corrected",
        answers=None if config.answer_list is None else read_answer_list(config.answer_list),
        min_words=config.min_words,
        images=image_folder(config.images, config.run),
        only=config.run.only,
    )


def inputs(config: Config) -> tuple[Path, ...]:
    """Returns the files of the tasks and the list of answers."""
    answers = () if config.answer_list is None else (config.answer_list,)
    return (*_files(config).values(), *answers)


def check(config: Config) -> None:
    """Checks that there is a task, and the images and the list of answers, before any work.

    Raises:
      InputError: one of them is invalid or missing.
    """
    if not _files(config):
        flags = ", ".join(f"--{task}" for task in TASKS)
        raise InputError(f"name the file of at least one task: {flags}")
    if config.answer_list is not None:
        if config.vqa is None:
            raise InputError("--answer-list: there is nothing to look up without --vqa FILE")
        read_answer_list(config.answer_list)
    check_at_least("--min-words", config.min_words, 0)
    check_images(config.images, config.run)


def confirm(config: Config, plan: PlanFiles) -> None:
    """Checks that the images of a plan can be found; see `confirm_images`."""
    folder = images_folder(config.images, config.run)
    if folder is not None:
        confirm_images(folder, (match_name(folder, name) for name in _names(plan)))


def media(config: Config, plan: PlanFiles) -> Iterator[Medium]:
    """Yields the images of a plan."""
    folder = images_folder(config.images, config.run)
    if folder is not None:
        names = list(dict.fromkeys(_names(plan)))
        there = media_in(IMAGES, folder, (match_name(folder, name) for name in names))
        yield from (replace(each, name=name) for name, each in zip(names, there, strict=True))


def _names(plan: PlanFiles) -> Iterator[str]:
    """Yields the names of images in a plan."""
    items = (item for batch in read_plan(VlueBatch, plan.files) for item in batch.items)
    return (name for item in items for name in item.images)


def measure(_: Config, batch: VlueBatch) -> dict[str, int]:
    """Returns what a batch adds to the counts of a plan."""
    counts = {"items": len(batch.items)}
    for item in batch.items:
        if item.number == 0:
            counts["retrieval rows"] = counts.get("retrieval rows", 0) + 1
        counts[COUNTED[item.task]] = counts.get(COUNTED[item.task], 0) + 1
    return counts


def tables(config: Config, plan: PlanFiles) -> tuple[Table, ...]:
    """Returns the tables, sized for a plan."""
    rows = {task: plan.counts.get(COUNTED[task], 0) for task in _files(config)}
    items, per_file = sum(rows.values()), config.run.samples_per_file
    return (
        table_of(ITEMS_TABLE, files_for(items, per_file)),
        *(
            table_of(TASK_TABLES[task], files_for(number, per_file))
            for task, number in rows.items()
        ),
        table_of(FINDINGS_TABLE, files_for(items, per_file)),
        *media_tables(items, None if config.images is None else media_root(config.run)),
    )


PIPELINE = Pipeline(
    name=NAME,
    config=Config,
    inputs=inputs,
    check=check,
    confirm=confirm,
    media=media,
    plan=plan,
    measure=measure,
    build=build,
    tables=tables,
    stages=(ANNOTATIONS_STAGE,),
    steps={"imported": "items"},
)


def main(argv: list[str]) -> int:
    """Builds the dataset as the command line says."""
    return build_command(PIPELINE, argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
