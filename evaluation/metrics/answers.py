"""Accuracy of answers: words, lettered options, boxes and captions."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from eqforge.core.errors import InputError, importing
from eqforge.evaluation.metrics.simat import intersection_over_union
from eqforge.evaluation.metrics.ties import Credits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eqforge.schemas.records.questions import Question

GROUNDED_IOU = 0.5
CONSENSUS = 3
"""In VQA 2.0 an answer given by this many annotators has accuracy 1."""
ACCURACY = "accuracy"

_ARTICLES = {"a", "an", "the"}
_NUMBERS = {"none": "0", "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4"} | {
    **{"five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10"}
}
_PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
_PERIOD = re.compile(r"\.(?!\d)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d)")
_APOSTROPHE = re.compile(r"['\u2019]")


def normal_answer(text: str) -> str:
    """Normalise an answer: lower case, digits for number words, no articles or punctuation.

    A punctuation mark that is next to white space anywhere in the answer is dropped; any other mark
    becomes a space. If a comma stands between digits, all marks are dropped. Apostrophes are
    dropped, so `dont` equals `don't`.

    Source: the official evaluation of VQA 2.0 (visualqa.org/evaluation.html), answer processing.
    """
    plain = found = " ".join(text.split())
    has_thousands = _THOUSANDS.search(plain) is not None
    for mark in _PUNCTUATION:
        is_dropped = has_thousands or f"{mark} " in plain or f" {mark}" in plain
        found = found.replace(mark, "" if is_dropped else " ")
    words = _APOSTROPHE.sub("", _PERIOD.sub("", found)).lower().split()
    return " ".join(_NUMBERS.get(word, word) for word in words if word not in _ARTICLES)


def vqa_accuracy(answer: str, annotated: Sequence[str]) -> float:
    """Return the accuracy of an answer to a question, in [0, 1].

    With three or more annotated answers it is VQA 2.0's: over all ways to leave one annotator out,
    the mean of min(annotators who gave the answer / 3, 1). With fewer answers (VLUE has one), any
    match counts 1.

    Source: Antol et al. 2015, section 4; VLUE (Zhou et al. 2022), section 3.
    """
    normal = normal_answer(answer)
    agreed = sum(normal_answer(one) == normal for one in annotated)
    if len(annotated) < CONSENSUS:
        return float(agreed > 0)
    others = len(annotated) - agreed
    with_one_less = agreed * min((agreed - 1) / CONSENSUS, 1.0)
    return (with_one_less + others * min(agreed / CONSENSUS, 1.0)) / len(annotated)


def grounded(boxes: NDArray[np.floating[Any]], true: NDArray[np.floating[Any]]) -> Credits:
    """Return 1 for each phrase whose box has an IoU of at least 0.5 with the true box [phrases].

    Both arguments are x, y, width, height in pixels [phrases, 4].

    Source: RefCOCO's accuracy, as VLUE's baselines compute it.
    """
    corners = [np.concatenate([b[:, :2], b[:, :2] + b[:, 2:]], axis=1) for b in (boxes, true)]
    return (intersection_over_union(*corners) >= GROUNDED_IOU).astype(np.float64)


def judge_choices(
    kind: str, samples: Sequence[Sequence[Question]], answers: Sequence[Sequence[str | None]]
) -> tuple[dict[str, Credits], dict[str, float]]:
    """Judge questions with lettered options, each asked in every order of its options.

    A question is right if it is answered right in all orders. For pairs, `text` needs the right
    caption of both images, `image` the right image of both captions, and `group` both, like
    Winoground's scores. For foils, `pairwise` needs the caption and not the foil. For rewordings
    this is `original`; `augmented` also needs the reworded caption, and `brittleness` counts
    samples with only one of them. `accuracy` is the share of questions answered right, `says A`
    the share answered A, and `not read` the share without a letter, which counts as wrong.

    Returns the credits of each metric [n], and each metric's mean for random letters.
    """
    rows, guessed = [], []
    for questions, letters in zip(samples, answers, strict=True):
        right = [one.answer == letter for one, letter in zip(questions, letters, strict=True)]
        credit: dict[tuple[str, int], float] = {}
        chance: dict[tuple[str, int], float] = {}
        for question, is_right in zip(questions, right, strict=True):
            key = (question.asks, question.number)
            credit[key] = credit.get(key, 1.0) * is_right
            chance[key] = chance.get(key, 1.0) / len(question.options)
        shares = {
            ACCURACY: np.mean(right),
            "says A": np.mean([letter == "A" for letter in letters]),
            "not read": np.mean([letter is None for letter in letters]),
        }
        rows.append({**_choices(kind, credit), **shares})
        one = float(np.mean([1 / len(question.options) for question in questions]))
        guessed.append({**_choices(kind, chance), ACCURACY: one, "says A": one})
    return (
        {name: np.array([row[name] for row in rows], np.float64) for name in rows[0]},
        {name: float(np.mean([row[name] for row in guessed])) for name in guessed[0]},
    )


def _choices(kind: str, right: Mapping[tuple[str, int], float]) -> dict[str, float]:
    if kind == "foils":
        return {"pairwise": right["text", 0]}
    if kind == "rewordings":
        original, reworded = right["text", 0], right["text", 1]
        both = original * reworded
        only_one = original + reworded - 2 * both
        return {"original": original, "augmented": both, "brittleness": only_one}
    parts: dict[str, float] = {}
    for (asks, _), value in right.items():
        parts[asks] = parts.get(asks, 1.0) * value
    return parts if len(parts) == 1 else {**parts, "group": float(np.prod(list(parts.values())))}


Words = Sequence[str]
Gram = tuple[str, ...]
Tokenizer = Literal["treebank", "ptb"]
"""Caption tokenizers: NLTK's Treebank rules, or the Java program of COCO's server, used for the
published numbers.
"""

ORDERS = range(1, 5)
_SIGMA = 6.0
# COCO's server also lists -LRB- and other brackets, but after lower-casing they are kept.
_DROPPED = {"''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";"}


def split_captions(
    captions: Sequence[str], references: Sequence[Sequence[str]], tokenizer: Tokenizer = "treebank"
) -> tuple[list[list[str]], list[list[list[str]]]]:
    """Split captions [n] and their references [n] into words, as `bleu` and `cider_d` need them."""
    if not all(references):
        raise InputError("each image needs at least one reference caption")
    flat = [text for group in references for text in group]
    words = [line.split() for line in tokenize([*captions, *flat], tokenizer)]
    rest = iter(words[len(captions) :])
    return words[: len(captions)], [[next(rest) for _ in group] for group in references]


def tokenize(texts: Sequence[str], tokenizer: Tokenizer) -> list[str]:
    lines = [" ".join(text.split()) for text in texts]
    cut = _by_treebank(lines) if tokenizer == "treebank" else _by_java(lines)
    return [" ".join(word for word in words if word not in _DROPPED) for words in cut]


def _by_treebank(lines: Sequence[str]) -> list[list[str]]:
    with importing("nltk", "models"):
        from nltk.tokenize import TreebankWordTokenizer
    cut = TreebankWordTokenizer().tokenize
    return [[word.lower() for word in cut(line, convert_parentheses=True)] for line in lines]


def _by_java(lines: Sequence[str]) -> list[list[str]]:
    home = find_spec("pycocoevalcap")
    if home is None or home.submodule_search_locations is None:
        raise InputError(
            "the ptb tokenizer needs pycocoevalcap; run pip install --no-deps pycocoevalcap==1.2, "
            "or pass --tokenizer treebank"
        )
    if shutil.which("java") is None:
        raise InputError("the ptb tokenizer needs Java; install Java, or pass --tokenizer treebank")
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
        raise InputError(f"the ptb tokenizer failed: {done.stderr.strip()[-300:]}")
    return [line.split() for line in found]


def bleu(captions: Sequence[Words], true: Sequence[Sequence[Words]]) -> tuple[float, ...]:
    """Return BLEU-1 to BLEU-4 over the corpus, each in [0, 1], for one caption per image [n].

    Source: Papineni et al. 2002, with the closest length of a reference, and the server's two
    constants against division by zero.
    """
    length, closest = sum(map(len, captions)), 0
    right, guessed = [0] * len(ORDERS), [0] * len(ORDERS)
    for words, group in zip(captions, true, strict=True):
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


def cider_d(captions: Sequence[Words], true: Sequence[Sequence[Words]]) -> NDArray[np.float64]:
    """Return CIDEr-D of each caption [n], in [0, 10]; the score is their mean.

    Document frequencies come from the references of all images, so scores depend on each other.

    Source: Vedantam et al. 2015, appendix. The penalty compares numbers of bigrams, as in the
    server.
    """
    references = [[_grams(line) for line in group] for group in true]
    documents = Counter(gram for group in references for gram in set().union(*group))
    size = np.log(float(len(true)))
    found = np.zeros(len(captions))
    for number, (words, group) in enumerate(zip(captions, references, strict=True)):
        weighted = _Weighted(_grams(words), documents, size)
        likeness = np.zeros(len(ORDERS))
        for counts in group:
            likeness += weighted.likeness(_Weighted(counts, documents, size))
        found[number] = likeness.mean() / len(group) * 10.0
    return found


class _Weighted:
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
        """Return the clipped cosine of each order [4], reduced for different lengths."""
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
    """Count n-grams, short ones first, which fixes the order of floating-point sums."""
    return Counter(
        tuple(words[start : start + order])
        for order in ORDERS
        for start in range(len(words) - order + 1)
    )
