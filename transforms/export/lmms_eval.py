"""A task of lmms-eval: its settings, its functions, and a Parquet file with a row a question.

The functions are one file for every dataset, `eqforge.schemas.records.lettered`; what a dataset
says stands in the Parquet files alone, and its name, made of letters, in the settings.

Source: lmms-eval 0.7.3, `docs/task_guide.md`, `lmms_eval/api/task.py` and `evaluator_utils.py`.
"""

import inspect
import json
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from eqforge.schemas.records import lettered
from eqforge.schemas.records.lettered import LETTERS
from eqforge.schemas.tables.columns import IMAGE, required, with_metadata
from eqforge.transforms.export import asked
from eqforge.transforms.export.asked import Asked, Asking
from eqforge.transforms.export.target import Export

refusal = asked.refusal

FUNCTIONS: Final = "utils.py"
SETTINGS: Final = "_default_template_yaml"
"""What all tasks share; the harness takes no file of this name for a task."""

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
metadata: {version: 1.0}
"""
_TEXT: Final = pa.string()
_TEXTS: Final = ("question_id", "sample_id", "cluster", "asks", "counts_in", "question", "answer")
"""`asks` is `text` for the caption of an image, `image` for the image of a caption, and `answer`;
`counts_in` is read by `lettered.results`. None is a list, which `datasets` has by another name
before its version 4."""

_MAX_PICTURES_BYTES: Final = 64 << 20


def write(export: Export) -> None:
    """Writes the task; `lmms_eval --include_path FOLDER --tasks NAME` runs it."""
    name, asking = asked.task_name(export.dataset), Asking.of(export)
    schema, paths = schema_of(asking.letters), []
    for split in export.splits:
        for part in export.parts(split):
            paths.append(path := f"data/{part.name}.parquet")
            if not export.has(path):
                with export.file(path) as stream:
                    stream.rows = _write_rows(stream, schema, asking.by_sample(part))
    task = {
        "include": SETTINGS,
        "task": name,
        "dataset_kwargs": {"data_files": {"test": paths}},
    }
    export.put(FUNCTIONS, inspect.getsource(lettered).encode())
    export.put(SETTINGS, _SETTINGS.encode())
    export.put(f"{name}.yaml", json.dumps(task, indent=1).encode() + b"\n")  # which YAML includes


def schema_of(letters: str) -> pa.Schema:
    """Returns the columns of a task whose questions have at most these options."""
    options = [pa.field(letter, _TEXT) for letter in letters]
    # A picture that is never null, `datasets` takes for a structure.
    images = [pa.field(name, IMAGE) for name in ("image_0", "image_1")]
    texts = [required(name, _TEXT) for name in _TEXTS]
    return with_metadata(pa.schema([*texts, *options, *images]), {})


def _write_rows(stream: Any, schema: pa.Schema, samples: Iterator[list[Asked]]) -> int:
    """Writes the questions, those of a sample into one row group; returns how many there are.

    A picture that several questions show is stored once in a row group, as a dictionary.
    """
    pictures = ["image_0.bytes", "image_1.bytes"]
    rows: list[dict[str, Any]] = []
    held: set[str] = set()
    size = total = 0
    with pq.ParquetWriter(
        stream,
        schema,
        compression={field.name: "zstd" for field in schema if field.type != IMAGE},
        use_dictionary=pictures,
        dictionary_pagesize_limit=2 * _MAX_PICTURES_BYTES,
    ) as writer:
        for sample in samples:
            new = {found.image_id: found for each in sample for found in each.pictures}
            more = sum(len(found.data) for key, found in new.items() if key not in held)
            if rows and size + more > _MAX_PICTURES_BYTES:
                writer.write_table(pa.Table.from_pylist(rows, schema))
                rows, held, size = [], set(), 0
            rows += _rows(sample)
            held |= new.keys()
            size, total = size + more, total + len(sample)
        if rows:
            writer.write_table(pa.Table.from_pylist(rows, schema))
    return total


def _rows(sample: list[Asked]) -> Iterator[dict[str, Any]]:
    for each in sample:
        question = each.question
        images = [{"bytes": found.data, "path": found.image_id} for found in each.pictures]
        yield {
            "question_id": question.question_id,
            "sample_id": question.sample_id,
            "cluster": each.cluster,
            "asks": question.asks,
            "counts_in": json.dumps(each.counts_in, sort_keys=True),
            "question": question.question,
            **dict(zip(LETTERS, question.options, strict=False)),
            "answer": question.answer,
            "image_0": images[0],
            "image_1": images[1] if len(images) > 1 else None,
        }
