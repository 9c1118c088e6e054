"""From a command line to a finished dataset: what all pipelines share."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import apache_beam as beam

from eqforge.pipelines.command import parse, reported_errors
from eqforge.pipelines.header import (
    WORK,
    check_output,
    claim_output,
    identity,
    locked,
    manifest_header,
)
from eqforge.pipelines.settings import DatasetConfig, Mode
from eqforge.schemas import storage
from eqforge.schemas.errors import InputError
from eqforge.schemas.identity import fingerprint
from eqforge.schemas.manifest import FILE_NAME, Manifest, load_manifest
from eqforge.transforms import progress, runners
from eqforge.transforms.dataset import DatasetTarget
from eqforge.transforms.plan import PlanFiles, copy_plan, write_plan
from eqforge.transforms.write import Table

Configured = TypeVar("Configured", bound=DatasetConfig)


@dataclass(frozen=True, kw_only=True, slots=True)
class Target(Generic[Configured]):
    """What a pipeline is wired to.

    Attributes:
      config: the configuration.
      plan_files: the plan on disk.
      dataset: where the tables and the manifest go.
      notes: the folder in which processes note their progress.
    """

    config: Configured
    plan_files: tuple[str, ...]
    dataset: DatasetTarget
    notes: str


def _nothing_to_confirm(_config: Any, _plan: PlanFiles) -> None:
    """Accepts any plan."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pipeline(Generic[Configured]):
    """What a pipeline file says of its dataset.

    Attributes:
      name: name of the dataset, and the prefix of its ids.
      config: its configuration, from which the command line is made.
      defaults: the fields of the configuration that a mode sets.
      inputs: the annotation files of a configuration.
      check: raises InputError or MissingExtra where a build could not run.
      plan: yields the records of the selected plan; reads the annotations, opens no media.
      measure: what a record adds to the plan's counts.
      confirm: raises InputError where a plan cannot be built; looks at no media's content.
      build: wires the Beam pipeline.
      tables: the tables, sized for a plan.
      stages: the stages of the books in order.
      steps: what a worker notes for every finished record, in the order of the work.
    """

    name: str
    config: type[Configured]
    defaults: Callable[[Mode], dict[str, Any]]
    inputs: Callable[[Configured], Iterable[Path]]
    check: Callable[[Configured], None]
    plan: Callable[[Configured], Iterator[Any]]
    measure: Callable[[Any], dict[str, int]]
    confirm: Callable[[Configured, PlanFiles], None] = _nothing_to_confirm
    build: Callable[[beam.Pipeline, Target[Configured]], None]
    tables: Callable[[Configured, PlanFiles], tuple[Table, ...]]
    stages: tuple[str, ...]
    steps: tuple[str, ...]


def build_command(pipeline: Pipeline[Configured], argv: Sequence[str]) -> int:
    """Builds a dataset as its command line says; returns the exit status."""
    with reported_errors():
        program = f"eqforge build {pipeline.name}"
        config, beam_args = parse(pipeline.config, pipeline.defaults, argv, program)
        manifest = build_dataset(pipeline, config, beam_args)
        print(finished(manifest, config.run.output))
        return 0
    return 2


def build_dataset(
    pipeline: Pipeline[Configured], config: Configured, beam_args: Sequence[str] = ()
) -> Manifest:
    """Plans and builds a dataset; returns the manifest of the finished dataset.

    Raises:
      InputError: an input, a setting or the output folder is wrong; nothing was done yet.
      BuildError: the run ended before the dataset was complete; running it again goes on.
    """
    run = config.run
    options = runners.pipeline_options(beam_args, run.workers)
    pipeline.check(config)
    header = manifest_header(pipeline.name, pipeline.inputs(config), config)
    check_output(run, header)
    with tempfile.TemporaryDirectory(prefix="eqforge-") as scratch:
        # A mistake in the annotations shows here, before anything is written to the output.
        plan = write_plan(pipeline.plan(config), f"{scratch}/plan", pipeline.measure)
        if not plan.records:
            raise InputError(
                "the settings leave nothing to build: see --limit, --sample and --only"
            )
        pipeline.confirm(config, plan)
        print(describe(pipeline.name, plan), file=sys.stderr)
        with locked(run.output):
            check_output(run, header)  # another run may have finished in the meantime
            claim_output(run.output, header)
            storage.delete(storage.join(run.output, FILE_NAME))
            folder = storage.join(run.output, WORK, "plan", fingerprint(identity(header))[:16])
            target = Target(
                config=config,
                plan_files=copy_plan(plan, folder).files,
                dataset=_dataset_target(pipeline, config, header, plan),
                notes=f"{scratch}/progress",
            )
            with progress.watch(target.notes, dict.fromkeys(pipeline.steps, plan.records)):
                log = _worker_log(run.output)
                runners.run(lambda root: pipeline.build(root, target), options, log)
    return load_manifest(run.output)


def _worker_log(output: str) -> str:
    if storage.is_local(output):
        return storage.join(output, WORK, "workers.log")
    return os.path.join(tempfile.gettempdir(), "eqforge-workers.log")


def _dataset_target(
    pipeline: Pipeline[Configured], config: Configured, header: Manifest, plan: PlanFiles
) -> DatasetTarget:
    return DatasetTarget(
        output=config.run.output,
        header=header,
        stages=pipeline.stages,
        tables=pipeline.tables(config, plan),
        max_error_rate=config.run.max_error_rate,
    )


def describe(name: str, plan: PlanFiles) -> str:
    """Returns one line on what a plan holds."""
    counts = ", ".join(f"{count:,} {what}" for what, count in plan.counts.items())
    return f"{name}: {counts}"


def finished(manifest: Manifest, output: str) -> str:
    """Returns what a user wants to know when a dataset is complete."""
    *_, (stage, books) = manifest.stages.items()
    others = [table for table in manifest.tables if table != "samples"]
    rows = ", ".join(f"{manifest.num_rows(table):,} {table}" for table in others)
    return (
        f"{output}: {manifest.num_rows('samples'):,} samples of {books.candidates:,} candidate "
        f"{stage.replace('_', ' ')}; {rows}; look with: eqforge inspect {output}"
    )
