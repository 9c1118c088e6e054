import pytest

from eqforge.generators.text.edits import apply_edits
from eqforge.generators.text.rewordings.single_words import SYNONYMS
from eqforge.generators.text.taggers import load_tagger


def reworded(caption: str) -> set[str]:
    (analysis,) = load_tagger().analyse([caption])
    found = [each for rule in SYNONYMS for each in rule.find(analysis)]
    return {apply_edits(caption, each).text for each in found}


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("A couch and an armchair", {"A sofa and an armchair"}),
        ("an old clock", set()),
        ("two old men", {"two elderly men", "two old guys"}),
        ("a large number of dogs", set()),
        ("Men and women", {"Men and ladies"}),
        ("a women", set()),
        ("a multiple colored umbrella", set()),
        ("multiple umbrellas", {"several umbrellas"}),
        ("a stop sign", set()),
        ("un canapé", set()),
        ("", set()),
    ],
)
def test_words_become_those_that_are_theirs_in_turn(caption: str, expected: set[str]) -> None:
    assert reworded(caption) == expected
