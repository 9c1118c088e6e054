"""Captions, and pairs of captions, that are refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.text.caption_lint import (
    CAPTION_PAIR_REASONS,
    CAPTION_REASONS,
    CaptionSettings,
    count_clip_tokens,
    lint_caption,
    lint_pair,
    normalize_caption,
)
from tests.cases import cases_of

cases = cases_of(__file__)

TEXTS = st.text(alphabet=st.characters(exclude_categories=[]), max_size=40)
UNLIMITED = CaptionSettings(max_chars=None, max_tokens=None)


def reason(text: str, settings: CaptionSettings | None = None) -> str | None:
    rejection = lint_caption(text, settings or CaptionSettings())
    assert rejection is None or rejection.reason in CAPTION_REASONS
    return rejection.reason if rejection else None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The person is sitting on the sofa which is behind him/her.", None),
        ("\u732b \U0001f431 caf\u00e9", None),
        ("?", None),
        ("", "empty_caption"),
        (" \t\n\u2003\u00a0", "empty_caption"),
        ("\u200b\ufeff\u2060", "empty_caption"),
        ("a dog\n", "control_characters"),
        ("a\tdog", "control_characters"),
        ("a \x00 dog", "control_characters"),
        ("a \x9b dog", "control_characters"),
        ("a \ud83d dog", "control_characters"),
    ],
)
def test_captions_are_refused_for_what_they_hold(text: str, expected: str | None) -> None:
    assert reason(text) == expected


def test_a_control_character_is_named_with_its_place() -> None:
    rejection = lint_caption("a \x07 dog", CaptionSettings())
    assert rejection is not None
    assert rejection.detail == "U+0007 at character 2"


def test_77_tokens_are_the_most_that_pass() -> None:
    longest = "dog " * 75
    assert count_clip_tokens(longest) == 77
    assert reason(longest) is None
    rejection = lint_caption(longest + "dog", CaptionSettings())
    assert rejection is not None
    assert (rejection.reason, rejection.value, rejection.threshold) == (
        "caption_too_long_tokens",
        78,
        77,
    )


def test_characters_are_counted_before_tokens() -> None:
    settings = CaptionSettings(max_chars=10, max_tokens=3)
    assert reason("a dog in a park", settings) == "caption_too_long_chars"
    assert reason("a red dog", settings) == "caption_too_long_tokens"
    assert reason("0123456789", CaptionSettings(max_chars=10, max_tokens=None)) is None


def test_of_a_caption_that_is_too_long_only_the_length_is_looked_at() -> None:
    """So that it costs no more than a short one."""
    nothing_but_a_length: Any = range(10_000_000)
    assert reason(nothing_but_a_length) == "caption_too_long_chars"


def test_each_limit_can_be_switched_off_and_zero_is_a_limit() -> None:
    assert reason("dog " * 10_000, UNLIMITED) is None
    assert reason("dog", CaptionSettings(max_chars=0)) == "caption_too_long_chars"
    assert reason("dog", CaptionSettings(max_tokens=0)) == "caption_too_long_tokens"


@given(TEXTS)
def test_any_text_is_judged(text: str) -> None:
    found = reason(text)
    if found is None:
        assert text.strip()
        text.encode()


@pytest.mark.parametrize(("text_0", "text_1"), cases("captions_that_say_the_same_are_equal"))
def test_captions_that_say_the_same_are_equal(text_0: str, text_1: str) -> None:
    rejection = lint_pair(text_0, text_1)
    assert rejection is not None
    assert {rejection.reason} == set(CAPTION_PAIR_REASONS)
    assert lint_pair(text_1, text_0) == rejection


@pytest.mark.parametrize(("text_0", "text_1"), cases("captions_that_differ_within_are_not_equal"))
def test_captions_that_differ_within_are_not_equal(text_0: str, text_1: str) -> None:
    assert lint_pair(text_0, text_1) is None


@given(TEXTS)
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalize_caption(text)
    assert normalize_caption(once) == once
    assert lint_pair(text, once) is not None
    assert lint_pair(text, f"  {text} .") is not None


def test_real_captions_pass_once_their_line_ends_are_off(data_folder: Path) -> None:
    annotations = json.loads((data_folder / "coco/captions_val2017.json").read_bytes())
    captions = [annotation["caption"] for annotation in annotations["annotations"]]
    refused = [text for text in captions if reason(text.strip(), UNLIMITED) is not None]
    assert refused == [text for text in captions if "\n" in text.strip()]
    assert len(refused) == 1
