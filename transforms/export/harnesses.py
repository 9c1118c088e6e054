"""Writes a dataset's questions as tasks of evaluation harnesses, with their images.

* lmms-eval: settings, functions, and a Parquet file with one row per question. The functions are
  one file for every dataset, `eqforge.schemas.records.lettered`. Text from a dataset appears in the
  Parquet files only; the settings have its name, reduced to letters.
  Source: lmms-eval 0.7.3, `docs/task_guide.md`, `lmms_eval/api/task.py` and `evaluator_utils.py`.
* VLMEvalKit: a table with one row per question and base64 images. In the folder that the variable
  LMUData names, the file's name is the dataset's name. The columns A and B make it multiple choice;
  without them the harness asks the question unchanged, and evaluates nothing.
  Source: VLMEvalKit (ms-vlmeval 0.0.20), `vlmeval/dataset/__init__.py`, `image_base.py` and
  `image_mcq.py`.
* CLIP_benchmark: tar shards of an image with its true caption, which comes first, and the false
  one. It reads pairs of images only from the hub's Winoground, by that name.
  Source: CLIP_benchmark 1.6.2, `datasets/builder.py` (build_wds_dataset) and
  `metrics/image_caption_selection.py`.
"""

import base64
import csv
import inspect
import io
import json
import re
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from eqforge.core.errors import InputError
from eqforge.core.files.checked import name_of, shown
from eqforge.core.visible import counted
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records import lettered
from eqforge.schemas.records.lettered import LETTERS
from eqforge.schemas.records.questions import (
    FOILS,
    QUESTIONS,
    REWORDINGS,
    UNITS,
    VLUE,
    Question,
    form_of,
)
from eqforge.schemas.tables.columns import IMAGE, required, with_metadata
from eqforge.transforms.export.folders import write_tar
from eqforge.transforms.export.formats import Writer
from eqforge.transforms.export.pictures import Picture
from eqforge.transforms.export.target import Export, ExportStream, Part, Record

_SETTINGS_NAME: Final = "_default_template_yaml"
"""Settings that all tasks share; lmms-eval takes no file of this name for a task."""
_SETTINGS: Final = """\
dataset_path: parquet
test_split: test
output_type: generate_until
doc_to_visual: !function utils.visual
doc_to_text: !function utils.text
doc_to_target: answer
process_results: !function utils.results
generation_kwargs: {max_new_tokens: 16, temperature: 0, do_sample: false}
cluster_key: cluster
metric_list:
  - {metric: accuracy, aggregation: !function utils.accuracy, higher_is_better: true}
  - {metric: text, aggregation: !function utils.right_in_all, higher_is_better: true}
  - {metric: image, aggregation: !function utils.right_in_all, higher_is_better: true}
  - {metric: question, aggregation: !function utils.right_in_all, higher_is_better: true}
  - {metric: group, aggregation: !function utils.right_in_all, higher_is_better: true}
  - {metric: answered, aggregation: !function utils.accuracy, higher_is_better: true}
metadata: {version: 1.0}
"""
_TEXTS: Final = ("question_id", "sample_id", "cluster", "asks", "counts_in", "question", "answer")
"""`asks` is `text` (image to caption) or `image` (caption to image), and so is `answer`;
`lettered.results` reads `counts_in`. None is a list, as `datasets` below version 4 names lists
differently.
"""
_MAX_PICTURES_BYTES: Final = 64 << 20

