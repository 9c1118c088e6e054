"""The probes: small models that see two captions and no image, and pick the true one.

Every probe classifies the difference of two captions' features by logistic regression without an
intercept, so the order of the captions has no effect.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from eqforge.core.errors import importing
from eqforge.core.word_model import WORD

Matrix = Any
"""A NumPy array or SciPy sparse matrix of [captions, features], float64."""
Featurizer = Callable[[Sequence[str]], Matrix]
"""Turns captions into a matrix; fitted on the captions of the training folds."""

_CLUES = 10


def words_of(text: str) -> list[str]:
    return WORD.findall(text.lower())


def fit_length(texts: Sequence[str]) -> Featurizer:
    del texts

    def featurize(captions: Sequence[str]) -> Matrix:
        words = [words_of(caption) for caption in captions]
        characters = np.array([len(caption) for caption in captions], dtype=float)
        counts = np.array([len(found) for found in words], dtype=float)
        return np.column_stack([characters, counts, characters / np.maximum(counts, 1)])

    return featurize


def fit_rarity(texts: Sequence[str]) -> Featurizer:
    """Measure how rare the words are among all captions of the training folds, true and false.

    The features are the mean and lowest log frequency of the words, and the share of unseen words.
    """
    counts = Counter(word for text in texts for word in words_of(text))
    total = sum(counts.values()) + len(counts) + 1

    def featurize(captions: Sequence[str]) -> Matrix:
        rows = []
        for caption in captions:
            found = words_of(caption) or [""]
            logs = np.log([(counts[word] + 1) / total for word in found])
            unseen = sum(word not in counts for word in found) / len(found)
            rows.append([logs.mean(), logs.min(), unseen])
        return np.array(rows)

    return featurize


def fit_position(texts: Sequence[str]) -> Featurizer:
    """Mark which words are in the first, second and last third, and which are first and last."""

    def placed_words(text: str) -> list[str]:
        words = words_of(text)
        placed = [f"{3 * i // len(words)}:{word}" for i, word in enumerate(words)]
        return [*placed, *(f"{end}={words[end]}" for end in (0, -1) if words)]

    return _fit_counts(texts, analyzer=placed_words)


def fit_words(texts: Sequence[str]) -> Featurizer:
    return _fit_counts(texts, analyzer="word", ngram_range=(1, 2), token_pattern=WORD.pattern)


def fit_letters(texts: Sequence[str]) -> Featurizer:
    """Count runs of 2 to 4 characters inside words, letter case included."""
    return _fit_counts(texts, analyzer="char_wb", ngram_range=(2, 4), lowercase=False)


PROBES: dict[str, Callable[[Sequence[str]], Featurizer]] = {
    "length": fit_length,
    "rarity": fit_rarity,
    "position": fit_position,
    "words": fit_words,
    "letters": fit_letters,
}


def _fit_counts(texts: Sequence[str], **settings: Any) -> Featurizer:
    with importing("scikit-learn", "text"):
        from sklearn.feature_extraction.text import CountVectorizer
    vectorizer = CountVectorizer(min_df=min(2, len(texts)), **settings)
    try:
        vectorizer.fit(texts)
    except ValueError:  # no feature is frequent enough, or there is none
        return lambda captions: np.zeros((len(captions), 1))
    return Counts(vectorizer)


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts the features of a fitted CountVectorizer, which have names."""

    vectorizer: Any

    def __call__(self, captions: Sequence[str]) -> Matrix:
        return self.vectorizer.transform(captions).astype(float)


def train_and_judge(
    probe: str,
    train: tuple[Sequence[str], Sequence[str]],
    test: tuple[Sequence[str], Sequence[str]],
) -> npt.NDArray[np.float64]:
    """Return a probe's margins [test pairs] in favour of the true captions; 0 if undecided.

    `train` and `test` each hold true and false captions, in pairs.
    """
    featurize = PROBES[probe]([*train[0], *train[1]])
    model = train_pairs(featurize, train)
    if model is None:
        return np.zeros(len(test[0]))
    return model.decision_function(featurize(test[0]) - featurize(test[1]))


def train_pairs(featurize: Featurizer, train: tuple[Sequence[str], Sequence[str]]) -> Any:
    """Fit a classifier of the differences of pairs; None if there is nothing to learn from."""
    # Without an intercept a pair equals its mirror image, so every other pair is mirrored.
    signs = [1 if index % 2 == 0 else -1 for index in range(len(train[0]))]
    ordered = [pair[::sign] for sign, pair in zip(signs, zip(*train, strict=True), strict=True)]
    left, right = zip(*ordered, strict=True)
    differences = featurize(left) - featurize(right)
    if len(signs) < 2 or abs(differences).sum() == 0:
        return None
    return fit_classifier(differences, signs, fit_intercept=False)


def fit_classifier(features: Matrix, labels: Sequence[Any], *, fit_intercept: bool = True) -> Any:
    with importing("scikit-learn", "text"):
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import MaxAbsScaler
    model = LogisticRegression(fit_intercept=fit_intercept, max_iter=1000)
    return make_pipeline(MaxAbsScaler(), model).fit(features, labels)


@dataclass(frozen=True, kw_only=True, slots=True)
class Clue:
    """A piece of text with its weight in a probe.

    Attributes:
      text: one or two words in lower case, or a run of letters; a space at either end of a run is
        the edge of a word.
      weight: rounded to four decimals; above 0 it supports the true caption.
      right, wrong: number of true and of false captions that contain it.
    """

    text: str
    weight: float
    right: int
    wrong: int


def clues(probe: str, right: Sequence[str], wrong: Sequence[str]) -> tuple[Clue, ...]:
    """Return up to ten clues of a probe trained on all pairs; none for `length` and `rarity`."""
    featurize = PROBES[probe]([*right, *wrong])
    if not isinstance(featurize, Counts):
        return ()
    model = train_pairs(featurize, (right, wrong))
    return () if model is None else weightiest(featurize, model, (right, wrong))


def weightiest(
    featurize: Counts, model: Any, sides: tuple[Sequence[str], Sequence[str]]
) -> tuple[Clue, ...]:
    weights = np.round(model[-1].coef_[0], 4)
    names = featurize.vectorizer.get_feature_names_out()
    have = [np.asarray((featurize(texts) > 0).sum(axis=0)).ravel() for texts in sides]
    order = sorted(np.flatnonzero(weights), key=lambda n: (-abs(weights[n]), names[n]))[:_CLUES]
    return tuple(
        Clue(
            text=str(names[n]),
            weight=float(weights[n]),
            right=int(have[0][n]),
            wrong=int(have[1][n]),
        )
        for n in order
    )
