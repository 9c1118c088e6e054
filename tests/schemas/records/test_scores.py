"""Scores, rejections and the words for them."""

import dataclasses
import json

import pytest

from eqforge.schemas.records.scores import (
    Rejection,
    Score,
    compact_json,
    value_of,
)


def score(name: str, value: float | None) -> Score:
    return Score(name=name, value=value, scorer="ruler", version="1", settings="{}")


def test_a_score_is_found_by_its_name() -> None:
    scores = [score("width", 3.0), score("height", None)]
    assert value_of(scores, "width") == 3.0
    assert value_of(scores, "height") is None


def test_a_score_that_was_not_taken_is_an_error_and_not_a_missing_value() -> None:
    with pytest.raises(KeyError, match="no score 'depth' among \\['height', 'width'\\]"):
        value_of([score("width", 3.0), score("height", 1.0)], "depth")


def test_equal_settings_are_equal_text() -> None:
    assert compact_json({"b": 1, "a": 0.5}) == compact_json({"a": 0.5, "b": 1})
    assert json.loads(compact_json({"b": 1, "a": 0.5})) == {"a": 0.5, "b": 1}
    assert " " not in compact_json({"b": [1, 2], "a": 0.5})


def test_records_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        score("width", 3.0).value = 4.0  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        Rejection(reason="face_found").reason = "black_image"  # type: ignore[misc]
