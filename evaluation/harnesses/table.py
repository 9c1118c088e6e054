"""The table of what models answered to a dataset's questions in an evaluation harness."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.visible import counted
from eqforge.evaluation.harnesses.forms import form_of_file
from eqforge.evaluation.harnesses.joins import (
    HarnessRules,
    Joined,
    check_known,
    check_missing,
    chosen_of,
    judged_by,
)
from eqforge.evaluation.harnesses.logs import Answers, read_lmms_eval, read_vlmevalkit
from eqforge.evaluation.harnesses.published import BOTH, credits_of, read_bivlc, read_clip_benchmark
from eqforge.evaluation.metrics.choices import ACCURACY, judge_choices
from eqforge.evaluation.metrics.ties import Credits
from eqforge.evaluation.tables.report import Judged, Measure, Report, Rules, measure
from eqforge.evaluation.tables.sample_tasks import model_names
from eqforge.evaluation.tables.samples import EVERYTHING
from eqforge.evaluation.tables.several import compare_judged
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.lettered import read_letter
from eqforge.schemas.records.questions import Question, QuestionForm

_SUMS_ALONE: Final = (
    "CLIP_benchmark writes sums and nothing of each sample: there is no interval and no "
    "comparison; eqforge score with the same model gives both"
)


def harness_report(dataset: Dataset, paths: Sequence[Path], settings: HarnessRules) -> Report:
    """Returns the table of what harnesses wrote of some models.

    Args:
      dataset: what the models were asked about.
      paths: a file for each model; see `forms`.
      settings: how they are judged.

    Raises:
      InputError: results are of other samples, or some are missing though not allowed to be.
    """
    found = Joined.of(dataset, settings)
    names = model_names([path.stem for path in paths], paths)
    parts = [_part(found, path, settings) for path in paths]
    if found.notes and any(part.sums for part in parts):
        raise InputError("--errata: CLIP_benchmark writes sums, of which no sample can be left out")
    judged = dict(zip(names, (part.judged for part in parts), strict=True))
    measures: list[Measure] = []
    for name, part in zip(names, parts, strict=True):
        for subset, one in part.judged.items():
            measures += measure(name, subset, one, settings.rules)[1]
        measures += [_sum(name, metric, value, found) for metric, value in part.sums.items()]
    return Report(
        title=f"{dataset.manifest.dataset}: answers to a harness, in per cent",
        rules=settings.rules,
        measures=tuple(measures),
        comparisons=compare_judged(judged, settings.rules),
        notes=(
            *found.notes,
            *(
                f"{name}: {note}"
                for name, part in zip(names, parts, strict=True)
                for note in part.notes
            ),
        ),
    )


def shares_right(dataset: Dataset, path: Path) -> dict[str, float]:
    """Returns the share of the questions about each sample that a model answered right, by its id.

    Samples whose questions have not all an answer are left out. Where results have no
    questions, the shares are those of the scores of text and image.

    Raises:
      InputError: results are of other samples, or of no sample by itself.
    """
    settings = HarnessRules(rules=Rules(), allow_missing=True)
    part = _part(Joined.of(dataset, settings), path, settings)
    if part.sums:
        raise InputError(f"{path}: {_SUMS_ALONE}")
    judged = part.judged[EVERYTHING]
    assert judged.keys is not None
    scores = (judged.credits[name] for name in BOTH)
    shares = judged.credits[ACCURACY] if ACCURACY in judged.credits else np.mean([*scores], axis=0)
    return dict(zip(judged.keys.tolist(), shares.tolist(), strict=True))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Part:
    """What one model's file says: credits of samples by subset, or sums alone."""

    judged: Mapping[str, Judged] = field(default_factory=dict)
    sums: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def _part(found: Joined, path: Path, settings: HarnessRules) -> _Part:
    form = form_of_file(path)
    if form == "clip-benchmark":
        sums = read_clip_benchmark(path, len(found.samples.keys), found.form.kind)
        return _Part(sums=sums, notes=(_SUMS_ALONE,))
    if form == "bivlc":
        return _of_captions(found, path, settings)
    if form is None:
        raise InputError(
            f"{path}: is no file of a harness, as another one is: measure scores by themselves"
        )
    answers = read_lmms_eval(path) if form == "lmms-eval" else read_vlmevalkit(path)
    if answers.scores:
        return _of_own_task(found, answers, path, settings)
    return _of_questions(found, answers, path, settings)


