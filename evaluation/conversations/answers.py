"""Answers of `eqforge converse`: their folder with its manifest, and their table."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import shown
from eqforge.core.files.typed_json import decode, read_lines
from eqforge.core.visible import counted
from eqforge.evaluation.conversations.questions import ARRANGEMENTS, read_answer
from eqforge.evaluation.metrics.ties import Credits
from eqforge.evaluation.tables.render import Report, Rules
from eqforge.evaluation.tables.report import Judged, make_report
from eqforge.evaluation.tables.samples import Samples
from eqforge.schemas.dataset.manifest import DataFile
from eqforge.schemas.dataset.reader import read_file_batches
from eqforge.schemas.dataset.score_tables import FAILURE_REASONS, Counts
from eqforge.schemas.records.scores import Identity
from eqforge.schemas.tables.columns import required

FILE_NAME = "answers.json"
REASONS = FAILURE_REASONS | {
    "question_too_long": "The question and the answer exceed the model's context length.",
    "refused": "The server did not answer the question.",
}

_TEXT, _NUMBER = pa.string(), pa.int8()

ANSWERS = pa.schema(
    [
        required("sample_id", _TEXT),
        required("image_order", _TEXT),
        required("caption_order", _TEXT),
        required("prompt", _TEXT),
        required("answer", _TEXT),
        pa.field("left", _NUMBER),
        pa.field("right", _NUMBER),
        required("form", _TEXT),
        required("true_left", _NUMBER),
    ],
    metadata={"schema_version": "1"},
)
"""One row per question, four per sample.

`image_order` gives the images from left to right, `01` or `10`, and `caption_order` the captions
numbered 1 and 2. `left` and `right` are the answer's numbers, null if it was not parsed; `form`
says how it was parsed or why not, a key of `questions.FORMS`; `true_left` is correct for the left
image.
"""

FAILURES = pa.schema(
    [required("sample_id", _TEXT), required("reason", _TEXT), required("detail", _TEXT)],
    metadata={"schema_version": "1"},
)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class AnswersManifest:
    """The manifest of a folder of answers.

    Attributes:
      dataset_sha256: SHA-256 of the dataset's `dataset.json`.
      settings: everything except the model that the answers depend on.
      chosen: SHA-256 of the ids of the pairs to ask about.
      forms: how many answers have each form; see `questions.FORMS`.
      versions: eqforge and every library that can change an answer.
    """

    format: Literal["eqforge answers"] = "eqforge answers"
    format_version: Literal[1] = 1
    dataset: str
    dataset_sha256: str
    model: Identity
    settings: dict[str, Any]
    chosen: str
    counts: dict[str, Counts]
    forms: dict[str, int]
    versions: dict[str, str]
    tables: dict[str, list[DataFile]]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """The caption number that an answer gives the left image; None if it could not be parsed."""

    sample_id: str
    orders: tuple[str, str]
    left: int | None
    true_left: int


def path_of(table: str, number: int, of: int) -> str:
    return f"data/{table}-{number:05d}-of-{of:05d}.parquet"


def write_rows(url: str, schema: pa.Schema, rows: Sequence[dict[str, Any]]) -> None:
    with storage.open_atomic(url) as stream:
        pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), stream, compression="zstd")


def describe(folder: str, table: str, of: int) -> list[DataFile]:
    found = []
    for number in range(of):
        path = path_of(table, number, of)
        num_bytes, sha256 = storage.digest(storage.join(folder, path))
        rows = sum(1 for _ in rows_of(folder, path, ["sample_id"]))
        found.append(DataFile(path=path, rows=rows, num_bytes=num_bytes, sha256=sha256))
    return found


def rows_of(folder: str, path: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    for batch in read_file_batches(storage.join(folder, path), list(columns), 10_000):
        yield from batch.to_pylist()


def read_answers(folder: str, files: Sequence[DataFile]) -> list[Answered]:
    columns = ["sample_id", "image_order", "caption_order", "left", "true_left"]
    return [
        Answered(
            sample_id=row["sample_id"],
            orders=(row["image_order"], row["caption_order"]),
            left=row["left"],
            true_left=row["true_left"],
        )
        for file in files
        for row in rows_of(folder, file.path, columns)
    ]


def describe_failures(folder: str, files: Sequence[DataFile]) -> str:
    """Return how many pairs have no answer, and the first reason; empty without any."""
    columns = ["sample_id", "reason", "detail"]
    found = [row for file in files for row in rows_of(folder, file.path, columns)]
    if not found:
        return ""
    first = "{sample_id} ({reason}: {detail})".format(**found[0])
    return f"the model did not answer {counted(len(found), 'pairs')}, for example {first}"


def open_answers(folder: str) -> AnswersManifest | None:
    url = storage.join(folder, FILE_NAME)
    if not storage.exists(url):
        return None
    return decode(
        storage.read_bytes(url), AnswersManifest, f"{url} was not written by eqforge converse"
    )


ORDERS = tuple(arrangement.names for arrangement in ARRANGEMENTS)


def orders_of(answers: Iterable[Answered]) -> tuple[tuple[str, str], ...]:
    """Return all four orders, or the paper's two if no question exchanged the images."""
    return ORDERS if any(answer.orders[0] == "10" for answer in answers) else ORDERS[:2]


