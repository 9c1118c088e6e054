"""Answers to grouped questions, scored by question, by image and by group.

Source: NaturalBench (Li et al. 2024), section 3: accuracy, Q-Acc, I-Acc and G-Acc; MMVP (Tong et
  al. 2024), section 2: a pair counts if both answers are right.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
from more_itertools import map_reduce

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.evaluation.metrics.answers import normal_answer
from eqforge.evaluation.tables.logs import (
    Answers,
    check_known,
    form_of_file,
    read_lmms_eval,
    read_vlmevalkit,
)
from eqforge.evaluation.tables.render import Measure, Report
from eqforge.evaluation.tables.report import Judged, compare_judged, measure, model_names
from eqforge.evaluation.tables.samples import EVERYTHING, text_array, wrong_samples
from eqforge.evaluation.tables.settings import MetricsSettings
from eqforge.evaluation.tasks.answer_files import check_answered, read_answers
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records import lettered
from eqforge.schemas.records.questions import QUESTIONS, UNITS, short_answer

COLUMNS: Final = (
    *("sample_id", "kind", "group_id", "image", "image_id", "question", "options", "answer"),
)
METRICS: Final[Mapping[str, Callable[[Mapping[str, Any]], tuple[str, ...]]]] = {
    "accuracy": lambda row: (row["sample_id"],),
    **UNITS,
}
"""The unit of each metric: all its questions must be answered right for a credit."""

_ID: Final = itemgetter("sample_id")
_READERS: Final = {"lmms-eval": read_lmms_eval, "vlmevalkit": read_vlmevalkit}


def is_questions(dataset: Dataset) -> bool:
    return set(COLUMNS) <= set(dataset.columns("samples"))


def is_right(reply: str, answer: str, options: Sequence[str]) -> bool:
    """Return True if an answer gives the right option, in words or by letter.

    Args:
        reply: the model's answer: `Yes`, `no, it is not`, `(a)`, `A. Open`, or the option's text.
        options: called A, B and so on; empty if the question names them.
    """
    right = short_answer(answer, options)
    if right is not None and lettered.is_right(reply, list(options), right):
        return True
    plain = normal_answer(reply)
    return right is None and bool(plain) and plain == normal_answer(answer)


def questions_report(dataset: Dataset, paths: Sequence[Path], settings: MetricsSettings) -> Report:
    """Return the table of models' answers to grouped questions.

    Units of several questions are left out if errata remove one, as the rest would be easier.

    Args:
        paths: one file per model: JSON Lines, `{"sample_id": …, "answer": …}`, or results of
            lmms-eval or VLMEvalKit on an exported task.
    """
    settings.check_read("questions")
    rows = list(dataset.rows("samples", COLUMNS))
    wrong_ids, notes = wrong_samples([row["sample_id"] for row in rows], settings.errata)
    kinds = sorted({row["kind"] for row in rows})
    subsets = {EVERYTHING: rows}
    if len(kinds) > 1:
        subsets |= {kind or "(none)": [r for r in rows if r["kind"] == kind] for kind in kinds}
    judged: dict[str, dict[str, Judged]] = {}
    measures: list[Measure] = []
    unread: list[str] = []
    for name, path in zip(model_names([path.stem for path in paths], paths), paths, strict=True):
        answers = _checked_answers(rows, path, settings.allow_missing, wrong_ids)
        right = _right(rows, answers)
        if count := sum(_is_unread(row, answers) for row in rows):
            unread.append(
                f"{name}: {count:,} of {len(answers):,} answers count as wrong, because eqforge "
                "found no option, letter, yes or no in them"
            )
        judged[name] = {}
        for subset, part in subsets.items():
            for metric in METRICS:
                units = judge(part, right, metric, wrong_ids)
                measures += measure(name, subset, units, settings.rules)[1]
                if subset == EVERYTHING:
                    judged[name][f"{subset}, by {metric}"] = units
    return Report(
        title=f"{dataset.manifest.dataset}: questions answered, in per cent",
        rules=settings.rules,
        measures=tuple(measures),
        comparisons=tuple(compare_judged(judged, settings.rules)),
        notes=(*notes, *unread, *_uneven(rows)),
    )


def right_in_groups(dataset: Dataset, path: Path) -> dict[str, float]:
    """Return the share of correct answers by group id; skip groups with missing answers."""
    rows = list(dataset.rows("samples", COLUMNS))
    right = _right(rows, _checked_answers(rows, path, True, ()))
    groups = map_reduce(rows, itemgetter("group_id"), lambda row: right.get(row["sample_id"]))
    return {
        name: sum(map(bool, found)) / len(found)
        for name, found in groups.items()
        if None not in found
    }


def _uneven(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    sizes = Counter(Counter(row["group_id"] for row in rows).values())
    if len(sizes) > 1:
        most = max(sizes)
        few = sum(count for size, count in sizes.items() if size < most)
        yield (
            f"{few:,} of {sizes.total():,} groups have fewer than {most} questions, so they are "
            "easier to answer completely"
        )


def _answers(rows: Sequence[dict[str, Any]], path: Path) -> Mapping[str, Any]:
    form = form_of_file(path)
    if form is None:
        return read_answers(path)
    found = _READERS[form](path) if form in _READERS else Answers()
    if not found.texts:
        raise InputError(
            f"{path} contains no answers to questions of this dataset. Export its questions with "
            "eqforge export, and evaluate them in the harness"
        )
    samples = {
        question.question_id: question.sample_id
        for row in rows
        for question in QUESTIONS.questions(row)
    }
    check_known(path, found.texts, samples, "questions")
    return {samples[key]: text for key, text in found.texts.items()}


def _checked_answers(
    rows: Sequence[dict[str, Any]], path: Path, allow_missing: bool, wrong_ids: Collection[str]
) -> Mapping[str, str]:
    answers = _answers(rows, path)
    check_answered(path, answers, {row["sample_id"] for row in rows})
    missing = sum(
        row["sample_id"] not in answers and row["sample_id"] not in wrong_ids for row in rows
    )
    if missing and not allow_missing:
        raise InputError(
            f"{path}: {missing:,} of {len(rows):,} samples have no answer; pass --allow-missing to "
            "skip their groups"
        )
    for key, answer in answers.items():
        if not isinstance(answer, str):
            raise InputError(
                f"{path}: the answer to {shown(key)}: expected text, found {shown(answer)}"
            )
    return answers


def _is_unread(row: Mapping[str, Any], answers: Mapping[str, str]) -> bool:
    reply, right = answers.get(row["sample_id"]), short_answer(row["answer"], row["options"])
    if reply is None or right is None:
        return False
    return lettered.read_answer(reply, list(row["options"]), right) is None


def _right(rows: Sequence[dict[str, Any]], answers: Mapping[str, str]) -> dict[str, bool]:
    return {
        row["sample_id"]: is_right(answers[row["sample_id"]], row["answer"], row["options"])
        for row in rows
        if row["sample_id"] in answers
    }


def judge(
    rows: Sequence[dict[str, Any]],
    right: Mapping[str, bool],
    metric: str,
    wrong_ids: frozenset[str] = frozenset(),
) -> Judged:
    """Return the credits of a metric's units; each unit is in one group.

    Args:
        right: whether each answer was right, by question id; unanswered questions are absent.
        wrong_ids: ids of removed questions; the units that contain them are removed too.
    """
    units = map_reduce(rows, METRICS[metric])
    left = [key for key in sorted(units) if wrong_ids.isdisjoint(map(_ID, units[key]))]
    there = {key: units[key] for key in left if right.keys() >= set(map(_ID, units[key]))}
    credits = [all(right[row["sample_id"]] for row in unit) for unit in there.values()]
    chances = [math.prod(map(_chance, unit)) for unit in there.values()]
    return Judged(
        credits={metric: np.array(credits, dtype=np.float64)},
        chance={metric: float(np.mean(chances or [0.0]))},
        clusters=text_array([unit[0]["group_id"] for unit in there.values()]),
        expected=len(left),
        keys=text_array(["\t".join(key) for key in there]),
    )


def _chance(row: dict[str, Any]) -> float:
    """Return the chance of guessing right: one of the options, A or B, yes or no; else 0."""
    if row["options"]:
        return 1 / len(row["options"])
    return 0.0 if short_answer(row["answer"], ()) is None else 0.5
