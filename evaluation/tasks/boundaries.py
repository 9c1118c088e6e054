"""Boundary grounding: find when a video changes, from captions of the states around the change.

Source: EqBen (Wang et al. 2023), appendix A.6, for the score of a boundary, and table 12, after
  GEB+, for the tolerances, which are exclusive.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from more_itertools import map_reduce

from eqforge.core.errors import InputError
from eqforge.core.files.typed_json import decode, read_lines
from eqforge.core.visible import counted
from eqforge.evaluation.metrics.ties import TieRule
from eqforge.evaluation.statistics.bootstrap import Numbers
from eqforge.evaluation.tables.render import Report
from eqforge.evaluation.tables.report import Judged, make_report, model_names
from eqforge.evaluation.tables.samples import EVERYTHING, sorted_columns, text_array
from eqforge.evaluation.tables.scores import places_of
from eqforge.evaluation.tables.settings import MetricsSettings
from eqforge.evaluation.tasks.samples import TASKS, score_notes
from eqforge.schemas.dataset.reader import Dataset

THRESHOLDS_S = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
ROUNDING_S = 1e-9
"""A distance that equals a tolerance may be this much smaller in floating point."""
TITLE = "Boundary grounding: boundaries found within a time limit, in per cent"
METRICS = tuple(f"{threshold:g} s" for threshold in THRESHOLDS_S)


def within(
    times_s: Numbers, boundary_s: float, threshold_s: float, rule: TieRule = "strict"
) -> float:
    """Return 1 if all predicted times are within a threshold of the boundary.

    If only some tied times are, return 0, one half or their share, by `rule`.
    """
    near = np.abs(times_s - boundary_s) < threshold_s - ROUNDING_S
    if rule == "expectation" or near.all():
        return float(near.mean())
    return 0.5 if rule == "half" and near.any() else 0.0


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Search:
    """The adjacent frames between which a boundary may lie.

    Attributes:
      timestamp_s: the annotated time of the boundary, in seconds.
      times_s: the time halfway between the two frames [pairs].
      scores: s(first frame, caption before) + s(second frame, caption after) [pairs].
    """

    boundary_id: str
    video: str
    timestamp_s: float
    times_s: Numbers
    scores: Numbers

    @property
    def best_times_s(self) -> Numbers:
        """The times of the highest score [tied pairs]."""
        return self.times_s[self.scores == self.scores.max()]


class _Boundary(msgspec.Struct):
    boundary_id: str
    video: str
    timestamp_s: float
    before: list[float]
    after: list[float]
    start_s: float = 0.0
    fps: float = 5.0


def boundary_report(paths: Sequence[Path], settings: MetricsSettings) -> Report:
    names = model_names([path.stem for path in paths], paths)
    found = [_read(path) for path in paths]
    expected = sorted(set().union(*found))
    for path, boundaries in zip(paths, found, strict=True):
        missing = [key for key in expected if key not in boundaries]
        if missing and not settings.allow_missing:
            raise InputError(
                f"{path} lacks {counted(len(missing), 'boundaries')} that other files contain, "
                f"such as {missing[0]!r}; pass --allow-missing to skip them"
            )
    judged = {
        name: {EVERYTHING: _judge(list(map(_search, boundaries.values())), len(expected), settings)}
        for name, boundaries in zip(names, found, strict=True)
    }
    return make_report(TITLE, settings.rules, judged)


def _search(boundary: _Boundary) -> Search:
    before, after = np.array(boundary.before), np.array(boundary.after)
    return Search(
        boundary_id=boundary.boundary_id,
        video=boundary.video,
        timestamp_s=boundary.timestamp_s,
        times_s=boundary.start_s + np.arange(0.5, len(before) - 1) / boundary.fps,
        scores=before[:-1] + after[1:],
    )


def is_grounding(dataset: Dataset) -> bool:
    # VLUE has an option of that name, a file.
    return dataset.manifest.config.get("grounding") is True


def grounding_report(dataset: Dataset, paths: Sequence[Path], settings: MetricsSettings) -> Report:
    """Return the table of `eq-gebc --grounding`, whose samples are pairs of adjacent frames."""
    settings.check_read("grounding")
    names = ("sample_id", "source_id", "annotation", "origin_0", "origin_1")
    samples = sorted_columns(dataset, "samples", names)
    about = [msgspec.json.decode(text, type=_About) for text in samples["annotation"]]
    moments = [
        [origin["requested_timestamp_s"] for origin in samples[name]]
        for name in ("origin_0", "origin_1")
    ]
    times, keys = np.mean(moments, axis=0), text_array(samples["sample_id"].tolist())
    pairs_of = map_reduce(range(len(about)), lambda place: about[place].boundary)
    task = TASKS["pairs"]
    scores = [task.read(path, dataset, settings.quantity, settings.columns) for path in paths]
    models = model_names([found.model for found in scores], paths)
    judged = {}
    for model, found, path in zip(models, scores, paths, strict=True):
        places = places_of(keys, found, str(path), allow_missing=settings.allow_missing)
        matches = found.values[:, 0] + found.values[:, 3]
        searches = [
            Search(
                boundary_id=boundary,
                video=str(samples["source_id"][pairs[0]]),
                timestamp_s=float(about[pairs[0]].boundary_s),
                times_s=times[pairs],
                scores=matches[places[pairs]],
            )
            for boundary, pairs in pairs_of.items()
            if (places[pairs] >= 0).all()  # a missing pair may be the best
        ]
        if not searches:
            raise InputError(f"{path}: no boundary has scores for all its frames; score them again")
        judged[model] = {EVERYTHING: _judge(searches, len(pairs_of), settings)}
    return make_report(TITLE, settings.rules, judged, tuple(score_notes(models, scores)))


class _About(msgspec.Struct):
    boundary: str
    boundary_s: str


def _judge(searches: Sequence[Search], expected: int, settings: MetricsSettings) -> Judged:
    credits, chances, tied = [], [], []
    for search in searches:
        moment, best = search.timestamp_s, search.best_times_s
        credits.append([within(best, moment, limit, settings.ties) for limit in THRESHOLDS_S])
        chances.append(
            [within(search.times_s, moment, limit, "expectation") for limit in THRESHOLDS_S]
        )
        tied.append(len(best) > 1)
    found, chance = np.array(credits), np.mean(chances, axis=0)
    return Judged(
        credits=dict(zip(METRICS, found.T, strict=True)) | {"mean": found.mean(axis=1)},
        chance=dict(zip(METRICS, chance.tolist(), strict=True)) | {"mean": float(chance.mean())},
        tied=np.array(tied),
        clusters=text_array([search.video for search in searches]),
        expected=expected,
        keys=text_array([search.boundary_id for search in searches]),
    )


def _read(path: Path) -> dict[str, _Boundary]:
    found: dict[str, _Boundary] = {}
    for number, data in read_lines(path):
        line = decode(data, _Boundary, str(path), f"line {number}")
        sizes = len(line.before), len(line.after)
        if sizes[0] != sizes[1] or sizes[0] < 2:
            raise InputError(
                f"{path}: line {number}: expected as many scores in 'before' as in 'after', and at "
                f"least 2; found {sizes[0]} and {sizes[1]}"
            )
        if line.fps <= 0:
            raise InputError(f"{path}: line {number}: fps {line.fps:g}: expected more than 0")
        if line.boundary_id in found:
            raise InputError(f"{path}: line {number}: {line.boundary_id!r} appears twice; keep one")
        found[line.boundary_id] = line
    if not found:
        raise InputError(f"{path} contains no boundaries")
    return {key: found[key] for key in sorted(found)}
