"""All that captions are judged by without a picture."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from eqforge.core.errors import MissingExtra
from eqforge.core.word_model import WordModel
from eqforge.evaluation.shortcuts import transformer
from eqforge.evaluation.shortcuts.probes import PROBES, Clue, clues, train_and_judge

WITH_CLUES = ("words", "letters")
"""Probes of which the report names what they go by."""

Numbers = npt.NDArray[np.float64]
Texts = tuple[Sequence[str], Sequence[str]]
"""True and false captions, in pairs."""

Contrast = Literal["negative", "hard_positive_or_negative", "hard_positive"]
CONTRASTS: dict[Contrast, tuple[str, str, str]] = {
    "negative": ("positive", "negative", "Which is true, the positive or the negative?"),
    "hard_positive_or_negative": (
        "hard_positive",
        "negative",
        "Which is true, the hard positive or the negative?",
    ),
    "hard_positive": (
        "positive",
        "hard_positive",
        "Which is the original, the positive or the hard positive?",
    ),
}
"""The questions put to a probe: the right caption, the wrong one, and the question in words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """The true and the false captions of one contrast, in pairs, with the number of their image."""

    contrast: Contrast
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    images: npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Judge:
    """Answers a question.

    Attributes:
      margins: returns by how much the right caption looks truer [pairs]: above 0 where the judge is
        right, 0 for a tie.
      widening: factor on the standard deviation of the accuracy, at least 1. Cross-validated
        judgements are not independent: a plain bootstrap missed chance one time in five instead
        of one in twenty.
    """

    margins: Callable[[Question], Numbers]
    widening: float = 1.0
    clues: Callable[[Question], tuple[Clue, ...]] = lambda question: ()


def blind_judges(folds: int = 5) -> dict[str, Judge]:
    """Returns the judges by name, the transformer where torch is installed."""
    judges = probe_judges(folds=folds) | {"likelihood": likelihood_judge(folds)}
    return judges | ({"transformer": transformer_judge(folds)} if transformer.can_train() else {})


def unasked() -> Iterator[str]:
    """Yields the judges that this machine cannot ask, with the reason."""
    if not transformer.can_train():
        yield "transformer: torch is not installed, of the extra 'models'"


def probe_judges(probes: Sequence[str] = tuple(PROBES), folds: int = 5) -> dict[str, Judge]:
    """Returns the judges that are trained on the pairs themselves, by cross-validation.

    A probe judges each fold after training on the others, never an image it was trained on.
    """
    return {
        probe: Judge(
            margins=_by_folds(partial(train_and_judge, probe), folds),
            widening=widening(folds),
            clues=partial(_clues, probe),
        )
        for probe in probes
    }


def _clues(probe: str, question: Question) -> tuple[Clue, ...]:
    return clues(probe, question.right, question.wrong) if probe in WITH_CLUES else ()


def likelihood_judge(folds: int) -> Judge:
    """Returns a judge that knows no false caption: of two, that is true which is likelier.

    It is a model of words that learns from the true captions of the other folds alone, so that it
    needs no language model from elsewhere.
    """

    def margins(train: Texts, test: Texts) -> Numbers:
        model = WordModel()
        model.learn(train[0])
        right, wrong = ([model.score(text) for text in texts] for texts in test)
        return np.subtract(right, wrong).round(9)

    # It is not trained on what it is asked, but its folds share captions.
    return Judge(margins=_by_folds(margins, folds))


def transformer_judge(folds: int) -> Judge:
    """Returns the judge that reads whole captions, which is trained by cross-validation."""
    return Judge(margins=_by_folds(transformer.train_and_judge, folds), widening=widening(folds))


def _by_folds(
    judge: Callable[[Texts, Texts], Numbers], folds: int
) -> Callable[[Question], Numbers]:
    """Returns what judges each fold after training on the others."""

    def margins(question: Question) -> Numbers:
        found = np.zeros(len(question.right))
        for places in split_folds(question.images, folds):
            train, test = (
                ([question.right[i] for i in some], [question.wrong[i] for i in some])
                for some in places
            )
            found[places[1]] = judge(train, test)
        return found

    return margins


def widening(folds: int) -> float:
    """Returns the factor on the standard deviation of a mean over folds, which are not independent.

    Source: Nadeau and Bengio 2003, "Inference for the generalization error", for the factor
      1 + k * test / train on the variance of a mean over k folds.
    """
    return (1 + folds / (folds - 1)) ** 0.5


def split_folds(
    groups: npt.NDArray[Any], folds: int
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Yields the places to train on, and those to judge, for each fold; no group is in both.

    Args:
      groups: the group of each place [n], such as its image.
      folds: number of folds, at most as many as there are groups.

    Raises:
      MissingExtra: scikit-learn is not installed.
    """
    try:
        from sklearn.model_selection import GroupKFold
    except ImportError as error:
        raise MissingExtra("scikit-learn", "text") from error
    yield from GroupKFold(n_splits=folds).split(groups, groups=groups)
