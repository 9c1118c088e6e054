"""From a command line to a finished dataset: what all pipelines share."""

import contextlib
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import apache_beam as beam
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

from eqforge.models.pretrained import devices_elsewhere
from eqforge.pipelines.shared.command import parse
from eqforge.pipelines.shared.header import (
    check_output,
    claim_output,
    identity,
    manifest_header,
    refuse,
    remove_half_written,
)
from eqforge.pipelines.shared.settings import DatasetConfig, Mode
from eqforge.schemas import signals
from eqforge.schemas.dataset.manifest import FILE_NAME, NEXT, WORK, Manifest, load_manifest
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.errors import InputError, reported_errors
from eqforge.schemas.identity import fingerprint
from eqforge.schemas.io import storage
from eqforge.schemas.io.source_file import one_content
from eqforge.schemas.records.books import Stage
from eqforge.schemas.visible import visible
from eqforge.transforms.dataset.census import Medium, compare_media, note_census, take_census
from eqforge.transforms.dataset.finish import DatasetTarget
from eqforge.transforms.dataset.plan import PlanFiles, copy_plan, write_plan
from eqforge.transforms.dataset.replace import is_complete, settle
from eqforge.transforms.dataset.write import Table
from eqforge.transforms.engines import placement, progress
from eqforge.transforms.engines import run as runners
from eqforge.transforms.engines.exclusive_job import locked
from eqforge.transforms.engines.run_folder import outside, run_folder

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


def _no_defaults(_mode: Mode) -> dict[str, Any]:
    """Returns none: the mode itself decides the rules."""
    return {}


def _nothing_to_confirm(_config: Any, _plan: PlanFiles) -> None:
    """Accepts any plan."""


def _no_media(_config: Any, _plan: PlanFiles) -> Iterable[Medium]:
    """Returns none."""
    return ()


def _no_warnings(_config: Any) -> Iterable[str]:
    """Returns none."""
    return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PilotCost:
    """What a pilot took.

    Attributes:
      seconds: wall-clock time of its records.
      num_bytes: of the images it stored.
      start_s: seconds that a process needs once, before its first record.
    """

    seconds: float
    num_bytes: int
    start_s: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Pilot(Generic[Configured]):
    """How `eqforge plan` builds a few records, to estimate what all of them cost.

    Attributes:
      records: what the plan's records are called.
      number: how many are built where `--pilot` is not given.
      unit: the count of `Pipeline.measure` that the cost grows with.
      clock: what the seconds are measured on, such as `one core`.
      is_fit: tells whether a record can be built, and is worth it.
      run: builds records into a work folder, which is thrown away, and says what that took.
    """

    records: str
    number: int
    unit: str
    clock: str
    is_fit: Callable[[Configured, Any], bool]
    run: Callable[[Configured, Sequence[Any], str], PilotCost]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pipeline(Generic[Configured]):
    """What a pipeline file says of its dataset.

    Attributes:
      name: name of the dataset, and the prefix of its ids.
      config: its configuration, from which the command line is made.
      defaults: the fields of the configuration that a mode sets.
      inputs: the files that the plan is made from, as paths or URLs.
      check: raises InputError or MissingExtra where a build could not run.
      plan: yields the records of the selected plan; reads the annotations, opens no media.
      measure: what a record adds to the plan's counts.
      media: yields the files that a plan needs beside the inputs; opens none.
      confirm: raises InputError where a plan cannot be built; looks at no media's content.
      warnings: what the manifest warns of.
      pilot: how the cost is estimated; None where `eqforge plan` only counts.
      report: yields the lines that `eqforge plan` prints of a plan; None prints its counts.
      build: wires the Beam pipeline.
      tables: the tables, sized for a plan.
      stages: the stages of the books in order.
      steps: what a worker notes for every finished record, in the order of the work.
    """

    name: str
    config: type[Configured]
    defaults: Callable[[Mode], dict[str, Any]] = _no_defaults
    inputs: Callable[[Configured], Iterable[Path | str]]
    check: Callable[[Configured], None]
    plan: Callable[[Configured], Iterator[Any]]
    measure: Callable[[Any], dict[str, int]]
    media: Callable[[Configured, PlanFiles], Iterable[Medium]] = _no_media
    confirm: Callable[[Configured, PlanFiles], None] = _nothing_to_confirm
    warnings: Callable[[Configured], Iterable[str]] = _no_warnings
    pilot: Pilot[Configured] | None = None
    report: Callable[[Configured, Iterable[Any]], Iterator[str]] | None = None
    build: Callable[[beam.Pipeline, Target[Configured]], None]
    tables: Callable[[Configured, PlanFiles], tuple[Table, ...]]
    stages: tuple[Stage, ...]
    steps: tuple[str, ...]


