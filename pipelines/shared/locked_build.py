"""Builds a dataset whose output folder is locked: settles its draws, then runs its pipeline."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Generic

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from eqforge.core.files import storage
from eqforge.core.identity import fingerprint
from eqforge.core.visible import counted
from eqforge.pipelines.shared.again import commands_of
from eqforge.pipelines.shared.draws import (
    Draws,
    Judged,
    Numbers,
    draw_until_kept,
    draws_on,
    judged_of,
    note_judged,
)
from eqforge.pipelines.shared.header import plan_name
from eqforge.pipelines.shared.media import share_folders
from eqforge.pipelines.shared.output import claim_output
from eqforge.pipelines.shared.pipeline import Configured, Pipeline, Target
from eqforge.schemas.dataset.manifest import WORK, Manifest
from eqforge.sources.decisions import left
from eqforge.transforms.dataset.census import Census, note_census
from eqforge.transforms.dataset.errata import stages_for
from eqforge.transforms.dataset.finish import DatasetTarget
from eqforge.transforms.dataset.plan import PlanFiles, copy_plan, write_plan
from eqforge.transforms.engines import placement, progress
from eqforge.transforms.engines import run as runners
from eqforge.transforms.engines.run_folder import outside


@dataclass(frozen=True, kw_only=True, slots=True)
class LockedBuild(Generic[Configured]):
    """A build that holds the lock of its output folder.

    Attributes:
      pipeline, config, header, options: what is built, and how.
      is_dry: whether the job is only checked.
      census: the files that the plan needs besides the inputs, as they were before any work.
      replaces: whether a finished dataset is there, to be kept until this one is complete.
      scratch: a folder of this machine for the notes of progress.
    """

    pipeline: Pipeline[Configured]
    config: Configured
    header: Manifest
    options: PipelineOptions
    is_dry: bool
    census: Census
    replaces: bool
    scratch: str

    def settled(self, plan: PlanFiles) -> PlanFiles:
        """Returns the plan with as many draws as are needed to keep what was asked for."""
        draws, config = self.pipeline.draws, self.config
        is_waited = not self.is_dry and placement.is_waited_for(self.options)
        if draws is None or not is_waited or not draws_on(config.run):
            return plan
        wanted, most = draws.wanted(config), draws.most(config)
        if all(most[kind] <= number for kind, number in wanted.items()):
            return plan
        rounds = storage.join(config.run.output, WORK, "draws")
        folder = storage.join(rounds, plan_name(self.header))
        judge = partial(self._judge, draws, folder)
        drawn = draw_until_kept(draws, config, judge, config.run.max_error_rate)
        storage.delete_folder(rounds)
        for kind, found in drawn.items():
            if found.kept < found.wanted and found.number >= most[kind]:
                self._tell(
                    f"WARNING: {found.kept:,} of {found.wanted:,} pairs of {kind} were kept of "
                    f"{found.number:,} drawn; --max-draws-per-pair allows more"
                )
        numbers = {kind: range(found.number) for kind, found in drawn.items()}
        settled = self._written(draws, numbers, "settled")
        if settled.counts != plan.counts:
            print(describe(self.pipeline.name, settled), file=sys.stderr)
        return settled

    def _tell(self, message: str) -> None:
        print(f"{self.pipeline.name}: {message}", file=sys.stderr)

    def _judge(self, draws: Draws[Configured], folder: str, numbers: Numbers) -> Judged:
        """Makes and judges some draws."""
        first = min(numbers.values(), key=attrgetter("start")).start
        if first:
            more = {kind: len(some) for kind, some in numbers.items()}
            told = ", ".join(f"{count:,} of {kind}" for kind, count in more.items())
            self._tell(f"drawing more in place of refused pairs: {told}")
        plan = self._written(draws, numbers, f"draws-{first}")
        noted = storage.join(folder, "judged.json")

        def wire(root: beam.Pipeline, target: Target[Configured]) -> None:
            note_judged(draws.make(root, target), noted)

        self._run(plan, folder, wire)
        return judged_of(noted)

    def _written(self, draws: Draws[Configured], numbers: Numbers, name: str) -> PlanFiles:
        """Writes a plan of draws to this machine."""
        records = draws.plan(self.config, numbers)
        measure = partial(self.pipeline.measure, self.config)
        return write_plan(records, f"{self.scratch}/{name}", measure)

    def run(self, plan: PlanFiles) -> None:
        """Builds the dataset of a plan."""
        output = self.config.run.output

        def wire(root: beam.Pipeline, target: Target[Configured]) -> None:
            if not self.is_dry:
                note_census(output, self.census)
            self.pipeline.build(root, target)

        self._run(plan, storage.join(output, WORK, "plan", plan_name(self.header)), wire)

    def _run(
        self,
        plan: PlanFiles,
        folder: str,
        build: Callable[[beam.Pipeline, Target[Configured]], None],
    ) -> None:
        """Runs what a function wires for a plan, which is copied to a folder that workers reach."""
        pipeline, config, output = self.pipeline, self.config, self.config.run.output
        target = Target(
            config=config,
            plan_files=copy_plan(plan, folder).files,
            dataset=_dataset_target(pipeline, config, self.header, plan, self.replaces),
            notes=_notes(output, self.scratch),
        )

        def wire(root: beam.Pipeline) -> None:
            if not self.is_dry:
                claim_output(output, self.header)
                share_folders(config)
            build(root, target)

        steps = pipeline.steps.items()
        expected = {step: (plan.counts.get(unit, 0), unit) for step, unit in steps}
        with progress.watch(target.notes, expected):
            runners.run(wire, self.options, _worker_log(output), output)


def _notes(output: str, scratch: str) -> str:
    """Returns the folder of the progress notes, shared with workers on other hosts if possible."""
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
        stages=(*pipeline.stages_of(config), *stages_for(header.errata)),
        tables=pipeline.tables(config, plan),
        max_error_rate=config.run.max_error_rate,
        replaces=replaces,
        commands=tuple(commands_of(header)),
        left=left(config.run.decisions),
        certify=pipeline.certify(config),
    )


def describe(name: str, plan: PlanFiles) -> str:
    """Returns a one-line summary of a plan."""
    counts = [
        f"{count:,} refused by the plan" if what == "rejects" else counted(count, what)
        for what, count in plan.counts.items()
    ]
    return f"{name}: {', '.join(counts)}"
