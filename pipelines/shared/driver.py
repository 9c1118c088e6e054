"""From a configuration to a finished dataset: what all pipelines share."""

import contextlib
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

from eqforge.core.console import give
from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.input_copies import fetch_inputs
from eqforge.core.files.source_file import one_content
from eqforge.core.visible import counted, in_lines
from eqforge.models.pretrained import devices_elsewhere
from eqforge.pipelines.shared.finished import (
    is_finished,
    settle_finished,
    stopped_unless_complete,
)
from eqforge.pipelines.shared.header import header_of
from eqforge.pipelines.shared.locked_build import LockedBuild, describe
from eqforge.pipelines.shared.output import check_output
from eqforge.pipelines.shared.pipeline import Configured, Pipeline
from eqforge.schemas.dataset.manifest import FILE_NAME, Manifest, StageBooks, load_manifest
from eqforge.schemas.records.books import Stage
from eqforge.transforms.dataset.census import take_census
from eqforge.transforms.dataset.plan import write_plan
from eqforge.transforms.dataset.replace import is_complete, settle
from eqforge.transforms.engines import placement
from eqforge.transforms.engines import run as runners
from eqforge.transforms.engines.exclusive_job import locked
from eqforge.transforms.engines.run_folder import run_folder

SHOWN_REASONS = 5
"""How many reasons the last lines of a build name for a stage."""
MENDED = frozenset(("outside_root",))
"""Reasons whose sentence is always told: it names the option that mends them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildReport:
    """What a build did.

    Attributes:
      output: the folder or URL of the dataset.
      state: `kept` if the finished dataset was left as it is, `submitted` if a job whose end is not
        waited for builds it, or only checks that it could.
      manifest: the dataset's, once it is finished.
      warning: that the dataset holds no samples, and the commonest reason; empty if it holds some.
    """

    output: str
    state: Literal["built", "kept", "submitted"]
    manifest: Manifest | None = None
    warning: str = ""


def build_and_tell(
    pipeline: Pipeline[Configured], config: Configured, beam_args: Sequence[str]
) -> None:
    """Plans and builds a dataset, and says what came of it.

    Raises:
      InputError, BuildError: see build_dataset.
    """
    give(told_build(pipeline, config, beam_args))


def told_build(
    pipeline: Pipeline[Configured], config: Configured, beam_args: Sequence[str]
) -> BuildReport:
    """Plans and builds a dataset, and says in words what came of it; returns the same.

    Raises:
      InputError, BuildError: see build_dataset.
    """
    options = runners.pipeline_options(beam_args, config.run.workers)
    is_run, output = run_pipeline(pipeline, config, options), config.run.output
    if is_run and not placement.is_waited_for(options):
        print(submitted(options, output))
        return BuildReport(output=output, state="submitted")
    if not is_run:
        print(f"{output}: was finished already, and is left as it is")
    manifest = load_manifest(output)
    only, stages = config.run.only, pipeline.stages_of(config)
    print(in_lines(finished(manifest, output, stages, only)))
    state: Literal["built", "kept"] = "built" if is_run else "kept"
    warning = without_samples(manifest, output, stages, only)
    return BuildReport(output=output, state=state, manifest=manifest, warning=warning)


def build_dataset(
    pipeline: Pipeline[Configured], config: Configured, beam_args: Sequence[str] = ()
) -> Manifest:
    """Plans and builds a dataset; returns the manifest of the finished dataset.

    A finished dataset that would come out the same again is left alone.

    Raises:
      InputError: an input, a setting or the output folder is wrong; nothing was done yet.
      BuildError: the run ended before the dataset was complete; another run resumes it.
    """
    options = runners.pipeline_options(beam_args, config.run.workers)
    run_pipeline(pipeline, config, options)
    return load_manifest(config.run.output)


def run_pipeline(
    pipeline: Pipeline[Configured], config: Configured, options: PipelineOptions
) -> bool:
    """Plans a dataset and builds it on a runner; waits for the end if the options say so.

    Returns:
      Whether a runner ran; False if the finished dataset would come out the same again.

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
    fetch_inputs()
    pipeline.check(config)
    header = header_of(pipeline, config)
    check_output(run, header)
    with tempfile.TemporaryDirectory(prefix="eqforge-") as scratch:
        # Mistakes in the annotations show here, before anything is written to the output.
        plan = write_plan(
            pipeline.plan(config), f"{scratch}/plan", partial(pipeline.measure, config)
        )
        if not plan.records:
            raise InputError(
                "the inputs and the settings leave nothing to build: see --limit, --sample, --only"
            )
        is_dry = placement.is_dry(options)
        if not is_dry and is_finished(pipeline, config, header, plan):
            settle_finished(run.output)
            return False
        pipeline.confirm(config, plan)
        print(describe(pipeline.name, plan), file=sys.stderr)
        with locked(run.output):
            # Another run may have finished in the meantime.
            if not is_dry and is_finished(pipeline, config, header, plan):
                return False
            if not is_dry:
                pipeline.prepare(config, plan)
            replaces = storage.exists(storage.join(run.output, FILE_NAME))
            if replaces and not is_dry and is_complete(load_manifest(run.output), run.output):
                settle(run.output)
            build = LockedBuild(
                pipeline=pipeline,
                config=config,
                header=header,
                options=options,
                is_dry=is_dry,
                census=take_census(pipeline.media(config, plan)),
                replaces=replaces,
                scratch=scratch,
            )
            with stopped_unless_complete(run.output):
                build.run(build.settled(plan))
            return True


