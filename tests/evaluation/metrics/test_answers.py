import shutil
from importlib.util import find_spec

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.evaluation.metrics import answers
from eqforge.evaluation.metrics.answers import (
    grounded,
    normal_answer,
    split_captions,
    tokenize,
    vqa_accuracy,
)


def test_vqa_accuracy_is_the_mean_over_leaving_one_person_out() -> None:
    for agreed in range(11):
        people = ["yes"] * agreed + ["no"] * (10 - agreed)
        subsets = [people[:i] + people[i + 1 :] for i in range(10)]
        expected = np.mean([min(subset.count("yes") / 3, 1) for subset in subsets])
        assert vqa_accuracy("yes", people) == pytest.approx(expected)


def test_a_single_annotated_answer_is_right_or_wrong() -> None:
    assert vqa_accuracy("Two.", ["2"]) == 1.0
    assert vqa_accuracy("three", ["2"]) == 0.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Dog!", "dog"),
        ("ten people", "10 people"),
        ("don't", "dont"),
        ("1,000", "1000"),
        ("3.5", "3.5"),
        ("black/white", "black white"),
        ("black / white", "black white"),
        ("None", "0"),
        ("x/-y-z", "x y z"),  # a mark is judged by the answer as it was given
        ("a-b 1,000", "ab 1000"),
        ("U.S.", "us"),
    ],
)
def test_answers_lose_what_does_not_count(text: str, expected: str) -> None:
    assert normal_answer(text) == expected


def test_a_box_counts_from_an_iou_of_one_half() -> None:
    true = np.array([[0, 0, 10, 10]] * 3)
    boxes = np.array([[0, 0, 10, 5], [0, 0, 10, 4.9], [20, 20, 10, 10]])
    assert list(grounded(boxes, true)) == [1, 0, 0]


CAPTIONS = ["A man rides a horse.", "two dogs on the grass", "a red bus"]
REFERENCES = [
    ["A man riding a horse on grass.", "Man on a horse"],
    ["Two dogs play on the grass.", "dogs run, on grass"],
    ["A red bus is parked.", "The red bus in a street", "bus"],
]


def test_brackets_are_words_as_on_cocos_server() -> None:
    """pycocoevalcap 1.2 lists `-LRB-` as punctuation, but lower-cases it first and keeps it."""
    found = tokenize(['A "Man" (left) [b] {c}; don\'t go.'], "treebank")
    assert found == ["a man -lrb- left -rrb- -lsb- b -rsb- -lcb- c -rcb- do n't go"]


@pytest.mark.skipif(find_spec("pycocoevalcap") is None, reason="it is no dependency of eqforge")
def test_the_tokenizer_of_cocos_server_agrees_on_plain_captions() -> None:
    texts = ["A man's dog, (brown) isn't here!", "Two dogs - one ball; fun", ""]
    if shutil.which("java") is None:
        with pytest.raises(InputError, match="needs Java"):
            tokenize(texts, "ptb")
    else:
        assert tokenize(texts, "ptb") == tokenize(texts, "treebank")


def test_the_tokenizer_of_cocos_server_says_where_it_comes_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"pip install --no-deps pycocoevalcap==1\.2"):
        tokenize(["a"], "ptb")


def test_an_image_without_references_is_refused() -> None:
    with pytest.raises(InputError, match="at least one reference"):
        split_captions(["a"], [[]])
