"""Answers to VLUE's tasks: NLVR2 and VQA accuracy, grounding at an IoU of 0.5, BLEU and CIDEr."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.files.typed_json import decode, read_lines
from eqforge.evaluation.metrics.answers import grounded, score_captions, vqa_accuracy
from eqforge.evaluation.metrics.ties import Credits
from eqforge.evaluation.statistics.bootstrap import Resampled
from eqforge.evaluation.tables.render import Measure, Report
from eqforge.evaluation.tables.report import Judged, make_report, model_names
from eqforge.evaluation.tables.samples import read_columns, text_array
from eqforge.evaluation.tables.settings import MetricsSettings
from eqforge.schemas.dataset.reader import Dataset

CIDER, BLEU = "CIDEr", "BLEU"
CAPTIONING = "captioning"
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class _Line(msgspec.Struct):
    sample_id: str
    answer: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerTask:
    """A task that a model answers in text.

    Attributes:
        read: parses an answer; raises ValueError for an invalid one.
        accuracy: maps answers and truths to credits; None for captions, which are scored together.
    """

    cluster: str
    truth: str
    form: str
    read: Callable[[Any], Any]
    accuracy: Callable[[list[Any], list[Any]], Credits] | None = None
    chance: float | None = None


def _truth(answer: Any) -> bool:
    return answer if isinstance(answer, bool) else _TRUTHS[str(answer).strip().lower()]


def _text(answer: Any) -> str:
    if not isinstance(answer, str):
        raise ValueError(answer)
    return answer


def _box(answer: Any) -> list[float]:
    found = [float(value) for value in answer]
    if len(found) != 4 or not np.isfinite(found).all():
        raise ValueError(answer)
    return found


def _same(said: list[bool], true: list[bool]) -> Credits:
    return (np.array(said) == np.array(true)).astype(np.float64)


def _vqa(said: list[str], true: list[list[str]]) -> Credits:
    return np.array([vqa_accuracy(one, people) for one, people in zip(said, true, strict=True)])


def _grounded(said: list[list[float]], true: list[Mapping[str, float]]) -> Credits:
    boxes = [[box[side] for side in ("x", "y", "width", "height")] for box in true]
    return grounded(np.array(said), np.array(boxes))


TASKS: Final[Mapping[str, AnswerTask]] = {
    "nlvr2": AnswerTask(
        cluster="image_0",
        truth="label",
        form="true or false",
        read=_truth,
        accuracy=_same,
        chance=1 / 2,
    ),
    "vqa": AnswerTask(cluster="image", truth="answers", form="a text", read=_text, accuracy=_vqa),
    CAPTIONING: AnswerTask(cluster="image", truth="references", form="a text", read=_text),
    "grounding": AnswerTask(
        cluster="image",
        truth="box",
        form="[x, y, width, height] in pixels",
        read=_box,
        accuracy=_grounded,
    ),
}


def is_answered(dataset: Dataset) -> bool:
    return bool(TASKS.keys() & dataset.manifest.tables.keys())


def answers_report(dataset: Dataset, paths: Sequence[Path], settings: MetricsSettings) -> Report:
    settings.check_read("answers")
    names = model_names([path.stem for path in paths], paths)
    questions = {
        name: read_columns(dataset, name, ["sample_id", task.cluster, task.truth])
        for name, task in TASKS.items()
        if name in dataset.manifest.tables
    }
    judged: dict[str, dict[str, Judged]] = {}
    bleu: dict[str, tuple[float, ...]] = {}
    notes: list[str] = []
    for name, path in zip(names, paths, strict=True):
        judged[name] = dict(_judge(questions, path, settings, name, bleu))
        notes += [
            f"{name}: contains no answers to the task {task}"
            for task in questions
            if task not in judged[name]
        ]
    if bleu:
        notes.append(
            f"The tokenizer {settings.tokenizer} split captions into words. BLEU has no interval."
        )

    def add(
        model: str, task: str, part: Judged, means: list[Measure], found: Resampled
    ) -> Iterator[Measure]:
        del part, found
        for order, value in enumerate(bleu[model] if task == CAPTIONING else (), start=1):
            # A corpus score, so there is no mean to resample.
            bleu_n = replace(means[0], metric=f"{BLEU}-{order}", unit="share", value=value)
            yield replace(bleu_n, low=np.nan, high=np.nan)

    title = f"{dataset.manifest.dataset}: answers, in per cent"
    return make_report(title, settings.rules, judged, notes, add)


def read_answers(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, data in read_lines(path):
        line = decode(data, _Line, str(path), f"line {number}")
        if line.sample_id in found:
            raise InputError(f"{path}: line {number}: a second answer to {shown(line.sample_id)}")
        found[line.sample_id] = line.answer
    return found


def check_answered(path: Path, answers: Mapping[str, Any], known: set[str]) -> None:
    if strange := sorted(answers.keys() - known):
        raise InputError(
            f"{path}: {len(strange):,} answers are for samples that the dataset does not have, "
            f"such as {shown(strange[0])}"
        )


def _judge(
    questions: Mapping[str, Mapping[str, list[Any]]],
    path: Path,
    settings: MetricsSettings,
    model: str,
    bleu: dict[str, tuple[float, ...]],
) -> Iterator[tuple[str, Judged]]:
    """Yield the credits of each answered task; keep BLEU aside, as it has no credits."""
    answers = read_answers(path)
    known = {key for columns in questions.values() for key in columns["sample_id"]}
    check_answered(path, answers, known)
    for name, columns in questions.items():
        task, keys = TASKS[name], columns["sample_id"]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        rows = [row for row in order if keys[row] in answers]
        missing = len(keys) - len(rows)
        if rows and missing and not settings.allow_missing:
            raise InputError(
                f"{path}: {missing:,} of {len(keys):,} samples of {name} have no answer; pass "
                "--allow-missing to leave them out"
            )
        if not rows:
            continue
        said = []
        for key in (keys[row] for row in rows):
            try:
                said.append(task.read(answers[key]))
            except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
                raise InputError(
                    f"{path}: the answer to {shown(key)} is {shown(answers[key])}; expected "
                    f"{task.form}"
                ) from error
        true = [columns[task.truth][row] for row in rows]
        if task.accuracy is None:
            bleu[model], cider = score_captions(said, true, settings.tokenizer)
            credits = {CIDER: cider}
        else:
            credits = {"accuracy": task.accuracy(said, true)}
        yield (
            name,
            Judged(
                credits=credits,
                chance={} if task.chance is None else {"accuracy": task.chance},
                clusters=text_array([columns[task.cluster][row] for row in rows]),
                expected=len(keys),
                keys=text_array([keys[row] for row in rows]),
                units={CIDER: "number"},
            ),
        )
