"""Read harnesses' results: lmms-eval, VLMEvalKit, BiVLC's code and CLIP_benchmark."""

from collections import defaultdict
from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import clipped, shown
from eqforge.core.files.foreign_tables import csv_rows, xlsx_rows
from eqforge.core.files.typed_json import decode, read_bytes, read_lines

Form = Literal["lmms-eval", "vlmevalkit", "clip-benchmark", "bivlc"]

FAILED: Final = "Failed to obtain answer"
"""Prefix that VLMEvalKit writes for a missing answer."""

_TABLES: Final = {".xlsx": xlsx_rows, ".csv": csv_rows, ".tsv": csv_rows}
_IDS: Final = ("sample_id", "id")


def form_of_file(path: Path) -> Form | None:
    """Return the harness that wrote a file, by its first record; None if none did."""
    if path.is_dir():
        return None
    if path.suffix in (".xlsx", ".tsv"):
        return "vlmevalkit"
    if path.suffix == ".csv":
        return _of_record(next(csv_rows(path), {}))
    if path.suffix == ".jsonl":
        return _of_json(next((data for _, data in read_lines(path)), b""))
    return _of_json(read_bytes(path)) if path.suffix == ".json" else None


def _of_json(data: bytes) -> Form | None:
    try:
        found = msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return None  # other readers report the error
    first = found[0] if isinstance(found, list) and found else found
    return _of_record(first) if isinstance(first, dict) else None


def _of_record(record: dict[str, Any]) -> Form | None:
    if {"filtered_resps", "doc_id"} <= record.keys():
        return "lmms-eval"
    if "prediction" in record:
        return "vlmevalkit"
    if {"pretrained", "task", "metrics"} <= record.keys():
        return "clip-benchmark"
    return "bivlc" if {"text_score_i0", "image_score_c0"} <= record.keys() else None


