import pytest

from eqforge.generators.text.taggers import find_noun_phrases


@pytest.mark.parametrize(
    ("tagged", "phrases"),
    [
        ("A/DT man/NN riding/VBG waves/NNS", ["A man", "waves"]),
        ("a/DT very/RB big/JJ parked/VBN car/NN", ["a very big parked car"]),
        ("two/CD young/JJ smiling/VBG girls/NNS sit/VBP", ["two young smiling girls"]),
        ("the/DT man/NN 's/POS old/JJ hat/NN", ["the man 's old hat"]),
        ("a/DT bowl/NN of/IN hot/JJ soup/NN", ["a bowl", "hot soup"]),
        ("it/PRP sits/VBZ on/IN her/PRP$ lap/NN", ["it", "her lap"]),
        ("standing/VBG near/IN them/PRP", ["them"]),
        ("red/JJ and/CC blue/JJ", []),
        ("", []),
    ],
)
def test_noun_phrases_are_found_by_the_grammar(tagged: str, phrases: list[str]) -> None:
    pairs = [item.rsplit("/", 1) for item in tagged.split()]
    words = [word for word, _ in pairs]
    found = find_noun_phrases([tag for _, tag in pairs])
    assert [" ".join(words[first:last]) for first, last in found] == phrases
