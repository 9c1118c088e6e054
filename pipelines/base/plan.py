"""`eqforge plan`: what a build would make, what a pilot of it cost, and what its limits drop."""

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from eqforge.core.files.objects import fetch_inputs
from eqforge.core.visible import counted
from eqforge.pipelines.base.identity import check_output, header_of
from eqforge.pipelines.base.pipeline import DatasetConfig, PilotUnit, Pipeline
from eqforge.pipelines.base.recipe import OTHER_BYTES, changed_inputs, named_line
from eqforge.schemas.dataset.manifest import Manifest
from eqforge.schemas.records.frames import FrameSettings
from eqforge.transforms.engines.run_folder import run_folder

_FILTERS = ("settings", "choices")  # the fields of a dataset's configuration that hold them
_SWITCHES = ("distinct_captions", "drop_synonyms", "oracle")
BINS = 24
HEIGHTS = " ▁▂▃▄▅▆▇█"

_ENDINGS = ("", "_fraction", "_mean")
_REACHED = ("cut_histogram_change", "cut_registered_points")
"""Scores that are dropped where they reach all limits that are set."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreHistogram:
    """How a pilot's values of one score are distributed, and what its limits do.

    Attributes:
      score: the score's name, as in the rows of the dataset.
      edges: of the bins, ascending, one more than there are bins; limits lie among them.
      counts: values in each bin; only the last bin holds its upper edge.
      limits: the options that limit the score; null where one is off.
      dropped: the values that the limits refuse.
    """

    score: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    limits: dict[str, float | None]
    dropped: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PilotReport:
    """What a pilot cost and gave.

    Attributes:
      records: how many records were built, such as videos.
      seconds: what that took.
      num_bytes: the size of the images that were stored.
      total_seconds: what all records would take, scaled up, and the start of the process.
      total_bytes: the size of all images.
      kept: pairs that became samples.
      rejects: what was refused, by stage and reason as `pairs: camera_cut`.
      scores: the histograms of the scores that a setting limits.
    """

    records: int
    seconds: float
    num_bytes: int
    total_seconds: float
    total_bytes: float
    kept: int
    rejects: dict[str, int]
    scores: tuple[ScoreHistogram, ...]


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


def plan_dataset(
    pipeline: Pipeline[Any],
    pilots: int,
    *,
    checks_output: bool,
    show: Callable[[Iterable[str]], None] = lambda lines: None,
    recipe: Manifest | None = None,
) -> PlanReport:
    """Plan a dataset: read the annotations and write nothing; open media only for a pilot.

    Args:
      pipeline: the dataset, with its settings.
      pilots: records to build and discard, to estimate the cost.
      checks_output: whether to check that the output folder is free or holds the same dataset.
      show: called with the lines of the plan, then with the lines of the pilot.
      recipe: the recipe that the settings come from, if there is one.
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
    show(lines)
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
    show(forecast)
    return replace(report, pilot=found, forecast=forecast)


def _forecast(
    pipeline: Pipeline[Any], pilot: PilotUnit, counts: Counter[str], records: Sequence[Any]
) -> tuple[PilotReport, tuple[str, ...]]:
    """Build a plan's pilots; return their cost and yield, scaled up to a build, and in words."""
    with run_folder(), tempfile.TemporaryDirectory(prefix="eqforge-pilot-") as folder:
        cost = pipeline.try_records(records, folder)
    built: Counter[str] = Counter()
    for record in records:
        built.update(pipeline.measure(record))
    scale = counts[pilot.unit] / max(1, built[pilot.unit])
    found = PilotReport(
        records=len(records),
        seconds=cost.seconds,
        num_bytes=cost.num_bytes,
        total_seconds=cost.seconds * scale + cost.start_s,
        total_bytes=cost.num_bytes * scale,
        kept=cost.kept,
        rejects=dict(Counter(f"{reject.stage}: {reject.reason}" for reject in cost.rejects)),
        scores=tuple(histograms(pipeline.config, cost.values())),
    )
    what = counted(len(records), pilot.records)
    if pilot.unit != pilot.records:
        what += f", {counted(built[pilot.unit], pilot.unit)}"
    refused = ", ".join(f"{reason} {count:,}" for reason, count in found.rejects.items())
    seconds, size = found.total_seconds, found.total_bytes
    duration = f"{seconds / 3600:.1f} hours" if seconds > 3600 else f"{seconds:.0f} s"
    storage = f"{size / 1e9:.1f} GB" if size > 1e9 else f"{size / 1e6:.1f} MB"
    return found, (
        f"pilot: {what} in {cost.seconds:.1f} s on {pilot.clock}",
        f"kept: {counted(found.kept, 'pairs')}; refused: {refused or 'none'}",
        *histogram_lines(found.scores),
        f"the pilot's first {pilot.records} may not be typical; what it built was thrown away",
        f"all: about {duration} on {pilot.clock} and {storage} of images",
    )


