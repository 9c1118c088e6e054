"""Files of scores that people have: every form says the same, and a wrong one is one sentence."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eqforge.core.errors import InputError
from eqforge.evaluation.tables.score_files import read_labels
from eqforge.evaluation.tables.scores import read_file
from eqforge.evaluation.tasks.samples import TASKS
from eqforge.schemas.dataset.reader import open_dataset
from tests.made_datasets import write_dataset

TWO = ("image_id",), ("caption", "hard_negative")
SCORES = {"a/1": [0.5, -1.0], "b/2": [3, 0.1]}
RECORDS = [{"sample_id": key, "values": values, "subset": "s"} for key, values in SCORES.items()]


def write(folder: Path) -> list[Path]:
    rows = [f"{key},{first},{second}" for key, (first, second) in SCORES.items()]
    texts = {
        "m.csv": "\n".join(["sample_id,value_0,value_1", *rows]),
        "m.jsonl": "\n".join(map(json.dumps, RECORDS)),
        "list.json": json.dumps(RECORDS, indent=1),
        "m.json": json.dumps(SCORES),
        "m.ids.txt": "\n".join(SCORES) + "\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    ids, values = list(SCORES), np.array(list(SCORES.values()))
    np.save(folder / "m.npy", values)
    np.savez_compressed(folder / "named.npz", sample_id=ids, scores=values[:, None])
    np.savez(folder / "m.npz", values.astype(np.float64))
    columns = {"value_0": values[:, 0], "value_1": values[:, 1]}
    pq.write_table(pa.table({"sample_id": ids, **columns}), folder / "m.parquet")
    names = ("m.csv", "m.jsonl", "list.json", "m.json", "m.npy", "named.npz", "m.npz", "m.parquet")
    return [folder / name for name in names]


def test_the_message_names_the_image_and_the_caption_of_each_column(tmp_path: Path) -> None:
    path, pairs = tmp_path / "m.csv", TASKS["pairs"]
    path.write_text("sample_id,score\na,1\n")
    order = (
        "c0_i0 is caption_0 with image_0_id, c1_i0 is caption_1 with image_0_id, "
        "c0_i1 is caption_0 with image_1_id, c1_i1 is caption_1 with image_1_id"
    )
    with pytest.raises(InputError, match=rf"c1_i1 \({order}\). Alternatively, a column") as error:
        read_file(path, pairs.images, pairs.captions)
    assert "m.csv: missing columns: c0_i0, c1_i0, c0_i1, c1_i1. Expected" in str(error.value)
    assert "sample_id,c0_i0,c1_i0,c0_i1,c1_i1 / a/1,0.31,0.29,0.27,0.25" in str(error.value)
    assert "pass --columns c0_i0=NAME" in str(error.value)
    scores = np.arange(12.0).reshape(3, 2, 2)
    np.savez(tmp_path / "m.npz", scores=scores, sample_id=["a", "b", "c"])
    found = read_file(tmp_path / "m.npz", pairs.images, pairs.captions)
    assert found.values.tolist() == scores.reshape(3, 4).tolist()
    np.savez(tmp_path / "m.npz", scores=scores[:, :, 0], sample_id=["a", "b", "c"])
    with pytest.raises(
        InputError,
        match=rf"4 scores for each id; found the shape \(3, 2\). Order of the scores: {order}",
    ):
        read_file(tmp_path / "m.npz", pairs.images, pairs.captions)


def test_an_archive_that_unpacks_to_more_than_memory_is_refused(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "m.npz", np.zeros((1_000_000, 2)))
    with pytest.raises(InputError, match="do not fit in memory"):
        read_file(tmp_path / "m.npz", *TWO)
    np.savez(tmp_path / "m.npz", a=np.zeros(2), b=np.zeros(2))
    with pytest.raises(InputError, match=r"found 2 arrays: .* pass one array of numbers"):
        read_file(tmp_path / "m.npz", *TWO)


def test_every_form_says_the_same(tmp_path: Path) -> None:
    for path in write(tmp_path):
        scores = read_file(path, *TWO)
        assert scores.keys.tolist() == list(SCORES)
        assert scores.values.tolist() == list(SCORES.values())
        labelled = path.name in ("m.jsonl", "list.json")
        assert read_labels(path, "subset") == (["s", "s"] if labelled else None)
        assert read_labels(path, "cluster") is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"a": [1]},
            "m.json: a: expected 2 scores, found 1. Their order: c0_i0 is caption with image_id",
        ),
        ({"a": [1, "x"]}, r"m.json: a.values\[1\]: expected a number, found 'x'"),
        ({"a": 1}, "m.json: a: expected 2 scores, found 1"),
        ([{"sample_id": "a"}], "missing columns: c0_i0, c1_i0. Expected"),
        ([{"sample_id": "\ud800", "values": [1, 2]}], "expected valid Unicode text"),
        ({"a": [1, 10**400]}, "expected a finite number"),
        ([RECORDS[0], RECORDS[0]], "the sample 'a/1' appears twice"),
        (1, "expected an array, found 1"),
    ],
)
def test_json_of_another_form_is_refused(tmp_path: Path, content: Any, message: str) -> None:
    (tmp_path / "m.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=message):
        read_file(tmp_path / "m.json", *TWO)


def test_an_id_that_stands_twice_in_an_object_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text('{"a": [1, 2], "a": [3, 4]}')
    with pytest.raises(InputError, match="the key 'a' appears twice"):
        read_file(tmp_path / "m.json", *TWO)


def test_an_array_of_python_objects_is_refused_in_words(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.array([[1, "a"]], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"m\.npy: expected numbers, found Python objects; save"):
        read_file(tmp_path / "m.npy", *TWO)


def test_an_array_has_an_id_for_each_row_or_none(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.zeros((3, 2)))
    found = read_file(tmp_path / "m.npy", *TWO)
    assert found.keys.tolist() == ["row 0", "row 1", "row 2"]
    assert found.warnings == ("3 rows without ids were numbered.",)
    (tmp_path / "m.ids.txt").write_text("a\nb\n")
    with pytest.raises(InputError, match=r"of shape \(2, 2\) or .* found the shape \(3, 2\)"):
        read_file(tmp_path / "m.npy", *TWO)


NAMES = ("c0_i0", "c1_i0", "c0_i1", "c1_i1")
IDS = ["b", "a", "c"]
MATRICES = np.random.default_rng(0).normal(size=(3, 2, 2))
"""Scores [samples, images, captions]."""


def pair_files(folder: Path, names: Sequence[str], key: str) -> Iterator[Path]:
    """Write the scores in every form: a column for each score, lists, nested lists, arrays."""
    by_image = {name: MATRICES[:, n // 2, n % 2] for n, name in enumerate(names)}
    lists = {"flat": MATRICES.reshape(3, 4).tolist(), "nested": MATRICES.tolist()}
    tables = {"columns": {name: values.tolist() for name, values in by_image.items()}}
    tables |= {form: {"values": rows} for form, rows in lists.items()}
    for form, columns in tables.items():
        rows = [
            {key: sample, **{name: values[n] for name, values in columns.items()}}
            for n, sample in enumerate(IDS)
        ]
        pd.DataFrame(rows).to_csv(folder / f"{form}.csv", index=False)
        pd.DataFrame(rows).to_parquet(folder / f"{form}.parquet")
        (folder / f"{form}.jsonl").write_text("\n".join(map(json.dumps, rows)))
        (folder / f"{form}.json").write_text(json.dumps(rows))
        yield from (folder / f"{form}.{suffix}" for suffix in ("csv", "parquet", "jsonl", "json"))
    ids = np.array(IDS)
    columns_and_ids: dict[str, Any] = {key: ids, **by_image}
    np.savez(folder / "columns.npz", **columns_and_ids)
    array_and_ids: dict[str, Any] = {key: ids, "scores": MATRICES}
    np.savez(folder / "array.npz", **array_and_ids)
    yield from (folder / "columns.npz", folder / "array.npz")


@pytest.mark.parametrize(
    ("names", "key"),
    [(NAMES, "sample_id"), ([f"value_{n}" for n in range(4)], "sample_id"), ("abcd", "id")],
)
def test_every_form_of_a_pairs_scores_is_read_by_name(
    tmp_path: Path, names: Sequence[str], key: str
) -> None:
    renamed = key == "id"
    pairs = TASKS["pairs"]
    for path in pair_files(tmp_path, names, key):
        own = [f"{field}={name}" for field, name in zip(NAMES, names, strict=True)]
        given = ["sample_id=id", *(own if "columns" in path.name else ())] if renamed else ()
        found = read_file(path, pairs.images, pairs.captions, names=given)
        assert found.keys.tolist() == IDS, path.name
        np.testing.assert_array_equal(found.values, MATRICES.reshape(3, 4), err_msg=path.name)


def test_arrays_without_ids_have_the_samples_of_the_dataset_in_order(tmp_path: Path) -> None:
    blank = dict.fromkeys(("image_0_id", "image_1_id", "caption_0", "caption_1", "source_id"), "x")
    rows = [{"sample_id": key, **blank} for key in sorted(IDS)]
    dataset = open_dataset(str(write_dataset(tmp_path / "d", "eq-video", {"samples": rows})))
    stored = [row["sample_id"] for row in dataset.rows("samples", ["sample_id"])]
    assert sorted(stored) == sorted(IDS)
    for name in ("m.npy", "m.npz"):
        (np.save if name == "m.npy" else np.savez)(tmp_path / name, MATRICES)
        found = TASKS["pairs"].read(tmp_path / name, dataset, None)
        assert found.keys.tolist() == stored
        assert found.values.tolist() == MATRICES.reshape(3, 4).tolist()
        assert found.warnings == (
            "3 rows without ids were joined with the dataset's samples in order.",
        )
    np.save(tmp_path / "m.npy", MATRICES[:2])
    with pytest.raises(InputError, match=r"or \(3, 2, 2\), .* found the shape \(2, 2, 2\)"):
        TASKS["pairs"].read(tmp_path / "m.npy", dataset, None)
    (tmp_path / "m.jsonl").write_text('{"sample_id": "a"}')
    with pytest.raises(InputError, match=r'Example row: {"sample_id": "[abc]", "c0_i0": 0.31'):
        TASKS["pairs"].read(tmp_path / "m.jsonl", dataset, None)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("c0_i0=left", "m.csv has no column 'left'"),
        ("c9_i0=a", "unknown field 'c9_i0'"),
        ("c0_i0", "expected FIELD=COLUMN"),
    ],
)
def test_a_name_that_no_column_has_is_an_error(tmp_path: Path, columns: str, message: str) -> None:
    (tmp_path / "m.csv").write_text("sample_id,a,c1_i0\nx,1,2\n")
    with pytest.raises(InputError, match=message):
        read_file(tmp_path / "m.csv", *TWO, names=(columns,))
    assert read_file(tmp_path / "m.csv", *TWO, names=("c0_i0=a",)).values.tolist() == [[1.0, 2.0]]
