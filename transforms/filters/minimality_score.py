"""Scores how likely a pair of video frames is to be called minimal.

Minimal means the same scene and camera position, with a change that a caption can name and little
else. The score is a logistic function of stored measures. `python -m tools.fit_minimality`
fits its coefficients to pairs that a vision-language model judged, not people.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from eqforge.core.ranges import check_range, expect
from eqforge.schemas.records.scores import Rejection, Score, compact_json, value_of
from eqforge.transforms.filters.minimality import PairMeasures

REASONS = {
    "not_minimal": "The pair's minimality score is below --min-minimality.",
}

SCORER = "eqforge.minimality"
VERSION = "2"
MINIMALITY = "minimality"

COEFFICIENTS = {
    "constant": -8.46,
    "log_area": -0.04,
    "log_area_squared": -1.00,
    "ssim": 8.13,
    "cut_histogram_change": -5.93,
    "solid_share": 5.87,
}
LEAST_AREA = 0.005
"""Added to the changed area, in [0, 1], before its decimal logarithm is taken."""

MAX_ROTATION_DEG = 45
"""A camera that turns further shows no minimal pair: its score is 0."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class MinimalitySettings:
    """Selection of pairs whose scene changes only in what the captions name (minimality)."""

    min_minimality: float | None = None
    """Minimum minimality score of a pair, in [0, 1]. For the precision and recall of limits,
    see docs/datasets/eq-video.md."""

    keep_best: int | None = None
    """Number of pairs per video to keep even if they violate a limit on image change. Limits are
    --min-minimality and --max-changed-area, for example. The pairs with the highest minimality
    scores are kept. If scores are equal, the pairs with the lowest ids are kept."""

    def __post_init__(self) -> None:
        check_range("min_minimality", self.min_minimality, 0, 1)
        best = self.keep_best
        expect(self, "keep_best", best is None or best >= 1, "1 or more")


def features(measures: dict[str, float | None]) -> dict[str, float]:
    """Return what each coefficient is multiplied by, from measures and scores of a pair by name.

    Measures after registration replace the plain ones if the pair registers.
    """

    def best(name: str) -> float:
        registered = measures.get(f"registered_{name.removesuffix('_fraction')}")
        value = measures[name] if registered is None else registered
        return value or 0.0

    area = best("changed_area_fraction") + LEAST_AREA
    log_area = math.log10(area)
    lightness_ssim = measures.get("registered_lightness_ssim")
    return {
        "constant": 1.0,
        "log_area": log_area,
        "log_area_squared": log_area**2,
        "ssim": best("ssim") if lightness_ssim is None else lightness_ssim,
        "cut_histogram_change": best("cut_histogram_change"),
        "solid_share": (measures.get("solid_changed_area") or 0.0) / area,
    }


def minimality_of(measures: dict[str, float | None]) -> float:
    """Return the minimality, in [0, 1], from measures and scores of a pair by name."""
    if abs(measures.get("camera_rotation_deg") or 0.0) > MAX_ROTATION_DEG:
        return 0.0
    total = sum(COEFFICIENTS[name] * value for name, value in features(measures).items())
    return round(1 / (1 + math.exp(-total)), 6)


def score_minimality(measures: PairMeasures, scores: Sequence[Score]) -> Score:
    """Score a pair from its measures and the scores of `cuts` and `registration`."""
    known = dataclasses.asdict(measures) | {score.name: score.value for score in scores}
    return Score(
        name=MINIMALITY,
        value=minimality_of(known),
        scorer=SCORER,
        version=VERSION,
        settings=compact_json(COEFFICIENTS),
    )


def decide_minimality(scores: Sequence[Score], settings: MinimalitySettings) -> Rejection | None:
    """Reject a pair whose minimality is below the limit, if one is set."""
    limit = settings.min_minimality
    if limit is None:
        return None
    value = value_of(scores, MINIMALITY)
    if value is not None and value >= limit:
        return None
    return Rejection(reason="not_minimal", value=value, threshold=limit, detail=MINIMALITY)