def histograms(
    config: DatasetConfig, values: Mapping[str, Sequence[float]]
) -> Iterator[ScoreHistogram]:
    """Yield a histogram of each score for which the configuration has a limit, set or not."""
    limits: defaultdict[str, dict[str, float | None]] = defaultdict(dict)
    for name, limit in _filters_of(config):
        kind, _, stem = name.partition("_")
        if kind in ("min", "max") and not isinstance(limit, str):
            scores = [*(stem + ending for ending in _ENDINGS), f"cut_{stem}"]
            for score in filter(values.get, scores):
                limits[score][name.replace("_", "-")] = limit
    for name, by_option in limits.items():
        ends = [*values[name], *(limit for limit in by_option.values() if limit is not None)]
        counts, edges = np.histogram(values[name], bins=BINS, range=(min(ends), max(ends)))
        yield ScoreHistogram(
            score=name,
            edges=tuple(round(float(edge), 6) for edge in edges),
            counts=tuple(map(int, counts)),
            limits=by_option,
            dropped=sum(_is_dropped(name, value, by_option) for value in values[name]),
        )


def _is_dropped(name: str, value: float, limits: Mapping[str, float | None]) -> bool:
    size = abs(value) if name == "luminance_shift" else value
    reached = [
        size >= limit if option.startswith("min-") else size <= limit
        for option, limit in limits.items()
        if limit is not None
    ]
    return any(reached) if name in _REACHED else not all(reached)


def histogram_lines(histograms: Sequence[ScoreHistogram]) -> Iterator[str]:
    """Yield a line for each score: its range with `|` where a limit is, and what that drops."""
    if histograms:
        yield "scores: from the least to the greatest value or limit; | is a limit:"
    width = max((len(found.score) for found in histograms), default=0)
    for found in histograms:
        low, high = (f"{edge:.4g}" for edge in (found.edges[0], found.edges[-1]))
        on = [f"--{name} {limit:g}" for name, limit in found.limits.items() if limit is not None]
        off = [f"--{name}" for name, limit in found.limits.items() if limit is None]
        effects = [f"{', '.join(on)} drops {found.dropped} of {sum(found.counts)}"] if on else []
        effects += [f"off: {', '.join(off)}"] if off else []
        yield f"  {found.score:<{width}}  {low:>7} {_bars(found)} {high:<7}  {'; '.join(effects)}"


def _bars(found: ScoreHistogram) -> str:
    most, text = max(found.counts), ""
    limits = [limit for limit in found.limits.values() if limit is not None]
    for low, high, count in zip(found.edges, found.edges[1:], found.counts, strict=False):
        is_last = high == found.edges[-1]
        text += "|" * sum(low <= limit < high for limit in limits)
        text += HEIGHTS[-(-count * (len(HEIGHTS) - 1) // most)]
        text += "|" * (is_last and high in limits)
    return f"{text:<{BINS + 2}}"


def filter_lines(config: DatasetConfig) -> Iterator[str]:
    """Yield a line of the filters that are on, with their values, and one of those that are off.

    A filter is a limit (`min_…`, `max_…`, off if None), a choice that may be `off`, or one of the
    switches above. A dataset without filters yields nothing.
    """
    on, off = list[str](), list[str]()
    for name, value in _filters_of(config):
        flag = f"--{name.replace('_', '-')}"
        if value is None or value is False or value == "off":
            off.append(flag)
        else:
            on.append(flag if value is True else f"{flag} {value}")
    if on or off:
        yield f"  filters on: {', '.join(on) or 'none'}"
        yield f"  filters off: {', '.join(off) or 'none'}"


def _filters_of(config: DatasetConfig) -> Iterator[tuple[str, Any]]:
    for name in _FILTERS:
        if hasattr(config, name):
            yield from _filters(getattr(config, name))


def _filters(settings: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each filter in some settings, nested ones in field order."""
    hints = get_type_hints(type(settings))
    for each in fields(settings):
        value, kind = getattr(settings, each.name), hints[each.name]
        may_be_off = get_origin(kind) is Literal and "off" in get_args(kind)
        is_limit = each.name.startswith(("min_", "max_"))
        if is_dataclass(value) and not isinstance(value, FrameSettings):
            yield from _filters(value)
        elif is_limit or each.name in _SWITCHES or may_be_off:
            yield each.name, value
