import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.text.edits import apply_edits
from eqforge.generators.text.rewordings.colors import COLORS
from eqforge.generators.text.rewordings.phrases import PHRASES
from eqforge.generators.text.rewordings.rules import FAMILIES, KINDS, RULES, find_rewordings
from eqforge.generators.text.taggers import load_tagger
from tests.undone import invert

pytestmark = pytest.mark.usefixtures("wordnet")
_OWN = {rule.name for rule in (*PHRASES, *COLORS)}


def reworded(caption: str) -> set[str]:
    (analysis,) = load_tagger().analyse([caption])
    found = [each for each in find_rewordings(analysis) if each.rule in _OWN]
    return {apply_edits(caption, each.edits).text for each in found}


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("A man sitting on a sofa.", {"A man seated on a sofa."}),
        ("A vase sitting on a shelf.", set()),
        ("Two boys ride horses", {"Two boys ride on horses"}),
        ("A surfer riding a wave", set()),
        ("A woman prepares to serve", {"A woman gets ready to serve"}),
        ("a red car", {"a red-colored car"}),
        ("A RED CAR", {"A RED-COLORED CAR"}),
        ("an orange colored cup", {"an orange cup"}),
        ("a red apple", set()),
        ("a red and white car", set()),
        ("a light blue car", set()),
        ("a brown dog", set()),
        ("a red fire hydrant", {"a red-colored fire hydrant"}),
        ("a black and white photo", set()),
        ("a cat in a box", set()),
        ("a cat in a car", {"a cat inside a car"}),
        ("a man in a hat", set()),
        ("a man along with a dog", {"a man together with a dog"}),
        ("trees on either side of a road", {"trees on both sides of a road"}),
        (
            "a tower lit up at night",
            {"a tower illuminated at night", "a tower lit up at nighttime"},
        ),
        ("two men posing for a picture", {"two men posing for a photo"}),
        ("a boy on a skate board", {"a boy on a skateboard"}),
        ("boys in a soccer game", {"boys in a game of soccer"}),
        ("a dog barks while a man sleeps", {"a dog barks as a man sleeps"}),
        ("un chien assis", set()),
        ("赤い車", set()),
        ("", set()),
    ],
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
