"""What a pilot measured: its cost, what it kept, and a histogram of each score that has a limit."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from eqforge.core.late import numpy as np
from eqforge.pipelines.shared.filters import limits_of
from eqforge.pipelines.shared.settings import DatasetConfig
from eqforge.schemas.records.books import Reject
from eqforge.schemas.records.scores import Score
from eqforge.transforms.filters.minimality import PairMeasures

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
