"""Pairs of real clips, judged by eye, against what is measured on them.

labels/pairs.csv has the measures that `python -m tools.video_pairs` writes, and two labels: 1 where
scene and camera position are the same, and something that a caption can name has changed and little
else. A language model judged each pair twice on sheets in two orders, within an hour.
"""

from pathlib import Path

import numpy as np
import pytest

from eqforge.core.identity import sha256_hex
from eqforge.transforms.filters.minimality_score import COEFFICIENTS, minimality_of
from tools import fit_minimality

LABELS = Path(__file__).parent / "labels/pairs.csv"
Row = dict[str, str]


@pytest.fixture(scope="module")
def labels() -> list[Row]:
    return fit_minimality.read_pairs(LABELS)


def is_minimal(row: Row) -> bool:
    return row["label_1"] == row["label_2"] == "1"


def scores_of(rows: list[Row], label: bool) -> list[float]:
    return [
        minimality_of(fit_minimality.measures_of(row)) for row in rows if is_minimal(row) == label
    ]


def test_halves_are_of_whole_clips_and_two_readings_agree(labels: list[Row]) -> None:
    assert (len(labels), len({row["clip"] for row in labels})) == (654, 42)
    for row in labels:
        is_odd = int(sha256_hex(row["clip"].encode()), 16) % 2
        assert row["half"] == ("judge" if is_odd else "choose")
    readings = np.array([[int(row["label_1"]), int(row["label_2"])] for row in labels])
    agreed = np.mean(readings[:, 0] == readings[:, 1])
    shares = readings.mean(axis=0)
    by_chance = np.prod(shares) + np.prod(1 - shares)
    assert agreed == pytest.approx(0.988, abs=0.001)
    assert (agreed - by_chance) / (1 - by_chance) == pytest.approx(0.968, abs=0.001)


@pytest.mark.parametrize(
    ("half", "precision", "recall", "area"),
    [("choose", 0.49, 0.92, 0.92), ("judge", 0.67, 0.62, 0.82)],
)
def test_the_page_states_how_well_minimality_agrees_with_people(
    labels: list[Row], half: str, precision: float, recall: float, area: float
) -> None:
    rows = [row for row in labels if row["half"] == half]
    good, bad = (np.array(scores_of(rows, label)) for label in (True, False))
    kept, wrong = (good >= 0.18).sum(), (bad >= 0.18).sum()
    assert kept / (kept + wrong) == pytest.approx(precision, abs=0.006)
    assert kept / len(good) == pytest.approx(recall, abs=0.006)
    # An independent formula of the AUC: Mann and Whitney's, by ranks.
    ranks = np.argsort(np.argsort(np.concatenate([good, bad]))) + 1
    wins = ranks[: len(good)].sum() - len(good) * (len(good) + 1) / 2
    assert wins / len(good) / len(bad) == pytest.approx(area, abs=0.006)


def test_minimality_keeps_fewer_wrong_pairs_than_the_changed_area_at_about_its_recall(
    labels: list[Row],
) -> None:
    rows = [row for row in labels if row["half"] == "judge"]
    minimal = np.array([is_minimal(row) for row in rows])
    score = np.array([minimality_of(fit_minimality.measures_of(row)) for row in rows])
    changed = np.array([float(row["changed_area_fraction"]) for row in rows])
    band = (changed >= 0.02) & (changed <= 0.3)
    assert minimal[score >= 0.18].mean() > minimal[band].mean() + 0.2
    assert (score >= 0.18)[minimal].mean() > band[minimal].mean() - 0.06


def test_the_tool_fits_the_stored_coefficients(
    labels: list[Row], capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = [row for row in labels if row["half"] == "choose"]
    fitted = fit_minimality.fit(chosen, np.array([is_minimal(row) for row in chosen]))
    assert fitted == pytest.approx(COEFFICIENTS, abs=0.02)
    assert fit_minimality.main([str(LABELS)]) == 0
    assert "judge: 287 pairs of 19 clips, 93 minimal" in capsys.readouterr().out
