import pytest

from eqforge.generators.text.taggers import repair_tags


@pytest.mark.parametrize(
    ("tagged", "word", "repaired"),
    [
        ("a/DT sink/VB", "sink", "NN"),
        ("the/DT wooden/JJ curb/VB", "curb", "NN"),
        ("a/DT bat/NN and/CC stick/VB", "stick", "NN"),
        ("people/NNS stand/VB near/IN", "stand", "VB"),
        ("the/DT couple/NN look/VB up/RP", "look", "VB"),
        ("next/JJ to/TO a/DT sink/VB", "sink", "NN"),
        ("trying/VBG to/TO monitor/VB it/PRP", "monitor", "VB"),
        ("ready/VBG to/TO board/NN the/DT bus/NN", "board", "VB"),
        ("two/CD sinks/VBZ", "sinks", "NNS"),
        ("a/DT man/NN rides/VBZ by/IN", "rides", "VBZ"),
        ("a/DT man/NN rides/NNS a/DT wave/NN", "rides", "VBZ"),
        ("a/DT bus/NN parked/VBD on/IN", "parked", "VBN"),
        ("who/WP parked/VBD it/PRP", "parked", "VBD"),
        ("on/IN top/JJ of/IN", "top", "NN"),
        ("a/DT black/JJ and/CC white/JJ cat/NN", "black", "JJ"),
        ("a/DT remote/JJ lying/VBG", "remote", "NN"),
        ("each/DT other/JJ ./.", "other", "JJ"),
        ("that/IN has/VBZ", "that", "WDT"),
        ("it/PRP 's/POS a/DT cat/NN", "'s", "VBZ"),
        ("it/PRP 's/POS tail/NN", "'s", "POS"),
        ("this/DT is/VBZ a/DT cat/NN", "is", "VBZ"),
    ],
)
def test_tags_follow_the_words_around(tagged: str, word: str, repaired: str) -> None:
    pairs = [item.rsplit("/", 1) for item in tagged.split()]
    words, tags = zip(*pairs, strict=True)
    assert repair_tags(words, tags)[words.index(word)] == repaired


def test_nothing_is_repaired_where_there_is_nothing() -> None:
    assert repair_tags([], []) == []
