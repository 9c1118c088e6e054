"""Answers to VLUE's tasks: NLVR2 and VQA accuracy, grounding at an IoU of 0.5, BLEU and CIDEr."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any, Final

import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.evaluation.metrics.answers import (
    ACCURACY,
    bleu,
    cider_d,
    grounded,
    split_captions,
    vqa_accuracy,
)
from eqforge.evaluation.metrics.ties import Credits, Flags
from eqforge.evaluation.statistics.bootstrap import Resampled
from eqforge.evaluation.tables.logs import (
    check_known,
    form_of_file,
    read_lmms_eval,
    read_vlmevalkit,
)
from eqforge.evaluation.tables.render import Measure, Report
from eqforge.evaluation.tables.report import Judged, make_report, model_names
from eqforge.evaluation.tables.samples import check_label_column, read_columns, text_array
from eqforge.evaluation.tables.settings import MetricsSettings
from eqforge.evaluation.tasks.answer_files import check_answered, read_answers
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records import lettered
from eqforge.schemas.records.questions import VLUE
from eqforge.sources.vlue import concept_of, question_pairs

CIDER, BLEU = "CIDEr", "BLEU"
PAIRS = "vqa pairs"
CONCEPT = "concept"
DERIVED: Final = {"language": "group", "culture": "group", CONCEPT: "image"}
"""Names of --by and --cluster that VLUE's image names contain, and their column of `samples`."""
LOGS: Final = ("lmms-eval", "vlmevalkit")
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerTask:
    """A task that a model answers in text.

    Attributes:
        read: parses an answer; raises ValueError for an invalid one.
        from_text: parses a harness's text about a row; None if it has no answer.
        unread: a wrong answer, for a text without answer.
        accuracy: maps answers and truths to credits; None for captions, which are scored together.
    """

    cluster: str
    truth: str
    form: str
    read: Callable[[Any], Any]
    accuracy: Callable[[list[Any], list[Any]], Credits] | None = None
    chance: float | None = None
    from_text: Callable[[str, Mapping[str, Any]], Any] = lambda text, row: text
    unread: Any = ""


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


