"""Reads what harnesses write of each question: lmms-eval's logs and VLMEvalKit's predictions."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from eqforge.core.errors import InputError
from eqforge.core.files.checked import clipped, shown
from eqforge.core.files.foreign_tables import csv_rows, xlsx_rows
from eqforge.core.files.typed_json import decode, read_bytes, read_lines

FAILED: Final = "Failed to obtain answer"
"""How VLMEvalKit begins what it writes where a model gave no answer."""

_TABLES: Final = {".xlsx": xlsx_rows, ".csv": csv_rows, ".tsv": csv_rows}
_IDS: Final = ("sample_id", "id")


@dataclass(frozen=True, kw_only=True, slots=True)
class Answers:
    """The answers of one model.

    Attributes:
      texts: what it said, by the id of the question; empty where the task is of the user's own.
      failed: how many questions the harness says that it got no answer to.
      scores: of a task of the user's own, the scores of the questions about each sample.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    failed: int = 0
    scores: Mapping[str, list[float]] = field(default_factory=dict)


def read_lmms_eval(path: Path) -> Answers:
    """Reads a log of samples of lmms-eval, `*_samples_*.jsonl`.

    Of a task that eqforge exported, each line names its question. Of another, a metric has to be an
    object with the `sample_id` or `id` of a sample and a `score`, 0 or 1, as the harness itself
    needs it for standard errors.

    Raises:
      InputError: a line is malformed, names no sample, or is there twice.
    """
    texts: dict[str, str] = {}
    scores: defaultdict[str, list[float]] = defaultdict(list)
    rows = set()
    for number, data in read_lines(path):
        where = f"line {number}"
        line = decode(data, dict[str, Any], str(path), where)
        items = [value for value in line.values() if isinstance(value, dict)]
        key = next((item["question_id"] for item in items if "question_id" in item), None)
        if isinstance(key, str):
            _put(texts, key, _one_answer(line.get("filtered_resps"), path, where), path, where)
            continue
        sample, score = _scored(items, path, where)
        if (row := str(line.get("doc_id"))) in rows:
            raise InputError(f"{path}: {where}: the row {shown(row)} of the task is there twice")
        rows.add(row)
        scores[sample].append(score)
    if texts and scores:
        raise InputError(f"{path}: holds lines of several tasks")
    return Answers(texts=texts, scores=scores)


def _put(texts: dict[str, str], key: str, text: str, path: Path, where: str) -> None:
    if key in texts:
        raise InputError(f"{path}: {where}: the question {shown(key)} is answered twice")
    texts[key] = text


def _one_answer(said: Any, path: Path, where: str) -> str:
    if not isinstance(said, str):
        raise InputError(
            f"{path}: {where}: expected one answer, a text; found {clipped(repr(said))}: ask each "
            "question once, without --repeats"
        )
    return said


def _scored(items: list[dict[str, Any]], path: Path, where: str) -> tuple[str, float]:
    for item in items:
        sample = next((item[name] for name in _IDS if isinstance(item.get(name), str)), None)
        if sample is not None and item.get("score") in (0, 1):
            return sample, float(item["score"])
    raise InputError(
        f"{path}: {where}: no metric names the question_id of a task of eqforge export, nor the "
        "sample_id of a sample with a score of 0 or 1"
    )


def read_vlmevalkit(path: Path) -> Answers:
    """Reads the predictions of VLMEvalKit, `MODEL_DATASET.xlsx`, or `.tsv`, `.csv` or `.json`.

    Raises:
      InputError: a record is malformed, or a question is answered twice.
    """
    texts: dict[str, str] = {}
    failed = 0
    for number, row in enumerate(_rows(path), start=1):
        where = f"record {number}"
        if missing := [name for name in ("index", "prediction") if name not in row]:
            raise InputError(
                f"{path}: {where}: expected the columns index and prediction, which VLMEvalKit's "
                f"MODEL_DATASET.xlsx has; there is no {missing[0]}"
            )
        said = row["prediction"]
        _put(texts, str(row["index"]), "" if said is None else str(said), path, where)
    for key, text in list(texts.items()):
        if text.startswith(FAILED):
            failed += 1
            del texts[key]
    return Answers(texts=texts, failed=failed)


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    if path.suffix == ".json":
        yield from decode(read_bytes(path), list[dict[str, Any]], str(path))
    else:
        yield from _TABLES[path.suffix](path)
