"""Fits the probability that a text is right to what judges say of it.

Each text has a curve of its own, and a row is right where both of its texts are. Checks are on
folds of pictures that a curve had not seen.

Source: Platt 1999, "Probabilistic outputs for support vector machines" (logistic); Zadrozny and
  Elkan 2002, "Transforming classifier scores into accurate multiclass probability estimates"
  (isotonic); Naeini et al. 2015, "Obtaining well calibrated probabilities using Bayesian binning"
  (expected calibration error).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from eqforge.core.errors import InputError, MissingExtra
from eqforge.core.identity import sample_rank
from eqforge.core.late import numpy as np
from eqforge.evaluation.calibration.rows import LabelledRow
from eqforge.evaluation.statistics.bootstrap import percentile_interval, resample_means
from eqforge.schemas.records.judgements import QUESTIONS, Part, features_of
from eqforge.sources.calibration import Calibration, Check, Curve

if TYPE_CHECKING:
    from numpy.typing import NDArray

Method = Literal["logistic", "isotonic"]
PARTS: Final[tuple[Part, ...]] = ("hard_positive", "hard_negative")
ROWS: Final = "rows"
_BINS: Final = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class FitSettings:
    """How curves are fitted and checked.

    Attributes:
      method: of the curves.
      folds: how many the pictures are dealt into, at least 2.
      resamples: how often the bootstrap draws.
      seed: of the draws.
    """

    method: Method = "logistic"
    folds: int = 5
    resamples: int = 1000
    seed: int = 0


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Examples:
    """Labelled texts that all judges answered about.

    Attributes:
      features: log-odds, float64 of shape (texts, questions).
      right: whether each is right, bool of shape (texts,).
      place: of each text's row among all, int64 of shape (texts,).
    """

    features: NDArray[np.float64]
    right: NDArray[np.bool_]
    place: NDArray[np.int64]


def fit(rows: Sequence[LabelledRow], settings: FitSettings) -> Calibration:
    """Returns the calibration that labelled rows give, with its checks.

    Args:
      rows: in the order of their ids.
      settings: how.

    Raises:
      InputError: there are labels of too few pictures, or none of one of the texts.
      MissingExtra: scikit-learn is not installed.
    """
    folds = _folds(rows, settings.folds)
    images = np.array([each.row.image for each in rows])
    curves: dict[str, Curve] = {}
    checks: dict[str, Check] = {}
    product, all_right = np.ones(len(rows)), np.ones(len(rows), dtype=bool)
    for part in PARTS:
        questions = _questions(rows, part)
        examples = _examples(rows, part, questions)
        if not len(examples.right):
            raise InputError(
                f"no label is of a {part.replace('_', ' ')} that all judges answered about"
            )
        curves[part] = _curve(examples.features, examples.right, questions, settings.method)
        given = _out_of_fold(examples, folds[examples.place], questions, settings.method)
        checks[part] = _check(given, examples.right, images[examples.place], settings)
        unknown = np.full(len(rows), np.nan)
        unknown[examples.place] = given
        product *= unknown
        all_right[examples.place] &= examples.right
    known = ~np.isnan(product)
    if known.any():
        checks[ROWS] = _check(product[known], all_right[known], images[known], settings)
    return Calibration(
        judges=list(dict.fromkeys(by for curve in curves.values() for by, _ in curve.questions)),
        method=settings.method,
        hard_positive=curves["hard_positive"],
        hard_negative=curves["hard_negative"],
        checks=checks,
    )


def _folds(rows: Sequence[LabelledRow], folds: int) -> NDArray[np.int64]:
    """Returns the fold of each row; the rows of a picture share one."""
    images = sorted({each.row.image for each in rows}, key=lambda name: (sample_rank(name), name))
    if len(images) < folds:
        raise InputError(
            f"labels of {len(images):,} pictures whose texts the dataset has: expected "
            f"{folds:,} at least, the number of --folds"
        )
    fold_of = {name: place % folds for place, name in enumerate(images)}
    return np.array([fold_of[each.row.image] for each in rows])


def _questions(rows: Sequence[LabelledRow], part: Part) -> list[tuple[str, str]]:
    """Returns judge and question of every answer that speaks of a text."""
    said = (answer for each in rows for answer in each.row.answers)
    found = ((each.by, each.question) for each in said if QUESTIONS[each.question].part == part)
    return list(dict.fromkeys(found))


def _examples(
    rows: Sequence[LabelledRow], part: Part, questions: Sequence[tuple[str, str]]
) -> _Examples:
    found = [
        (given, right, place)
        for place, each in enumerate(rows)
        if (right := each.label.is_right(part)) is not None
        and (given := features_of(each.row.answers, questions)) is not None
    ]
    features = np.array([each for each, _, _ in found], dtype=np.float64)
    return _Examples(
        features=features.reshape(len(found), len(questions)),
        right=np.array([right for _, right, _ in found], dtype=bool),
        place=np.array([place for _, _, place in found], dtype=np.int64),
    )


def _curve(
    features: NDArray[np.float64],
    right: NDArray[np.bool_],
    questions: list[tuple[str, str]],
    method: Method,
) -> Curve:
    try:
        from sklearn.isotonic import IsotonicRegression
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise MissingExtra("scikit-learn", "text") from error
    count, hits = len(right), int(right.sum())
    if hits in (0, count) or not questions:  # nothing to tell apart: Laplace's rule of succession
        bias = math.log((hits + 1) / (count - hits + 1))
        return Curve(questions=questions, weights=[0.0] * len(questions), bias=bias)
    if method == "isotonic":
        least = 1 / (count + 2)  # as above: no count of labels makes sure
        steps: Any = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip")
        steps.fit(features.mean(axis=1), right.astype(float))
        return Curve(
            questions=questions,
            at=steps.X_thresholds_.tolist(),
            steps=steps.y_thresholds_.tolist(),
        )
    model: Any = LogisticRegression(max_iter=1000).fit(features, right)
    return Curve(
        questions=questions, weights=model.coef_[0].tolist(), bias=float(model.intercept_[0])
    )


def _out_of_fold(
    examples: _Examples,
    folds: NDArray[np.int64],
    questions: list[tuple[str, str]],
    method: Method,
) -> NDArray[np.float64]:
    """Returns the probability of each text by a curve that was fitted without its fold."""
    given = np.empty(len(examples.right))
    for fold in np.unique(folds):
        held = folds == fold
        curve = _curve(examples.features[~held], examples.right[~held], questions, method)
        given[held] = [curve.of(row) for row in examples.features[held].tolist()]
    return given


def _check(
    given: NDArray[np.float64],
    right: NDArray[np.bool_],
    images: NDArray[np.str_],
    settings: FitSettings,
) -> Check:
    errors = (given - right) ** 2
    drawn = resample_means(errors, images, seed=settings.seed, resamples=settings.resamples)
    return Check(
        rows=len(right),
        right=int(right.sum()),
        brier=float(errors.mean()),
        brier_interval=drawn.interval(),
        brier_of_share=float(right.mean() * (1 - right.mean())),
        ece=calibration_error(given, right),
        ece_interval=_error_interval(given, right, images, settings),
    )


def calibration_error(given: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Returns the expected calibration error over ten bins of equally many texts."""
    order = np.argsort(given, kind="stable")
    bins = np.array_split(order, min(_BINS, len(order)))
    return float(sum(abs((given[one] - right[one]).sum()) for one in bins) / len(order))


def _error_interval(
    given: NDArray[np.float64],
    right: NDArray[np.bool_],
    images: NDArray[np.str_],
    settings: FitSettings,
) -> tuple[float, float]:
    """Returns the basic bootstrap interval: that of percentiles would lie too high.

    Every sample has errors of its own, so that the error of a resample is above that of the whole.
    """
    _, number = np.unique(images, return_inverse=True)
    places = [np.flatnonzero(number == each) for each in range(number.max() + 1)]
    rng = np.random.default_rng(settings.seed)
    draws = np.empty(settings.resamples)
    for each in range(settings.resamples):
        drawn = np.concatenate([places[one] for one in rng.integers(len(places), size=len(places))])
        draws[each] = calibration_error(given[drawn], right[drawn])
    low, high = percentile_interval(draws)
    whole = calibration_error(given, right)
    return max(0.0, 2 * whole - high), max(0.0, 2 * whole - low)
