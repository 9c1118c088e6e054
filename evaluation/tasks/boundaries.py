"""Boundary grounding: find when a video changes, from captions of the states around the change.

Source: EqBen (Wang et al. 2023), appendix A.6, for the score of a boundary, and table 12, after
  GEB+, for the tolerances, which are exclusive.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files.typed_json import decode, read_lines
from eqforge.evaluation.metrics.ties import TieRule
from eqforge.evaluation.statistics.bootstrap import Numbers
from eqforge.evaluation.tables.render import Report
from eqforge.evaluation.tables.report import Judged, make_report, model_names
from eqforge.evaluation.tables.samples import EVERYTHING, text_array
from eqforge.evaluation.tables.settings import MetricsSettings

THRESHOLDS_S = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
FRAMES_PER_SECOND = 5.0
METRICS = tuple(f"{threshold:g} s" for threshold in THRESHOLDS_S)


def best_times_s(before: Numbers, after: Numbers, times_s: Numbers) -> Numbers:
    """Return the time halfway between the frames where the boundary scores best [tied places].

    A boundary scores s(frame t, caption before) + s(frame t + 1, caption after). Scores with either
    caption and ascending times are given for each of at least two frames [frames].
    """
    scores = before[:-1] + after[1:]
    best = np.flatnonzero(scores == scores.max())
    return (times_s[best] + times_s[best + 1]) / 2


def within(
    times_s: Numbers, boundary_s: float, threshold_s: float, rule: TieRule = "strict"
) -> float:
    """Return 1 if all predicted times are within a threshold of the boundary.

    If only some tied times are, return 0, one half or their share, by `rule`.
    """
    near = np.abs(times_s - boundary_s) < threshold_s
    if rule == "expectation" or near.all():
        return float(near.mean())
    return 0.5 if rule == "half" and near.any() else 0.0


def chance_within(times_s: Numbers, boundary_s: float, threshold_s: float) -> float:
    """Return the chance level: the share of gaps between frames within the threshold."""
    return within((times_s[:-1] + times_s[1:]) / 2, boundary_s, threshold_s, "expectation")


class _Boundary(msgspec.Struct):
    boundary_id: str
    video: str
    timestamp_s: float
    before: list[float]
    after: list[float]
    start_s: float = 0.0
    fps: float = FRAMES_PER_SECOND


def boundary_report(paths: Sequence[Path], settings: MetricsSettings) -> Report:
    names = model_names([path.stem for path in paths], paths)
    found = [_read(path) for path in paths]
    expected = sorted(set().union(*found))
    for path, boundaries in zip(paths, found, strict=True):
        missing = [key for key in expected if key not in boundaries]
        if missing and not settings.allow_missing:
            raise InputError(
                f"{path}: {len(missing):,} boundaries of another file are missing, such as "
                f"{missing[0]!r}; pass --allow-missing to leave them out"
            )
    judged = {
        name: {EVERYTHING: _judge(list(boundaries.values()), len(expected), settings.ties)}
        for name, boundaries in zip(names, found, strict=True)
    }
    return make_report(
        "Boundary grounding: boundaries found within a time limit, in per cent",
        settings.rules,
        judged,
    )


def _judge(boundaries: Sequence[_Boundary], expected: int, ties: TieRule) -> Judged:
    credits, chances, tied = [], [], []
    for boundary in boundaries:
        moment, frames = boundary.timestamp_s, np.arange(len(boundary.before))
        times = boundary.start_s + frames / boundary.fps
        best = best_times_s(np.array(boundary.before), np.array(boundary.after), times)
        credits.append([within(best, moment, threshold, ties) for threshold in THRESHOLDS_S])
        chances.append([chance_within(times, moment, threshold) for threshold in THRESHOLDS_S])
        tied.append(len(best) > 1)
    found, chance = np.array(credits), np.mean(chances, axis=0)
    return Judged(
        credits=dict(zip(METRICS, found.T, strict=True)) | {"mean": found.mean(axis=1)},
        chance=dict(zip(METRICS, chance.tolist(), strict=True)) | {"mean": float(chance.mean())},
        tied=np.array(tied),
        clusters=text_array([boundary.video for boundary in boundaries]),
        expected=expected,
        keys=text_array([boundary.boundary_id for boundary in boundaries]),
    )


def _read(path: Path) -> dict[str, _Boundary]:
    found: dict[str, _Boundary] = {}
    for number, data in read_lines(path):
        line = decode(data, _Boundary, str(path), f"line {number}")
        sizes = len(line.before), len(line.after)
        if sizes[0] != sizes[1] or sizes[0] < 2 or line.fps <= 0:
            raise InputError(
                f"{path}: line {number}: expected equal numbers of scores before and after (at "
                f"least two), and fps above 0; found {sizes[0]}, {sizes[1]} and {line.fps:g}"
            )
        if line.boundary_id in found:
            raise InputError(f"{path}: line {number}: {line.boundary_id!r} appears twice")
        found[line.boundary_id] = line
    if not found:
        raise InputError(f"{path}: contains no boundary")
    return {key: found[key] for key in sorted(found)}
