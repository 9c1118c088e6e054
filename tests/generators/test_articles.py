import pytest

from eqforge.generators.text.articles import agree_articles, article_for
from eqforge.generators.text.edits import apply_edits
from tests.cases import cases_of

cases = cases_of(__file__)


@pytest.mark.parametrize(
    ("word", "article"),
    cases("the_article_follows_the_sound"),
)
def test_the_article_follows_the_sound(word: str, article: str | None) -> None:
    assert article_for(word) == article


@pytest.mark.parametrize(
    ("text", "agreed"),
    [
        ("fence of a old go out", "fence of an old go out"),
        ("An red car and a umbrella.", "A red car and an umbrella."),
        ("a red, an\told", "a red, an\told"),
        ("AN red", "A red"),
        ("the letter a is on team A", "the letter a is on team A"),
        ("a 'upright' man", "a 'upright' man"),
        ("an", "an"),
        ("", ""),
        ("a  old man", "an  old man"),
        ("an Xbox or a xbox, an historic or a historic",) * 2,
    ],
)
def test_articles_are_agreed_and_everything_else_stays(text: str, agreed: str) -> None:
    assert apply_edits(text, agree_articles(text)).text == agreed
