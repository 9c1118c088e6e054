"""The tables of answers: NLVR2 and VQA accuracy, grounding at an IoU of 0.5, BLEU and CIDEr."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.files.typed_json import decode, read_lines
from eqforge.evaluation.metrics.answers import CHANCE, grounded, vqa_accuracy
from eqforge.evaluation.metrics.captioning import Tokenizer, score_captions
from eqforge.evaluation.tables.report import Judged, Measure, Report, Rules, measure
from eqforge.evaluation.tables.sample_tasks import model_names
from eqforge.evaluation.tables.samples import read_columns, text_array
from eqforge.evaluation.tables.several import compare_judged
from eqforge.schemas.dataset.reader import Dataset

CIDER, BLEU = "CIDEr", "BLEU"
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class _Line(msgspec.Struct):
    sample_id: str
    answer: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerTask:
    """A task whose samples are answered.

    Attributes:
      cluster, columns: columns of the task's table in the dataset.
      form: the form of an answer, in words.
      read: parses an answer; raises ValueError if it is not of the form.
    """

    cluster: str
    columns: tuple[str, ...]
    form: str
    read: Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerRules:
    """How answers are judged.

    Attributes:
      rules: seed and resamples.
      tokenizer: tokenizer of BLEU and CIDEr.
      allow_missing: whether samples of a task may have no answer.
    """

    rules: Rules
    tokenizer: Tokenizer = "treebank"
    allow_missing: bool = False


def _truth(answer: Any) -> bool:
    if isinstance(answer, bool):
        return answer
    return _TRUTHS[str(answer).strip().lower()]


def _text(answer: Any) -> str:
    if not isinstance(answer, str):
        raise ValueError(answer)
    return answer


def _box(answer: Any) -> list[float]:
    found = [float(value) for value in answer]
    if len(found) != 4 or not np.isfinite(found).all():
        raise ValueError(answer)
    return found


TASKS = {
    "nlvr2": AnswerTask(cluster="image_0", columns=("label",), form="true or false", read=_truth),
    "vqa": AnswerTask(cluster="image", columns=("answers",), form="a text", read=_text),
    "captioning": AnswerTask(cluster="image", columns=("references",), form="a text", read=_text),
    "grounding": AnswerTask(
        cluster="image", columns=("box",), form="[x, y, width, height] in pixels", read=_box
    ),
}
"""The tasks, by the name of their table in the dataset."""


def is_answered(dataset: Dataset) -> bool:
    """Tells whether a dataset has a task whose samples are answered."""
    return bool(TASKS.keys() & dataset.manifest.tables.keys())


def answers_report(dataset: Dataset, paths: Sequence[Path], settings: AnswerRules) -> Report:
    """Returns the table of some models' answers.

    Args:
      dataset: the questions.
      paths: a JSON Lines file for each model, `{"sample_id": …, "answer": …}`, with one or more
        tasks.
      settings: how they are judged.

    Raises:
      InputError: an answer is of no sample or of the wrong form, or answers are missing though not
        allowed to be.
      MissingExtra: BLEU and CIDEr need a package that is not installed.
    """
    names = model_names([path.stem for path in paths], paths)
    questions = {
        task: read_columns(dataset, task, ["sample_id", TASKS[task].cluster, *TASKS[task].columns])
        for task in TASKS
        if task in dataset.manifest.tables
    }
    judged, measures, notes = {}, [], []
    for name, path in zip(names, paths, strict=True):
        found = dict(_judge(questions, read_answers(path), path, settings))
        judged[name] = {task: part for task, (part, _) in found.items()}
        for task, (part, bleu) in found.items():
            own = measure(name, task, part, settings.rules)[1]
            measures += [*own, *_bleu(own[0], bleu)]
        notes += [f"{name}: no answers to {task}" for task in questions if task not in found]
    return Report(
        title=f"{dataset.manifest.dataset}: answers, in per cent",
        rules=settings.rules,
        measures=tuple(measures),
        comparisons=compare_judged(judged, settings.rules),
        notes=(*notes, *_tokenized(measures, settings)),
    )


def read_answers(path: Path) -> dict[str, Any]:
    """Returns the answers of a JSON Lines file by the ids of their samples.

    Raises:
      InputError: a line is malformed, or a sample is answered twice.
    """
    found: dict[str, Any] = {}
    for number, data in read_lines(path):
        line = decode(data, _Line, str(path), f"line {number}")
        if line.sample_id in found:
            raise InputError(f"{path}: line {number}: a second answer to {shown(line.sample_id)}")
        found[line.sample_id] = line.answer
    return found


def _judge(
    questions: dict[str, dict[str, list[Any]]],
    answers: dict[str, Any],
    path: Path,
    settings: AnswerRules,
) -> Iterator[tuple[str, tuple[Judged, tuple[float, ...]]]]:
    known = {key for columns in questions.values() for key in columns["sample_id"]}
    strange = sorted(answers.keys() - known)
    if strange:
        raise InputError(
            f"{path}: {len(strange):,} answers are of samples that the dataset does not have, such "
            f"as {shown(strange[0])}"
        )
    for task, columns in questions.items():
        order = sorted(range(len(columns["sample_id"])), key=columns["sample_id"].__getitem__)
        answered = [row for row in order if columns["sample_id"][row] in answers]
        missing = len(order) - len(answered)
        if answered and missing and not settings.allow_missing:
            raise InputError(
                f"{path}: {missing:,} of {len(order):,} samples of {task} have no answer; "
                "--allow-missing leaves them out"
            )
        if answered:
            yield task, _judge_task(task, columns, answered, answers, path, settings)


def _judge_task(
    name: str,
    columns: dict[str, list[Any]],
    rows: list[int],
    answers: dict[str, Any],
    path: Path,
    settings: AnswerRules,
) -> tuple[Judged, tuple[float, ...]]:
    task = TASKS[name]
    keys = [columns["sample_id"][row] for row in rows]
    said = [_read(task, answers[key], key, path) for key in keys]
    true = [columns[task.columns[0]][row] for row in rows]
    credits, bleu = _credits(name, said, true, settings)
    return (
        Judged(
            credits=credits,
            chance={"accuracy": CHANCE[name]} if name in CHANCE else {},
            tied=None,
            clusters=text_array([columns[task.cluster][row] for row in rows]),
            expected=len(columns["sample_id"]),
            keys=text_array(keys),
            units={CIDER: "number"},
        ),
        bleu,
    )


def _read(task: AnswerTask, answer: Any, key: str, path: Path) -> Any:
    try:
        return task.read(answer)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(
            f"{path}: the answer to {shown(key)} is {shown(answer)}; expected {task.form}"
        ) from error


def _credits(
    name: str, said: list[Any], true: list[Any], settings: AnswerRules
) -> tuple[dict[str, NDArray[np.float64]], tuple[float, ...]]:
    if name == "captioning":
        found = score_captions(said, true, settings.tokenizer)
        return {CIDER: found.cider}, found.bleu
    if name == "grounding":
        boxes = [[box[side] for side in ("x", "y", "width", "height")] for box in true]
        return {"accuracy": grounded(np.array(said), np.array(boxes))}, ()
    if name == "vqa":
        scores = [vqa_accuracy(one, people) for one, people in zip(said, true, strict=True)]
        return {"accuracy": np.array(scores)}, ()
    return {"accuracy": (np.array(said) == np.array(true)).astype(np.float64)}, ()


def _bleu(like: Measure, bleu: Sequence[float]) -> Iterator[Measure]:
    for number, value in enumerate(bleu, start=1):
        # A corpus score, so there is no mean to resample.
        yield replace(
            like,
            metric=f"{BLEU}-{number}",
            unit="share",
            value=value,
            low=np.nan,
            high=np.nan,
        )


def _tokenized(measures: Sequence[Measure], settings: AnswerRules) -> Iterator[str]:
    if any(found.metric == CIDER for found in measures):
        yield f"Captions were cut into words by {settings.tokenizer}; BLEU has no interval."
