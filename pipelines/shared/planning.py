"""`eqforge plan`: what a build would make, and what it would cost."""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from eqforge.pipelines.shared.command import parse
from eqforge.pipelines.shared.driver import Pilot, Pipeline, header_of
from eqforge.pipelines.shared.filters import filter_lines
from eqforge.pipelines.shared.header import check_output
from eqforge.pipelines.shared.settings import DatasetConfig
from eqforge.schemas.errors import InputError, reported_errors
from eqforge.schemas.io.source_file import one_content
from eqforge.schemas.visible import in_lines
from eqforge.transforms.engines.run_folder import run_folder

Configured = TypeVar("Configured", bound=DatasetConfig)


@dataclass(kw_only=True, slots=True)
class Seen:
    """What went by of a plan: its counts, and the first records that a pilot can build."""

    counts: Counter[str] = field(default_factory=Counter)
    pilots: list[Any] = field(default_factory=list)


def plan_command(pipeline: Pipeline[Configured], argv: Sequence[str]) -> int:
    """Prints what a build would make and cost; returns the exit status."""
    with reported_errors(), one_content():
        own, number = _take_pilots(list(argv), pipeline.pilot)
        has_output = any(text.partition("=")[0] == "--output" for text in own)
        # A plan writes nothing; with the folder of the build it also says whether that is free.
        named = own if has_output else ["--output", "out", *own]
        program, note = f"eqforge plan {pipeline.name}", _help(pipeline.pilot)
        config, _ = parse(pipeline.config, pipeline.defaults, named, program, note)
        pipeline.check(config)
        header = header_of(pipeline, config)
        if has_output:
            check_output(config.run, header)
        seen = Seen()
        print(in_lines(_report(pipeline, config, _watched(pipeline, config, number, seen))))
        if pipeline.pilot is not None and seen.pilots:
            print(in_lines(_forecast(pipeline, pipeline.pilot, config, seen)))
        return 0
    return 2


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


def _watched(
    pipeline: Pipeline[Configured], config: Configured, number: int, seen: Seen
) -> Iterator[Any]:
    """Yields the records of a plan, and notes what goes by."""
    pilot = pipeline.pilot
    for record in pipeline.plan(config):
        seen.counts.update(pipeline.measure(record))
        if pilot is not None and len(seen.pilots) < number and pilot.is_fit(config, record):
            seen.pilots.append(record)
        yield record


def _report(
    pipeline: Pipeline[Configured], config: Configured, records: Iterable[Any]
) -> Iterator[str]:
    """Yields the lines of a plan's counts."""
    yield f"{pipeline.name}: what a build would try"
    yield from filter_lines(config)
    if pipeline.report is not None:
        yield from pipeline.report(config, records)
        return
    counts: Counter[str] = Counter()
    for record in records:
        counts.update(pipeline.measure(record))
    yield from (f"{what:>20}  {count:>12,}" for what, count in counts.items())


def _forecast(
    pipeline: Pipeline[Configured], pilot: Pilot[Configured], config: Configured, seen: Seen
) -> Iterator[str]:
    """Builds the pilot's records; yields the lines of its cost and of that of all, scaled up."""
    with run_folder(), tempfile.TemporaryDirectory(prefix="eqforge-pilot-") as folder:
        cost = pilot.run(config, seen.pilots, folder)
    built: Counter[str] = Counter()
    for record in seen.pilots:
        built.update(pipeline.measure(record))
    scale = seen.counts[pilot.unit] / max(1, built[pilot.unit])
    what = f"{len(seen.pilots)} {pilot.records}"
    if pilot.unit != pilot.records:
        what += f", {built[pilot.unit]} {pilot.unit}"
    yield f"pilot: {what} in {cost.seconds:.1f} s on {pilot.clock}"
    duration, size = _duration(cost.seconds * scale + cost.start_s), _size(cost.num_bytes * scale)
    yield f"all: about {duration} on {pilot.clock} and {size} of images"
    print(
        f"the pilot's first {pilot.records} may not be typical; what it built was thrown away",
        file=sys.stderr,
    )


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds > 3600 else f"{seconds:.0f} s"


def _size(num_bytes: float) -> str:
    return f"{num_bytes / 1e9:.1f} GB" if num_bytes > 1e9 else f"{num_bytes / 1e6:.1f} MB"
