"""Answers in many forms are read as what they say, and others not at all."""

import pytest

from eqforge.evaluation.conversations.questions import FORMS, QUESTION, read_answer

CAPTIONS = ("cut the red onion", "fry the onion in a pan on the left")

IN_ORDER = [
    "1;2",
    "1; 2",
    " 1 ; 2.",
    '"1;2"',
    "**1;2**",
    "(1;2)",
    "#1; #2",
    "#1;#2",
    "1,2",
    "1, 2",
    "1 and 2",
    "1 2",
    "1/2",
    "Answer: 1;2",
    "The answer is 1;2.",
    "The answer is: 1, 2",
    "caption 1; caption 2",
    "Caption 1 and caption 2.",
    "Sure! The answer would be 1;2, because the left one shows an onion being cut.",
    "1;2\n\nCaption 1 corresponds to the left image.",
    "Caption 1 corresponds to the left image, and caption 2 corresponds to the right image.",
    "The left image is caption 1; the right image is caption 2.",
    "The left image corresponds to caption 1, while the right one corresponds to caption 2.",
    "Caption 2 belongs to the right one.",
    "Caption 1 corresponds to image left",
    "Left: 1, right: 2",
    "Left image: caption 1\nRight image: caption 2",
    "left -> 1; right -> 2",
    "The first caption describes the image on the left, the second caption the one on the right.",
    "The image on the right matches caption #2.",
    "#1 is for the left image; #2 is for the right image",
    'The left image shows "cut the red onion".',
    "cut the red onion; fry the onion in a pan on the left",
    'Caption 1 ("cut the red onion") describes the left-hand picture.',
    "The left image is caption 1, as caption 1 corresponds to the left image.",
    "<think>Is it 2;1?\nNo.</think> 1;2",
    "Is it 2;1?\nNo.</think> 1;2",
]
EXCHANGED = [
    "2;1",
    "#2; #1",
    "2, 1",
    "Answer: caption 2; caption 1",
    "Caption 2 corresponds to the left image and caption 1 to the right image.",
    "The left picture is caption 2. The right picture is caption 1.",
    "Left: 2",
    "right image = 1",
    "The second caption matches the left image.",
    "The right image shows cut the red onion.",
]
UNREAD = [
    ("", "empty"),
    (" \n", "empty"),
    ("<think>Is it 2;1? The left", "empty"),
    ("I see an onion.", "no_answer"),
    ("1", "no_answer"),
    ("12", "no_answer"),
    ("3;4", "no_answer"),
    ("1.5;2", "no_answer"),
    ("Both images show an onion on the left.", "no_answer"),
    ("Caption 1 and caption 2 are alike.", "no_answer"),
    ("Caption 1: cut the red onion; caption 2: fry the onion in a pan on the left", "no_answer"),
    ("1;1", "same_caption"),
    ("2; 2", "same_caption"),
    ("Caption 1 is the left image and caption 1 is the right image.", "same_caption"),
    ("1;2 or 2;1", "contradictory"),
    ("Caption 1 is the left image. Caption 2 is the left image.", "contradictory"),
    ("Caption 1 is not of the left image.", "negated"),
    ("I can't tell which caption is of the left image: caption 1 or caption 2.", "negated"),
]


@pytest.mark.parametrize("answer", IN_ORDER)
def test_answers_that_give_caption_1_to_the_left_image(answer: str) -> None:
    reading = read_answer(answer, CAPTIONS)
    assert (reading.left, reading.right) == (1, 2), reading


@pytest.mark.parametrize("answer", EXCHANGED)
def test_answers_that_give_caption_2_to_the_left_image(answer: str) -> None:
    reading = read_answer(answer, CAPTIONS)
    assert (reading.left, reading.right) == (2, 1), reading


@pytest.mark.parametrize(("answer", "form"), UNREAD)
def test_answers_that_say_nothing_or_too_much_are_not_read(answer: str, form: str) -> None:
    reading = read_answer(answer, CAPTIONS)
    assert (reading.left, reading.right, reading.form) == (None, None, form)
    assert form in FORMS


def test_the_question_repeated_is_no_answer() -> None:
    asked = QUESTION.format(caption_1=CAPTIONS[0], caption_2=CAPTIONS[1])
    assert read_answer(asked, CAPTIONS).left is None
    assert read_answer(f"{asked} 2;1", CAPTIONS).left == 2
    assert read_answer(f"{asked}\nThe left image is caption 2.", CAPTIONS).left == 2


def test_captions_that_name_sides_do_not_speak_for_the_model() -> None:
    captions = ("the left image of a cup", "the right image of a cup")
    said = 'Caption 2 ("the right image of a cup") is of the left image.'
    assert read_answer(said, captions).left == 2
