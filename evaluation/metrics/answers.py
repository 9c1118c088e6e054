"""Accuracy of answers: to questions in words, to questions with letters, and by boxes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eqforge.evaluation.metrics.simat import intersection_over_union
from eqforge.evaluation.metrics.ties import Credits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eqforge.schemas.records.questions import Question

GROUNDED_IOU = 0.5
CONSENSUS = 3
"""In VQA 2.0 an answer that this many annotators gave has accuracy 1."""
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
    """Return the accuracy of an answer to a question, in [0, 1].

    With three or more annotated answers it is VQA 2.0's: over all ways to leave one annotator out,
    the mean of min(annotators who gave the answer / 3, 1). With fewer, as in VLUE, which has one,
    it is 1 for any of theirs.

    Source: Antol et al. 2015, section 4; VLUE (Zhou et al. 2022), section 3.
    """
    said = normal_answer(answer)
    agreed = sum(normal_answer(one) == said for one in annotated)
    if len(annotated) < CONSENSUS:
        return float(agreed > 0)
    others = len(annotated) - agreed
    with_one_less = agreed * min((agreed - 1) / CONSENSUS, 1.0)
    return (with_one_less + others * min(agreed / CONSENSUS, 1.0)) / len(annotated)


def grounded(boxes: NDArray[np.floating[Any]], true: NDArray[np.floating[Any]]) -> Credits:
    """Return 1 for each phrase whose box has an IoU of at least 0.5 with the true one [phrases].

    Args:
      boxes: x, y, width, height in pixels [phrases, 4].
      true: the annotated boxes, likewise [phrases, 4].

    Source: RefCOCO's accuracy, as VLUE's baselines compute it.
    """
    corners = [np.concatenate([b[:, :2], b[:, :2] + b[:, 2:]], axis=1) for b in (boxes, true)]
    return (intersection_over_union(*corners) >= GROUNDED_IOU).astype(np.float64)


def judge_choices(
    kind: str, asked: Sequence[Sequence[Question]], said: Sequence[Sequence[str | None]]
) -> tuple[dict[str, Credits], dict[str, float]]:
    """Judge questions with lettered options, each asked in every order of its options.

    A question is answered right if it is answered right in all its orders. Of pairs, `text` needs
    the right caption of both images, `image` the right image of both captions, and `group` both:
    Winoground's scores, by answers in place of similarities. Of foils `pairwise` needs the caption
    and not the foil; of rewordings this is `original`, `augmented` needs the reworded caption too,
    and `brittleness` is that only one of them was chosen. `accuracy` is the share of questions
    answered right, `says A` of those answered A, and `not read` of those whose answer names no
    letter, which is wrong.

    Returns:
      The credits of each metric [n], and the mean of each for letters drawn at random.
    """
    rows, guessed = [], []
    for questions, letters in zip(asked, said, strict=True):
        right = [one.answer == letter for one, letter in zip(questions, letters, strict=True)]
        told: dict[tuple[str, int], float] = {}
        chance: dict[tuple[str, int], float] = {}
        for question, is_right in zip(questions, right, strict=True):
            key = (question.asks, question.number)
            told[key] = told.get(key, 1.0) * is_right
            chance[key] = chance.get(key, 1.0) / len(question.options)
        shares = {
            ACCURACY: np.mean(right),
            "says A": np.mean([letter == "A" for letter in letters]),
            "not read": np.mean([letter is None for letter in letters]),
        }
        rows.append({**_choices(kind, told), **shares})
        one = float(np.mean([1 / len(question.options) for question in questions]))
        guessed.append({**_choices(kind, chance), ACCURACY: one, "says A": one})
    return (
        {name: np.array([row[name] for row in rows], np.float64) for name in rows[0]},
        {name: float(np.mean([row[name] for row in guessed])) for name in guessed[0]},
    )


def _choices(kind: str, right: Mapping[tuple[str, int], float]) -> dict[str, float]:
    """Return the papers' metrics from the probability that each question is answered right."""
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
