"""Audit questions: how many can be answered from their texts alone, without an image.

A blind answerer gives the same answer to the same text. So if a question about two images has
different answers, it is right on at most one of them, which bounds its score.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eqforge.core import visible
from eqforge.core.errors import InputError
from eqforge.evaluation.shortcuts.answerers import (
    OPTIONS,
    PRIOR,
    Answerer,
    Posed,
    answer_clues,
    blind_answerers,
    option_pairs,
    posed,
)
from eqforge.evaluation.shortcuts.audit import clue_lines, method_lines, result_line
from eqforge.evaluation.shortcuts.judges import WITH_CLUES
from eqforge.evaluation.shortcuts.probes import Clue, clues
from eqforge.evaluation.statistics.bootstrap import resample_means
from eqforge.evaluation.tables.samples import read_columns
from eqforge.evaluation.tasks.questions import COLUMNS, METRICS, judge
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.questions import short_answer

VERSION = 1

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class BlindResult:
    """How often one blind answerer is right.

    Attributes:
      units, groups: number of units judged, and of their groups.
      accuracy: share of units answered right, in [0, 1].
      low, high: 95% confidence interval over groups, as in `audit.ProbeResult`.
      at_most: upper bound of the share for any blind answerer.
    """

    metric: str
    probe: str
    units: int
    groups: int
    accuracy: float
    low: float
    high: float
    chance: float
    at_most: float

    @property
    def is_shortcut(self) -> bool:
        return self.low > self.chance


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenAway:
    """The clues of a probe in questions of one form, if its accuracy is a shortcut.

    Attributes:
      sides: the answers that clues of positive and of negative weight support.
      clues: `right` and `wrong` count the texts of the two sides.
    """

    form: str
    probe: str
    sides: tuple[str, str]
    clues: tuple[Clue, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class BlindAudit:
    """The results of an audit of questions.

    Attributes:
      answers: number of questions by form and right answer.
      texts: number of distinct texts of questions.
      left_out: number of questions in groups with a free answer, which are not audited.
    """

    results: tuple[BlindResult, ...]
    answers: dict[str, dict[str, int]]
    given_away: tuple[GivenAway, ...]
    questions: int
    texts: int
    groups: int
    left_out: int
    folds: int
    seed: int
    version: int = VERSION


def audit_questions(
    dataset: Dataset,
    answerers: Mapping[str, Answerer] | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
    resamples: int = 1000,
) -> BlindAudit:
    columns = read_columns(dataset, "samples", COLUMNS)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    free = {row["group_id"] for row in rows if short_answer(row["answer"], row["options"]) is None}
    rows = [row for row in rows if row["group_id"] not in free]
    rows.sort(key=lambda row: str(row["sample_id"]))
    questions = [posed(row) for row in rows]
    groups = len({each.group for each in questions})
    if groups < folds:
        advice = "lower --folds" if groups > 1 else "add groups"
        raise InputError(
            f"{dataset.folder}: {folds} folds need at least {folds} groups of multiple-choice or "
            f"yes-no questions. Found {groups}; {advice}"
        )
    bounds = {metric: _at_most(rows, metric) for metric in METRICS}
    results = []
    for name, answerer in (blind_answerers(folds) if answerers is None else answerers).items():
        predictions = answerer.answers(questions)
        right = {
            row["sample_id"]: prediction == each.answer
            for row, each, prediction in zip(rows, questions, predictions, strict=True)
        }
        for metric, bound in bounds.items():
            judged = judge(rows, right, metric)
            means = resample_means(
                judged.credits[metric], judged.clusters, seed=seed, resamples=resamples
            )
            low, high = means.share_interval(widening=answerer.widening)
            results.append(
                BlindResult(
                    metric=metric,
                    probe=name,
                    units=judged.expected,
                    groups=groups,
                    accuracy=float(means.values[0]),
                    low=low,
                    high=high,
                    chance=judged.chance[metric],
                    at_most=bound,
                )
            )
    answers: dict[str, dict[str, int]] = {}
    counts = Counter((each.form, each.answer) for each in questions)
    for (form, answer), count in sorted(counts.items()):
        answers.setdefault(form, {})[answer] = count
    return BlindAudit(
        results=tuple(results),
        answers=answers,
        given_away=tuple(_given_away(questions, results)),
        questions=len(rows),
        texts=len({(each.question, each.options) for each in questions}),
        groups=groups,
        left_out=dataset.manifest.num_rows("samples") - len(rows),
        folds=folds,
        seed=seed,
    )


def _at_most(rows: Sequence[Row], metric: str) -> float:
    """Return the share of units that the best blind answerer gets right, or an upper bound.

    Units with equal texts and equal answers can be right together; a unit in which a text has
    two answers never is. If units share only some texts, the bound may be unreachable.
    """
    units: dict[tuple[str, ...], set[tuple[str, tuple[str, ...], str]]] = {}
    for row in rows:
        text = row["question"], tuple(row["options"])
        units.setdefault(METRICS[metric](row), set()).add((*text, row["answer"]))
    by_texts: dict[frozenset[tuple[str, tuple[str, ...]]], Counter[Any]] = defaultdict(Counter)
    for answered in units.values():
        texts = frozenset(each[:2] for each in answered)
        by_texts[texts][frozenset(answered)] += len(texts) == len(answered)
    return sum(max(found.values()) for found in by_texts.values()) / len(units)


def _given_away(questions: Sequence[Posed], results: Sequence[BlindResult]) -> Iterator[GivenAway]:
    """Yield the clues of shortcuts, for questions with options or with two answers."""
    shortcuts = {each.probe for each in results if each.metric == "accuracy" and each.is_shortcut}
    for form in sorted({each.form for each in questions}):
        of_form = [each for each in questions if each.form == form]
        answers = sorted({each.answer for each in of_form})
        for probe in WITH_CLUES:
            if probe not in shortcuts or (form != OPTIONS and len(answers) != 2):
                continue
            if form == OPTIONS:
                sides, found = ("right", "wrong"), clues(probe, *option_pairs(of_form))
            else:
                sides = (answers[1], answers[0])
                texts = [each.question for each in of_form]
                found = answer_clues(probe, texts, [each.answer for each in of_form])
            yield GivenAway(form=form, probe=probe, sides=sides, clues=found)


_SEEN_OF_QUESTIONS = {
    PRIOR: "always gives the most frequent right answer of the other groups",
    "length": "sees the number of characters and words of a question, or of each option",
    "rarity": "sees how rare the words are",
    "position": "sees the first and last words, and the words in each third",
    "words": "sees the words and pairs of neighbouring words",
    "letters": "sees sequences of two to four letters",
    "language_model_total": "a language model's probability of the question and an answer",
    "language_model_per_token": "the same probability per token, so that length does not matter",
}


_UNITS = {
    "accuracy": "Is a question answered correctly?",
    "question": "Is a question answered correctly on all its images?",
    "image": "Are all questions about an image answered correctly?",
    "group": "Are all questions of a group answered correctly?",
}


def questions_as_text(name: str, audit: BlindAudit) -> str:
    lines = [
        f"{name}: {audit.questions:,} questions with {audit.texts:,} texts in {audit.groups:,} "
        "groups were answered without their images."
    ]
    if audit.left_out:
        lines.append(
            f"{audit.left_out:,} questions were left out, because an answer in their group is "
            "free text."
        )
    lines += ["", "Right answers, by form of the answer:"]
    for form, counts in audit.answers.items():
        shares = ", ".join(f"{answer} {count:,}" for answer, count in counts.items())
        lines.append(f"  {form:<12} {shares}")
    for metric, question in _UNITS.items():
        results = [result for result in audit.results if result.metric == metric]
        found = results[0]
        lines += [
            "",
            f"{question} ({found.units:,} in {found.groups:,} groups)",
            f"  {'chance':<25} {found.chance:7.2%}",
            f"  {'at most, without images':<25} {found.at_most:7.2%}",
            *(result_line(result) for result in results if result.at_most),
        ]
    for leak in audit.given_away:
        sides = " and ".join(leak.sides)
        texts = f"{sides} options" if leak.form == OPTIONS else f"questions answered {sides}"
        lines += ["", f"most revealing {leak.probe} (number of {texts} that contain them):"]
        lines += clue_lines(leak.clues, leak.sides)
    probes = {result.probe for result in audit.results}
    seen = (f"{name}: {text}" for name, text in _SEEN_OF_QUESTIONS.items() if name in probes)
    lines += ["", *seen]
    return visible.in_lines([*lines, "", *method_lines(audit)])
