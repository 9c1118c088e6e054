import pytest

from eqforge.generators.text.edits import agree_articles, apply_edits, article_for
from tests.cases import cases_of

cases = cases_of(__file__)


@pytest.mark.parametrize(("word", "article"), cases("the_article_follows_the_sound"))
def test_the_article_follows_the_sound(word: str, article: str | None) -> None:
    assert article_for(word) == article


@pytest.mark.parametrize(
    ("text", "agreed"),
    [*cases("articles_are_agreed_and_everything_else_stays"), ("a red, an\told", "a red, an\told")],
)
def test_articles_are_agreed_and_everything_else_stays(text: str, agreed: str) -> None:
    assert apply_edits(text, agree_articles(text)).text == agreed
