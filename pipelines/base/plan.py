"""`eqforge plan`: what a build would make, and what it would cost."""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from eqforge.core.console import DocumentOptions, give, session
from eqforge.core.errors import InputError, reported_errors
from eqforge.core.files.input_copies import fetch_inputs
from eqforge.core.files.source_file import one_content
from eqforge.core.presets import COMMAND_LINE
from eqforge.core.shell import CommandLine
from eqforge.core.visible import counted, in_lines
from eqforge.pipelines.base.command import inputs_from_stores, parse_line
from eqforge.pipelines.base.identity import check_output, header_of
from eqforge.pipelines.base.pilot import (
    PilotReport,
    PilotUnit,
    filter_lines,
    histogram_lines,
    histograms,
)
from eqforge.pipelines.base.pipeline import Pipeline
from eqforge.pipelines.base.recipe import OTHER_BYTES, changed_inputs, named_line
from eqforge.schemas.dataset.manifest import Manifest
from eqforge.transforms.engines.run_folder import run_folder

UNNAMED = "no folder"
"""Stands for the output of a plan that names none; it is never read."""


@dataclass(frozen=True, kw_only=True)
class PlanOptions(DocumentOptions):
    """What is printed, where settings come from, and how the cost is estimated."""

    pilot: int | None = None
    """Also build so many of the plan's records in a temporary folder, estimate time and storage,
    and show the scores that a setting limits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanReport:
    """What a build would try.

    Attributes:
      dataset: its name.
      mode: `paper` or `corrected`.
      counts: counts of the plan's contents, such as candidate pairs.
      lines: the counts, the filters and what the plan refuses, in words.
      sources: where settings that are not a default were given, by option.
      pilot: what a pilot cost and gave; null without one.
      forecast: the same in words; empty without a pilot.
      changed_inputs: a recipe's input files, by name, that none of the plan's has the bytes of;
        empty without a recipe.
    """

    dataset: str
    mode: str
    counts: dict[str, int]
    lines: tuple[str, ...]
    sources: dict[str, str] = field(default_factory=dict)
    pilot: PilotReport | None = None
    forecast: tuple[str, ...] = ()
    changed_inputs: tuple[str, ...] = ()


def plan_command(pipeline: type[Pipeline[Any]], argv: Sequence[str]) -> int:
    """Prints what a build would make and cost; returns the exit status."""
    with reported_errors(), one_content(), session(keeps_output=True), inputs_from_stores():
        line, _ = parse_line(
            pipeline,
            argv,
            f"eqforge plan {pipeline.name}",
            "Shows what a build would try and what the plan refuses. --output may be left out.",
            console_of(pipeline),
            lambda mode: with_output(pipeline.usual(mode)),
        )
        tell_plan(pipeline, line)
        return 0
    return 2


def with_output(config: Any) -> Any:
    """Returns a configuration that need not name an output, as a plan writes nothing."""
    return replace(config, run=replace(config.run, output=UNNAMED))


def console_of(pipeline: type[Pipeline[Any]]) -> type[DocumentOptions]:
    """Returns the options of a plan's output, which name a pilot where the dataset has one."""
    return DocumentOptions if pipeline.pilot is None else PlanOptions


def tell_plan(
    pipeline: type[Pipeline[Any]], line: CommandLine, recipe: Manifest | None = None
) -> None:
    """Prints what the build of a command line would make and cost.

    Args:
      pipeline: the dataset.
      line: the command line.
      recipe: that which sets what the command line does not; None without one.

    Raises:
      InputError: an input, a setting or the output folder is wrong.
    """
    # A plan writes nothing; given the build's folder, it also checks that this is free.
    report = plan_dataset(
        pipeline(line.settings),
        _pilots(pipeline.pilot, line.console),
        checks_output="output" in line.sources,
        tell=lambda lines: print(in_lines(lines)),
        recipe=recipe,
    )
    for name, source in line.sources.items():
        if source != COMMAND_LINE:
            print(in_lines([f"  --{name} is set by {source}"]))
    give(replace(report, sources=line.sources))


