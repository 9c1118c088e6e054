"""`eqforge plan`: what a build would make, and what it would cost."""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from eqforge.pipelines.shared.command import parse
from eqforge.pipelines.shared.filters import filter_lines
from eqforge.pipelines.shared.header import check_output, header_of
from eqforge.pipelines.shared.media import inputs_from_stores
from eqforge.pipelines.shared.pipeline import Pilot, Pipeline
from eqforge.pipelines.shared.settings import DatasetConfig
from eqforge.schemas.errors import InputError, reported_errors
from eqforge.schemas.io.input_copies import fetch_inputs
from eqforge.schemas.io.source_file import one_content
from eqforge.schemas.visible import in_lines
from eqforge.transforms.engines.run_folder import run_folder

Configured = TypeVar("Configured", bound=DatasetConfig)


UNNAMED = "out"
"""Stands for the output of a plan that names none; it is never read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanReport:
    """What a build would try.

    Attributes:
      counts: counts of the plan's contents, such as candidate pairs.
      lines: the counts, the filters and what the plan refuses, in words.
      pilots: the first records that a pilot can build, up to the number asked for.
      forecast: what a pilot cost and what a build would cost, in words; empty without a pilot.
    """

    counts: dict[str, int]
    lines: tuple[str, ...]
    pilots: tuple[Any, ...] = ()
    forecast: tuple[str, ...] = ()


def plan_command(pipeline: Pipeline[Configured], argv: Sequence[str]) -> int:
    """Prints what a build would make and cost; returns the exit status."""
    with reported_errors(), one_content(), inputs_from_stores():
        own, number = _take_pilots(list(argv), pipeline.pilot)
        has_output = any(text.partition("=")[0] == "--output" for text in own)
        # A plan writes nothing; given the build's folder, it also checks that this is free.
        named = own if has_output else ["--output", UNNAMED, *own]
        program, note = f"eqforge plan {pipeline.name}", _help(pipeline.pilot)
        config, _ = parse(pipeline.config, pipeline.defaults, named, program, note)
        pipeline.needs(config)
        report = plan_dataset(pipeline, config, number, checks_output=has_output)
        print(in_lines(report.lines))
        if pipeline.pilot is not None and report.pilots:
            print(in_lines(forecast(pipeline, config, report)))
            print(
                f"the pilot's first {pipeline.pilot.records} may not be typical; what it built was "
                "thrown away",
                file=sys.stderr,
            )
        return 0
    return 2


def plan_dataset(
    pipeline: Pipeline[Configured], config: Configured, pilots: int, *, checks_output: bool
) -> PlanReport:
    """Plans a dataset: reads the annotations, opens no media and writes nothing.

    Args:
      pipeline: the dataset's pipeline.
      config: its settings.
      pilots: how many records to keep for a pilot; see `forecast`.
      checks_output: whether to check that the output folder is free or holds the same dataset.

    Raises:
      InputError: an input, a setting or the output folder is wrong.
    """
    fetch_inputs()
    pipeline.check(config)
    header = header_of(pipeline, config)
    if checks_output:
        check_output(config.run, header)
    counts: Counter[str] = Counter()
    kept: list[Any] = []

    def watched() -> Iterator[Any]:
        pilot = pipeline.pilot
        for record in pipeline.plan(config):
            counts.update(pipeline.measure(config, record))
            if pilot is not None and len(kept) < pilots and pilot.is_fit(config, record):
                kept.append(record)
            yield record

    lines = tuple(_report(pipeline, config, watched()))
    return PlanReport(counts=dict(counts), lines=lines, pilots=tuple(kept))


def _help(pilot: Pilot[Any] | None) -> str:
    if pilot is None:
        return "Shows what a build would try. --output may be left out."
    default = f" (default: {pilot.number})" if pilot.number else ""
    return (
        "Shows what a build would try and what the plan refuses. With --pilot N it also builds N "
        f"{pilot.records}{default} in a temporary folder, to estimate time and storage. "
        "--output may be left out."
    )


def _take_pilots(arguments: list[str], pilot: Pilot[Any] | None) -> tuple[list[str], int]:
    """Returns the arguments without `--pilot N`, and N."""
    if pilot is None or "--pilot" not in arguments:
        return arguments, 0 if pilot is None else pilot.number
    place = arguments.index("--pilot")
    number = "".join(arguments[place + 1 : place + 2])
    if not number.isdigit():
        raise InputError(f"--pilot {number}: expected a number of {pilot.records}")
    return arguments[:place] + arguments[place + 2 :], int(number)


def _report(
    pipeline: Pipeline[Configured], config: Configured, records: Iterable[Any]
) -> Iterator[str]:
    """Yields a plan's counts as lines."""
    yield f"{pipeline.name}: what a build would try"
    yield from filter_lines(config)
    if pipeline.report is not None:
        yield from pipeline.report(config, records)
        return
    counts: Counter[str] = Counter()
    for record in records:
        counts.update(pipeline.measure(config, record))
    yield from (f"{what:>20}  {count:>12,}" for what, count in counts.items())


def forecast(
    pipeline: Pipeline[Configured], config: Configured, report: PlanReport
) -> tuple[str, ...]:
    """Builds a plan's pilots; returns lines with their cost, and that of a build, scaled up."""
    pilot = pipeline.pilot
    assert pilot is not None
    with run_folder(), tempfile.TemporaryDirectory(prefix="eqforge-pilot-") as folder:
        cost = pilot.run(config, report.pilots, folder)
    built: Counter[str] = Counter()
    for record in report.pilots:
        built.update(pipeline.measure(config, record))
    scale = report.counts.get(pilot.unit, 0) / max(1, built[pilot.unit])
    what = f"{len(report.pilots)} {pilot.records}"
    if pilot.unit != pilot.records:
        what += f", {built[pilot.unit]} {pilot.unit}"
    duration, size = _duration(cost.seconds * scale + cost.start_s), _size(cost.num_bytes * scale)
    return (
        f"pilot: {what} in {cost.seconds:.1f} s on {pilot.clock}",
        f"all: about {duration} on {pilot.clock} and {size} of images",
    )


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds > 3600 else f"{seconds:.0f} s"


def _size(num_bytes: float) -> str:
    return f"{num_bytes / 1e9:.1f} GB" if num_bytes > 1e9 else f"{num_bytes / 1e6:.1f} MB"
