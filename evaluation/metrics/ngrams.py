"""BLEU and CIDEr-D of words, to the last digit as COCO's evaluation server computes them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from eqforge.core.late import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Words = Sequence[str]
Gram = tuple[str, ...]

ORDERS = range(1, 5)
"""Words of an n-gram."""
_SIGMA = 6.0


def bleu(said: Sequence[Words], true: Sequence[Sequence[Words]]) -> tuple[float, ...]:
    """Returns BLEU-1 to BLEU-4 over the corpus, each in [0, 1].

    Args:
      said: the words of one caption an image [n].
      true: those of its references, at least one each [n].

    Source: Papineni et al. 2002, with the closest length of a reference, and the server's two
    constants against division by zero.
    """
    length = sum(map(len, said))
    closest = sum(_closest(words, group) for words, group in zip(said, true, strict=True))
    right, guessed = [0] * len(ORDERS), [0] * len(ORDERS)
    for words, group in zip(said, true, strict=True):
        most: Counter[Gram] = Counter()
        for line in group:
            most |= _grams(line)
        for gram, count in _grams(words).items():
            right[len(gram) - 1] += min(most[gram], count)
            guessed[len(gram) - 1] += count
    product, found = 1.0, []
    for order in ORDERS:
        product *= (right[order - 1] + 1e-15) / (guessed[order - 1] + 1e-9)
        found.append(product ** (1.0 / order))
    ratio = (length + 1e-15) / (closest + 1e-9)
    return tuple(value * math.exp(1 - 1 / ratio) if ratio < 1 else value for value in found)


def cider_d(said: Sequence[Words], true: Sequence[Sequence[Words]]) -> NDArray[np.float64]:
    """Returns CIDEr-D of each caption [n], in [0, 10].

    Document frequencies come from the references of all images, so scores depend on each other.

    Args:
      said: the words of one caption an image [n].
      true: those of its references, at least one each [n].

    Source: Vedantam et al. 2015, appendix; as in the server, the penalty compares the numbers of
    bigrams.
    """
    references = [[_grams(line) for line in group] for group in true]
    documents = Counter(gram for group in references for gram in set().union(*group))
    size = np.log(float(len(true)))
    found = np.zeros(len(said))
    for number, (words, group) in enumerate(zip(said, references, strict=True)):
        own = _Weighted(_grams(words), documents, size)
        likeness = np.zeros(len(ORDERS))
        for counts in group:
            likeness += own.likeness(_Weighted(counts, documents, size))
        found[number] = likeness.mean() / len(group) * 10.0
    return found


class _Weighted:
    """The n-grams of a text by order, weighted by term and inverse document frequency."""

    def __init__(self, counts: Counter[Gram], documents: Counter[Gram], size: float) -> None:
        self._by_order: list[dict[Gram, float]] = [{} for _ in ORDERS]
        for gram, count in counts.items():
            weight = count * (size - np.log(max(1.0, documents[gram])))
            self._by_order[len(gram) - 1][gram] = weight
        self._norms = [
            np.sqrt(sum(weight * weight for weight in weights.values()))
            for weights in self._by_order
        ]
        self._bigrams = sum(count for gram, count in counts.items() if len(gram) == 2)

    def likeness(self, other: _Weighted) -> NDArray[np.float64]:
        """Returns the clipped cosine of each order [4], less for another length."""
        found = np.zeros(len(ORDERS))
        penalty = math.e ** (-((self._bigrams - other._bigrams) ** 2) / (2 * _SIGMA**2))
        for order, (ours, theirs) in enumerate(zip(self._by_order, other._by_order, strict=True)):
            norm = self._norms[order] * other._norms[order]
            shared = sum(
                min(weight, theirs[gram]) * theirs[gram]
                for gram, weight in ours.items()
                if gram in theirs
            )
            found[order] = (shared / norm if norm else shared) * penalty
        return found


def _grams(words: Words) -> Counter[Gram]:
    """Counts the n-grams of a text, short ones first: the order in which floats are summed."""
    return Counter(
        tuple(words[start : start + order])
        for order in ORDERS
        for start in range(len(words) - order + 1)
    )


def _closest(words: Words, group: Sequence[Words]) -> int:
    return min((abs(len(line) - len(words)), len(line)) for line in group)[1]
