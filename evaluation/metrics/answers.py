"""Accuracy of answers: statements that are true or false, questions, and boxes of phrases."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqforge.evaluation.metrics.simat import intersection_over_union

CHANCE = {"nlvr2": 1 / 2}
GROUNDED_IOU = 0.5
CONSENSUS = 3
"""In VQA 2.0 an answer that this many annotators gave has accuracy 1."""

_ARTICLES = {"a", "an", "the"}
_NUMBERS = {"none": "0", "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4"} | {
    **{"five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10"}
}
_PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
_PERIOD = re.compile(r"\.(?!\d)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d)")
_APOSTROPHE = re.compile(r"['\u2019]")


def normal_answer(text: str) -> str:
    """Normalises an answer: lower case, digits for number words, no articles or punctuation.

    A punctuation mark that is next to white space anywhere in the answer is dropped, any other
    becomes a space; where a comma stands between digits, all marks are dropped. Apostrophes are
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
    """Returns the accuracy of an answer to a question, in [0, 1].

    With three or more annotated answers it is VQA 2.0's: over all ways to leave one annotator out,
    the mean of min(annotators who gave the answer / 3, 1). With fewer, as in VLUE, which has one,
    it is 1 for any of theirs.

    Args:
      answer: the model's answer.
      annotated: one answer per annotator, at least one.

    Source: Antol et al. 2015, section 4; VLUE (Zhou et al. 2022), section 3.
    """
    said = normal_answer(answer)
    agreed = sum(normal_answer(one) == said for one in annotated)
    if len(annotated) < CONSENSUS:
        return float(agreed > 0)
    others = len(annotated) - agreed
    with_one_less = agreed * min((agreed - 1) / CONSENSUS, 1.0)
    return (with_one_less + others * min(agreed / CONSENSUS, 1.0)) / len(annotated)


def grounded(
    boxes: NDArray[np.floating[Any]], true: NDArray[np.floating[Any]]
) -> NDArray[np.float64]:
    """Returns 1 for each phrase whose box has an IoU of at least 0.5 with the true one [phrases].

    Args:
      boxes: x, y, width, height in pixels [phrases, 4].
      true: the annotated boxes, likewise [phrases, 4].

    Source: RefCOCO's accuracy, as VLUE's baselines compute it.
    """
    corners = [np.concatenate([b[:, :2], b[:, :2] + b[:, 2:]], axis=1) for b in (boxes, true)]
    return (intersection_over_union(*corners) >= GROUNDED_IOU).astype(np.float64)
