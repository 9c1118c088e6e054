"""`eqforge plan`: show what a build would make, its filters, and the cost from a pilot.

A pilot builds some records to measure their cost and the effect of limits.
"""

import math
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from eqforge.core.files.objects import fetch_inputs
from eqforge.core.visible import counted
from eqforge.pipelines.base.identity import check_output, header_of
from eqforge.pipelines.base.pipeline import AnyPipeline, DatasetConfig, PilotUnit
from eqforge.pipelines.base.recipe import OTHER_BYTES, changed_inputs, named_line
from eqforge.schemas.dataset.manifest import Manifest
from eqforge.schemas.records.frames import FrameSettings
from eqforge.schemas.records.stages import Reject
from eqforge.transforms.engines.run_folder import run_folder

_FILTERS = ("settings", "choices")  # the fields of a dataset's configuration that hold them
_SWITCHES = ("distinct_captions", "drop_synonyms", "keep_best", "oracle")
FEW = 0.05
"""Share of kept candidates below which a build names the limits that rejected most."""
BINS = 24
HEIGHTS = " ▁▂▃▄▅▆▇█"

_ENDINGS = ("", "_fraction", "_mean")
_REACHED = ("cut_histogram_change", "cut_registered_points")
"""Scores whose values are rejected when they reach a limit, not when they miss it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreHistogram:
    """The distribution of a score in a pilot, and how many values its limits exclude.

    Attributes:
      score: name of the score, as in the rows.
      edges: edges of the bins (one more than there are bins).
      counts: number of values in each bin. Only the last bin includes its upper edge.
      limits: value of each option that limits the score, or None if the option is off.
      dropped: number of values outside the limits.
    """

    score: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    limits: dict[str, float | None]
    dropped: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PilotReport:
    """The cost and result of a pilot.

    Attributes:
      records: number of processed records, such as videos.
      seconds: time for these records.
      num_bytes: total size of the pilot's images, in bytes.
      total_seconds: estimated time for all records, including startup.
      total_bytes: estimated total size of all images, in bytes.
      kept: number of pairs that became samples.
      rejects: number of rejected candidates by stage and reason, such as `pairs: camera_cut`.
      scores: histograms of scores that have a limit.
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
    """What a build would do.

    Attributes:
      dataset: name of the dataset.
      mode: mode of the build: `paper` or `corrected`.
      counts: counts by name, such as the number of candidate pairs.
      lines: description of counts, filters and rejected candidates.
      sources: origin of each non-default setting, by option.
      pilot: cost and result of the pilot, or None if no pilot was run.
      forecast: description of the pilot's result, or empty if no pilot was run.
      changed_inputs: the recipe's input files whose contents differ from every input of the plan.
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
    pipeline: AnyPipeline,
    pilots: int,
    *,
    checks_output: bool,
    show: Callable[[Iterable[str]], None] = lambda lines: None,
    recipe: Manifest | None = None,
) -> PlanReport:
    """Plan a dataset: read the annotations and write nothing; open media only for a pilot.

    Args:
        pilots: records to build and discard, to estimate the cost.
        checks_output: check that the output folder is free or holds the same dataset.
        show: called with the lines of the plan, then with the lines of the pilot.
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
    found, forecast = forecast_of(pipeline, pipeline.pilot, counts, kept)
    show(forecast)
    return replace(report, pilot=found, forecast=forecast)


def filter_lines(config: DatasetConfig) -> Iterator[str]:
    """Yield one line of active filters with their values, and one of inactive filters.

    A filter is a limit (`min_…`, `max_…`, off if None), a choice that may be `off`, or one of the
    switches above. A dataset without filters yields nothing.
    """
    on, off = list[str](), list[str]()
    for name, value in filters_of(config):
        flag = f"--{name.replace('_', '-')}"
        if value is None or value is False or value == "off":
            off.append(flag)
        else:
            on.append(flag if value is True else f"{flag} {value}")
    if on or off:
        yield f"  filters on: {', '.join(on) or 'none'}"
        yield f"  filters off: {', '.join(off) or 'none'}"


def forecast_of(
    pipeline: AnyPipeline, pilot: PilotUnit, counts: Counter[str], records: Sequence[Any]
) -> tuple[PilotReport, tuple[str, ...]]:
    """Build a plan's pilots; return cost and yield scaled up to a build, and in words."""
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
    amount = counted(len(records), pilot.records)
    if pilot.unit != pilot.records:
        amount += f", {counted(built[pilot.unit], pilot.unit)}"
    refused = ", ".join(f"{reason} {count:,}" for reason, count in found.rejects.items())
    seconds, size = found.total_seconds, found.total_bytes
    duration = f"{seconds / 3600:.1f} hours" if seconds > 3600 else f"{seconds:.0f} s"
    storage = f"{size / 1e9:.1f} GB" if size > 1e9 else f"{size / 1e6:.1f} MB"
    is_few = found.kept < FEW * (found.kept + len(cost.rejects))
    return found, (
        f"pilot: {amount} in {cost.seconds:.1f} s on {pilot.clock}",
        f"kept: {counted(found.kept, 'pairs')}; rejected: {refused or 'none'}",
        *histogram_lines(found.scores),
        *(limit_hints(pipeline.config, _measured(cost.rejects)) if is_few else ()),
        f"the first {pilot.records} may not be typical; the pilot deleted its output",
        f"estimate for the whole build: {duration} on {pilot.clock}, {storage} of images",
    )


