"""A probe that knows no false caption: a model of words says which of two captions is likelier.

It is a trigram model of the true captions of other images, with stupid backoff (Brants et al. 2007,
"Large language models in machine translation"), so that it needs no language model from elsewhere.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from eqforge.evaluation.shortcuts.audit import Judge, Question, split_folds
from eqforge.evaluation.shortcuts.probes import words_of

_ORDER = 3
_BACKOFF = 0.4


def likelihood_judge(folds: int) -> Judge:
    """Returns the judge; it learns from the true captions of the other folds alone.

    Args:
      folds: number of folds the images are split into.
    """

    def margins(question: Question) -> npt.NDArray[np.float64]:
        found = np.zeros(len(question.right))
        for train, test in split_folds(question.images, folds):
            model = WordModel([question.right[i] for i in train])
            for i in test:
                found[i] = model.score(question.right[i]) - model.score(question.wrong[i])
        return found.round(9)

    # It is not trained on what it is asked, but its folds share captions.
    return Judge(margins=margins)


class WordModel:
    """Scores texts by their words, each after the two before it.

    Args:
      texts: what it learns from.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._counts: Counter[tuple[str, ...]] = Counter()
        for text in texts:
            words = _ended(text)
            for size in range(_ORDER + 1):
                self._counts.update(
                    tuple(words[i : i + size]) for i in range(len(words) - max(size, 1) + 1)
                )

    def score(self, text: str) -> float:
        """Returns the logarithm of the score of a text, in nats."""
        words = _ended(text)
        return sum(
            self._word(tuple(words[max(0, i - _ORDER + 1) : i + 1])) for i in range(1, len(words))
        )

    def _word(self, words: tuple[str, ...]) -> float:
        """Returns the logarithm of the score of the last of some words after the others."""
        penalty = 0.0
        while len(words) > 1 and not self._counts[words]:
            words, penalty = words[1:], penalty + math.log(_BACKOFF)
        count, of = self._counts[words], self._counts[words[:-1]]
        return penalty + math.log(count / of if count else 0.5 / (of + 1))


def _ended(text: str) -> list[str]:
    return ["^", *words_of(text), "$"]
