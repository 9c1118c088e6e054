"""Builds from Hugging Face's folders have the rows of builds from JSON lines."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eqforge.pipelines import hard_positives, retrieval_perturbations
from eqforge.schemas.dataset.reader import Dataset, open_dataset

CAPTIONS = [
    {"image": f"{n}.jpg", "caption": f"A small brown dog runs past {n} red cars.", "split": "test"}
    for n in range(6)
]
PAIRS = [
    {
        "image_path": f"{n}.jpg",
        "true_caption": f"the red car and the {colour} dog",
        "false_caption": f"the {colour} car and the red dog",
    }
    for n, colour in enumerate(("brown", "black", "white"))
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


def test_text_pairs_of_a_snapshot_make_the_rows_of_json_lines(tmp_path: Path) -> None:
    lines = tmp_path / "pairs.jsonl"
    lines.write_text("\n".join(map(json.dumps, PAIRS)))
    found = [
        list(build(hard_positives, "--pairs", source, tmp_path / f"out{number}").rows("samples"))
        for number, source in enumerate((lines, write(tmp_path / "hub", PAIRS[::-1], 2)))
    ]
    assert found[0]
    kept = [[row | {"source_order": 0} for row in rows] for rows in found]
    assert kept[0] == kept[1]


def test_a_folder_without_captions_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_bytes(b"")
    command = ["--captions", str(tmp_path / "photos"), "--output", str(tmp_path / "out")]
    with pytest.raises(SystemExit, match="2"):
        retrieval_perturbations.main(command)
    said = capsys.readouterr().err
    assert "no captions in this folder; expected state.json" in said
    assert not (tmp_path / "out").exists()
