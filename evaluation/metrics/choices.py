"""Answers to questions with lettered options, each asked in every order of its options.

A question is answered right if it is answered right in all its orders; guessing, of k options in k
orders, that has the chance k^-k.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eqforge.core.late import numpy as np

if TYPE_CHECKING:
    from eqforge.evaluation.metrics.ties import Credits
    from eqforge.schemas.records.questions import Question

ACCURACY, SAYS_A, NOT_READ = "accuracy", "says A", "not read"
SHARES = (ACCURACY, SAYS_A, NOT_READ)

Told = Mapping[tuple[str, int], bool]
"""By what is asked and of which image or caption, whether it is right in all orders."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ChoiceCredits:
    """The credits of each sample, and what guessing gets.

    Attributes:
      credits: by metric, [n].
      chance: by metric, the mean over the samples of what a letter drawn for each question gets.
    """

    credits: dict[str, Credits]
    chance: dict[str, float]


def judge_choices(
    kind: str, asked: Sequence[Sequence[Question]], said: Sequence[Sequence[str | None]]
) -> ChoiceCredits:
    """Judges what a model answered to all questions of each sample.

    Of pairs, `text` needs the right caption of both images, `image` the right image of both
    captions, and `group` both: Winoground's scores, by answers in place of similarities. Of foils
    `pairwise` needs the caption and not the foil; of rewordings this is `original`, `augmented`
    needs the reworded caption too, and `brittleness` is that only one of them was chosen. Each in
    every order. `accuracy` is the share of questions answered right, `says A` of those answered A,
    and `not read` of those whose answer names no letter, which is wrong.

    Args:
      kind: `pairs`, `foils` or `rewordings`.
      asked: the questions of each sample.
      said: for each the letter that was read; None where none was.
    """
    rows, guessed = [], []
    for questions, letters in zip(asked, said, strict=True):
        pairs = list(zip(questions, letters, strict=True))
        told: dict[tuple[str, int], bool] = {}
        chance: dict[tuple[str, int], float] = {}
        for question, letter in pairs:
            key = (question.asks, question.number)
            told[key] = told.get(key, True) and letter == question.answer
            chance[key] = chance.get(key, 1.0) / len(question.options)
        shares = (
            [letter == question.answer for question, letter in pairs],
            [letter == "A" for letter in letters],
            [letter is None for letter in letters],
        )
        rows.append({**_papers(kind, told), **dict(zip(SHARES, map(np.mean, shares), strict=True))})
        one = float(np.mean([1 / len(question.options) for question in questions]))
        guessed.append({**_papers_by_chance(kind, chance), ACCURACY: one, SAYS_A: one})
    return ChoiceCredits(
        credits={name: np.array([row[name] for row in rows], np.float64) for name in rows[0]},
        chance={name: float(np.mean([row[name] for row in guessed])) for name in guessed[0]},
    )


def _papers(kind: str, told: Told) -> dict[str, bool]:
    """Returns the metrics of the papers for one sample."""
    if kind != "pairs":
        found = [told["text", number] for number in range(len(told))]
        if kind == "foils":
            return {"pairwise": found[0]}
        return {"original": found[0], "augmented": all(found), "brittleness": found[0] != found[1]}
    parts = {
        part: all(right for (asks, _), right in told.items() if asks == part)
        for part in dict.fromkeys(asks for asks, _ in told)
    }
    return parts if len(parts) == 1 else {**parts, "group": all(parts.values())}


def _papers_by_chance(kind: str, chance: Mapping[tuple[str, int], float]) -> dict[str, float]:
    """Returns what each of those metrics is worth where letters are drawn."""
    if kind != "pairs":
        each = [chance["text", number] for number in range(len(chance))]
        if kind == "foils":
            return {"pairwise": each[0]}
        both = each[0] * each[1]
        one = each[0] + each[1] - 2 * both
        return {"original": each[0], "augmented": both, "brittleness": one}
    parts: dict[str, float] = {}
    for (asks, _), value in chance.items():
        parts[asks] = parts.get(asks, 1.0) * value
    return parts if len(parts) == 1 else {**parts, "group": float(np.prod(list(parts.values())))}
