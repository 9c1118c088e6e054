"""Files of scores that people have: every form says the same, and a wrong one is one sentence."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eqforge.core.errors import InputError
from eqforge.evaluation.tables.scores import read_file, read_labels
from eqforge.evaluation.tasks.samples import TASKS

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
        "value_0 is image_0_id with caption_0, value_1 is image_0_id with caption_1, "
        "value_2 is image_1_id with caption_0, value_3 is image_1_id with caption_1"
    )
    with pytest.raises(InputError, match=rf"value_3 \({order}\); there is no value_0, value_1"):
        read_file(path, pairs.images, pairs.captions)
    scores = np.arange(12.0).reshape(3, 2, 2)
    np.savez(tmp_path / "m.npz", scores=scores, sample_id=["a", "b", "c"])
    found = read_file(tmp_path / "m.npz", pairs.images, pairs.captions)
    assert found.values.tolist() == scores.reshape(3, 4).tolist()
    np.savez(tmp_path / "m.npz", scores=scores[:, :, 0], sample_id=["a", "b", "c"])
    with pytest.raises(InputError, match=rf"{order}\) for each of the 3 ids, .* shape \(3, 2\)"):
        read_file(tmp_path / "m.npz", pairs.images, pairs.captions)


def test_an_archive_that_unpacks_to_more_than_memory_is_refused(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "m.npz", np.zeros((1_000_000, 2)))
    with pytest.raises(InputError, match="would take all memory"):
        read_file(tmp_path / "m.npz", *TWO)
    np.savez(tmp_path / "m.npz", a=np.zeros(2), b=np.zeros(2))
    with pytest.raises(InputError, match=r"expected one array of numbers .* found 2 arrays"):
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
            r"m.json: a: expected 2 scores a sample \(value_0 is image_id with cap.*; found 1",
        ),
        ({"a": [1, "x"]}, r"m.json: a\[1\]: expected a number, found a text 'x'"),
        ({"a": 1}, "m.json: a: expected an array, found a whole number 1"),
        ([{"sample_id": "a"}], "m.json: entry 1: the field 'values' is missing"),
        ([{"sample_id": "\ud800", "values": [1, 2]}], "expected valid Unicode text"),
        ({"a": [1, 10**400]}, "expected a finite number"),
        ([RECORDS[0], RECORDS[0]], "the sample 'a/1' appears twice"),
        (1, "expected an array, found a whole number 1"),
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


def test_an_array_needs_an_id_for_each_row(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.zeros((3, 2)))
    with pytest.raises(InputError, match=r"ids of its rows in .*/m\.ids\.txt, one per line"):
        read_file(tmp_path / "m.npy", *TWO)
    (tmp_path / "m.ids.txt").write_text("a\nb\n")
    with pytest.raises(InputError, match=r"each of the 2 ids, found an array of shape \(3, 2\)"):
        read_file(tmp_path / "m.npy", *TWO)
