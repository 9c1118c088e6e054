"""A pilot of `eqforge plan`: its cost, what it kept, a histogram of each score with a limit."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from eqforge.pipelines.base.settings import DatasetConfig
from eqforge.schemas.records.books import Reject
from eqforge.schemas.records.frames import FrameSettings
from eqforge.schemas.records.scores import Score
from eqforge.transforms.filters.minimality import PairMeasures

_FILTERS = ("settings", "choices")  # the fields of a dataset's configuration that hold them
_SWITCHES = ("distinct_captions", "drop_synonyms", "oracle")
BINS = 24
HEIGHTS = " ▁▂▃▄▅▆▇█"

_ENDINGS = ("", "_fraction", "_mean")
_REACHED = ("cut_histogram_change", "cut_registered_points")
"""Scores whose limits refuse what reaches them, if it reaches all that are set."""


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
class PilotUnit:
    """In what a pilot is counted.

    Attributes:
      records: what the plan's records are called.
      number: how many are built unless `--pilot` says otherwise.
      unit: the count of `Pipeline.measure` that the cost is proportional to.
      clock: what the seconds are measured on, such as `one core`.
    """

    records: str
    number: int
    unit: str
    clock: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PilotYield:
    """What a pilot's records became.

    Attributes:
      kept: pairs that became samples.
      rejects: by stage and reason.
      values: what was measured before any limit was applied, by the score's name.
    """

    kept: int
    rejects: dict[str, int]
    values: dict[str, tuple[float, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class PilotCost:
    """What a pilot cost.

    Attributes:
      seconds: wall-clock time of its records.
      num_bytes: size of the images it stored, in bytes.
      start_s: start-up time of a process before its first record, in seconds.
      made: what its records became.
    """

    seconds: float
    num_bytes: int
    start_s: float = 0.0
    made: PilotYield


def yield_of(
    kept: int,
    rejects: Iterable[Reject],
    images: Iterable[Sequence[Score]],
    pairs: Iterable[tuple[PairMeasures, Sequence[Score]]],
) -> PilotYield:
    """Returns what a pilot's records became.

    Args:
      kept: pairs that became samples.
      rejects: everything that was refused.
      images: the scores of each image.
      pairs: the measures and the other scores of each pair.
    """
    values: defaultdict[str, list[float]] = defaultdict(list)
    rows = [{score.name: score.value for score in scores} for scores in images]
    rows += [asdict(m) | {score.name: score.value for score in scores} for m, scores in pairs]
    for row in rows:
        for name, value in row.items():
            if value is not None:
                values[name].append(float(value))
    return PilotYield(
        kept=kept,
        rejects=dict(Counter(f"{reject.stage}: {reject.reason}" for reject in rejects)),
        values={name: tuple(found) for name, found in values.items()},
    )


def histograms(
    config: DatasetConfig, values: Mapping[str, Sequence[float]]
) -> Iterator[ScoreHistogram]:
    """Yields a histogram of each score for which the configuration has a limit, set or not."""
    limits: defaultdict[str, dict[str, float | None]] = defaultdict(dict)
    for option, limit in limits_of(config).items():
        stem = option.partition("-")[2].replace("-", "_")
        for name in (*(stem + ending for ending in _ENDINGS), f"cut_{stem}"):
            if values.get(name):
                limits[name][option] = limit
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
    """Yields a line for each score: its range with `|` where a limit is, and what that drops."""
    if histograms:
        yield "scores: from the least to the greatest value or limit; | is a limit:"
    width = max((len(found.score) for found in histograms), default=0)
    for found in histograms:
        low, high = (f"{edge:.4g}" for edge in (found.edges[0], found.edges[-1]))
        yield f"  {found.score:<{width}}  {low:>7} {_bars(found)} {high:<7}  {_effect(found)}"


def _bars(found: ScoreHistogram) -> str:
    most, text = max(found.counts), ""
    limits = [limit for limit in found.limits.values() if limit is not None]
    for low, high, count in zip(found.edges, found.edges[1:], found.counts, strict=False):
        is_last = high == found.edges[-1]
        text += "|" * sum(low <= limit < high for limit in limits)
        text += HEIGHTS[-(-count * (len(HEIGHTS) - 1) // most)]
        text += "|" * (is_last and high in limits)
    return f"{text:<{BINS + 2}}"


def _effect(found: ScoreHistogram) -> str:
    on = [f"--{option} {limit:g}" for option, limit in found.limits.items() if limit is not None]
    off = [f"--{option}" for option, limit in found.limits.items() if limit is None]
    drops = f"{', '.join(on)} drops {found.dropped} of {sum(found.counts)}" if on else ""
    return "; ".join(part for part in (drops, f"off: {', '.join(off)}" if off else "") if part)


def filter_lines(config: DatasetConfig) -> Iterator[str]:
    """Yields a line of the filters that are on, with their values, and one of those that are off.

    A filter is a limit (`min_…`, `max_…`, off if None), a choice that may be `off`, or one of the
    switches above. A dataset without filters yields nothing.
    """
    found = list(_filters_of(config))
    on = [_flag(name, value) for name, value in found if _is_on(value)]
    off = [_flag(name, True) for name, value in found if not _is_on(value)]
    if found:
        yield f"  filters on: {', '.join(on) or 'none'}"
        yield f"  filters off: {', '.join(off) or 'none'}"


def limits_of(config: DatasetConfig) -> dict[str, float | None]:
    """Returns the limits of a configuration's scores by option, such as `min-ssim`."""
    return {
        name.replace("_", "-"): value
        for name, value in _filters_of(config)
        if name.startswith(("min_", "max_")) and (value is None or not isinstance(value, str))
    }


def _filters_of(config: DatasetConfig) -> Iterator[tuple[str, Any]]:
    for name in _FILTERS:
        if hasattr(config, name):
            yield from _filters(getattr(config, name))


def _filters(settings: Any) -> Iterator[tuple[str, Any]]:
    """Yields the name and value of each filter in some settings, nested ones in field order."""
    hints = get_type_hints(type(settings))
    for field in fields(settings):
        value = getattr(settings, field.name)
        if is_dataclass(value) and not isinstance(value, FrameSettings):
            yield from _filters(value)
        elif _is_filter(field.name, hints[field.name]):
            yield field.name, value


def _is_filter(name: str, kind: Any) -> bool:
    may_be_off = get_origin(kind) is Literal and "off" in get_args(kind)
    return name.startswith(("min_", "max_")) or name in _SWITCHES or may_be_off


def _is_on(value: Any) -> bool:
    return value is not None and value is not False and value != "off"


def _flag(name: str, value: Any) -> str:
    flag = f"--{name.replace('_', '-')}"
    return flag if value is True else f"{flag} {value}"
