r"""Published benchmarks, and your own in a table, as datasets of eqforge.

Example:
    eqforge import sugar-crepe sugar-crepe/data --images coco/val2017 --output out/sugar-crepe
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from eqforge.core.errors import InputError
from eqforge.core.shell import MediaRoot
from eqforge.pipelines.shared.pipeline import Input, Pipeline, Target, files_of
from eqforge.pipelines.shared.settings import DatasetConfig, Mode
from eqforge.pipelines.shared.text import (
    BATCH,
    check_images,
    confirm_images,
    image_folder,
    images_folder,
    images_of,
    media_root,
    select_groups,
)
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.sources.benchmarks.form import BenchmarkItem
from eqforge.sources.benchmarks.items import read_items
from eqforge.sources.benchmarks.recognise import forms_of
from eqforge.sources.benchmarks.records import Columns, benchmark_files, parse_columns, rows_of
from eqforge.sources.benchmarks.valse import CONFIRMED
from eqforge.transforms.benchmarks.items import ITEMS_STAGE, BenchmarkBatch, BenchmarkRules
from eqforge.transforms.dataset.census import Medium
from eqforge.transforms.dataset.plan import PlanFiles, read_plan
from eqforge.transforms.dataset.table import Table
from eqforge.transforms.dataset.tables import files_for, media_tables, table_of

if TYPE_CHECKING:
    import apache_beam as beam

PICTURES = "pictures in tables"


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(DatasetConfig):
    """Import a published benchmark, or your own in a table, as a dataset."""

    mode: tyro.conf.Suppress[Mode] = "paper"
    """Imports are as published."""

    source: Annotated[Path, tyro.conf.Positional]
    """The benchmark's file, its folder, or a folder of Hugging Face's: a snapshot of the hub, what
    Dataset.save_to_disk wrote, or an ImageFolder, whose pictures are taken too."""

    images: MediaRoot | None = None
    """Folder of the images, here or in a store, or tar shards: they are embedded, and a record
    whose image is missing is a reject. Without it, and without pictures in the table or beside the
    metadata of an ImageFolder, the rows name the images alone."""

    unconfirmed: bool = False
    """Keep items that the publication leaves out because its annotators did not confirm them
    (VALSE); they are rejects else."""

    columns: tuple[str, ...] = ()
    """What the columns of your own table are called, where not as eqforge calls them:
    --columns caption_0=left_text image_0=left."""


def items(benchmark: str, config: Config) -> Iterator[BenchmarkItem]:
    """Yields the items that the source holds."""
    return read_items(benchmark, config.source, _columns(benchmark, config))


def _images(benchmark: str, config: Config) -> str | None:
    """Returns the folder of the images: an ImageFolder has its own beside its metadata."""
    if config.images is not None:
        return config.images
    rows = rows_of(config.source, forms_of(benchmark))
    return None if rows is None or not rows.has_pictures() else str(rows.root)


def _columns(benchmark: str, config: Config) -> Columns:
    if not config.columns:
        return Columns()
    if not benchmark.startswith("own-"):
        raise InputError("--columns: only for own-pairs, own-foils, own-rewordings, own-questions")
    (form,) = forms_of(benchmark)
    return parse_columns(config.columns, [*sorted(form.fields), *form.optional])


def plan(benchmark: str, config: Config) -> Iterator[BenchmarkBatch]:
    """Yields the items in batches; those of a group are in one."""
    batch: list[BenchmarkItem] = []
    found = items(benchmark, config)
    groups = select_groups(found, config.run, lambda each: each.group or each.item_id)
    for group in groups:
        batch += group
        if len(batch) >= BATCH:
            yield BenchmarkBatch(items=tuple(batch))
            batch = []
    if batch:
        yield BenchmarkBatch(items=tuple(batch))


def build(benchmark: str, root: "beam.Pipeline", target: Target[Config]) -> None:
    """Wires the pipeline."""
    from eqforge.transforms.benchmarks.steps import ImportItems
    from eqforge.transforms.dataset.steps import ReadPlan, WriteDataset

    _ = (
        root
        | ReadPlan(target.plan_files, BenchmarkBatch)
        | ImportItems(rules(benchmark, target.config), target.notes)
        | WriteDataset(target.dataset)
    )


def rules(benchmark: str, config: Config) -> BenchmarkRules:
    """Returns how the items of a configuration are imported."""
    folder = image_folder(_images(benchmark, config), config.run)
    return BenchmarkRules(
        benchmark=benchmark,
        images=None if folder is None else replace(folder, clip_boxes=False),
        media=media_root(config.run),
        unconfirmed=config.unconfirmed,
        only=config.run.only,
    )


def inputs(benchmark: str, config: Config) -> tuple[Input, ...]:
    """Returns the files of the benchmark."""
    return tuple(files_of(config.source, benchmark_files(config.source, forms_of(benchmark))))


def check(benchmark: str, config: Config) -> None:
    """Checks the options before any work.

    Raises:
      InputError: one of them is invalid or missing.
    """
    _columns(benchmark, config)
    if config.unconfirmed and benchmark != "valse":
        raise InputError(
            f"--unconfirmed: only valse says how many annotators (of 3, {CONFIRMED} needed) "
            "confirmed an item"
        )
    check_images(config.images, config.run)


def confirm(benchmark: str, config: Config, plan: PlanFiles) -> None:
    """Checks that the images of a plan can be found; see `confirm_images`."""
    confirm_images(images_folder(_images(benchmark, config), config.run), _names(plan))


def media(benchmark: str, config: Config, plan: PlanFiles) -> Iterator[Medium]:
    """Yields the images of a plan that are files."""
    yield from images_of(_images(benchmark, config), config.run, _names(plan))


def _names(plan: PlanFiles) -> Iterator[str]:
    found = (item for batch in read_plan(BenchmarkBatch, plan.files) for item in batch.items)
    return (name for item in found for name in item.files)


def measure(_: Config, batch: BenchmarkBatch) -> dict[str, int]:
    """Returns what a batch adds to the counts of a plan."""
    counts = {
        "records": len(batch.items),
        "groups": len({item.group for item in batch.items if item.group}),
        PICTURES: sum(len(item.images) - len(item.files) for item in batch.items if item.cells),
        "not confirmed": sum(bool(item.refusal) for item in batch.items),
    }
    return {name: number for name, number in counts.items() if number}


def tables(benchmark: str, config: Config, plan: PlanFiles) -> tuple[Table, ...]:
    """Returns the tables, sized for a plan."""
    number = plan.counts.get("records", 0)
    has_pictures = _images(benchmark, config) is not None or plan.counts.get(PICTURES, 0)
    samples = BENCHMARKS[benchmark].type.table("samples")
    return (
        table_of(samples, files_for(number, config.run.samples_per_file)),
        *media_tables(number, media_root(config.run) if has_pictures else None),
    )


def as_published(_: Mode) -> dict[str, Any]:
    """Returns the only mode."""
    return {"mode": "paper"}


def pipeline_of(benchmark: str) -> Pipeline[Config]:
    """Returns the pipeline that imports a benchmark."""
    return Pipeline(
        name=benchmark,
        config=Config,
        defaults=as_published,
        inputs=partial(inputs, benchmark),
        check=partial(check, benchmark),
        confirm=partial(confirm, benchmark),
        media=partial(media, benchmark),
        plan=partial(plan, benchmark),
        measure=measure,
        build=partial(build, benchmark),
        tables=partial(tables, benchmark),
        stages=(ITEMS_STAGE,),
        steps={"imported": "records"},
    )