_FLOAT = re.compile(r"(?<![\w.])-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def _truth_of_text(text: str, row: Mapping[str, Any]) -> bool | None:
    del row
    found = lettered.read_answer(text, [], "true")
    return None if found is None else _TRUTHS[found]


def _box_of_text(text: str, row: Mapping[str, Any]) -> list[float] | None:
    """Return the box of the last four numbers: corners in [0, 1], or in pixels if one is larger."""
    found = [float(number) for number in _FLOAT.findall(text)][-4:]
    if len(found) < 4:
        return None
    if max(found) <= 1:
        sides = (row["width_px"], row["height_px"]) * 2
        found = [value * side for value, side in zip(found, sides, strict=True)]
    left, top, right, bottom = found
    return [left, top, right - left, bottom - top]


def _same(answers: list[bool | None], true: list[bool]) -> Credits:
    return np.array([one is other for one, other in zip(answers, true, strict=True)], np.float64)


def _vqa(answers: list[str], true: list[list[str]]) -> Credits:
    return np.array([vqa_accuracy(one, people) for one, people in zip(answers, true, strict=True)])


def _grounded(answers: list[list[float]], true: list[Mapping[str, float]]) -> Credits:
    boxes = [[box[side] for side in ("x", "y", "width", "height")] for box in true]
    return grounded(np.array(answers), np.array(boxes))


TASKS: Final[Mapping[str, AnswerTask]] = {
    "nlvr2": AnswerTask(
        cluster="image_0",
        truth="label",
        form="true or false",
        read=_truth,
        accuracy=_same,
        chance=1 / 2,
        from_text=_truth_of_text,
        unread=None,
    ),
    "vqa": AnswerTask(cluster="image", truth="answers", form="text", read=_text, accuracy=_vqa),
    "captioning": AnswerTask(cluster="image", truth="references", form="text", read=_text),
    "grounding": AnswerTask(
        cluster="image",
        truth="box",
        form="[x, y, width, height] in pixels",
        read=_box,
        accuracy=_grounded,
        from_text=_box_of_text,
        unread=[0.0, 0.0, 0.0, 0.0],
    ),
}


def is_answered(dataset: Dataset) -> bool:
    return bool(TASKS.keys() & dataset.manifest.tables.keys())


def has_answers(path: Path) -> bool:
    return path.suffix in (".jsonl", ".json") or form_of_file(path) in LOGS


def answers_report(dataset: Dataset, paths: Sequence[Path], settings: MetricsSettings) -> Report:
    settings.check_read("answers")
    names = model_names([path.stem for path in paths], paths)
    questions = _questions(dataset, settings)
    judged: dict[str, dict[str, Judged]] = {}
    bleu_of: dict[tuple[str, str], tuple[float, ...]] = {}
    notes: list[str] = []
    for name, path in zip(names, paths, strict=True):
        judged[name] = {}
        unread = Counter[str]()
        for subset, part, orders in _judge(questions, path, settings, unread):
            judged[name][subset] = part
            if orders is not None:
                bleu_of[name, subset] = orders
        notes += [
            f"{name}: {count:,} of the texts for {task} contain no answer, and count as wrong"
            for task, count in unread.items()
            if count
        ]
        if left := [task for task in questions.columns if task not in judged[name]]:
            notes.append(f"{name} contains no answers to {', '.join(left)}")
    if bleu_of:
        notes.append(
            f"The {settings.tokenizer} tokenizer split captions into words. BLEU has no interval. "
            "CIDEr is multiplied by 100, as in papers, so its maximum is 1,000."
        )

    def add(
        model: str, subset: str, part: Judged, means: list[Measure], found: Resampled
    ) -> Iterator[Measure]:
        del part, found
        for order, value in enumerate(bleu_of.get((model, subset), ()), start=1):
            # A corpus score, so there is no mean to resample.
            bleu_n = replace(means[0], metric=f"{BLEU}-{order}", value=value)
            yield replace(bleu_n, low=np.nan, high=np.nan)

    title = f"{dataset.manifest.dataset}: answers, in per cent"
    return make_report(title, settings.rules, judged, notes, add)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Questions:
    """The questions of a dataset.

    Attributes:
        columns: columns of each task's table.
        pairs: pairs of rows of `vqa`, each one question about two images of a concept.
        labels, clusters: value of --by and of --cluster by sample id; empty without the option.
    """

    dataset: Dataset
    columns: Mapping[str, Mapping[str, list[Any]]]
    pairs: Sequence[tuple[int, int]]
    labels: Mapping[str, str]
    clusters: Mapping[str, str]


def _questions(dataset: Dataset, settings: MetricsSettings) -> _Questions:
    columns = {}
    for name, task in TASKS.items():
        if name in dataset.manifest.tables:
            more = {"source_id", "question"} & set(dataset.columns(name))
            columns[name] = read_columns(
                dataset, name, sorted({"sample_id", task.cluster, task.truth} | more)
            )
    vqa = columns.get("vqa", {})
    return _Questions(
        dataset=dataset,
        columns=columns,
        pairs=question_pairs(vqa["image"], vqa["question"]) if "question" in vqa else [],
        labels=_values(dataset, settings.by),
        clusters=_values(dataset, settings.cluster),
    )


def _values(dataset: Dataset, name: str | None) -> dict[str, str]:
    if name is None:
        return {}
    column = DERIVED.get(name, name)
    check_label_column(dataset.schema("samples"), column, dataset.folder)
    found = read_columns(dataset, "samples", list(dict.fromkeys(["sample_id", column])))
    values = ["" if value is None else str(value) for value in found[column]]
    if name == CONCEPT:
        values = list(map(concept_of, values))
    return dict(zip(found["sample_id"], values, strict=True))


def _read_log(questions: _Questions, path: Path, unread: Counter[str]) -> dict[str, Any]:
    """Read a harness's answers to exported tasks by sample id; count texts without answer."""
    log = (read_lmms_eval if form_of_file(path) == "lmms-eval" else read_vlmevalkit)(path).texts
    found: dict[str, Any] = {}
    known: set[str] = set()
    for name in questions.columns:
        sizes = ("width_px", "height_px") if name == "grounding" else ()
        form = VLUE[name]
        for row in questions.dataset.rows(name, ["sample_id", *form.columns, *sizes]):
            for question in form.questions(row):
                known.add(question.question_id)
                if (text := log.get(question.question_id)) is not None:
                    answer = TASKS[name].from_text(lettered.without_thoughts(text), row)
                    unread[name] += answer is None
                    found[row["sample_id"]] = TASKS[name].unread if answer is None else answer
    check_known(path, log, known, "questions")
    return found


def _judge(
    questions: _Questions, path: Path, settings: MetricsSettings, unread: Counter[str]
) -> Iterator[tuple[str, Judged, tuple[float, ...] | None]]:
    """Yield each subset's credits, and BLEU of captions, which has no credits."""
    is_log = form_of_file(path) in LOGS
    answers = (
        _read_log(questions, path, unread) if is_log else read_answers(path, questions.columns)
    )
    known = {key for columns in questions.columns.values() for key in columns["sample_id"]}
    check_answered(path, answers, known)
    for name, columns in questions.columns.items():
        task, keys = TASKS[name], columns["sample_id"]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        rows = [row for row in order if keys[row] in answers]
        missing = len(keys) - len(rows)
        if rows and missing and not settings.allow_missing:
            raise InputError(
                f"{path}: {missing:,} of {len(keys):,} samples of {name} have no answer; pass "
                "--allow-missing to skip them"
            )
        if not rows:
            continue
        raw_answers = {keys[row]: answers[keys[row]] for row in rows}
        predictions = list(raw_answers.values() if is_log else _as_read(path, task, raw_answers))
        unread[name] += 0 if is_log else list(raw_answers.values()).count("")
        true = [columns[task.truth][row] for row in rows]
        words = None
        if task.accuracy is None:
            words = split_captions(predictions, true, settings.tokenizer)
            credits = {CIDER: cider_d(*words)}
        else:
            credits = {ACCURACY: task.accuracy(predictions, true)}
        cluster_names = (
            [questions.clusters[key] or key for key in keys] if questions.clusters else None
        )
        clusters = [(cluster_names or columns[task.cluster])[row] for row in rows]
        whole = Judged(
            credits=credits,
            chance={} if task.chance is None else {ACCURACY: task.chance},
            clusters=text_array(clusters),
            expected=len(keys),
            keys=text_array([keys[row] for row in rows]),
            most={CIDER: 10.0},
        )
        for subset, part, members in _parts(name, whole, keys, questions.labels):
            some: Any = None if words is None else [list(compress(each, members)) for each in words]
            yield subset, part, None if some is None else bleu(*some)
        if name == "vqa" and (both := _pairs(whole, rows, questions.pairs)) is not None:
            firsts = [keys[first] for first, _ in questions.pairs]
            for subset, part, _ in _parts(PAIRS, both, firsts, questions.labels):
                yield subset, part, None


def _as_read(path: Path, task: AnswerTask, answers: Mapping[str, Any]) -> Iterator[Any]:
    """Yield a task's answers in the form that it compares."""
    for key, answer in answers.items():
        try:
            yield task.unread if answer == "" else task.read(answer)
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InputError(
                f"{path}: the answer to {shown(key)}: expected {task.form}, found {shown(answer)}"
            ) from error


def _parts(
    name: str, whole: Judged, keys: Sequence[str], labels: Mapping[str, str]
) -> Iterator[tuple[str, Judged, Flags]]:
    """Yield a task, and its subsets by label if there are several."""
    assert whole.keys is not None
    yield name, whole, np.ones(len(whole.keys), dtype=bool)
    expected = Counter(labels[key] for key in keys) if labels else Counter[str]()
    row_labels = np.array(
        [labels[key] for key in whole.keys.tolist()] if labels else [], dtype=object
    )
    for label in sorted(expected) if len(expected) > 1 else ():
        members = row_labels == label
        if members.any():
            part = whole.part(members, expected=expected[label])
            yield f"{name}/{label or '(none)'}", part, members


def _pairs(whole: Judged, rows: Sequence[int], pairs: Sequence[tuple[int, int]]) -> Judged | None:
    """Return whether both questions of each answered pair are right; None without any."""
    places = {row: place for place, row in enumerate(rows)}
    both = np.array([[places[a], places[b]] for a, b in pairs if {a, b} <= places.keys()])
    if not len(both):
        return None
    part = whole.part(both[:, 0], expected=len(pairs))
    credits = whole.credits[ACCURACY][both].min(axis=1)
    # Pairs about the same two images are not independent, whichever image is asked about first.
    clusters = None if whole.clusters is None else np.sort(whole.clusters[both], axis=1)[:, 0]
    return replace(part, credits={ACCURACY: credits}, clusters=clusters, chance={})
