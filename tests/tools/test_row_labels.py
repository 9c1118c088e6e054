import json
from pathlib import Path
from typing import Any

import pytest

from eqforge.core.errors import InputError
from tools.row_labels import NEGATIVE, POSITIVE, RowLabel, read_labels

LABELS = Path(__file__).parents[1] / "generators/captions/labels.jsonl"


def write(path: Path, *labels: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(label) + "\n" for label in labels))
    return path


def test_the_labels_of_the_tests_are_read() -> None:
    labels = list(read_labels(LABELS))
    assert len(labels) == 885
    right = sum(bool(label.is_right("hard_positive")) for label in labels)
    rows = [json.loads(line) for line in LABELS.read_text().splitlines()]
    ok = [row for row in rows if set(row["positive"]) == {"ok"}]
    assert right == sum(not any(row.get("near", ())) for row in ok)


@pytest.mark.parametrize(
    ("label", "positive", "negative"),
    [
        ({"positive": "ok", "negative": "false"}, True, True),
        ({"positive": ["ok", "ok"], "negative": ["false", "unclear"]}, True, False),
        ({"positive": ["ok", "unidiomatic"], "negative": True}, False, True),
        ({"positive": [True, "ok"], "negative": False, "near": [False, True]}, False, False),
        ({"positive": [], "negative": "true"}, None, False),
        ({}, None, None),
    ],
)
def test_a_text_is_right_where_every_reader_says_so(
    label: dict[str, Any], positive: bool | None, negative: bool | None, tmp_path: Path
) -> None:
    (found,) = read_labels(write(tmp_path / "labels.jsonl", {"id": "a", **label}))
    assert (found.is_right("hard_positive"), found.is_right("hard_negative")) == (
        positive,
        negative,
    )


def test_the_words_of_readers() -> None:
    for word in POSITIVE:
        assert RowLabel(id="a", positive=word).is_right("hard_positive") == (word == "ok")
    for word in NEGATIVE:
        assert RowLabel(id="a", negative=word).is_right("hard_negative") == (word == "false")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            [{"id": "a", "positive": "good"}],
            "line 1: positive: expected ok, unidiomatic, .* 'good'",
        ),
        ([{"id": "a", "negative": ["ok"]}], "line 1: negative: expected false, unclear"),
        ([{"positive": "ok"}], "the field 'id' is missing"),
        ([{"id": "a"}, {"id": "b"}, {"id": "a"}], "lines 1 and 3: 'a' is labelled twice"),
        ([{"id": "a", "positive": 1}], "line 1: positive"),
    ],
)
def test_what_is_no_label_is_one_clear_error(
    labels: list[dict[str, Any]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        list(read_labels(write(tmp_path / "labels.jsonl", *labels)))


def test_a_row_may_be_labelled_in_two_samples(tmp_path: Path) -> None:
    labels = [{"id": "a", "sample": "before"}, {"id": "a", "sample": "after"}]
    assert len(list(read_labels(write(tmp_path / "labels.jsonl", *labels)))) == 2