def _measured(rejects: Iterable[Reject]) -> Iterator[tuple[str, float, float]]:
    for reject in rejects:
        if reject.value is not None and reject.threshold is not None:
            yield reject.detail, reject.value, reject.threshold


def histograms(
    config: DatasetConfig, values: Mapping[str, Sequence[float]]
) -> Iterator[ScoreHistogram]:
    """Yield a histogram of each score for which the configuration has a limit, set or not."""
    limits: defaultdict[str, dict[str, float | None]] = defaultdict(dict)
    for option, score, limit in _limits(config):
        if values.get(score):
            limits[score][option] = limit
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


def _limits(config: DatasetConfig) -> Iterator[tuple[str, str, Any]]:
    """Yield each option that is a limit, with the name of a score that it may limit, and its value.

    `--max-x` limits the score `x`, `x_fraction`, `x_mean` or `cut_x`.
    """
    for name, limit in filters_of(config):
        kind, _, stem = name.partition("_")
        if kind in ("min", "max") and not isinstance(limit, str):
            for score in (*(stem + ending for ending in _ENDINGS), f"cut_{stem}"):
                yield name.replace("_", "-"), score, limit


def _size(name: str, value: float) -> float:
    return abs(value) if name == "luminance_shift" else value


def _is_dropped(name: str, value: float, limits: Mapping[str, float | None]) -> bool:
    size = _size(name, value)
    reached = [
        size >= limit if option.startswith("min-") else size <= limit
        for option, limit in limits.items()
        if limit is not None
    ]
    return any(reached) if name in _REACHED else not all(reached)


def histogram_lines(histograms: Sequence[ScoreHistogram]) -> Iterator[str]:
    """Yield a line for each score: its range with `|` at a limit, and the rejected share."""
    if histograms:
        yield "score histograms, from the lowest to the highest value or limit; | marks a limit:"
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


def limit_hints(
    config: DatasetConfig, rejects: Iterable[tuple[str, float, float]]
) -> Iterator[str]:
    """Yield how many candidates looser limits would pass, for the three that rejected most.

    Args:
      rejects: score, value and limit of each reject that has them.
    """
    options = {(score, limit): option for option, score, limit in _limits(config)}
    values: defaultdict[tuple[str, float], list[float]] = defaultdict(list)
    for score, value, limit in rejects:
        if (score, limit) in options and score not in _REACHED:
            values[score, limit].append(_size(score, value))
    ranked = sorted(values.items(), key=lambda each: (-len(each[1]), each[0]))
    tries = list[str]()
    for (score, limit), found in ranked[:3]:
        option, is_upper = options[score, limit], found[0] > limit
        near = sorted(found, reverse=not is_upper)
        looser = {_outward(near[math.ceil(len(near) * q) - 1], is_upper) for q in (0.25, 0.75)}
        effects = [
            f"{each:g} would keep {sum(x <= each if is_upper else x >= each for x in near):,}"
            for each in sorted(looser, reverse=not is_upper)
        ]
        tries.append(f"--{option} {effects[0].partition(' ')[0]}")
        yield f"  --{option} {limit:g} rejected {len(near):,} by {score}; {', '.join(effects)}"
    if tries:
        is_free = dict(filters_of(config)).get("keep_best", 0) is None
        is_best = is_free and tries[0].startswith("--min-minimality")
        first = f"--keep-best 3 (or {tries[0]})" if is_best else tries[0]
        yield f"to keep more pairs, run the same command with {first} and --overwrite"


def _outward(value: float, is_upper: bool) -> float:
    """Round a value to two digits, away from the limit that it is beyond."""
    step = 10.0 ** (math.floor(math.log10(abs(value) or 1)) - 1)
    return round((math.ceil if is_upper else math.floor)(value / step) * step, 9)


def filters_of(config: DatasetConfig) -> Iterator[tuple[str, Any]]:
    for name in _FILTERS:
        if hasattr(config, name):
            yield from _filters(getattr(config, name))


def _filters(settings: Any) -> Iterator[tuple[str, Any]]:
    hints = get_type_hints(type(settings))
    for each in fields(settings):
        value, kind = getattr(settings, each.name), hints[each.name]
        may_be_off = get_origin(kind) is Literal and "off" in get_args(kind)
        is_limit = each.name.startswith(("min_", "max_"))
        if is_dataclass(value) and not isinstance(value, FrameSettings):
            yield from _filters(value)
        elif is_limit or each.name in _SWITCHES or may_be_off:
            yield each.name, value
