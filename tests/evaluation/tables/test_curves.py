"""Notes and numbers of fitted curves, of judgements whose shares by size are known."""

from types import MappingProxyType

import numpy as np
import pytest

from eqforge.evaluation.tables.render import Measure, Rules
from eqforge.evaluation.tables.report import Judged
from eqforge.evaluation.tasks import ladders

SIZES = np.array([1.0, 2.0, 3.0])
EACH = 300


def fitted(shares: tuple[float, float, float]) -> tuple[dict[str, Measure], list[str]]:
    """The numbers of a model that is right in these shares, and the notes on them."""
    place = np.repeat(np.arange(len(SIZES)), EACH)
    right = np.concatenate([np.arange(EACH) < round(share * EACH) for share in shares])
    judged = Judged(
        credits={"right": right.astype(np.float64)},
        tied=None,
        chance=MappingProxyType({"right": 0.5}),
        clusters=np.tile(np.arange(EACH) // 2, len(SIZES)),
        expected=len(right),
    )
    said: list[str] = []
    at = place[:, None] == np.arange(len(SIZES))
    rules = Rules(resamples=200)
    curve = ladders.fitted("m", "all", "right", judged, at, SIZES, rules, said)
    return {one.metric: one for one in curve}, said


@pytest.mark.parametrize(
    ("shares", "notes"),
    [
        ((0.6, 0.85, 0.9), []),
        ((0.51, 0.52, 0.53), ["75% is not reached at 3"]),
        (
            (0.95, 0.97, 0.98),
            ["75% is already reached at 1, so the threshold is at most this large"],
        ),
        ((0.5, 1.0, 1.0), ["the curve is a step, so its slope is unknown"]),
    ],
)
def test_what_cannot_be_told_is_a_note(
    shares: tuple[float, float, float], notes: list[str]
) -> None:
    _, said = fitted(shares)
    assert said == [f"m, all, right: {note}" for note in notes]


def test_a_share_that_falls_is_off_the_curve() -> None:
    _, said = fitted((0.95, 0.8, 0.6))
    assert any("the curve does not fit: at 3 it predicts" in note for note in said)


def test_numbers_follow_the_shares() -> None:
    found, _ = fitted((0.6, 0.85, 0.9))
    assert 1 < found["right threshold"].value < 2
    assert found["right threshold"].low < found["right threshold"].high
    assert found["right at largest"].value == pytest.approx(0.9, abs=0.05)
    none, _ = fitted((0.51, 0.52, 0.53))
    assert np.isinf(none["right threshold"].value)
