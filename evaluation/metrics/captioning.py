"""BLEU and CIDEr-D of captions, to the last digit as COCO's evaluation server computes them.

NLTK's BLEU differs in the second decimal where a caption has fewer words than an n-gram, and the
server's own package prints, and is no longer kept.
"""

from __future__ import annotations

import math
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from eqforge.core.errors import InputError, MissingExtra

if TYPE_CHECKING:
    from numpy.typing import NDArray

Words = Sequence[str]
Gram = tuple[str, ...]
Tokenizer = Literal["treebank", "ptb"]
"""How captions are tokenized: by NLTK's Treebank rules, or by the Java program of COCO's server,
which was used for the published numbers."""

ORDERS = range(1, 5)
"""Words of an n-gram."""
_SIGMA = 6.0
_DROPPED = {
    *("''", "'", "``", "`", '"', "(", ")", "{", "}", "[", "]", ".", "?", "!", ",", ":", "-"),
    *("-lrb-", "-rrb-", "-lcb-", "-rcb-", "-lsb-", "-rsb-", "--", "...", ";"),
}


def score_captions(
    captions: Sequence[str], references: Sequence[Sequence[str]], tokenizer: Tokenizer = "treebank"
) -> tuple[tuple[float, ...], NDArray[np.float64]]:
    """Return BLEU-1 to BLEU-4 over the corpus, and CIDEr-D of each caption [n]."""
    if not all(references):
        raise InputError("an image has no reference caption")
    flat = [text for group in references for text in group]
    words = [line.split() for line in tokenize([*captions, *flat], tokenizer)]
    said, rest = words[: len(captions)], iter(words[len(captions) :])
    true = [[next(rest) for _ in group] for group in references]
    return bleu(said, true), cider_d(said, true)


def tokenize(texts: Sequence[str], tokenizer: Tokenizer) -> list[str]:
    """Return each text as lower-case words separated by single spaces, without punctuation."""
    lines = [" ".join(text.split()) for text in texts]
    cut = _by_treebank(lines) if tokenizer == "treebank" else _by_java(lines)
    return [" ".join(word for word in words if word not in _DROPPED) for words in cut]


def _by_treebank(lines: Sequence[str]) -> list[list[str]]:
    try:
        from nltk.tokenize import TreebankWordTokenizer
    except ImportError as error:
        raise MissingExtra("nltk", "models") from error
    cut = TreebankWordTokenizer().tokenize
    return [cut(line.lower()) for line in lines]


def _by_java(lines: Sequence[str]) -> list[list[str]]:
    home = find_spec("pycocoevalcap")
    if home is None or home.submodule_search_locations is None:
        raise InputError(
            "the tokenizer ptb is a Java program of pycocoevalcap's: "
            "pip install --no-deps pycocoevalcap==1.2, or take treebank"
        )
    if shutil.which("java") is None:
        raise InputError("the tokenizer ptb needs Java, and there is none; take treebank")
    (jar,) = Path(home.submodule_search_locations[0], "tokenizer").glob("stanford-corenlp-*.jar")
    command = ["java", "-cp", str(jar), "edu.stanford.nlp.process.PTBTokenizer"]
    done = subprocess.run(
        [*command, "-preserveLines", "-lowerCase"],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    found = done.stdout.removesuffix("\n").split("\n")
    if done.returncode != 0 or len(found) != len(lines):
        raise InputError(f"the tokenizer ptb failed: {done.stderr.strip()[-300:]}")
    return [line.split() for line in found]


def bleu(said: Sequence[Words], true: Sequence[Sequence[Words]]) -> tuple[float, ...]:
    """Return BLEU-1 to BLEU-4 over the corpus, each in [0, 1], of one caption per image [n].

    Source: Papineni et al. 2002, with the closest length of a reference, and the server's two
    constants against division by zero.
    """
    length, closest = sum(map(len, said)), 0
    right, guessed = [0] * len(ORDERS), [0] * len(ORDERS)
    for words, group in zip(said, true, strict=True):
        closest += min((abs(len(line) - len(words)), len(line)) for line in group)[1]
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
    """Return CIDEr-D of each caption [n], in [0, 10]; the score is their mean.

    Document frequencies come from the references of all images, so scores depend on each other.

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
        """Return the clipped cosine of each order [4], less for another length."""
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
    """Count n-grams, short ones first: the order in which floats are summed."""
    return Counter(
        tuple(words[start : start + order])
        for order in ORDERS
        for start in range(len(words) - order + 1)
    )