def _pilots(pilot: PilotUnit | None, options: Any) -> int:
    """Returns how many records the pilot builds."""
    if pilot is None or options.pilot is None:
        return 0 if pilot is None else pilot.number
    if options.pilot < 0:
        raise InputError(f"--pilot {options.pilot}: expected a number of {pilot.records}")
    return int(options.pilot)


def plan_dataset(
    pipeline: Pipeline[Any],
    pilots: int,
    *,
    checks_output: bool,
    tell: Callable[[Iterable[str]], None] = lambda lines: None,
    recipe: Manifest | None = None,
) -> PlanReport:
    """Plans a dataset: reads the annotations and writes nothing; opens media only for a pilot.

    Args:
      pipeline: the dataset, with its settings.
      pilots: how many records to build and discard, to estimate the cost.
      checks_output: whether to check that the output folder is free or holds the same dataset.
      tell: called with the lines of the plan, and with those of the pilot.
      recipe: the recipe that the settings are of, if they are of one.

    Raises:
      InputError: an input, a setting or the output folder is wrong.
    """
    fetch_inputs()
    pipeline.check()
    header = header_of(pipeline)
    if checks_output:
        check_output(pipeline.run, header)
    counts: Counter[str] = Counter()
    kept: list[Any] = []

    def watched() -> Iterator[Any]:
        for record in pipeline.plan():
            counts.update(pipeline.measure(record))
            if len(kept) < pilots and pipeline.is_fit(record):
                kept.append(record)
            yield record

    changed = () if recipe is None else changed_inputs(recipe, header)
    lines = (
        f"{pipeline.name}: what a build would try",
        *filter_lines(pipeline.config),
        *pipeline.report(watched()),
        *named_line(changed, "inputs", OTHER_BYTES),
    )
    tell(lines)
    report = PlanReport(
        dataset=pipeline.name,
        mode=pipeline.config.mode,
        counts=dict(counts),
        lines=lines,
        changed_inputs=changed,
    )
    if pipeline.pilot is None or not kept:
        return report
    found, forecast = _forecast(pipeline, pipeline.pilot, counts, kept)
    tell(forecast)
    return replace(report, pilot=found, forecast=forecast)


def _forecast(
    pipeline: Pipeline[Any],
    pilot: PilotUnit,
    counts: Mapping[str, int],
    records: Sequence[Any],
) -> tuple[PilotReport, tuple[str, ...]]:
    """Builds a plan's pilots; returns their cost and yield, scaled up to a build, and in words."""
    with run_folder(), tempfile.TemporaryDirectory(prefix="eqforge-pilot-") as folder:
        cost = pipeline.try_records(records, folder)
    built: Counter[str] = Counter()
    for record in records:
        built.update(pipeline.measure(record))
    scale = counts.get(pilot.unit, 0) / max(1, built[pilot.unit])
    found = PilotReport(
        records=len(records),
        seconds=cost.seconds,
        num_bytes=cost.num_bytes,
        total_seconds=cost.seconds * scale + cost.start_s,
        total_bytes=cost.num_bytes * scale,
        kept=cost.made.kept,
        rejects=cost.made.rejects,
        scores=tuple(histograms(pipeline.config, cost.made.values)),
    )
    what = counted(len(records), pilot.records)
    if pilot.unit != pilot.records:
        what += f", {counted(built[pilot.unit], pilot.unit)}"
    refused = ", ".join(f"{reason} {count:,}" for reason, count in found.rejects.items())
    duration, size = _duration(found.total_seconds), _size(found.total_bytes)
    return found, (
        f"pilot: {what} in {cost.seconds:.1f} s on {pilot.clock}",
        f"kept: {counted(found.kept, 'pairs')}; refused: {refused or 'none'}",
        *histogram_lines(found.scores),
        f"the pilot's first {pilot.records} may not be typical; what it built was thrown away",
        f"all: about {duration} on {pilot.clock} and {size} of images",
    )


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds > 3600 else f"{seconds:.0f} s"


def _size(num_bytes: float) -> str:
    return f"{num_bytes / 1e9:.1f} GB" if num_bytes > 1e9 else f"{num_bytes / 1e6:.1f} MB"