def build_command(pipeline: Pipeline[Configured], argv: Sequence[str]) -> int:
    """Builds a dataset as its command line says; returns the exit status."""
    with reported_errors(goes_on=True):
        program = f"eqforge build {pipeline.name}"
        config, beam_args = parse(pipeline.config, pipeline.defaults, argv, program)
        options = runners.pipeline_options(beam_args, config.run.workers)
        is_run = run_pipeline(pipeline, config, options)
        if not is_run:
            print(f"{config.run.output}: was finished already, and is left as it is")
        if not is_run or placement.is_waited_for(options):
            print(visible(finished(load_manifest(config.run.output), config.run.output)))
        else:
            print(submitted(options, config.run.output))
        return 0
    return 2


def build_dataset(
    pipeline: Pipeline[Configured], config: Configured, beam_args: Sequence[str] = ()
) -> Manifest:
    """Plans and builds a dataset; returns the manifest of the finished dataset.

    A dataset that is finished, and would become the same again, is left alone.

    Raises:
      InputError: an input, a setting or the output folder is wrong; nothing was done yet.
      BuildError: the run ended before the dataset was complete; running it again goes on.
    """
    options = runners.pipeline_options(beam_args, config.run.workers)
    run_pipeline(pipeline, config, options)
    return load_manifest(config.run.output)


def run_pipeline(
    pipeline: Pipeline[Configured], config: Configured, options: PipelineOptions
) -> bool:
    """Plans a dataset and has a runner build it; waits for the end where the options say so.

    Returns:
      Whether a runner ran: not where the dataset is finished and would become the same again.

    Raises:
      InputError, BuildError: see build_dataset.
    """
    placement.check_reach(options, config.run.output)
    elsewhere = placement.is_dataflow(options)
    somewhere = devices_elsewhere() if elsewhere else contextlib.nullcontext()
    with run_folder(), one_content(), somewhere:
        return _run_pipeline(pipeline, config, options)


def _run_pipeline(
    pipeline: Pipeline[Configured], config: Configured, options: PipelineOptions
) -> bool:
    run = config.run
    pipeline.check(config)
    header = header_of(pipeline, config)
    check_output(run, header)
    with tempfile.TemporaryDirectory(prefix="eqforge-") as scratch:
        # A mistake in the annotations shows here, before anything is written to the output.
        plan = write_plan(pipeline.plan(config), f"{scratch}/plan", pipeline.measure)
        if not plan.records:
            raise InputError(
                "the inputs and the settings leave nothing to build: see --limit, --sample, --only"
            )
        is_dry = placement.is_dry(options)
        if not is_dry and _is_finished(pipeline, config, header, plan):
            _settle(run.output)
            return False
        pipeline.confirm(config, plan)
        print(describe(pipeline.name, plan), file=sys.stderr)
        with locked(run.output):
            # Another run may have finished in the meantime.
            if not is_dry and _is_finished(pipeline, config, header, plan):
                return False
            replaces = storage.exists(storage.join(run.output, FILE_NAME))
            if replaces and not is_dry and is_complete(load_manifest(run.output), run.output):
                settle(run.output)
            census = take_census(pipeline.media(config, plan))
            folder = storage.join(run.output, WORK, "plan", fingerprint(identity(header))[:16])
            target = Target(
                config=config,
                plan_files=copy_plan(plan, folder).files,
                dataset=_dataset_target(pipeline, config, header, plan, replaces),
                notes=_notes(run.output, scratch),
            )

            def wire(root: beam.Pipeline) -> None:
                if not is_dry:
                    claim_output(run.output, header)
                    note_census(run.output, census)
                pipeline.build(root, target)

            shown = progress.watch(target.notes, dict.fromkeys(pipeline.steps, plan.records))
            with _stopped_unless_complete(run.output), shown:
                runners.run(wire, options, _worker_log(run.output), run.output)
            return True


