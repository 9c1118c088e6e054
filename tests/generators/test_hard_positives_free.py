import pytest

from eqforge.generators.text.lexicon import load_lexicon, reword_caption
from eqforge.generators.text.taggers import load_tagger
from tests.cases import cases_of

cases = cases_of(__file__)


def reworded(caption: str) -> set[str]:
    (analysis,) = load_tagger().analyse([caption])
    return {edited.text for edited, _ in reword_caption(analysis, load_lexicon())}


@pytest.mark.parametrize(
    ("caption", "expected"), cases("one_word_is_exchanged_and_nothing_else_changes")
)
def test_one_word_is_exchanged_and_nothing_else_changes(caption: str, expected: str) -> None:
    assert reworded(caption) == {expected}


@pytest.mark.parametrize("caption", cases("words_whose_sense_is_open_stay"))
def test_words_whose_sense_is_open_stay(caption: str) -> None:
    assert reworded(caption) == set()


def test_each_word_of_the_lexicon_is_a_rewording_of_its_own() -> None:
    assert reworded("a red car near a blue house") == {
        "a crimson car near a blue house",
        "a red car next to a blue house",
        "a red car near a sapphire house",
    }
