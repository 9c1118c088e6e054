"""How often intervals of thresholds and slopes hold those of simulated models: a table.

Example:
    python -m tests.evaluation.metrics.coverage
"""

import numpy as np

from eqforge.evaluation.metrics.psychometric import fit_curves

SIZES = np.array([1.0, 2.0, 3.0])
PER_IMAGE = 3
CURVES = (
    (-1.0, 2.0, 0.0),
    (-1.0, 2.0, 0.03),
    (-1.0, 2.0, 0.06),
    (-2.5, 3.0, 0.02),
    (-1.0, 0.7, 0.02),
    (-4.0, 6.0, 0.02),
)
"""Offset at the size 1, rise, and lapses; the threshold of each lies between 1 and 3."""


def coverage(
    curve: tuple[float, float, float], ladders: int, times: int, draws: int
) -> tuple[float, float]:
    """Returns the share of intervals that hold the threshold, and of those that hold the slope.

    Args:
      curve: of the model, as in CURVES.
      ladders: of three levels each; an image has three, which are drawn together.
      times: experiments.
      draws: resamples of each.
    """
    offset, rise, lapses = curve
    rng = np.random.default_rng(1)
    share = 0.5 + (0.5 - lapses) / (1 + np.exp(-(offset + rise * np.log2(SIZES))))
    right = rng.random((times, ladders, len(SIZES))) < share
    images = right.reshape(times, -1, PER_IMAGE, len(SIZES)).sum(axis=2)
    number = images.shape[1]
    drawn = rng.multinomial(number, np.full(number, 1 / number), (times, draws)) @ images
    found = fit_curves(SIZES, drawn.reshape(-1, len(SIZES)), np.full((times * draws, 3), ladders))
    log_odds = -np.log((0.5 - lapses) / 0.25 - 1)
    known = 2 ** ((log_odds - offset) / rise), rise
    held = []
    for values, truth in zip((found.thresholds, found.slopes), known, strict=True):
        low, high = np.nanquantile(
            values.reshape(times, draws), [0.025, 0.975], axis=1, method="closest_observation"
        )
        held.append(float(((low <= truth) & (truth <= high)).mean()))
    return held[0], held[1]


def main() -> None:
    print("offset  rise  lapses  ladders  threshold   slope")
    for ladders in (120, 600):
        for curve in CURVES:
            threshold, slope = coverage(curve, ladders, times=400, draws=200)
            offset, rise, lapses = curve
            print(
                f"{offset:6.1f}{rise:6.1f}{lapses:8.2f}{ladders:9}{threshold:11.1%}{slope:8.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
