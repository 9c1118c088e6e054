r"""VLUE's out-of-distribution test sets, or your own in their form (Zhou et al., section 3.2).

Example:
    eqforge build vlue --retrieval itr_vlue_test.json --nlvr2 nlvr2_vlue_test.json \
        --vqa vqa_vlue_test.json --captioning caption_vlue_test.json --output out/vlue
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from more_itertools import batched

from eqforge.core.errors import InputError
from eqforge.core.ranges import expect
from eqforge.core.shell import MediaRoot
from eqforge.pipelines.base.command import Main
from eqforge.pipelines.base.pipeline import DatasetConfig, Input
from eqforge.pipelines.base.text import BATCH, TextPipeline, select_captions
from eqforge.schemas.tables.vlue import FINDINGS_TABLE, ITEMS_TABLE, TASK_TABLES, TASKS, Task
from eqforge.sources.vlue import read_answer_list, read_vlue
from eqforge.sources.vlue_in_domain import companion
from eqforge.transforms.dataset.census import IMAGES, Medium, media_in
from eqforge.transforms.dataset.plan import PlanFiles, read_plan
from eqforge.transforms.dataset.tables import Table, files_for, table_of
from eqforge.transforms.imports.vlue import (
    ANNOTATIONS_STAGE,
    VlueBatch,
    VlueRules,
    import_batch,
    match_name,
)
from eqforge.transforms.imports.vlue_lints import MIN_WORDS

COUNTED: dict[Task, str] = {
    "retrieval": "captions to retrieve",
    "nlvr2": "statements",
    "vqa": "questions",
    "captioning": "images to caption",
    "grounding": "phrases",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(DatasetConfig):
    """Build VLUE's test sets, or your own in its format, and list violations of its rules."""

    retrieval: Path | None = None
    """JSON file of retrieval items. Each item has the form {"image": "a.jpg", "caption": ["...",
    ...]}."""

    nlvr2: Path | None = None
    """JSON file of statements. Each item has the form {"sentence": "...", "images": ["a.jpg",
    "b.jpg"], "label": "True"}."""

    vqa: Path | None = None
    """JSON file of questions. Each item has the form {"question_id": 7, "question": "...", "image":
    "a.jpg", "answer": "yes"}."""

    captioning: Path | None = None
    """JSON file of images to caption. Each item has the form {"image_id": 16, "image": "a.jpg",
    "caption": ["...", ...]}."""

    grounding: Path | None = None
    """JSON file of phrases to locate in images. Each item has the form {"ref_id": 3, "image":
    "a.jpg", "text": "...", "bbox": [x, y, width, height]}."""

    answer_list: Path | None = None
    """File that lists the answers a VQA classifier can give. Pass a JSON file, or a text file with
    one answer per line. Items with other answers are listed in the `findings` table."""

    min_words: int = MIN_WORDS
    """Minimum number of words per caption. Shorter captions are listed in the `findings` table."""

    images: MediaRoot | None = None
    """Folder, URL or tar shards of the images to store in the dataset. Items without an image file
    are rejected. Without this option, rows contain only the image names."""


class Vlue(TextPipeline[Config, VlueBatch]):
    """Items of VLUE's tasks, with violations of the annotation rules."""

    name = "vlue"
    Config = Config
    basics = ("retrieval", "nlvr2", "vqa", "captioning", "grounding", "images", "workers", "mode")
    record = VlueBatch
    make = staticmethod(import_batch)
    stages = (ANNOTATIONS_STAGE,)
    steps = (("imported", "items"),)

    @property
    def files(self) -> dict[Task, Path]:
        named: dict[Task, Path | None] = {task: getattr(self.config, task) for task in TASKS}
        return {task: path for task, path in named.items() if path is not None}

    def inputs(self) -> Iterator[Input]:
        yield from super().inputs()
        companions = (companion(task, path) for task, path in self.files.items())
        yield from (path for path in companions if path is not None and path.is_file())

    def check(self) -> None:
        if not self.files:
            flags = ", ".join(f"--{task}" for task in TASKS)
            raise InputError(f"pass a file for at least one task: {flags}")
        if self.config.answer_list is not None:
            if self.config.vqa is None:
                raise InputError("--answer-list works only with --vqa FILE")
            read_answer_list(self.config.answer_list)
        expect(self.config, "min_words", self.config.min_words >= 0, "0 or more")
        self.check_images()

    def plan(self) -> Iterator[VlueBatch]:
        files = (read_vlue(task, path) for task, path in self.files.items())
        for batch in batched(select_captions(files, self.run), BATCH):
            yield VlueBatch(items=tuple(batch))

    def images_of(self, batch: VlueBatch) -> Iterator[str]:
        folder = self.images()
        names = (name for item in batch.items for name in item.images)
        return names if folder is None else (match_name(folder, name) for name in names)

    def media(self, plan: PlanFiles) -> Iterator[Medium]:
        if (folder := self.images()) is not None:
            batches = read_plan(VlueBatch, plan.files)
            items = (item for batch in batches for item in batch.items)
            names = list(dict.fromkeys(name for item in items for name in item.images))
            images = media_in(IMAGES, folder, (match_name(folder, name) for name in names))
            yield from (replace(each, name=name) for name, each in zip(names, images, strict=True))

    def measure(self, batch: VlueBatch) -> dict[str, int]:
        counts = {"items": len(batch.items)}
        for item in batch.items:
            if item.number == 0:
                counts["retrieval rows"] = counts.get("retrieval rows", 0) + 1
            counts[COUNTED[item.task]] = counts.get(COUNTED[item.task], 0) + 1
        return counts

    def rules(self) -> VlueRules:
        answers = self.config.answer_list
        return VlueRules(
            by_image=self.config.mode == "corrected",
            answers=None if answers is None else frozenset(read_answer_list(answers)),
            min_words=self.config.min_words,
            images=self.image_folder(),
            only=self.run.only,
        )

    def tables(self, plan: PlanFiles) -> tuple[Table, ...]:
        rows = {task: plan.counts.get(COUNTED[task], 0) for task in self.files}
        items, per_file = sum(rows.values()), self.run.samples_per_file
        return (
            table_of(ITEMS_TABLE, files_for(items, per_file)),
            *(table_of(TASK_TABLES[task], files_for(rows[task], per_file)) for task in rows),
            table_of(FINDINGS_TABLE, files_for(items, per_file)),
            *self.media_tables(items),
        )


main = Main(Vlue)
