import pytest

from eqforge.generators.text.contexts import classes_of, parse_context, stands_in
from eqforge.generators.text.taggers import load_tagger

pytestmark = pytest.mark.usefixtures("wordnet")


def stands(caption: str, word: str, where: str) -> bool:
    (analysis,) = load_tagger().analyse([caption])
    index = next(i for i, token in enumerate(analysis.tokens) if token.text == word)
    return stands_in(analysis, (index, index + 1), parse_context(where))


@pytest.mark.parametrize(
    ("caption", "word", "where", "expected"),
    [
        ("a man riding a horse", "riding", "object:pet or farm animal", True),
        ("a man riding a wave", "riding", "object:pet or farm animal", False),
        ("a man riding a wave", "riding", "object", True),
        ("a man riding fast", "riding", "object", False),
        ("a man sitting on a bench", "sitting", "alone", True),
        ("a man walking a dog", "walking", "alone", False),
        ("a man is sitting there", "sitting", "subject:living", True),
        ("a vase sitting there", "sitting", "subject:living", False),
        ("a man that is sitting there", "sitting", "subject:living", True),
        ("a vase that is sitting there", "sitting", "subject:living", False),
        ("a red car", "red", "noun:artifact", True),
        ("a red apple", "red", "noun:artifact", False),
        ("a red apple", "red", "noun:-artifact", True),
        ("the car is red", "red", "noun", False),
        ("a dog outside.", "outside", "end", True),
        ("a dog outside a house", "outside", "end", False),
        ("a dog barks as a man sleeps", "as", "clause", True),
        ("a man dressed as a dog", "as", "clause", False),
        ("men playing tennis", "playing", "object:=tennis,chess", True),
        ("men playing table tennis", "playing", "object:=tennis,chess", False),
        ("a cat in a room", "in", "besides:window,door", True),
        ("a window in a room", "in", "besides:window,door", False),
    ],
)
def test_words_stand_where_their_context_says(
    caption: str, word: str, where: str, expected: bool
) -> None:
    assert stands(caption, word, where) is expected


def test_places_that_do_not_exist_are_an_error() -> None:
    with pytest.raises(ValueError, match="expected one of object, alone"):
        parse_context("behind:room")


@pytest.mark.parametrize(
    ("phrase", "named"),
    [
        ("a table", {"table", "artifact"}),
        ("two dogs", {"pet or farm animal", "animal", "living"}),
        ("a woman", {"man or woman", "person", "living"}),
        ("the sky", {"sky"}),
        ("a pizza", {"dish", "food"}),
        ("a lake", {"water", "object"}),
        ("a tennis court", {"artifact"}),
    ],
)
def test_nouns_have_the_classes_that_captions_mean(phrase: str, named: set[str]) -> None:
    (analysis,) = load_tagger().analyse([phrase])
    assert named <= classes_of(analysis, analysis.noun_phrases[0])
