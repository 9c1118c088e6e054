import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.text.edits import apply_edits
from eqforge.generators.text.rewordings.phrases import PHRASES
from eqforge.generators.text.rewordings.rules import FAMILIES, KINDS, RULES, find_rewordings
from eqforge.generators.text.rewordings.single_words import COLORS
from eqforge.generators.text.taggers import load_tagger
from tests.cases import cases_of
from tests.undone import invert

cases = cases_of(__file__)

pytestmark = pytest.mark.usefixtures("wordnet")
_OWN = {rule.name for rule in (*PHRASES, *COLORS)}


def reworded(caption: str) -> set[str]:
    (analysis,) = load_tagger().analyse([caption])
    found = [each for each in find_rewordings(analysis) if each.rule in _OWN]
    return {apply_edits(caption, each.edits).text for each in found}


@pytest.mark.parametrize(
    ("caption", "expected"),
    cases("words_are_exchanged_where_both_say_the_same"),
)
def test_words_are_exchanged_where_both_say_the_same(caption: str, expected: set[str]) -> None:
    assert reworded(caption) == expected


def test_each_rule_is_undone_by_its_reverse() -> None:
    for rule in RULES.values():
        if rule.reverse is not None:
            assert RULES[rule.reverse].reverse == rule.name
        assert rule.ground
    assert len(RULES) == sum(map(len, FAMILIES.values())) == len(set(KINDS.values()))


WORDS = [
    *("a", "an", "the", "two", "red", "large", "old", "wooden", "man", "dogs", "table", "box"),
    *("sitting", "rides", "wearing", "is", "in", "near", "next to", "while", "and", ",", "."),
]


@given(st.text(max_size=40) | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_nothing_outside_the_edits_changes(caption: str) -> None:
    (analysis,) = load_tagger().analyse([caption])
    found = list(find_rewordings(analysis))
    for each in random.Random(0).sample(found, min(len(found), 8)):
        edited = apply_edits(caption, each.edits)
        assert edited.text != caption
        assert apply_edits(edited.text, invert(caption, edited)).text == caption
