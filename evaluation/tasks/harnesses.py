"""The table of a model's answers to a dataset's questions in an evaluation harness."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from more_itertools import map_reduce

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.visible import counted
from eqforge.evaluation.metrics.answers import ACCURACY, judge_choices
from eqforge.evaluation.metrics.ties import Credits
from eqforge.evaluation.tables.logs import (
    BIVLC_SCORES,
    Answers,
    check_known,
    form_of_file,
    read_bivlc,
    read_clip_benchmark,
    read_lmms_eval,
    read_vlmevalkit,
)
from eqforge.evaluation.tables.render import Measure, Report
from eqforge.evaluation.tables.report import Judged, compare_judged, measure, model_names
from eqforge.evaluation.tables.samples import EVERYTHING, Samples, read_samples, wrong_samples
from eqforge.evaluation.tables.settings import MetricsSettings
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.lettered import read_letter
from eqforge.schemas.records.questions import Question, QuestionForm, form_of

T = TypeVar("T")
_SUMS_ALONE: Final = (
    "CLIP_benchmark writes no results per sample, so intervals and comparisons are missing. To get "
    "them, score the dataset with eqforge score and the same model"
)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _ExportedTask:
    dataset: Dataset
    form: QuestionForm
    samples: Samples
    known: frozenset[str]
    allow_missing: bool
    notes: tuple[str, ...]

    def rows(self) -> Iterator[dict[str, Any]]:
        kind = [name for name in self.dataset.columns("samples") if name == "kind"]
        columns = ["sample_id", *self.form.columns, *kind]
        for batch in self.dataset.batches("samples", columns, 10_000):
            yield from batch.to_pylist()

    def check_missing(self, path: Path, answers: Mapping[str, Any], why: str = "") -> None:
        """Check that all samples are answered, or at least one if answers may be missing."""
        missing = [key for key in self.samples.keys.tolist() if key not in answers]
        if len(missing) == len(self.samples.keys):
            raise InputError(f"{path}: no sample has answers to all its questions{why}")
        if missing and not self.allow_missing:
            raise InputError(
                f"{path}: answers are missing for {len(missing):,} of {len(self.samples.keys):,} "
                f"samples{why}, for example {shown(min(missing))}; pass --allow-missing to skip "
                "them"
            )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Part:
    judged: Mapping[str, Judged] = field(default_factory=dict)
    sums: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def harness_report(dataset: Dataset, paths: Sequence[Path], settings: MetricsSettings) -> Report:
    settings.check_read("harnesses")
    task = _exported_task(dataset, settings)
    names = model_names([path.stem for path in paths], paths)
    parts = {name: _part(task, path) for name, path in zip(names, paths, strict=True)}
    if task.notes and any(part.sums for part in parts.values()):
        raise InputError(
            "--errata: CLIP_benchmark writes only totals, so single samples cannot be left out"
        )
    number, clusters = len(task.samples.keys), len(np.unique(task.samples.clusters))
    measures: list[Measure] = []
    for name, part in parts.items():
        for subset, one in part.judged.items():
            measures += measure(name, subset, one, settings.rules)[1]
        measures += (
            Measure(
                model=name,
                subset=EVERYTHING,
                metric=metric,
                value=value,
                expected=number,
                scored=number,
                clusters=clusters,
            )
            for metric, value in part.sums.items()
        )
    judged = {name: part.judged for name, part in parts.items()}
    part_notes = (f"{name}: {note}" for name, part in parts.items() for note in part.notes)
    return Report(
        title=f"{dataset.manifest.dataset}: answers to a harness, in per cent",
        rules=settings.rules,
        measures=tuple(measures),
        comparisons=tuple(compare_judged(judged, settings.rules)),
        notes=(*task.notes, *part_notes),
    )


def shares_right(dataset: Dataset, path: Path) -> dict[str, float]:
    """Return the share of each sample's questions that a model answered correctly, by sample id.

    Samples with an unanswered question are left out. Results without questions give the shares of
    the text and image scores.
    """
    part = _part(_exported_task(dataset, MetricsSettings(paths=(), allow_missing=True)), path)
    if part.sums:
        raise InputError(f"{path}: {_SUMS_ALONE}")
    judged = part.judged[EVERYTHING]
    assert judged.keys is not None
    scores = (judged.credits[name] for name in ("text", "image"))
    shares = judged.credits[ACCURACY] if ACCURACY in judged.credits else np.mean([*scores], axis=0)
    return dict(zip(judged.keys.tolist(), shares.tolist(), strict=True))


def _exported_task(dataset: Dataset, settings: MetricsSettings) -> _ExportedTask:
    columns = set(dataset.columns("samples"))
    form = form_of(columns, dataset.folder)
    default_by = next((name for name in form.by if name in columns), None)
    samples = read_samples(dataset, settings.cluster or form.cluster, settings.by or default_by)
    known = frozenset(samples.keys.tolist())
    wrong_ids, notes = wrong_samples(known, settings.errata)
    return _ExportedTask(
        dataset=dataset,
        form=form,
        samples=samples.without(wrong_ids),
        known=known,
        allow_missing=settings.allow_missing,
        notes=notes,
    )


def _part(task: _ExportedTask, path: Path) -> _Part:
    form = form_of_file(path)
    if form == "clip-benchmark":
        sums = read_clip_benchmark(path, len(task.samples.keys), task.form.kind)
        return _Part(sums=sums, notes=(_SUMS_ALONE,))
    if form == "bivlc":
        return _of_captions(task, path)
    if form is None:
        raise InputError(
            f"{path} is not a harness result, but another input is. Evaluate scores and harness "
            "results in separate commands"
        )
    answers = read_lmms_eval(path) if form == "lmms-eval" else read_vlmevalkit(path)
    return (_of_own_task if answers.scores else _of_questions)(task, answers, path)


def _of_captions(task: _ExportedTask, path: Path) -> _Part:
    """Match results without ids by captions and kind; equal ones match in file order."""
    results = read_bivlc(path)
    if task.form.kind != "pairs":
        raise InputError(
            f"{path} contains results for pairs, but {task.dataset.folder} has no pairs"
        )
    waiting = map_reduce(task.rows(), itemgetter("caption_0", "caption_1"))
    check_known(path, [each.captions for each in results], waiting, "captions")
    wins: dict[str, tuple[bool, ...]] = {}
    for each in results:
        pairs = waiting[each.captions]
        if not pairs:
            raise InputError(
                f"{each.where}: the caption {shown(each.captions[0])} appears more often than in "
                "the dataset"
            )
        row = next((pair for pair in pairs if pair.get("kind") == each.kind), pairs[0])
        pairs.remove(row)
        wins[row["sample_id"]] = each.won
    task.check_missing(path, wins)

    def judge(rows: list[tuple[bool, ...]]) -> tuple[dict[str, Credits], dict[str, float]]:
        credits = np.array(rows, dtype=np.float64).T
        return dict(zip(BIVLC_SCORES, credits, strict=True)), {}

    return _Part(judged=_judged(task.samples, wins, judge))


def _of_own_task(task: _ExportedTask, answers: Answers, path: Path) -> _Part:
    check_known(path, answers.scores, task.known, "samples")
    counts = {len(scores) for scores in answers.scores.values()}
    if len(counts) > 1:
        raise InputError(
            f"{path}: lines per sample vary from {min(counts)} to {max(counts)}, so "
            "some questions are missing; evaluate all questions again"
        )
    task.check_missing(path, answers.scores)

    def judge(rows: list[list[float]]) -> tuple[dict[str, Credits], dict[str, float]]:
        scores = np.array(rows)
        group = scores.all(axis=1).astype(np.float64)
        return {ACCURACY: scores.mean(axis=1), "group": group}, {}

    note = f"your own task has {counts.pop()} scored questions per sample"
    return _Part(judged=_judged(task.samples, answers.scores, judge), notes=(note,))


def _of_questions(task: _ExportedTask, answers: Answers, path: Path) -> _Part:
    questions = {row["sample_id"]: task.form.questions(row) for row in task.rows()}
    known = {one.question_id for about in questions.values() for one in about}
    check_known(path, answers.texts, known, "questions")
    # If no question needs an image, no image question is expected to be answered.
    kinds = {
        one.asks
        for about in questions.values()
        for one in about
        if one.question_id in answers.texts
    }
    whole: dict[str, tuple[Question, ...]] = {}
    partly = 0
    for key, about in questions.items():
        wanted = tuple(one for one in about if one.asks in kinds)
        there = sum(one.question_id in answers.texts for one in wanted)
        if wanted and there == len(wanted):
            whole[key] = wanted
        partly += 0 < there < len(wanted)
    failed = f"{counted(answers.failed, 'questions')} failed in the harness"
    task.check_missing(path, whole, f" ({failed})" if answers.failed else "")

    def judge(rows: list[tuple[Question, ...]]) -> tuple[dict[str, Credits], dict[str, float]]:
        letters = [
            [read_letter(answers.texts[one.question_id], list(one.options)) for one in about]
            for about in rows
        ]
        return judge_choices(task.form.kind, rows, letters)

    notes = []
    counts = Counter(one.asks for about in whole.values() for one in about)
    if task.form.kind == "pairs" and len(counts) == 1:
        notes.append(f"all questions ask for the {next(iter(counts))}, so there is no group score")
    if answers.failed:
        notes.append(failed)
    if partly:
        left_out = counted(partly, "samples")
        notes.append(f"left out: {left_out} with unanswered questions")
    return _Part(judged=_judged(task.samples, whole, judge), notes=tuple(notes))


def _judged(
    samples: Samples,
    answers: Mapping[str, T],
    judge: Callable[[list[T]], tuple[dict[str, Credits], dict[str, float]]],
) -> dict[str, Judged]:
    keys = samples.keys.tolist()
    scored = np.array([key in answers for key in keys], dtype=bool)
    found = {}
    for subset, members in samples.subsets.items():
        chosen = members & scored
        if chosen.any():
            credits, chance = judge([answers[keys[row]] for row in np.flatnonzero(chosen)])
            found[subset] = Judged(
                credits=credits,
                chance=chance,
                clusters=samples.clusters[chosen],
                expected=int(members.sum()),
                keys=samples.keys[chosen],
            )
    return found
