"""What is asked about a sample, and how questions are told apart."""

from typing import Any

import pytest

from eqforge.schemas.errors import InputError
from eqforge.schemas.records.questions import FOILS, PAIRS, REWORDINGS, Question, form_of

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
    with pytest.raises(
        InputError, match=r"d: a harness asks about pairs .* have the columns sample_id"
    ):
        form_of({"sample_id"}, "d")
