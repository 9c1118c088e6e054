"""Scores, rejections and the words for them."""

import json

import pytest

from eqforge.schemas.records.scores import Score, compact_json, value_of


def score(name: str, value: float | None) -> Score:
    return Score(name=name, value=value, scorer="ruler", version="1", settings="{}")


def test_a_score_that_was_not_taken_is_an_error_and_not_a_missing_value() -> None:
    with pytest.raises(KeyError, match="no score 'depth' among \\['height', 'width'\\]"):
        value_of([score("width", 3.0), score("height", 1.0)], "depth")


def test_equal_settings_are_equal_text() -> None:
    assert compact_json({"b": 1, "a": 0.5}) == compact_json({"a": 0.5, "b": 1})
    assert json.loads(compact_json({"b": 1, "a": 0.5})) == {"a": 0.5, "b": 1}
    assert " " not in compact_json({"b": [1, 2], "a": 0.5})
