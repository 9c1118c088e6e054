r"""Published benchmarks, and your own in a table, as datasets of eqforge.

Example:
    eqforge import sugar-crepe sugar-crepe/data --images coco/val2017 --output out/sugar-crepe
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.shell import MediaRoot
from eqforge.pipelines.base.pipeline import DatasetConfig, Input, Mode, files_of
from eqforge.pipelines.base.text import BATCH, TextPipeline, select_groups, whole_groups
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.sources.benchmarks.form import NO_IMAGE, NOT_CONFIRMED
from eqforge.sources.benchmarks.items import (
    Columns,
    benchmark_files,
    parse_columns,
    read_items,
    rows_of,
    shards_in,
)
from eqforge.sources.benchmarks.published import FORMS
from eqforge.sources.web_dataset import pictures_of
from eqforge.transforms.dataset.plan import PlanFiles
from eqforge.transforms.dataset.tables import Table, files_for, media_tables, table_of
from eqforge.transforms.imports.benchmarks import (
    ITEMS_STAGE,
    BenchmarkBatch,
    BenchmarkRules,
    import_batch,
)

PICTURES = "pictures in tables"


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(DatasetConfig):
    """Import a published benchmark, or your own table, as a dataset."""

    mode: tyro.conf.Suppress[Mode] = "paper"
    """Always `paper`, because imports keep the published data unchanged."""

    source: Annotated[Path, tyro.conf.Positional]
    """File or folder that contains the benchmark. A Hugging Face folder with its rows and images
    also works."""

    images: MediaRoot | None = None
    """Folder, URL or tar shards of the images to store in the dataset. Records without an image
    file are rejected. Without this option, images come from the benchmark itself. If the benchmark
    contains no images, rows contain only the image names."""

    unconfirmed: bool = False
    """Keep VALSE items that the annotators did not confirm."""

    columns: tuple[str, ...] = ()
    """Map eqforge's column names to yours, as in caption_0=left_text image_0=left."""


class ImportBenchmark(TextPipeline[Config, BenchmarkBatch]):
    """The items of a published benchmark, with their images; a subclass has its name."""

    Config = Config
    basics = ("images", "columns", "sample", "max-error-rate", "workers", "overwrite")
    record = BenchmarkBatch
    make = staticmethod(import_batch)
    stages = (ITEMS_STAGE,)
    steps = (("imported", "records"),)

    @classmethod
    def defaults(cls, mode: Mode) -> dict[str, Any]:
        return {"mode": "paper"}

    def inputs(self) -> Iterator[Input]:
        source = self.config.source
        yield from files_of(source, benchmark_files(source, FORMS[self.name]))

    def check(self) -> None:
        self._columns()
        if self.config.unconfirmed and self.name != "valse":
            raise InputError(
                "--unconfirmed works only with valse, the only benchmark that records annotators' "
                "votes"
            )
        self.check_images()

    def _columns(self) -> Columns:
        if not self.config.columns:
            return Columns()
        if not self.name.startswith("own-"):
            raise InputError(
                "--columns works only with own-pairs, own-foils, own-rewordings and own-questions"
            )
        (form,) = FORMS[self.name]
        return parse_columns(self.config.columns, [*sorted(form.fields), *form.optional])

    def plan(self) -> Iterator[BenchmarkBatch]:
        """Yield the items in batches that do not split groups."""
        share = self.run.max_error_rate
        found = read_items(self.name, self.config.source, self._columns(), share)
        groups = select_groups(found, self.run, lambda each: each.group or each.item_id)
        batches = list(whole_groups(groups, BATCH))
        items = [item for batch in batches for item in batch]
        are_named = any(item.image for item in items)
        are_in_table = self.place("images") is None and any(item.cells for item in items)
        for batch in batches:
            checked = []
            for item in batch:
                problem, refusal = item.problem, item.refusal
                if not problem and are_named and not all(item.images or ("",)):
                    refusal = NO_IMAGE
                elif not problem and not item.cells and are_in_table:
                    problem = f"the table has only the name {shown(item.image)} of its image; "
                    problem += "--images finds it"
                checked.append(replace(item, problem=problem, refusal=refusal))
            yield BenchmarkBatch(items=tuple(checked))

    def place(self, option: str) -> str | None:
        named = super().place(option)
        if named is not None or option != "images":
            return named
        if shards := shards_in(self.config.source, FORMS[self.name]):
            return pictures_of(shards)
        rows = rows_of(self.config.source, FORMS[self.name])
        return None if rows is None or not rows.has_pictures() else str(rows.root)

    def images_of(self, batch: BenchmarkBatch) -> Iterator[str]:
        return (name for item in batch.items for name in item.files)

    def measure(self, batch: BenchmarkBatch) -> dict[str, int]:
        counts = {
            "records": len(batch.items),
            "groups": len({item.group for item in batch.items if item.group}),
            PICTURES: sum(len(item.images) - len(item.files) for item in batch.items if item.cells),
            "not confirmed": sum(item.refusal == NOT_CONFIRMED for item in batch.items),
            "without image": sum(item.refusal == NO_IMAGE for item in batch.items),
            "unreadable": sum(bool(item.problem) for item in batch.items),
        }
        return {name: number for name, number in counts.items() if number}

    def rules(self) -> BenchmarkRules:
        folder = self.image_folder()
        return BenchmarkRules(
            benchmark=self.name,
            images=None if folder is None else replace(folder, clip_boxes=False),
            media=self.media_root,
            unconfirmed=self.config.unconfirmed,
            only=self.run.only,
        )

    def tables(self, plan: PlanFiles) -> tuple[Table, ...]:
        number = plan.counts.get("records", 0)
        has_pictures = self.place("images") is not None or plan.counts.get(PICTURES, 0)
        samples = BENCHMARKS[self.name].type.table("samples")
        return (
            table_of(samples, files_for(number, self.run.samples_per_file)),
            *media_tables(number, self.media_root if has_pictures else None),
        )


def pipeline_of(benchmark: str) -> type[ImportBenchmark]:
    return type(benchmark, (ImportBenchmark,), {"name": benchmark})
