import pytest

from eqforge.generators.text.taggers import repair_tags
from tests.cases import cases_of

cases = cases_of(__file__)


@pytest.mark.parametrize(
    ("tagged", "word", "repaired"),
    cases("tags_follow_the_words_around"),
)
def test_tags_follow_the_words_around(tagged: str, word: str, repaired: str) -> None:
    pairs = [item.rsplit("/", 1) for item in tagged.split()]
    words, tags = zip(*pairs, strict=True)
    assert repair_tags(words, tags)[words.index(word)] == repaired


def test_nothing_is_repaired_where_there_is_nothing() -> None:
    assert repair_tags([], []) == []
