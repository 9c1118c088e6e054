import pytest

from tests.generators.rewordings.reworded import check_both_ways, reworded

ADD, DROP = "participle_to_relative", "relative_to_participle"


@pytest.mark.parametrize(
    ("caption", "other"),
    [
        ("A man riding a wave.", "A man who is riding a wave."),
        ("Two women holding cups", "Two women who are holding cups"),
        ("a plate topped with food", "a plate that is topped with food"),
        ("A horse being ridden by a boy.", "A horse that is being ridden by a boy."),
        ("Buses parked in a lot.", "Buses that are parked in a lot."),
        ("There is a cat sleeping on a bed!", "There is a cat that is sleeping on a bed!"),
        ("a group of people standing", "a group of people who are standing"),
        ("A photo of a dog running.", "A photo of a dog that is running."),
        ("A plate of food sitting on a desk", "A plate of food that is sitting on a desk"),
        ("A man holding a bowl filled with soup", "A man holding a bowl that is filled with soup"),
        ("A street with a man walking on it.", "A street with a man who is walking on it."),
        ("\U0001f600 A man riding \u00e9", "\U0001f600 A man who is riding \u00e9"),
        ("Three sheep grazing, é", "Three sheep that are grazing, é"),
        ("A man riding a wave is smiling.", "A man who is riding a wave is smiling."),
    ],
)
def test_a_participle_is_a_relative_clause(caption: str, other: str) -> None:
    check_both_ways(ADD, DROP, caption, other)


@pytest.mark.parametrize(
    "caption",
    [
        "Man riding a wave",  # no article
        "A bowl of apples sitting on a table",  # is, or are
        "A couple sitting on a bench",
        "A statue of a man riding a horse",
        "a sandwich on a plate topped with cheese",  # the sandwich, or the plate
        "A man with a dog running",
        "A cat and a dog sleeping",
        "A man wearing a hat playing tennis",
        "A snow covered slope",
        "A living room sitting area",
        "A MAN RIDING A WAVE",
        "A man  riding",
        "A man is riding a wave.",
        "A kitchen having a stove.",
        "Kim riding a wave",
        "A skateboarder skates riding a rail",
        "The bus stopped there and people are getting in.",
    ],
)
def test_what_the_participle_describes_has_to_be_clear(caption: str) -> None:
    assert reworded(ADD, caption) == []


@pytest.mark.parametrize(
    "caption",
    [
        "A person that is sitting in bed",  # would come back as "who is"
        "A man who are riding a wave",
        "A sign that is attached to a pole and is on the sidewalk.",
        "A man who is happy",
        "A man who is riding",
        "who is riding a wave",
    ],
)
def test_a_relative_clause_that_cannot_be_put_back_stays(caption: str) -> None:
    found = reworded(DROP, caption)
    assert all(caption in reworded(ADD, text) for text in found)
    assert found == [] or caption == "A man who is riding"
