"""Fits the minimality score to pairs judged by eye, and prints how well it agrees with them.

    python -m tools.fit_minimality tests/transforms/filters/labels/pairs.csv

fits on the clips of the half "choose", and compares the default limit and the one with the best F1
score there with 2-30% changed area, on both halves. The intervals are of 1,000 bootstrap
samples of clips.
"""

import argparse
import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from eqforge.pipelines.eq_video import EqVideo
from eqforge.transforms.filters.minimality_score import COEFFICIENTS, features, minimality_of

NOT_MEASURES: Final = ("clip", "half", "label_1", "label_2")
DRAWS: Final = 1000
Values = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def read_pairs(table: Path) -> list[dict[str, str]]:
    with open(table, newline="") as file:
        return list(csv.DictReader(file))


def measures_of(row: dict[str, str]) -> dict[str, float | None]:
    return {
        name: float(value) if value else None
        for name, value in row.items()
        if name not in NOT_MEASURES
    }


def fit(rows: Sequence[dict[str, str]], minimal: Mask) -> dict[str, float]:
    """Return coefficients of a logistic regression on standardised features (L2, C = 1)."""
    from sklearn.linear_model import LogisticRegression

    names = list(COEFFICIENTS)[1:]
    values = np.array([[features(measures_of(row))[name] for name in names] for row in rows])
    mean, spread = values.mean(axis=0), values.std(axis=0)
    model = LogisticRegression(C=1.0).fit((values - mean) / spread, minimal)
    slopes = model.coef_[0] / spread
    constant = float(model.intercept_[0] - slopes @ mean)
    return {"constant": constant} | dict(zip(names, map(float, slopes), strict=True))


def precision(kept: Values, minimal: Mask) -> float:
    return float(minimal[kept > 0].mean()) if (kept > 0).any() else 0.0


def recall(kept: Values, minimal: Mask) -> float:
    return float((kept[minimal] > 0).mean())


def area_under_curve(scores: Values, minimal: Mask) -> float:
    gaps = scores[minimal][:, None] - scores[~minimal][None, :]
    return float(np.mean((gaps > 0) + (gaps == 0) / 2))


def f1(kept: Values, minimal: Mask) -> float:
    return float(2 * (kept * minimal).sum() / (kept.sum() + minimal.sum()))


def with_interval(
    metric: Callable[[Values, Mask], float], values: Values, minimal: Mask, clips: Sequence[str]
) -> str:
    """Return a metric with its 95% interval; clips are drawn with replacement."""
    rng = np.random.default_rng(0)
    names = sorted(set(clips))
    of_clip = [np.flatnonzero(np.array(clips) == name) for name in names]
    drawn = []
    for _ in range(DRAWS):
        some = np.concatenate([of_clip[n] for n in rng.integers(len(names), size=len(names))])
        if 0 < minimal[some].sum() < len(some):
            drawn.append(metric(values[some], minimal[some]))
    low, high = np.percentile(drawn, [2.5, 97.5])
    return f"{metric(values, minimal):.2f} ({low:.2f}-{high:.2f})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the coefficients and the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("table", type=Path, help="pairs with their measures and two labels")
    rows = read_pairs(parser.parse_args(arguments).table)
    half = np.array([row["half"] for row in rows])
    minimal = np.array([row["label_1"] == row["label_2"] == "1" for row in rows])
    chosen = [row for row in rows if row["half"] == "choose"]
    print({name: round(value, 4) for name, value in fit(chosen, minimal[half == "choose"]).items()})

    scores = np.array([minimality_of(measures_of(row)) for row in rows])
    area = np.array([float(row["changed_area_fraction"]) for row in rows])
    band = ((area >= 0.02) & (area <= 0.3)).astype(float)
    on = half == "choose"
    limit = max(np.unique(scores[on]), key=lambda at: f1((scores[on] >= at) * 1.0, minimal[on]))
    print(f"limit with the best F1 score on the half to choose: {limit:.3f}")
    default = EqVideo.minimal.min_minimality
    assert default is not None
    for name in ("choose", "judge"):
        on = half == name
        clips = [row["clip"] for row in rows if row["half"] == name]
        print(f"{name}: {on.sum()} pairs of {len(set(clips))} clips, {minimal[on].sum()} minimal")
        for title, ranks, keeps in (
            ("2-30% of the area", -np.abs(area - 0.12), band),
            *((f"minimality {at:.2f}", scores, (scores >= at) * 1.0) for at in (default, limit)),
        ):
            figures = [
                with_interval(metric, values[on], minimal[on], clips)
                for metric, values in (
                    (precision, keeps), (recall, keeps), (area_under_curve, ranks),
                )
            ]  # fmt: skip
            print(f"  {title}: precision, recall, AUC " + ", ".join(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
