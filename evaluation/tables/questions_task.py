"""The table of answers to questions in groups: right alone, by question, by image, by group."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from eqforge.evaluation.metrics.answers import normal_answer
from eqforge.evaluation.tables.answers_task import AnswerRules, read_answers
from eqforge.evaluation.tables.report import Judged, Measure, Report, measure
from eqforge.evaluation.tables.sample_tasks import model_names
from eqforge.evaluation.tables.samples import EVERYTHING, column_names, read_columns, text_array
from eqforge.evaluation.tables.several import compare_judged
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.errors import InputError
from eqforge.schemas.io.checked import shown
from eqforge.schemas.records.lettered import LETTERS, read_letter

COLUMNS: Final = (
    *("sample_id", "kind", "group_id", "image", "image_id", "question", "options", "answer"),
)
UNITS: Final[dict[str, Callable[[dict[str, Any]], tuple[str, ...]]]] = {
    "accuracy": lambda row: (row["sample_id"],),
    "question": lambda row: (row["group_id"], row["question"]),
    "image": lambda row: (row["group_id"], row["image_id"] or row["image"]),
    "group": lambda row: (row["group_id"],),
}
"""What has to be answered right together for a credit: a question, one question on all its images,
all questions on one image, or the whole group."""

_YES_NO: Final = frozenset(("yes", "no", "true", "false"))
_LOWER: Final = re.compile(r"^\s*\(?[a-z](?=[.):])")
_FIRST: Final = re.compile(r"\W*(\w+)")


def is_questions(dataset: Dataset) -> bool:
    """Tells whether the samples of a dataset are questions in groups."""
    return set(COLUMNS) <= set(column_names(dataset, "samples"))


def is_right(said: str, answer: str, options: Sequence[str]) -> bool:
    """Tells whether an answer is the right one: in its words, or by its letter.

    Args:
      said: what a model answered: `Yes`, `no, it is not`, `(a)`, `A. Open`, or the option's text.
      answer: the right answer: one of the options, or what the question asks for, such as `Yes`.
      options: to choose from, called A, B and so on; empty where the question names them.
    """
    choices = list(options) if options else list(LETTERS) if answer in LETTERS else []
    if answer in choices:
        letter = read_letter(_LOWER.sub(lambda found: found[0].upper(), said), choices)
        return letter is not None and choices[LETTERS.index(letter)] == answer
    plain = normal_answer(said)
    if options or (plain and plain == normal_answer(answer)):
        return bool(plain) and plain == normal_answer(answer)
    first = _FIRST.match(said)
    return first is not None and first[1].lower() == answer.strip().lower()


def questions_report(dataset: Dataset, paths: Sequence[Path], settings: AnswerRules) -> Report:
    """Returns the table of some models' answers to questions in groups.

    Args:
      dataset: the questions.
      paths: a JSON Lines file for each model, `{"sample_id": …, "answer": …}`.
      settings: how they are judged.

    Raises:
      InputError: an answer is of no question or no text, or answers are missing though not allowed
        to be.

    Source: NaturalBench (Li et al. 2024), section 3: accuracy, Q-Acc, I-Acc and G-Acc; MMVP (Tong
      et al. 2024), section 2: a pair counts where both questions are right.
    """
    columns = read_columns(dataset, "samples", COLUMNS)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    judged: dict[str, dict[str, Judged]] = {}
    measures: list[Measure] = []
    for name, path in zip(model_names([path.stem for path in paths], paths), paths, strict=True):
        right = _right(rows, path, settings.allow_missing)
        judged[name] = {}
        for subset, part in _subsets(rows).items():
            for metric in UNITS:
                units = _judge(part, right, metric)
                measures += measure(name, subset, units, settings.rules)[1]
                if subset == EVERYTHING:
                    judged[name][f"{subset}, by {metric}"] = units
    return Report(
        title=f"{dataset.manifest.dataset}: questions answered, in per cent",
        rules=settings.rules,
        measures=tuple(measures),
        comparisons=compare_judged(judged, settings.rules),
        notes=(),
    )


def _right(rows: Sequence[dict[str, Any]], path: Path, allow_missing: bool) -> dict[str, bool]:
    """Returns which of the answered questions were answered right."""
    answers = read_answers(path)
    if strange := sorted(answers.keys() - {row["sample_id"] for row in rows}):
        raise InputError(
            f"{path}: {len(strange):,} answers are of samples that the dataset does not have, such "
            f"as {shown(strange[0])}"
        )
    missing = len(rows) - len(answers)
    if missing and not allow_missing:
        raise InputError(
            f"{path}: {missing:,} of {len(rows):,} samples have no answer; --allow-missing leaves "
            "their groups out"
        )
    for key, answer in answers.items():
        if not isinstance(answer, str):
            raise InputError(
                f"{path}: the answer to {shown(key)} is {shown(answer)}; expected a text"
            )
    return {
        row["sample_id"]: is_right(answers[row["sample_id"]], row["answer"], row["options"])
        for row in rows
        if row["sample_id"] in answers
    }


def _subsets(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Returns the rows of everything, and of each kind where there are several."""
    kinds = sorted({row["kind"] for row in rows})
    found = {EVERYTHING: list(rows)}
    if len(kinds) > 1:
        found |= {kind or "(none)": [row for row in rows if row["kind"] == kind] for kind in kinds}
    return found


@dataclass(slots=True)
class _Unit:
    """What counts together.

    Attributes:
      group: the group it is of.
      credit: 1 if everything in it was answered right; None if something was not answered.
      chance: of guessing all of it.
    """

    group: str
    credit: float | None = 1.0
    chance: float = 1.0


def _judge(rows: Sequence[dict[str, Any]], right: dict[str, bool], metric: str) -> Judged:
    units: dict[tuple[str, ...], _Unit] = {}
    for row in rows:
        unit = units.setdefault(UNITS[metric](row), _Unit(group=row["group_id"]))
        is_good = right.get(row["sample_id"])
        unit.credit = None if is_good is None or unit.credit is None else unit.credit * is_good
        unit.chance *= _chance(row)
    there = dict(_answered(units))
    return Judged(
        credits={metric: np.array([unit.credit for unit in there.values()], dtype=np.float64)},
        chance={metric: float(np.mean([unit.chance for unit in there.values()] or [0.0]))},
        tied=None,
        clusters=text_array([unit.group for unit in there.values()]),
        expected=len(units),
        keys=text_array(["\t".join(key) for key in there]),
    )


def _chance(row: dict[str, Any]) -> float:
    """Returns the chance of guessing an answer: one of the options, A or B, yes or no; else 0."""
    answer = row["answer"].strip()
    is_binary = answer.lower() in _YES_NO or answer in LETTERS
    return 1 / len(row["options"]) if row["options"] else 0.5 if is_binary else 0.0


def _answered(units: dict[tuple[str, ...], _Unit]) -> Iterator[tuple[tuple[str, ...], _Unit]]:
    """Yields the units of which everything was answered, in the order of their names."""
    yield from ((key, unit) for key, unit in sorted(units.items()) if unit.credit is not None)
