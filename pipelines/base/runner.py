"""Run a build: resolve its settings, check, plan, lock, run, finish."""

import contextlib
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import apache_beam as beam
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

from eqforge.core import signals
from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.objects import fetch_inputs
from eqforge.core.files.source_file import one_content
from eqforge.core.identity import fingerprint
from eqforge.core.visible import counted, in_lines, series
from eqforge.models.pretrained import devices_elsewhere
from eqforge.pipelines.base.identity import (
    check_differences,
    check_output,
    claim_output,
    header_of,
    plan_name,
    remove_half_written,
)
from eqforge.pipelines.base.pipeline import AnyPipeline, Target
from eqforge.pipelines.base.plan import FEW, limit_hints
from eqforge.pipelines.base.recipe import commands_of
from eqforge.schemas.dataset.manifest import FILE_NAME, NEXT, Manifest, load_manifest
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.stages import Stage
from eqforge.sources.errata import kept_samples
from eqforge.transforms.dataset.census import Census, compare_media, note_census, take_census
from eqforge.transforms.dataset.errata import NEEDLESS, stages_for
from eqforge.transforms.dataset.finish import DatasetTarget
from eqforge.transforms.dataset.plan import PlanFiles, copy_plan, write_plan
from eqforge.transforms.dataset.replace import complete_replacement, is_complete
from eqforge.transforms.engines import placement, progress
from eqforge.transforms.engines import run as engine
from eqforge.transforms.engines.exclusive_job import locked
from eqforge.transforms.engines.options import pipeline_options
from eqforge.transforms.engines.run_folder import outside, run_folder

SHOWN_REASONS = 5
"""Maximum reasons per stage in the last lines of a build."""
EXPLAINED = frozenset(("outside_root",))
"""Reasons whose sentence is always printed: it names the option that fixes them."""


