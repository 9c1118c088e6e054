"""Files of scores that people have: every form says the same, and a wrong one is one sentence."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.evaluation.tables.scores import read_file, read_labels

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
    np.save(folder / "m.npy", np.array(list(SCORES.values())))
    return [folder / name for name in ("m.csv", "m.jsonl", "list.json", "m.json", "m.npy")]


def test_every_form_says_the_same(tmp_path: Path) -> None:
    for path in write(tmp_path):
        scores = read_file(path, 2)
        assert scores.keys.tolist() == list(SCORES)
        assert scores.values.tolist() == list(SCORES.values())
        labelled = path.name in ("m.jsonl", "list.json")
        assert read_labels(path, "subset") == (["s", "s"] if labelled else None)
        assert read_labels(path, "cluster") is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"a": [1]}, "m.json: a: expected 2 scores; found 1"),
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
        read_file(tmp_path / "m.json", 2)


def test_an_id_that_stands_twice_in_an_object_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text('{"a": [1, 2], "a": [3, 4]}')
    with pytest.raises(InputError, match="the key 'a' appears twice"):
        read_file(tmp_path / "m.json", 2)


def test_an_array_of_python_objects_is_refused_in_words(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.array([[1, "a"]], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"m\.npy: expected numbers, found Python objects; save"):
        read_file(tmp_path / "m.npy", 2)


def test_an_array_needs_an_id_for_each_row(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.zeros((3, 2)))
    with pytest.raises(InputError, match=r"ids of its rows in .*/m\.ids\.txt, a line each"):
        read_file(tmp_path / "m.npy", 2)
    (tmp_path / "m.ids.txt").write_text("a\nb\n")
    with pytest.raises(InputError, match=r"each of the 2 ids .*, found an array of shape \(3, 2\)"):
        read_file(tmp_path / "m.npy", 2)
