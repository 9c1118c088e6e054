"""What is asked about a sample, and how questions are told apart."""

from typing import Any

import pytest

from eqforge.core.errors import InputError
from eqforge.schemas.records.questions import (
    FOILS,
    PAIRS,
    QUESTIONS,
    REWORDINGS,
    Question,
    form_of,
    short_answer,
)

PAIR = {"sample_id": "p", "image_0_id": "i", "image_1_id": "j", "caption_0": "x", "caption_1": "y"}
FOIL = {"sample_id": "f", "image_id": "i", "caption": "true", "hard_negative": "false"}


def told(question: Question) -> tuple[Any, ...]:
    asked = question.question.removeprefix("Which of the two images does this caption describe? ")
    return question.images, asked, question.options, question.answer


def test_a_pair_is_asked_for_captions_and_images_in_both_orders() -> None:
    text, images = "Which caption describes the image?", ("the first image", "the second image")
    assert [told(one) for one in PAIRS.questions(PAIR)] == [
        (("i",), text, ("x", "y"), "A"),
        (("i",), text, ("y", "x"), "B"),
        (("j",), text, ("x", "y"), "B"),
        (("j",), text, ("y", "x"), "A"),
        (("i", "j"), "Caption: x", images, "A"),
        (("j", "i"), "Caption: x", images, "B"),
        (("i", "j"), "Caption: y", images, "B"),
        (("j", "i"), "Caption: y", images, "A"),
    ]


def test_true_captions_are_each_asked_against_the_false_one() -> None:
    assert [told(one)[2:] for one in FOILS.questions(FOIL)] == [
        (("true", "false"), "A"),
        (("false", "true"), "B"),
    ]
    found = REWORDINGS.questions(FOIL | {"hard_positive": "also"})
    assert [told(one)[2:] for one in found][2:] == [
        (("also", "false"), "A"),
        (("false", "also"), "B"),
    ]


ROW = {"sample_id": "q", "image_id": "i", "question": "Is it?", "options": [], "answer": "Yes"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ("Is it? Please answer Yes or No.", (), "Yes")),
        ({"answer": " no "}, ("Is it? Please answer Yes or No.", (), "no")),
        ({"answer": "True"}, ("Is it? Please answer True or False.", (), "True")),
        ({"question": "It?Please answer yes or no"}, ("It?Please answer yes or no", (), "Yes")),
        (
            {"question": "A: 猫; B: 狗;", "answer": "B"},
            (
                "A: 猫; B: 狗; Please output the letter corresponding to the correct option.",
                (),
                "B",
            ),
        ),
        ({"options": ["Open", "Yes"]}, ("Is it?", ("Open", "Yes"), "B")),
    ],
)
def test_a_benchmarks_question_is_asked_once_with_its_hint(
    change: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    (found,) = QUESTIONS.questions(ROW | change)
    assert (found.question, found.options, found.answer) == expected


@pytest.mark.parametrize(
    "change",
    [
        {"image_id": None},
        {"answer": "a dog"},
        {"answer": ""},
        {"answer": "AB"},
        {"options": ["no"]},
        {"options": [str(number) for number in range(27)] + ["Yes"]},
    ],
)
def test_what_no_letter_answers_is_not_asked(change: dict[str, Any]) -> None:
    assert QUESTIONS.questions(ROW | change) == ()


def test_the_short_answer_is_a_letter_of_an_option_or_the_word() -> None:
    assert short_answer("cat", ["dog", "cat"]) == "B"
    assert [short_answer(text, ()) for text in ("C", "c", "yes", "a cat")] == [
        "C",
        None,
        "yes",
        None,
    ]


def test_without_an_image_nothing_is_asked() -> None:
    assert PAIRS.questions(PAIR | {"image_1_id": None}) == ()
    assert FOILS.questions(FOIL | {"image_id": None}) == ()


def test_ids_are_distinct_even_of_equal_texts_and_depend_on_all_that_is_asked() -> None:
    alike = PAIR | {"caption_1": "x", "image_1_id": "i"}
    rows = (PAIR, alike, PAIR | {"caption_1": "z"}, PAIR | {"sample_id": "q"})
    ids = [{one.question_id for one in PAIRS.questions(row)} for row in rows]
    assert [len(each) for each in ids] == [8] * 4
    assert len(ids[0] & ids[2]) == 2  # which image caption_0 is of, in both orders
    assert not ids[0] & ids[3]
    assert PAIRS.questions(PAIR)[0].question_id == "q4bae423a3a637e19"


def test_columns_say_what_is_asked() -> None:
    assert form_of({*PAIR, "source_id"}, "d") is PAIRS
    assert form_of({*FOIL, "image"}, "d") is FOILS
    assert form_of({*FOIL, "image", "hard_positive"}, "d") is REWORDINGS
    assert form_of({*ROW, "group_id"}, "d") is QUESTIONS
    with pytest.raises(InputError, match="d: no task has the columns 'sample_id'"):
        form_of({"sample_id"}, "d")
