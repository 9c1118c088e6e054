"""The score of how minimal a pair is."""

import math

import pytest

from eqforge.schemas.records.scores import Score
from eqforge.transforms.filters import minimality_score as minimal
from eqforge.transforms.filters.minimality import PairMeasures

PLAIN = PairMeasures(
    changed_area_fraction=0.7,
    ssim=0.3,
    background_ssim=None,
    luminance_shift=9.0,
    phash_distance=96,
)


def scores(**values: float | None) -> list[Score]:
    return [
        Score(name=name, value=value, scorer="test", version="1", settings="{}")
        for name, value in values.items()
    ]


def test_the_score_is_defined_where_nothing_registers() -> None:
    found = minimal.score_minimality(
        PLAIN,
        scores(
            cut_histogram_change=0.1,
            registered_changed_area=None,
            registered_lightness_ssim=None,
            camera_rotation_deg=None,
            solid_changed_area=0.5,
        ),
    )
    area = math.log10(0.705)
    total = -8.46 - 0.04 * area - area**2 + 8.13 * 0.3 - 5.93 * 0.1 + 5.87 * 0.5 / 0.705
    assert found.value == pytest.approx(1 / (1 + math.exp(-total)), abs=1e-6)
    assert (found.name, found.scorer) == ("minimality", "eqforge.minimality")


def test_measures_after_registration_replace_the_plain_ones() -> None:
    found = minimal.score_minimality(
        PLAIN,
        scores(
            cut_histogram_change=0.1,
            registered_changed_area=0.1,
            registered_lightness_ssim=0.9,
            solid_changed_area=0.08,
        ),
    )
    area = math.log10(0.105)
    total = -8.46 - 0.04 * area - area**2 + 8.13 * 0.9 - 0.593 + 5.87 * 0.08 / 0.105
    assert found.value == pytest.approx(1 / (1 + math.exp(-total)), abs=1e-6)


@pytest.mark.parametrize("degrees", [-180.0, -90.0, 46.0, 179.9])
def test_a_camera_that_turns_far_shows_no_minimal_pair(degrees: float) -> None:
    turned = scores(cut_histogram_change=0.0, camera_rotation_deg=degrees)
    upright = scores(cut_histogram_change=0.0, camera_rotation_deg=44.0)
    assert minimal.score_minimality(PLAIN, turned).value == 0
    assert (minimal.score_minimality(PLAIN, upright).value or 0) > 0


def test_a_limit_rejects_lower_scores_only() -> None:
    settings = minimal.MinimalitySettings(min_minimality=0.18)
    assert minimal.decide_minimality(scores(minimality=0.18), settings) is None
    rejection = minimal.decide_minimality(scores(minimality=0.17), settings)
    assert rejection is not None
    assert (rejection.reason, rejection.value, rejection.threshold) == ("not_minimal", 0.17, 0.18)
    assert minimal.decide_minimality([], minimal.MinimalitySettings()) is None
