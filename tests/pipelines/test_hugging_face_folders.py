"""Builds from Hugging Face's folders have the rows of builds from JSON lines."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eqforge.pipelines import retrieval_perturbations
from eqforge.schemas.dataset.reader import Dataset, open_dataset

CAPTIONS = [
    {"image": f"{n}.jpg", "caption": f"A small brown dog runs past {n} red cars.", "split": "test"}
    for n in range(6)
]


def write(folder: Path, rows: list[dict[str, Any]], shards: int) -> Path:
    (folder / "data").mkdir(parents=True)
    for number in range(shards):
        file = folder / "data" / f"test-{number:05}-of-{shards:05}.parquet"
        pq.write_table(pa.Table.from_pylist(rows[number::shards]), file)
    return folder


def build(module: Any, flag: str, source: Path, output: Path) -> Dataset:
    assert module.main([flag, str(source), "--output", str(output)]) == 0
    return open_dataset(str(output))


def test_captions_of_a_snapshot_make_the_rows_of_json_lines(tmp_path: Path) -> None:
    lines = tmp_path / "captions.jsonl"
    lines.write_text("\n".join(map(json.dumps, CAPTIONS)))
    bare = [{k: v for k, v in row.items() if k != "split"} for row in CAPTIONS]
    sources = (lines, write(tmp_path / "one", bare, 1), write(tmp_path / "two", bare[::-1], 2))

    built = [
        build(retrieval_perturbations, "--captions", source, tmp_path / f"out{number}")
        for number, source in enumerate((*sources, sources[2] / "test"))
    ]

    rows = [list(dataset.rows("samples")) for dataset in built]
    assert rows[0] == rows[1] == rows[2] == rows[3]
    inputs = [[file.name for file in dataset.manifest.inputs] for dataset in built]
    names = [f"data/test-0000{number}-of-00002.parquet" for number in range(2)]
    assert inputs == [["captions.jsonl"], ["data/test-00000-of-00001.parquet"], names, names]