_TABLE_COLUMNS: Final = ("answer", "category", "sample_id", "cluster", "image")
"""After `index`, `question` and the options. VLMEvalKit prints accuracy by `category` (`asks`)."""
_READ_AS_NOTHING: Final = frozenset(
    {
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
        *("1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    }
)
"""Texts that pandas, with which VLMEvalKit reads the table, takes for a missing value."""

_FOIL_CAPTIONS: Final = ("caption", "hard_negative")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """A question with its images.

    Attributes:
      cluster: the sample's cluster; its own id if that is null.
      counts_in: by metric, the unit that it must be right in, and that unit's number of questions.
    """

    question: Question
    cluster: str
    pictures: tuple[Picture, ...]
    counts_in: dict[str, tuple[str, int]]


def _refusal(dataset: Dataset, table: str, unreadable: Container[str] = ()) -> str:
    try:
        form = form_of(set(dataset.columns(table)), "a table")
    except InputError as error:
        return str(error).removeprefix("a table: ")
    if not dataset.manifest.num_rows("images"):
        return f"the dataset has no images to ask about; {dataset.remedy}"
    for row in dataset.rows(table, ["sample_id", *form.columns]):
        for name in form.columns:
            if row[name] is None:
                return f"sample {shown(row['sample_id'])} has no {name!r}; every sample needs one"
            for text in row[name] if isinstance(row[name], list) else [row[name]]:
                if text in unreadable:
                    where = f"{name_of(row['sample_id'])}: the harness would read the {name}"
                    return f"{where} {shown(text)} as a missing value"
        if not form.questions(row):
            return (
                f"the sample {shown(row['sample_id'])} has the answer {shown(row['answer'])}; "
                f"expected yes, no, a letter, or one of up to {len(LETTERS)} options"
            )
    return ""


def _task_name(export: Export) -> str:
    table = export.settings.table
    name = export.dataset.manifest.dataset + ("" if table == "samples" else f"_{table}")
    return "eqforge_" + re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


class _Asking:
    """The questions of an export's rows, with letters for the longest option list."""

    def __init__(self, export: Export) -> None:
        self._form = form_of(set(export.schema.names), export.dataset.folder)
        self.is_vlue = self._form in VLUE.values()
        self._sizes = Counter[tuple[str, ...]]()
        most = 0 if self.is_vlue else 2
        if self._form is QUESTIONS:
            most = 0
            for row in export.dataset.rows(export.settings.table):
                most = max(most, len(row["options"]))
                self._sizes.update((metric, *unit(row)) for metric, unit in UNITS.items())
        self.letters = LETTERS[: max(most, 2)] if most else ""

    def of(self, record: Record) -> list[_Asked]:
        pictures = {each.image_id: each for each in record.pictures.values() if each is not None}
        cluster: Any = record.row[self._form.cluster]
        questions = self._form.questions(record.row)
        same = Counter(question.asks for question in questions)
        units = {metric: unit(record.row) for metric, unit in UNITS.items()} if self._sizes else {}
        items = []
        for question in questions:
            if self._form is QUESTIONS:
                counts_in = {
                    metric: (json.dumps(unit), self._sizes[(metric, *unit)])
                    for metric, unit in units.items()
                }
            else:
                counts_in = {"group": (question.sample_id, len(questions))}
                if len(same) > 1:
                    counts_in[question.asks] = (question.sample_id, same[question.asks])
            items.append(
                _Asked(
                    question=question,
                    cluster=record.id if cluster is None else str(cluster),
                    pictures=tuple(pictures[image] for image in question.images),
                    counts_in=counts_in,
                )
            )
        return items


def _write_lmms_eval(export: Export) -> None:
    """Write the task; `lmms_eval --include_path FOLDER --tasks NAME` runs it."""
    name, asking, paths = _task_name(export), _Asking(export), []
    for part in export.all_parts():
        paths.append(path := f"data/{part.name}.parquet")
        if not export.has(path):
            with export.file(path) as stream:
                _write_questions(stream, asking, part)
    task: dict[str, Any] = {
        "include": _SETTINGS_NAME,
        "task": name,
        "dataset_kwargs": {"data_files": {"test": paths}},
    }
    if asking.is_vlue:  # captions and boxes are longer than a letter
        task["generation_kwargs"] = {"max_new_tokens": 64, "temperature": 0, "do_sample": False}
    export.put("utils.py", inspect.getsource(lettered).encode())
    export.put(_SETTINGS_NAME, _SETTINGS.encode())
    export.put(f"{name}.yaml", json.dumps(task, indent=1).encode() + b"\n")  # which YAML includes


def _write_questions(stream: ExportStream, asking: _Asking, part: Part) -> None:
    """Write the questions; those of one sample share a row group.

    An image that several questions show is stored once per row group, as a dictionary.
    """
    schema = with_metadata(
        pa.schema(
            [
                *(required(name, pa.string()) for name in _TEXTS),
                *(pa.field(letter, pa.string()) for letter in asking.letters),
                # `datasets` takes an image that is never null for a structure.
                *(pa.field(name, IMAGE) for name in ("image_0", "image_1")),
            ]
        ),
        {},
    )
    rows: list[dict[str, Any]] = []
    stored_ids: set[str] = set()
    size = 0
    with pq.ParquetWriter(
        stream,
        schema,
        compression={field.name: "zstd" for field in schema if field.type != IMAGE},
        use_dictionary=["image_0.bytes", "image_1.bytes"],
        dictionary_pagesize_limit=2 * _MAX_PICTURES_BYTES,
    ) as writer:
        for record in part.records():
            sample = asking.of(record)
            new = {found.image_id: found for each in sample for found in each.pictures}
            more = sum(len(found.data) for key, found in new.items() if key not in stored_ids)
            if rows and size + more > _MAX_PICTURES_BYTES:
                writer.write_table(pa.Table.from_pylist(rows, schema))
                rows, stored_ids, size = [], set(), 0
            rows += map(_question_row, sample)
            stored_ids |= new.keys()
            size += more
            stream.rows += len(sample)
        if rows:
            writer.write_table(pa.Table.from_pylist(rows, schema))


def _question_row(item: _Asked) -> dict[str, Any]:
    question = item.question
    images = [{"bytes": found.data, "path": found.image_id} for found in item.pictures]
    return {
        "question_id": question.question_id,
        "sample_id": question.sample_id,
        "cluster": item.cluster,
        "asks": question.asks,
        "counts_in": json.dumps(item.counts_in, sort_keys=True),
        "question": question.question,
        **dict(zip(LETTERS, question.options, strict=False)),
        "answer": question.answer,
        "image_0": images[0],
        "image_1": images[1] if len(images) > 1 else None,
    }


def _write_vlmevalkit(export: Export) -> None:
    path = f"{_task_name(export)}.tsv"
    if export.has(path):
        return
    asking = _Asking(export)
    with export.file(path) as stream:
        stream.write(_line(["index", "question", *asking.letters, *_TABLE_COLUMNS]))
        for part in export.all_parts():
            for record in part.records():
                shown_by: dict[str, str] = {}
                for item in asking.of(record):
                    question = item.question
                    options = zip_longest(asking.letters, question.options, fillvalue="")
                    row = [question.question_id, question.question, *(text for _, text in options)]
                    row += [question.answer, question.asks, question.sample_id, item.cluster]
                    row += [_image(question.question_id, item.pictures, shown_by)]
                    stream.write(_line(row))
                    stream.rows += 1


def _line(row: list[str]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(row)
    return text.getvalue().encode()


def _image(question_id: str, pictures: tuple[Picture, ...], shown_by: dict[str, str]) -> str:
    """Return a base64 image, or the id of a question that shows it; a list for several images.

    The harness evaluates a list as Python: it has only letters, digits, +, / and = in it.
    """
    if len(pictures) > 1:
        return json.dumps([base64.b64encode(found.data).decode() for found in pictures])
    (picture,) = pictures
    if (other := shown_by.setdefault(picture.image_id, question_id)) != question_id:
        return other
    return base64.b64encode(picture.data).decode()


def _refuse_clip_benchmark(dataset: Dataset, table: str) -> str:
    if reason := _refusal(dataset, table):
        return reason
    if form_of(set(dataset.columns(table)), dataset.folder) not in (FOILS, REWORDINGS):
        return (
            "expected images with a caption and a foil; CLIP_benchmark reads no other samples, "
            "except Winoground"
        )
    for row in dataset.rows(table, ["sample_id", *_FOIL_CAPTIONS]):
        for name in _FOIL_CAPTIONS:
            if (number := len(row[name].splitlines())) != 1:
                found = counted(number, "lines")
                return f"the {name!r} of {shown(row['sample_id'])} has {found}; expected one line"
    return ""


def _write_clip_benchmark(export: Export) -> None:
    for split in export.splits:
        shards = 0
        for part in export.parts(split):
            shards += 1
            path = f"{split.name}/{part.number}.tar"
            if not export.has(path):
                with export.file(path, rows=part.rows) as stream:
                    write_tar(stream, _captioned(part))
        export.put(f"{split.name}/nshards.txt", b"%d\n" % shards)
    export.put("dataset_type.txt", b"retrieval\n")


def _captioned(part: Part) -> Iterator[tuple[str, bytes]]:
    for record in part.records():
        (picture,) = filter(None, record.pictures.values())
        captions = "\n".join(record.row[name] for name in _FOIL_CAPTIONS) + "\n"
        yield record.key + picture.suffix, picture.data
        yield f"{record.key}.txt", captions.encode()


WRITERS: Final = {
    "lmms-eval": Writer(_write_lmms_eval, _refusal),
    "vlmevalkit": Writer(_write_vlmevalkit, partial(_refusal, unreadable=_READ_AS_NOTHING)),
    "clip-benchmark": Writer(_write_clip_benchmark, _refuse_clip_benchmark),
}
