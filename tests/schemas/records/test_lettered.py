"""How answers are read, and what a task counts: also as lmms-eval calls it."""

import itertools
import json
from typing import Any

import pytest
from PIL import Image

from eqforge.schemas.records import lettered
from eqforge.schemas.records.lettered import read_letter

CAPTIONS = ["a red cup", "a cat on a mat"]


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("A", "A"),
        ("b", "B"),
        (" (B) ", "B"),
        ("**A**", "A"),
        ("A.", "A"),
        ("B. a cat on a mat", "B"),
        ("B) a cat on a mat", "B"),
        ("A\nbecause the cup is red", "A"),
        ("The answer is B.", "B"),
        ("The correct option is (A) because of the cup", "A"),
        ("Answer: B", "B"),
        ("The answer is B because of the cat", "B"),
        ("A cat on a mat.", "B"),
        ("a red  CUP", "A"),
        ("A cup that is red", None),
        ("A cat", None),
        ("C", None),
        ("(A) or (B)", None),
        ("The answer is A or the answer is B", None),
        ("The answer is a cat", None),
        ("", None),
        ("I cannot tell", None),
        ("猫", None),
    ],
)
def test_an_answer_is_a_letter_or_the_text_of_an_option(answer: str, letter: str | None) -> None:
    assert read_letter(answer, CAPTIONS) == letter


@pytest.mark.parametrize(
    ("answer", "options", "right", "said"),
    [
        ("Yes, it is.", [], "No", "yes"),
        ("The answer is no.", [], "No", "no"),
        ("FALSE", [], "True", "false"),
        ("Yesterday", [], "Yes", None),
        ("是", [], "Yes", None),
        ("B: Helmet", [], "A", "B"),
        ("(b) a cat", CAPTIONS, "A", "B"),
        ("b. perhaps", CAPTIONS, "A", "B"),
        ("yes", CAPTIONS, "A", None),
    ],
)
def test_an_answer_is_read_in_the_form_of_the_right_one(
    answer: str, options: list[str], right: str, said: str | None
) -> None:
    assert lettered.read_answer(answer, options, right) == said
    assert lettered.is_right(answer, options, right) == (said == right.lower() or said == right)


def test_options_of_one_text_are_told_by_their_letters_alone() -> None:
    assert read_letter("a cup", ["a cup", "A cup."]) is None
    assert read_letter("B", ["a cup", "a cup"]) == "B"


def test_long_answers_take_no_long_time() -> None:
    for text in ("(A" * 50_000, "the answer " * 20_000, "\n" * 100_000, "answer is" + " " * 50_000):
        read_letter(text, CAPTIONS)


def doc(sample: str, asks: str, answer: str, cluster: str = "v") -> dict[str, Any]:
    about = {"question_id": f"{sample}{asks}{answer}", "sample_id": sample, "cluster": cluster}
    counts = {"counts_in": json.dumps({asks: [sample, 2], "group": [sample, 4]})}
    shown = {"image_0": Image.new("L", (2, 2)), "image_1": None}
    return (
        about
        | counts
        | shown
        | {"asks": asks, "question": "?", **dict(zip("AB", CAPTIONS, strict=True))}
        | {"answer": answer}
    )


def test_a_question_is_put_with_its_options() -> None:
    assert lettered.text(doc("s", "text", "A")) == (
        "?\nA. a red cup\nB. a cat on a mat\n"
        "Answer with the option's letter from the given choices directly."
    )
    assert [image.mode for image in lettered.visual(doc("s", "text", "A"))] == ["RGB"]
    both = doc("s", "image", "A") | {"image_1": Image.new("RGB", (3, 3))}
    assert [image.size for image in lettered.visual(both)] == [(2, 2), (3, 3)]


def test_a_sample_counts_once_and_only_if_all_its_questions_were_asked() -> None:
    docs = [
        doc(sample, asks, answer)
        for sample, asks, answer in itertools.product("st", ("text", "image"), "AB")
    ]
    say = {"s": "AB", "t": "AA"}
    found = [
        lettered.results(one, [say[str(one["sample_id"])]["AB".index(str(one["answer"]))]])
        for one in docs[:-1]
    ]
    assert [set(one) for one in found[:4]] == [{"accuracy", "text", "group"}] * 2 + [
        {"accuracy", "image", "group"}
    ] * 2
    items = {
        metric: [one[metric] for one in found if metric in one]
        for metric in ("accuracy", "text", "image", "group")
    }
    assert lettered.accuracy(items["accuracy"]) == 6 / 7
    # Of the second sample one question is missing, of an image.
    assert lettered.right_in_all(items["text"]) == 0.5
    assert lettered.right_in_all(items["image"]) == 1.0
    assert lettered.right_in_all(items["group"]) == 1.0
    scored = [[item.get("score") for item in items[m]] for m in ("text", "image", "group")]
    assert scored == [[1.0, None, 0.0, None], [1.0, None, None], [1.0, *[None] * 6]]
    assert lettered.right_in_all(items["image"][2:]) != lettered.right_in_all([])  # both NaN


def test_what_stands_behind_z_has_no_letter() -> None:
    options = [f"option {number}" for number in range(30)]
    assert read_letter("option 25", options) == "Z"
    assert read_letter("option 27", options) is None
