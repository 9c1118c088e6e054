from collections.abc import Mapping

import pytest

from eqforge.generators.text.edits import apply_edits
from eqforge.generators.text.rewordings.phrases import PHRASES
from eqforge.generators.text.rewordings.records import Finder
from eqforge.generators.text.rewordings.single_words import COLORS, SYNONYMS
from tests.cases import cases_of
from tests.generators.rewordings.reworded import analysed

cases = cases_of(__file__)

pytestmark = pytest.mark.usefixtures("wordnet")


def reworded(rules: Mapping[str, Finder], caption: str) -> set[str]:
    found = [edits for find in rules.values() for edits in find(analysed(caption))]
    return {apply_edits(caption, edits).text for edits in found}


@pytest.mark.parametrize(
    ("caption", "expected"), cases("words_are_exchanged_where_both_say_the_same")
)
def test_words_are_exchanged_where_both_say_the_same(caption: str, expected: set[str]) -> None:
    assert reworded(PHRASES | COLORS, caption) == expected


@pytest.mark.parametrize(
    ("caption", "expected"), cases("words_become_those_that_are_theirs_in_turn")
)
def test_words_become_those_that_are_theirs_in_turn(caption: str, expected: set[str]) -> None:
    assert reworded(SYNONYMS, caption) == expected
