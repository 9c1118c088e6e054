"""The table of boundary grounding: how often the change is found within each tolerance."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files.typed_json import decode, read_lines
from eqforge.evaluation.metrics.boundaries import (
    FRAMES_PER_SECOND,
    THRESHOLDS_S,
    best_times_s,
    chance_within,
    within,
)
from eqforge.evaluation.metrics.ties import TieRule
from eqforge.evaluation.tables.report import Judged, Report, Rules, measure
from eqforge.evaluation.tables.sample_tasks import model_names
from eqforge.evaluation.tables.samples import EVERYTHING, text_array
from eqforge.evaluation.tables.several import compare_judged

METRICS = tuple(f"{threshold:g} s" for threshold in THRESHOLDS_S)


class _Boundary(msgspec.Struct):
    boundary_id: str
    video: str
    timestamp_s: float
    before: list[float]
    after: list[float]
    start_s: float = 0.0
    fps: float = FRAMES_PER_SECOND


def boundary_report(paths: Sequence[Path], rules: Rules, *, allow_missing: bool = False) -> Report:
    """Returns how often boundaries are found within each tolerance, and the mean of them.

    Args:
      paths: a JSON Lines file for each model: `boundary_id`, `video`, `timestamp_s`, `before`
        and `after`, the scores of the frames with either caption, and `start_s` and `fps` unless
        they are 0 and 5. The boundaries of all files together are expected.
      rules: ties, seed and resamples.
      allow_missing: whether a file may lack boundaries that another has.

    Raises:
      InputError: a file is malformed, or lacks boundaries though not allowed to.
    """
    names = model_names([path.stem for path in paths], paths)
    found = [_read(path) for path in paths]
    expected = sorted(set().union(*found))
    for path, boundaries in zip(paths, found, strict=True):
        _check_missing(path, [key for key in expected if key not in boundaries], allow_missing)
    judged = {
        name: {EVERYTHING: _judge(list(boundaries.values()), len(expected), rules.ties)}
        for name, boundaries in zip(names, found, strict=True)
    }
    return Report(
        title="Boundary grounding: found within, in per cent",
        rules=rules,
        measures=tuple(
            found
            for name, subsets in judged.items()
            for subset, one in subsets.items()
            for found in measure(name, subset, one, rules)[1]
        ),
        comparisons=compare_judged(judged, rules),
    )


def _check_missing(path: Path, missing: Sequence[str], allowed: bool) -> None:
    if missing and not allowed:
        raise InputError(
            f"{path}: {len(missing):,} boundaries that another file has are missing, such as "
            f"{missing[0]!r}; --allow-missing leaves them out"
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
                f"{path}: line {number}: expected as many scores before as after, two or more, and "
                f"fps above 0; found {sizes[0]}, {sizes[1]} and {line.fps:g}"
            )
        if line.boundary_id in found:
            raise InputError(f"{path}: line {number}: {line.boundary_id!r} appears twice")
        found[line.boundary_id] = line
    if not found:
        raise InputError(f"{path}: holds no boundary")
    return {key: found[key] for key in sorted(found)}