def submitted(options: PipelineOptions, output: str) -> str:
    """Returns the message for a job whose end is not waited for."""
    if placement.is_dry(options):
        return f"{output}: a dry run; the job is well-formed, and nothing was sent"
    job = options.view_as(GoogleCloudOptions).job_name
    return f"{output}: submitted as {job}; complete when {FILE_NAME} is there"


def finished(
    manifest: Manifest, output: str, stages: Sequence[Stage] = (), only: Sequence[str] = ()
) -> Iterator[str]:
    """Yields the message for a complete dataset; the last line of one without samples warns."""
    others = [table for table in manifest.tables if table not in ("samples", "rejects")]
    rows = "".join(f", {counted(manifest.num_rows(table), table)}" for table in others)
    unchanged, samples = manifest.unchanged or 0, num_samples(manifest)
    rows = (
        f", {counted(unchanged, 'rows')} whose words did not change" if unchanged else ""
    ) + rows
    for stage, books in manifest.stages.items():
        if books.rejected:
            yield f"{stage}: {books.kept:,} of {books.candidates:,} kept; {_commonest(books)}"
    for known in stages:
        for reason in manifest.stages[known.name].reasons:
            if not samples or reason in MENDED:
                yield f"  {reason}: {_sentence(known, reason)}"
    look = f"look with: eqforge inspect {shlex.quote(output)}"
    yield f"{output}: {counted(samples, 'samples')}{rows}; {look}"
    if warning := without_samples(manifest, output, stages, only):
        yield warning


def num_samples(manifest: Manifest) -> int:
    """Returns the number of samples, without the rows whose words did not change."""
    return manifest.num_rows("samples") - (manifest.unchanged or 0)


def without_samples(
    manifest: Manifest, output: str, stages: Sequence[Stage], only: Sequence[str] = ()
) -> str:
    """Returns the warning of a dataset without samples, with the commonest reason; else "".

    Args:
      manifest: of the dataset.
      output: where it is.
      stages: of its pipeline.
      only: the ids that were asked for; a record may no longer become the sample of an id.
    """
    if num_samples(manifest):
        return ""
    found = [
        (count, known, reason)
        for known in stages
        for reason, count in manifest.stages[known.name].reasons.items()
    ]
    warning = f"WARNING: {output} holds no samples"
    if not found:
        return f"{warning}: no record becomes {', '.join(only)}" if only else warning
    count, known, reason = max(found, key=lambda entry: entry[0])
    why = f"most were refused by {known.name}, {reason} {count:,}: {_sentence(known, reason)}"
    return f"{warning}; {why}"


def _sentence(stage: Stage, reason: str) -> str:
    return stage.reasons.get(reason, "an exception")


def _commonest(books: StageBooks) -> str:
    """Returns the commonest reasons of a stage with their counts."""
    found = sorted(books.reasons.items(), key=lambda entry: -entry[1])
    most = SHOWN_REASONS if len(found) > SHOWN_REASONS + 1 else len(found)
    rest = sum(count for _, count in found[most:])
    shown = [f"{reason} {count:,}" for reason, count in found[:most]]
    return ", ".join([*shown, f"others {rest:,}"] if rest else shown)
