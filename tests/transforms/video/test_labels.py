"""Pairs of real clips, judged by eye, against what is measured on them.

labels/pairs.csv has the measures that `python -m tools.video_pairs` writes, and the label
`minimal`: 1 where the scene is the same and something that a caption can name has changed. A
language model judged the pairs on the sheets. `again` is its label of a second look at 83 of them,
in another order; 81 are equal.
"""

import csv
from pathlib import Path

import numpy as np
import pytest

from eqforge.core.identity import sha256_hex

LABELS = Path(__file__).parent / "labels/pairs.csv"
MIDDLE = 0.12
"""The changed area that minimal pairs lie around."""


@pytest.fixture(scope="module")
def labels() -> list[dict[str, str]]:
    with open(LABELS, newline="") as file:
        return list(csv.DictReader(file))


def area_under_curve(rows: list[dict[str, str]], measure: str) -> float:
    """Return how often a minimal pair lies nearer to the middle than another; ties count half."""
    distances = {
        label: np.array([distance(row, measure) for row in rows if row["minimal"] == label])
        for label in "01"
    }
    gaps = distances["0"][:, None] - distances["1"][None, :]
    return float(np.mean((gaps > 0) + (gaps == 0) / 2))


def distance(row: dict[str, str], measure: str) -> float:
    return abs(float(row[measure]) - MIDDLE) if row[measure] else 1.0


def test_halves_are_of_whole_clips_and_two_looks_agree(labels: list[dict[str, str]]) -> None:
    again = [row for row in labels if row["again"]]
    assert (len(labels), len({row["clip"] for row in labels})) == (149, 28)
    assert (len(again), sum(row["minimal"] == row["again"] for row in again)) == (83, 81)
    for row in labels:
        is_odd = int(sha256_hex(row["clip"].encode()), 16) % 2
        assert row["half"] == ("judge" if is_odd else "choose")


@pytest.mark.parametrize("half", ["choose", "judge"])
def test_the_registered_change_says_more_than_the_plain_one(
    labels: list[dict[str, str]], half: str
) -> None:
    rows = [row for row in labels if row["half"] == half]
    plain, registered = (
        area_under_curve(rows, measure)
        for measure in ("changed_area_fraction", "registered_changed_area")
    )
    assert registered > 0.7
    assert registered > plain + 0.05