Outcome = Literal["built", "kept", "submitted"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildReport:
    """The result of a build.

    Attributes:
      output: folder or URL of the dataset.
      state: `kept` means that the dataset was already finished. `submitted` means that an engine
        is building the dataset, or that a dry run checked the build.
      manifest: manifest of the finished dataset.
      warning: most frequent rejection reason, if the dataset has no samples.
    """

    output: str
    state: Outcome
    manifest: Manifest | None = None
    warning: str = ""


def build_dataset(
    pipeline: AnyPipeline,
    beam_args: Sequence[str] = (),
    show: Callable[[str], object] = lambda message: None,
) -> BuildReport:
    """Plan and build a dataset; keep a finished one that a build would reproduce.

    Args:
        beam_args: options of the engine, as after `--` on a command line.
        show: called with messages on the result.

    Raises:
        InputError: an input, a setting or the output folder is wrong; no work has been done.
        BuildError: the run ended before the dataset was complete; another run resumes it.
    """
    run = pipeline.run
    options = pipeline_options(beam_args, run.workers)
    placement.check_reach(options, run.output)
    elsewhere = devices_elsewhere() if placement.is_dataflow(options) else contextlib.nullcontext()
    manifest, before, is_checked = storage.join(run.output, FILE_NAME), None, False
    outcome: Outcome = "built" if placement.is_waited_for(options) else "submitted"
    try:
        with run_folder(), one_content(), elsewhere:
            fetch_inputs()
            pipeline.check()
            header = header_of(pipeline)
            check_output(run, header)
            with contextlib.suppress(OSError):  # the lock reports problems with the folder
                before = storage.info(manifest)
            is_checked = True
            if not _plan_and_run(pipeline, header, options):
                outcome = "kept"
    except KeyboardInterrupt:
        # The manifest is written last: once a new one is in place, it is too late to stop.
        if not is_checked or storage.info(manifest) in (None, before):
            raise
        signals.forget()
    with signals.ignored():
        return _report(pipeline, options, outcome, show)


def _plan_and_run(pipeline: AnyPipeline, header: Manifest, options: PipelineOptions) -> bool:
    """Plan a dataset and run its pipeline; return False if it was finished already."""
    run, is_dry = pipeline.run, placement.is_dry(options)
    with tempfile.TemporaryDirectory(prefix="eqforge-") as scratch:
        # Mistakes in the annotations show here, before anything is written to the output.
        plan = write_plan(pipeline.plan(), f"{scratch}/plan", pipeline.measure)
        if not plan.records:
            raise InputError(
                "there is nothing to build; check the inputs, --limit, --sample and --only"
            )
        if not is_dry and _is_finished(pipeline, header, plan):
            _clean_finished(run.output)
            return False
        pipeline.confirm(plan)
        print(pipeline.described(plan), file=sys.stderr)
        with locked(run.output):
            # Another run may have finished in the meantime.
            if not is_dry and _is_finished(pipeline, header, plan):
                return False
            replaces = storage.exists(storage.join(run.output, FILE_NAME))
            if replaces and not is_dry and is_complete(load_manifest(run.output), run.output):
                complete_replacement(run.output)
            census = take_census(pipeline.media(plan))
            job = _Job(pipeline, header, options, census, replaces, scratch)
            if not is_dry:
                rounds = job.run if placement.is_waited_for(options) else None
                plan = pipeline.final_plan(plan, rounds, scratch)
            job.run(plan, "plan", pipeline.build)
            return True


def _is_finished(pipeline: AnyPipeline, header: Manifest, plan: PlanFiles) -> bool:
    """Return True if the dataset is complete and a build would reproduce it.

    A dataset with missing files is rebuilt; its remaining files are kept meanwhile.

    Raises:
        InputError: a build would give a different dataset; the message lists the differences.
    """
    run = pipeline.run
    manifest = check_output(run, header)
    if manifest is None or run.overwrite:
        return False
    dataset = Dataset(folder=run.output, manifest=manifest)
    changed = list(compare_media(dataset, pipeline.media(plan)))
    check_differences(run, f"contains a build of {pipeline.name}", changed)
    return is_complete(manifest, run.output)


def _clean_finished(output: str) -> None:
    """Clean up a finished dataset after a killed run.

    Move remaining files into place, and delete a half-built dataset next to it.
    """
    # Not needed: the folder may be read-only, or another run may be doing the same.
    with contextlib.suppress(InputError):
        if storage.exists(storage.join(output, NEXT)):
            with locked(output):
                complete_replacement(output)
                remove_half_written(output)
                storage.delete_folder(storage.join(output, NEXT))


@dataclass(frozen=True, slots=True)
class _Job:
    """A build that holds the lock of its output folder.

    Attributes:
      replaces: whether to keep a finished dataset until this one is complete.
      scratch: a folder of this machine for progress notes.
    """

    pipeline: AnyPipeline
    header: Manifest
    options: PipelineOptions
    census: Census
    replaces: bool
    scratch: str

    def run(
        self, plan: PlanFiles, folder: str, build: Callable[[beam.Pipeline, Target], None]
    ) -> None:
        """Run the pipeline that a function wires for a plan copied below the work folder."""
        pipeline, output = self.pipeline, self.pipeline.run.output
        # Where workers on other hosts reach the output, they note their progress there.
        name = f"eqforge-{os.getuid()}-{fingerprint(output)[:16]}.log"
        notes, log = f"{self.scratch}/progress", os.path.join(outside(), name)
        if storage.is_local(output):
            notes, log = (storage.join(pipeline.work, each) for each in ("progress", "workers.log"))
        copied = storage.join(pipeline.work, folder, plan_name(self.header))
        target = Target(
            plan_files=copy_plan(plan, copied).files,
            dataset=DatasetTarget(
                output=output,
                header=self.header,
                stages=(*pipeline.stages, *stages_for(self.header.errata)),
                tables=pipeline.tables(plan),
                max_error_rate=pipeline.run.max_error_rate,
                replaces=self.replaces,
                commands=tuple(commands_of(self.header)),
                left=kept_samples(pipeline.run.decisions),
                certify=pipeline.certificate(),
            ),
            notes=notes,
        )

        def wire(root: beam.Pipeline) -> None:
            if not placement.is_dry(self.options):
                claim_output(output, self.header)
                pipeline.share_folders()
                note_census(output, self.census)
            build(root, target)

        expected = {step: (plan.counts.get(unit, 0), unit) for step, unit in pipeline.steps}
        with progress.watch(notes, expected):
            engine.run(wire, self.options, log, output)


def _report(
    pipeline: AnyPipeline, options: PipelineOptions, outcome: Outcome, show: Callable[[str], object]
) -> BuildReport:
    output = pipeline.run.output
    if outcome == "submitted":
        job = options.view_as(GoogleCloudOptions).job_name
        show(
            f"{output}: the job is valid; a dry run does not submit it"
            if placement.is_dry(options)
            else f"{output}: submitted as {job}; the build is complete when {FILE_NAME} exists"
        )
        return BuildReport(output=output, state=outcome)
    if outcome == "kept":
        show(f"{output}: this dataset is already finished and was not changed")
    manifest = load_manifest(output)
    warning = warning_of(manifest, output, pipeline.stages, pipeline.run.only)
    lines = [*summary(manifest, output, pipeline.stages), *([warning] if warning else [])]
    lines += [text for text in manifest.warnings if NEEDLESS in text]
    most = max((counts.candidates for counts in manifest.stages.values()), default=0)
    if _num_samples(manifest) < FEW * most:
        lines += limit_hints(pipeline.config, _measured(output, manifest))
    show(in_lines(lines))
    return BuildReport(output=output, state=outcome, manifest=manifest, warning=warning)


def _measured(output: str, manifest: Manifest) -> Iterator[tuple[str, float, float]]:
    columns = ["detail", "value", "threshold"]
    for batch in Dataset(folder=output, manifest=manifest).batches("rejects", columns):
        for detail, value, limit in zip(*(each.to_pylist() for each in batch.columns), strict=True):
            if None not in (value, limit):
                yield detail, value, limit


def summary(manifest: Manifest, output: str, stages: Sequence[Stage]) -> Iterator[str]:
    samples = _num_samples(manifest)
    tables = [table for table in manifest.tables if table not in ("samples", "rejects")]
    rows = "".join(f", {counted(manifest.num_rows(table), table)}" for table in tables)
    if manifest.unchanged:
        rows = f", {counted(manifest.unchanged, 'rows')} whose words did not change{rows}"
    for stage, counts in manifest.stages.items():
        if counts.rejected:
            found = sorted(counts.reasons.items(), key=lambda entry: -entry[1])
            most = SHOWN_REASONS if len(found) > SHOWN_REASONS + 1 else len(found)
            shown = [f"{reason} {count:,}" for reason, count in found[:most]]
            if rest := sum(count for _, count in found[most:]):
                shown.append(f"other reasons {rest:,}")
            yield f"{stage}: {counts.kept:,} of {counts.candidates:,} kept; {', '.join(shown)}"
    for known in stages:
        for reason in manifest.stages[known.name].reasons:
            if not samples or reason in EXPLAINED:
                yield f"  {reason}: {_sentence(known, reason)}"
    look = f"inspect it with: eqforge inspect {shlex.quote(output)}"
    yield f"{output}: {counted(samples, 'samples')}{rows}; {look}"


def warning_of(
    manifest: Manifest, output: str, stages: Sequence[Stage], only: Sequence[str]
) -> str:
    """Return a warning with the most frequent reason if a dataset has no samples; else "".

    A record may no longer become the sample of an id given by `only`.
    """
    if _num_samples(manifest):
        return ""
    found = [
        (count, known, reason)
        for known in stages
        for reason, count in manifest.stages[known.name].reasons.items()
    ]
    warning = f"WARNING: {output} contains no samples"
    if not found:
        return f"{warning}, because no record has the id {series(only, 'or')}" if only else warning
    # Of equally frequent reasons, the last stage's: its candidates came closest to samples.
    count, known, reason = max(reversed(found), key=lambda entry: entry[0])
    why = f"{counted(count, 'candidates')} for {reason!r}: {_sentence(known, reason)}"
    return f"{warning}; the stage {known.name!r} rejected {why}"


def _num_samples(manifest: Manifest) -> int:
    return manifest.num_rows("samples") - (manifest.unchanged or 0)


def _sentence(stage: Stage, reason: str) -> str:
    return stage.reasons.get(reason, "an exception")
