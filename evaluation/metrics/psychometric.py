"""A psychometric function: how the share of right answers rises with the size of a change.

One of two captions is true, so guessing is right half the time. For a change of size d the
share of right answers is 1/2 + (1/2 - lapses) F(d), where F is a logistic function of log2 d, so
that a change of size 0 is at chance. The fitted share never falls.

Source: Wichmann and Hill 2001, "The psychometric function: I. Fitting, sampling, and goodness of
  fit", Perception & Psychophysics 63: maximum likelihood, lapses of at most 6%.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

GUESS: Final = 0.5
REACHED: Final = 0.75
"""Share of right answers at the threshold: halfway between guessing and knowing."""

_LEAST: Final = (-100.0, 0.0, 0.0)
_MOST: Final = (100.0, 20.0, 0.06)
_RISES: Final = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
_ODDS: Final = (-8.0, -3.0, -1.0, 0.0, 1.0, 3.0, 8.0)
_STEPS: Final = 100
_SATURATED: Final = 0.01
_STEEPEST: Final = 10.0
"""Limit of the rise; steeper curves are steps between two sizes, which answers cannot measure."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Curves:
    """Psychometric functions fitted to answers to the same questions, such as resamples.

    Attributes:
      offset: log-odds of F at size `middle` [curves].
      rise: increase of the log-odds when the size doubles, at least 0 [curves].
      lapses: share of wrong answers that remains, however large the change [curves].
      smallest, largest: the range of fitted sizes [curves].
    """

    middle: float
    offset: NDArray[np.float64]
    rise: NDArray[np.float64]
    lapses: NDArray[np.float64]
    smallest: NDArray[np.float64]
    largest: NDArray[np.float64]

    def share(self, size: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Return each curve's share of right answers [curves] at one size or a size per curve."""
        return _share(self.offset + self.rise * np.log2(size / self.middle), self.lapses)[0]

    @property
    def thresholds(self) -> NDArray[np.float64]:
        """The size at which the share is REACHED [curves], within the measured sizes.

        Infinite if the largest size does not reach it; the smallest size if that reaches it.
        """
        part = (REACHED - GUESS) / (1 - GUESS - self.lapses)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            octaves = (np.log(part / (1 - part)) - self.offset) / self.rise
            inside = self.middle * 2**octaves
        at_once = self.share(self.smallest) >= REACHED
        never = self.share(self.largest) < REACHED
        return np.select([never, at_once], [np.inf, self.smallest], inside)

    @property
    def slopes(self) -> NDArray[np.float64]:
        """The rises [curves]; infinite for a step, NaN if all is guessed or known."""
        guessed = self.share(self.largest) < GUESS + _SATURATED
        known = self.share(self.smallest) > 1 - self.lapses - _SATURATED
        return np.select([guessed | known, self.rise >= _STEEPEST], [np.nan, np.inf], self.rise)


def fit_curves(sizes: NDArray[np.float64], right: NDArray[Any], trials: NDArray[Any]) -> Curves:
    """Return the likeliest curves, fitted all at once, as the bootstrap needs a thousand.

    Each fit starts from the two best curves of a grid, with few and with many lapses, since the
    likelihood can have two maxima, and keeps the better result. Steps are Fisher scoring with
    Levenberg-Marquardt damping, inside the bounds. Curves of fewer than two sizes are NaN.

    Args:
      sizes: of the changes [k], above 0, distinct.
      right: right answers at each size [curves, k]; a tie may count a fraction.
      trials: questions at each size [curves, k]; sizes without questions are ignored.
    """
    middle, total = float(np.exp(np.log(sizes).mean())), np.maximum(trials.sum(axis=1), 1)
    places = np.log2(sizes / middle)
    hits, misses = (part / total[:, None] for part in (right, trials - right))
    found = [_climb(start, places, hits, misses) for start in _starts(places, hits, misses)]
    best = np.argmin([loss for _, loss in found], axis=0)
    values = np.choose(best[:, None], [values for values, _ in found])
    values[(trials > 0).sum(axis=1) < 2] = np.nan
    ends = [np.where(trials > 0, sizes, empty) for empty in (np.inf, -np.inf)]
    return Curves(
        middle=middle,
        offset=values[:, 0],
        rise=values[:, 1],
        lapses=values[:, 2],
        smallest=ends[0].min(axis=1),
        largest=ends[1].max(axis=1),
    )


def _share(
    log_odds: NDArray[np.float64], lapses: NDArray[np.float64] | float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the share of right answers, clipped to exclude 0 and 1, and F."""
    known = 1 / (1 + np.exp(-log_odds))
    return np.clip(GUESS + (1 - GUESS - lapses) * known, 1e-12, 1 - 1e-12), known


def _starts(
    places: NDArray[np.float64], hits: NDArray[np.float64], misses: NDArray[np.float64]
) -> Iterator[NDArray[np.float64]]:
    """Yield the likeliest curve of a grid for few lapses, then for many [curves, 3]."""
    odds, rises, at = (axis.ravel() for axis in np.meshgrid(_ODDS, _RISES, places))
    for lapses in (0.0, 0.06):
        grid = np.stack([odds - rises * at, rises, np.full(at.size, lapses)], axis=1)
        share, _ = _share(grid[:, [0]] + grid[:, [1]] * places, lapses)
        likelihood = hits @ np.log(share).T + misses @ np.log1p(-share).T
        yield grid[likelihood.argmax(axis=1)]


def _climb(
    values: NDArray[np.float64],
    places: NDArray[np.float64],
    hits: NDArray[np.float64],
    misses: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the likeliest curves near given ones [curves, 3], and the loss of each [curves]."""
    damping = np.full(len(values), 1e-3)
    best = _loss(values, places, hits, misses)
    for _ in range(_STEPS):
        step = _step(values, places, hits, misses, damping)
        tried = np.clip(values + step, _LEAST, _MOST)
        found = _loss(tried, places, hits, misses)
        is_better = found < best
        values = np.where(is_better[:, None], tried, values)
        best = np.where(is_better, found, best)
        damping = np.clip(np.where(is_better, damping / 4, damping * 4), 1e-9, 1e9)
    return values, best


def _loss(
    values: NDArray[np.float64],
    places: NDArray[np.float64],
    hits: NDArray[np.float64],
    misses: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return minus the log-likelihood of each curve [curves]."""
    share, _ = _share(values[:, [0]] + values[:, [1]] * places, values[:, [2]])
    return -(hits * np.log(share) + misses * np.log1p(-share)).sum(axis=1)


def _step(
    values: NDArray[np.float64],
    places: NDArray[np.float64],
    hits: NDArray[np.float64],
    misses: NDArray[np.float64],
    damping: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return each curve's damped step [curves, 3]; parameters at a bound stay inside."""
    lapses = values[:, [2]]
    share, known = _share(values[:, [0]] + values[:, [1]] * places, lapses)
    by_odds = (1 - GUESS - lapses) * known * (1 - known)
    slopes = np.stack([by_odds, by_odds * places, -known], axis=2)  # of the share [curves, k, 3]
    gain = np.einsum("ck,ckp->cp", hits / share - misses / (1 - share), slopes)
    weight = (hits + misses) / (share * (1 - share))
    information = np.einsum("ck,ckp,ckq->cpq", weight, slopes, slopes)
    is_stuck = ((values <= _LEAST) & (gain < 0)) | ((values >= _MOST) & (gain > 0))
    is_free = ~is_stuck
    information *= is_free[:, :, None] & is_free[:, None, :]
    diagonal = np.einsum("cpp->cp", information)
    diagonal += damping[:, None] * (diagonal + 1e-6) + is_stuck + 1e-12
    return np.linalg.solve(information, (gain * is_free)[:, :, None])[:, :, 0]