def chance_of(orders: int) -> dict[str, float]:
    """Return chance levels: a coin toss per question.

    A constant "1;2" gets 1/2, but is not consistent.
    """
    single = dict.fromkeys(("captions 1,2", "captions 2,1", "every order"), 1 / 2)
    return {**single, "consistent": 2 / 2**orders, "right in all": 1 / 2**orders}


def judge_answers(answers: Iterable[Answered]) -> tuple[list[str], dict[str, Credits]]:
    """Return the sorted sample ids and the credits of each metric [samples].

    `captions 1,2` and `captions 2,1` are the paper's two rows: images in order, captions in order
    and exchanged; an unparsed answer is wrong. `every order` is the mean of all four, or of these
    two if no question exchanged the images.
    `consistent` samples give an image the same caption in all orders; `right in all` samples are
    right in all orders. `1;2` is the share of these answers, 1/2 for a model without position bias;
    `not read` is the share that could not be parsed.
    """
    by_sample: dict[str, dict[tuple[str, str], Answered]] = {}
    for answer in answers:
        found = by_sample.setdefault(answer.sample_id, {})
        if answer.orders in found:
            raise InputError(
                f"the pair {answer.sample_id!r} has two answers with image_order "
                f"{answer.orders[0]!r} and caption_order {answer.orders[1]!r}; keep one"
            )
        found[answer.orders] = answer
    keys = sorted(by_sample)
    wanted = orders_of(answer for found in by_sample.values() for answer in found.values())
    for key in keys:
        if missing := [orders for orders in wanted if orders not in by_sample[key]]:
            raise InputError(
                f"the pair {key!r} has no answer with image_order {missing[0][0]!r} and "
                f"caption_order {missing[0][1]!r}; each pair needs all {len(wanted)} orders"
            )
    rows = [[by_sample[key][orders] for orders in wanted] for key in keys]
    left = np.array([[one.left or 0 for one in row] for row in rows]).reshape(-1, len(wanted))
    true = np.array([[one.true_left for one in row] for row in rows]).reshape(-1, len(wanted))
    right = left == true
    read = left > 0
    # Consistent: all answers give each image its own caption, or all give it the other caption.
    same = right.all(axis=1) | (read & ~right).all(axis=1)
    columns = {
        "captions 1,2": right[:, wanted.index(("01", "01"))],
        "captions 2,1": right[:, wanted.index(("01", "10"))],
        "every order": right.mean(axis=1),
        "consistent": same,
        "right in all": right.all(axis=1),
        "1;2": (left == 1).mean(axis=1),
        "not read": (~read).mean(axis=1),
    }
    return keys, {name: values.astype(np.float64) for name, values in columns.items()}


def answers_report(
    dataset: str,
    model: str,
    samples: Samples,
    answers: Iterable[Answered],
    rules: Rules,
    *,
    allow_missing: bool = False,
) -> Report:
    answers = list(answers)
    keys, credits = judge_answers(answers)
    if not keys:
        raise InputError(f"{model} did not answer any pair in {dataset}")
    if strange := sorted(set(keys) - set(samples.keys.tolist())):
        raise InputError(f"{strange[0]!r} has an answer, but {dataset} has no sample with this id")
    missing = sorted(set(samples.keys.tolist()) - set(keys))
    if missing and not allow_missing:
        raise InputError(
            f"{dataset}: {len(missing):,} of {len(samples.keys):,} pairs have no answer, for "
            f"example {missing[0]!r}; pass --allow-missing to skip them"
        )
    place = {key: number for number, key in enumerate(samples.keys.tolist())}
    places = np.array([place[key] for key in keys])
    clusters = samples.clusters[places]
    whole = Judged(
        credits=credits,
        chance=chance_of(len(orders_of(answers))),
        clusters=clusters,
        expected=len(keys),
    )
    subsets = {
        subset: whole.part(members[places], expected=int(members.sum()))
        for subset, members in samples.subsets.items()
        if members[places].any()
    }
    title = (
        f"{dataset}: pairs in which the model matched captions and images correctly, in per cent"
    )
    notes = (
        "As in the paper, columns 1 and 2 keep the order of the images; column 2 swaps captions.",
        "An unreadable answer counts as wrong. Chance is a coin toss for each question.",
    )
    return make_report(title, rules, {model: subsets}, notes)


class _Foreign(msgspec.Struct):
    sample_id: str
    image_order: Literal["01", "10"]
    caption_order: Literal["01", "10"]
    answer: str


def read_foreign_answers(path: Path, captions: Mapping[str, tuple[str, str]]) -> list[Answered]:
    found = []
    arrangements = {arrangement.names: arrangement for arrangement in ARRANGEMENTS}
    for line, data in read_lines(path):
        row = decode(data, _Foreign, str(path), f"line {line}")
        pair_captions = captions.get(row.sample_id)
        if pair_captions is None:
            raise InputError(
                f"{path}: line {line}: sample_id: no pair with the id {shown(row.sample_id)} was "
                "chosen from the dataset"
            )
        orders = row.image_order, row.caption_order
        arrangement = arrangements[orders]
        first, second = (pair_captions[number] for number in arrangement.captions)
        found.append(
            Answered(
                sample_id=row.sample_id,
                orders=orders,
                left=read_answer(row.answer, (first, second)).left,
                true_left=arrangement.truth[0],
            )
        )
    return found
