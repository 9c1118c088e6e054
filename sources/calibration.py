"""Reads a file that turns what judges say into the probability that a row is right.

`eqforge calibrate` writes it; it is small, and holds no text.
"""

import bisect
import itertools
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.typed_json import decode, read_bytes
from eqforge.schemas.records.judgements import JudgeAnswer, features_of

FORMAT: Final = "eqforge calibration"
VERSION: Final = 1


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """How the answers about one text become a probability.

    Attributes:
      questions: judge and question of each answer, in the order of the weights.
      weights, bias: of the logistic function of the answers' log-odds; unused with steps.
      at, steps: isotonic: the mean of the log-odds and the probability there, both rising; between
        them it is interpolated. Empty where the function is logistic.
    """

    questions: list[tuple[str, str]]
    weights: list[float] = []
    bias: float = 0.0
    at: list[float] = []
    steps: list[float] = []

    def of(self, features: Sequence[float]) -> float:
        """Returns the probability for log-odds in the order of the questions."""
        if self.at:
            return _interpolated(sum(features) / len(features), self.at, self.steps)
        odds = self.bias + sum(w * x for w, x in zip(self.weights, features, strict=True))
        return 1 / (1 + math.exp(-odds)) if odds > -700 else 0.0

    def probability(self, answers: Iterable[JudgeAnswer]) -> float | None:
        """Returns the probability that a text is right; None where an answer is missing."""
        features = features_of(answers, self.questions)
        return None if features is None else self.of(features)


def _interpolated(x: float, at: Sequence[float], steps: Sequence[float]) -> float:
    place = bisect.bisect_right(at, x)
    if place in (0, len(at)):
        return steps[0] if place == 0 else steps[-1]
    left, right = at[place - 1], at[place]
    share = (x - left) / (right - left)
    return steps[place - 1] + share * (steps[place] - steps[place - 1])


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """How good probabilities were on labels that the curve had not seen.

    Attributes:
      rows, right: how many were labelled, and how many of them are right.
      brier: mean squared difference of probability and label.
      brier_interval: of 95 %, from resampled images.
      brier_of_share: of the share that is right, given to all: what a curve has to beat.
      ece: expected calibration error: over ten bins of equally many rows, the mean difference of
        mean probability and share.
      ece_interval: as above.
    """

    rows: int
    right: int
    brier: float
    brier_interval: tuple[float, float]
    brier_of_share: float
    ece: float
    ece_interval: tuple[float, float]


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """Curves for both texts of a row, and how good they were.

    Attributes:
      judges: kind, model and revision of each judge.
      method: of the curves.
      hard_positive, hard_negative: the curves.
      checks: on folds that a curve had not seen: of either text, and of rows.
    """

    format: str = FORMAT
    version: int = VERSION
    judges: list[str]
    method: Literal["logistic", "isotonic"]
    hard_positive: Curve
    hard_negative: Curve
    checks: dict[str, Check] = {}

    def curve(self, part: str) -> Curve | None:
        """Returns the curve of a text; None of an original, which is right."""
        return {"hard_positive": self.hard_positive, "hard_negative": self.hard_negative}.get(part)


def read_calibration(path: Path) -> Calibration:
    """Reads a calibration.

    Raises:
      InputError: the file is none, or does not hang together.
    """
    found = decode(read_bytes(path), Calibration, str(path))
    if (found.format, found.version) != (FORMAT, VERSION):
        raise InputError(f"{path}: expected format {FORMAT} {VERSION}, as eqforge calibrate writes")
    for name in ("hard_positive", "hard_negative"):
        _check(getattr(found, name), f"{path}: {name}")
    return found


def calibration_json(calibration: Calibration) -> bytes:
    """Returns the file of a calibration."""
    return msgspec.json.format(msgspec.json.encode(calibration), indent=1) + b"\n"


def _check(curve: Curve, where: str) -> None:
    numbers = [*curve.weights, curve.bias, *curve.at, *curve.steps]
    if not all(map(math.isfinite, numbers)):
        raise InputError(f"{where}: expected finite numbers")
    if not curve.at and len(curve.weights) != len(curve.questions):
        raise InputError(f"{where}: expected a weight for each of its questions")
    if len(curve.at) != len(curve.steps) or any(a >= b for a, b in itertools.pairwise(curve.at)):
        raise InputError(f"{where}: expected as many steps as places, and these rising")
    if not all(0 <= step <= 1 for step in curve.steps):
        raise InputError(f"{where}: steps: expected probabilities from 0 to 1")
    if curve.at and not curve.questions:
        raise InputError(f"{where}: questions: expected at least one")
