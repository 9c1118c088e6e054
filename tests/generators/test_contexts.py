import pytest

from eqforge.generators.text.contexts import classes_of, fits_context, parse_context
from eqforge.generators.text.taggers import load_tagger
from tests.cases import cases_of

cases = cases_of(__file__)

pytestmark = pytest.mark.usefixtures("wordnet")


def stands(caption: str, word: str, where: str) -> bool:
    (analysis,) = load_tagger().analyse([caption])
    index = next(i for i, token in enumerate(analysis.tokens) if token.text == word)
    return fits_context(analysis, (index, index + 1), parse_context(where))


@pytest.mark.parametrize(
    ("caption", "word", "where", "expected"), cases("words_stand_where_their_context_says")
)
def test_words_stand_where_their_context_says(
    caption: str, word: str, where: str, expected: str
) -> None:
    assert stands(caption, word, where) is (expected == "yes")


def test_places_that_do_not_exist_are_an_error() -> None:
    with pytest.raises(ValueError, match="expected one of object, alone"):
        parse_context("behind:room")


@pytest.mark.parametrize(("phrase", "named"), cases("nouns_have_the_classes_that_captions_mean"))
def test_nouns_have_the_classes_that_captions_mean(phrase: str, named: set[str]) -> None:
    (analysis,) = load_tagger().analyse([phrase])
    assert named <= classes_of(analysis, analysis.noun_phrases[0])