def check_known(path: Path, keys: Collection[Any], known: Container[Any], kind: str) -> None:
    strange = [key for key in keys if key not in known]
    if strange:
        raise InputError(
            f"{path}: the dataset does not contain {len(strange):,} of the {len(keys):,} {kind}, "
            f"such as {shown(min(strange))}; pass results for this build of the dataset"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Answers:
    """The answers of one model.

    Attributes:
      texts: answers by question id; empty for user-defined tasks.
      scores: for user-defined tasks, the scores of the questions about each sample.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    failed: int = 0
    scores: Mapping[str, list[float]] = field(default_factory=dict)


def read_lmms_eval(path: Path) -> Answers:
    """Read a log of samples of lmms-eval, `*_samples_*.jsonl`.

    Each line of a task that eqforge exported names its question. Other tasks need a metric that is
    an object with a sample's `sample_id` or `id` and a `score`, 0 or 1. The harness itself needs
    this for standard errors.
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
            answer = line.get("filtered_resps")
            if not isinstance(answer, str):
                raise InputError(
                    f"{path}: {where}: expected one string as the answer, found "
                    f"{clipped(repr(answer))}. Run the harness without --repeats"
                )
            _put(texts, key, answer, path, where)
            continue
        sample, score = _scored(items, path, where)
        if (row := str(line.get("doc_id"))) in rows:
            raise InputError(f"{path}: {where}: the doc_id {shown(row)} appears twice; keep one")
        rows.add(row)
        scores[sample].append(score)
    if texts and scores:
        raise InputError(f"{path} contains lines from several tasks; pass one file per task")
    return Answers(texts=texts, scores=scores)


def _put(texts: dict[str, str], key: str, text: str, path: Path, where: str) -> None:
    if key in texts:
        raise InputError(f"{path}: {where}: the question {shown(key)} has two answers; keep one")
    texts[key] = text


def _scored(items: list[dict[str, Any]], path: Path, where: str) -> tuple[str, float]:
    for item in items:
        sample = next((item[name] for name in _IDS if isinstance(item.get(name), str)), None)
        if sample is not None and item.get("score") in (0, 1):
            return sample, float(item["score"])
    raise InputError(
        f"{path}: {where}: no metric has a question_id. Run the tasks that `eqforge export` wrote, "
        "or have your own metric return a sample_id and a score of 0 or 1"
    )


def read_vlmevalkit(path: Path) -> Answers:
    texts: dict[str, str] = {}
    rows: Iterator[Mapping[str, Any]]
    if path.suffix == ".json":
        rows = iter(decode(read_bytes(path), list[dict[str, Any]], str(path)))
    else:
        rows = _TABLES[path.suffix](path)
    for number, row in enumerate(rows, start=1):
        where = f"record {number}"
        if missing := [name for name in ("index", "prediction") if name not in row]:
            raise InputError(
                f"{path}: {where}: the column {missing[0]} is missing. Pass VLMEvalKit's "
                "MODEL_DATASET.xlsx, which has the columns index and prediction"
            )
        prediction = row["prediction"]
        _put(texts, str(row["index"]), "" if prediction is None else str(prediction), path, where)
    answers = {key: text for key, text in texts.items() if not text.startswith(FAILED)}
    return Answers(texts=answers, failed=len(texts) - len(answers))


BIVLC_SCORES: Final[Mapping[str, tuple[str, str]]] = {
    "text": ("text_score_i0", "text_score_i1"),
    "image": ("image_score_c0", "image_score_c1"),
    "group": ("text_score", "image_score"),
}
_FLAGS: Final = {"True": True, "False": False}


class BivlcRow(NamedTuple):
    """A pair of BiVLC's results, and whether its text, image and group score are won."""

    captions: tuple[str, str]
    kind: str
    won: tuple[bool, ...]
    where: str


def read_bivlc(path: Path) -> list[BivlcRow]:
    """Read a CSV of results that BiVLC's code writes: a row per pair, without ids.

    Source: github.com/IMirandaM/BiVLC, `results`.
    """
    found = []
    wanted = ("caption", "negative_caption", "type", "subtype", "group_score")
    for line, row in enumerate(csv_rows(path), start=2):
        where = f"{path}: line {line}"
        if missing := [n for n in (*wanted, *sum(BIVLC_SCORES.values(), ())) if row.get(n) is None]:
            raise InputError(f"{where}: the column {missing[0]} is missing")
        found.append(
            BivlcRow(
                captions=(row["caption"], row["negative_caption"]),
                kind=f"{row['type']}_{row['subtype']}",
                won=tuple(_won(row, name, where) for name in BIVLC_SCORES),
                where=where,
            )
        )
    if not found:
        raise InputError(f"{path} contains no rows")
    return found


def _won(row: Mapping[str, str], name: str, where: str) -> bool:
    names = (f"{name}_score", *BIVLC_SCORES[name])
    flags = [_FLAGS.get(row[each]) for each in names]
    if None in flags:
        wrong = names[flags.index(None)]
        raise InputError(f"{where}: {wrong}: expected True or False, found {shown(row[wrong])}")
    if flags[0] != (flags[1] and flags[2]):
        raise InputError(
            f"{where}: {names[0]} is {flags[0]}, but {names[1]} is {flags[1]} and {names[2]} is "
            f"{flags[2]}. {names[0]} must be True if both others are True, and False otherwise"
        )
    return bool(flags[0])


_SUMS: Final = {
    "pairs": {"text": "text_acc", "image": "image_acc", "group": "acc"},
    "foils": {"pairwise": "text_acc"},
    "rewordings": {"original": "text_acc"},
}


class _Sums(msgspec.Struct):
    task: str
    metrics: dict[str, float]


def read_clip_benchmark(path: Path, samples: int, kind: str) -> dict[str, float]:
    """Read a result of CLIP_benchmark, which has only shares over all samples.

    `kind` is `pairs`, `foils` or `rewordings`; foils and rewordings list the true caption first.
    """
    found = decode(read_bytes(path), _Sums, str(path))
    names = _SUMS[kind]
    if missing := [name for name in names.values() if name not in found.metrics]:
        raise InputError(
            f"{path}: the task {shown(found.task)} has no metric {missing[0]}; pass results of "
            "--task image_caption_selection"
        )
    for name in names.values():
        count = found.metrics[name] * samples
        # Means of 32-bit numbers.
        if not 0 <= count <= samples or abs(count - round(count)) > 1e-6 * samples + 1e-3:
            raise InputError(
                f"{path}: {name} is {found.metrics[name]:g}. A mean over {samples:,} samples "
                "cannot have this value. Pass the results for all splits of this dataset"
            )
    return {metric: found.metrics[name] for metric, name in names.items()}