def _is_finished(
    pipeline: Pipeline[Configured], config: Configured, header: Manifest, plan: PlanFiles
) -> bool:
    """Tells whether the dataset is there, whole, and would become the same again.

    One of which files are missing is not: it is made again beside what is left of it.

    Raises:
      InputError: it would become another; the message says what differs.
    """
    run = config.run
    manifest = check_output(run, header)
    if manifest is None or run.overwrite:
        return False
    dataset = Dataset(folder=run.output, manifest=manifest)
    differences = list(compare_media(dataset, pipeline.media(config, plan)))
    refuse(run, f"holds {manifest.dataset}", differences)
    return is_complete(manifest, run.output)


def _settle(output: str) -> None:
    """Puts a finished dataset in order: a kill may have left its files on the way to their places.

    It may also have left another dataset half-built beside it, which nobody asks for any more.
    """
    # It is as good as it is, where the folder is read-only, or another run does the same.
    with contextlib.suppress(InputError):
        if storage.exists(storage.join(output, NEXT)):
            with locked(output):
                settle(output)
                remove_half_written(output)
                storage.delete_folder(storage.join(output, NEXT))


@contextlib.contextmanager
def _stopped_unless_complete(output: str) -> Iterator[None]:
    """Lets a signal that ends the body be where it came too late: the manifest is written last."""
    manifest = storage.join(output, FILE_NAME)
    before = storage.info(manifest)
    try:
        yield
    except KeyboardInterrupt:
        if storage.info(manifest) in (None, before):
            raise
        signals.forget()


def header_of(pipeline: Pipeline[Configured], config: Configured) -> Manifest:
    """Returns the manifest of a configuration before anything is built.

    Raises:
      InputError: an input file is not there.
    """
    inputs, warnings = pipeline.inputs(config), pipeline.warnings(config)
    return manifest_header(pipeline.name, inputs, config, warnings)


def _notes(output: str, scratch: str) -> str:
    """Returns the folder of the progress notes: one that workers on other hosts share, if any."""
    if storage.is_local(output):
        return storage.join(output, WORK, "progress")
    return f"{scratch}/progress"


def _worker_log(output: str) -> str:
    if storage.is_local(output):
        return storage.join(output, WORK, "workers.log")
    name = f"eqforge-{os.getuid()}-{fingerprint(output)[:16]}.log"
    return os.path.join(outside(), name)


def _dataset_target(
    pipeline: Pipeline[Configured],
    config: Configured,
    header: Manifest,
    plan: PlanFiles,
    replaces: bool,
) -> DatasetTarget:
    return DatasetTarget(
        output=config.run.output,
        header=header,
        stages=pipeline.stages,
        tables=pipeline.tables(config, plan),
        max_error_rate=config.run.max_error_rate,
        replaces=replaces,
    )


def describe(name: str, plan: PlanFiles) -> str:
    """Returns one line on what a plan holds."""
    counts = ", ".join(f"{count:,} {what}" for what, count in plan.counts.items())
    return f"{name}: {counts}"


def submitted(options: PipelineOptions, output: str) -> str:
    """Returns what a user wants to know of a job whose end is not waited for."""
    if placement.is_dry(options):
        return f"{output}: a dry run; the job is well-formed, and nothing was sent"
    job = options.view_as(GoogleCloudOptions).job_name
    return f"{output}: submitted as {job}; complete when {FILE_NAME} is there"


def finished(manifest: Manifest, output: str) -> str:
    """Returns what a user wants to know when a dataset is complete."""
    *_, (stage, books) = manifest.stages.items()
    others = [table for table in manifest.tables if table != "samples"]
    rows = ", ".join(f"{manifest.num_rows(table):,} {table}" for table in others)
    return (
        f"{output}: {manifest.num_rows('samples'):,} samples of {books.candidates:,} candidate "
        f"{stage.replace('_', ' ')}; {rows}; look with: eqforge inspect {shlex.quote(output)}"
    )