def _sum(model: str, metric: str, value: float, found: Joined) -> Measure:
    return Measure(
        model=model,
        subset=EVERYTHING,
        metric=metric,
        value=value,
        low=np.nan,
        high=np.nan,
        chance=None,
        expected=len(found.samples.keys),
        scored=len(found.samples.keys),
        missing=0,
        clusters=len(np.unique(found.samples.clusters)),
        ties=None,
    )


def _of_captions(found: Joined, path: Path, settings: HarnessRules) -> _Part:
    """Joins results without ids by the captions of the pairs."""
    results = read_bivlc(path)
    if found.form.kind != "pairs":
        raise InputError(f"{path}: results of pairs, but {found.dataset.folder} has none")
    ids: dict[tuple[str, str], str] = {}
    for row in found.rows():
        key = (row["caption_0"], row["caption_1"])
        if ids.setdefault(key, row["sample_id"]) != row["sample_id"] and key in results.right:
            raise InputError(
                f"{path}: {shown(ids[key])} and {shown(row['sample_id'])} have the same captions: "
                "a row without an id can be of either"
            )
    check_known(path, results.right, ids, "rows are of captions")
    told = {ids[key]: right for key, right in results.right.items()}
    check_missing(path, found.samples, told, settings, "")
    return _Part(judged=dict(judged_by(found.samples, told, credits_of)))


def _of_own_task(found: Joined, answers: Answers, path: Path, settings: HarnessRules) -> _Part:
    """Judges a task of the user's own by its scores: how many are right, and whether all are."""
    check_known(path, answers.scores, found.known, "samples are ones")
    counts = {len(scores) for scores in answers.scores.values()}
    if len(counts) > 1:
        raise InputError(
            f"{path}: {min(counts)} to {max(counts)} lines a sample: some questions are missing"
        )
    check_missing(path, found.samples, answers.scores, settings, "")

    def judge(rows: list[list[float]]) -> dict[str, Credits]:
        scores = np.array(rows)
        return {"accuracy": scores.mean(axis=1), "group": scores.all(axis=1).astype(np.float64)}

    return _Part(
        judged=dict(judged_by(found.samples, answers.scores, judge)),
        notes=(f"a task of your own, by its scores of {counts.pop()} questions a sample",),
    )


def _of_questions(found: Joined, answers: Answers, path: Path, settings: HarnessRules) -> _Part:
    """Judges a task that was exported, by what was said."""
    asked = {row["sample_id"]: found.form.questions(row) for row in found.rows()}
    known = {one.question_id for questions in asked.values() for one in questions}
    check_known(path, answers.texts, known, "answers are to questions")
    whole, partly = _answered(asked, answers)
    why = (
        f" ({counted(answers.failed, 'questions')} failed in the harness)" if answers.failed else ""
    )
    check_missing(path, found.samples, whole, settings, why)
    judged = {}
    for subset, rows, like in chosen_of(found.samples, whole):
        said = [
            [read_letter(answers.texts[one.question_id], list(one.options)) for one in questions]
            for questions in rows
        ]
        choices = judge_choices(found.form.kind, rows, said)
        judged[subset] = replace(like, credits=choices.credits, chance=choices.chance)
    return _Part(judged=judged, notes=tuple(_notes(found.form, whole, partly, answers)))


def _answered(
    asked: dict[str, tuple[Question, ...]], answers: Answers
) -> tuple[dict[str, tuple[Question, ...]], int]:
    """Returns the questions of each sample that is answered whole, and how many are in part.

    Where not one question asks for an image, none is expected to.
    """
    kinds = {
        one.asks
        for questions in asked.values()
        for one in questions
        if one.question_id in answers.texts
    }
    whole, partly = {}, 0
    for key, questions in asked.items():
        wanted = tuple(one for one in questions if one.asks in kinds)
        there = sum(one.question_id in answers.texts for one in wanted)
        if wanted and there == len(wanted):
            whole[key] = wanted
        partly += 0 < there < len(wanted)
    return whole, partly


def _notes(
    form: QuestionForm,
    whole: dict[str, tuple[Question, ...]],
    partly: int,
    answers: Answers,
) -> Iterator[str]:
    kinds = Counter(one.asks for questions in whole.values() for one in questions)
    if form.kind == "pairs" and len(kinds) == 1:
        (kind,) = kinds
        yield f"was asked for a {kind} only: there is no group score"
    if answers.failed:
        yield f"{counted(answers.failed, 'questions')} failed in the harness"
    if partly:
        yield f"left out for answers to some of their questions only: {counted(partly, 'samples')}"
