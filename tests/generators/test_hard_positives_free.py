import pytest

from eqforge.generators.text.hard_positives.free import reword_caption
from eqforge.generators.text.lexicon import load_lexicon
from eqforge.generators.text.taggers import load_tagger


def reworded(caption: str) -> set[str]:
    (analysis,) = load_tagger().analyse([caption])
    return {found.edited.text for found in reword_caption(analysis, load_lexicon())}


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("A white cat on a chair.", "An ivory cat on a chair."),
        ("Young children play soccer", "Youthful children play soccer"),
        ("two dogs  sleep under the table!", "two dogs  sleep beneath the table!"),
        ("the man is eating a pizza", "the man is ingesting a pizza"),
        ("a child looking up", "a child gazing up"),
        ("the dog is looking at a cat", "the dog is gazing at a cat"),
        ("A child looking, and a dog", "A child gazing, and a dog"),
    ],
)
def test_one_word_is_exchanged_and_nothing_else_changes(caption: str, expected: str) -> None:
    assert reworded(caption) == {expected}


@pytest.mark.parametrize(
    "caption",
    [
        "a man in a hat",
        "a painting by a child",
        "a dog in front of a house",
        "a silver car",
        "the Whites sleep",
        "a very nice looking tray",
        "an odd looking chair",
        "a man looking happy",
        "a woman looking for a bus",
        "a sitting area",
        "",
    ],
)
def test_words_whose_sense_is_open_stay(caption: str) -> None:
    assert reworded(caption) == set()


def test_each_word_of_the_lexicon_is_a_rewording_of_its_own() -> None:
    assert reworded("a red car near a blue house") == {
        "a crimson car near a blue house",
        "a red car next to a blue house",
        "a red car near a sapphire house",
    }
