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


@pytest.mark.parametrize(
    ("caption", "other"),
    [
        ("A man rides a wave.", "A man who rides a wave."),
        ("A dog is on a couch", "A dog that is on a couch"),
        ("A kitchen area has a window.", "A kitchen area that has a window."),
        ("A sign has been placed on a wall.", "A sign that has been placed on a wall."),
        ("A girl stops and poses for a photo", "A girl who stops and poses for a photo"),
        ("A man in a hat sits on a bench", "A man in a hat who sits on a bench"),
        ("A pole with two signs stands in a park", "A pole with two signs that stands in a park"),
        ("A giraffe eats leaves from a tree.", "A giraffe that eats leaves from a tree."),
        ("People are gathering at a market", "People who are gathering at a market"),
        ('A dog wears a "Run" shirt, \u00e9', 'A dog that wears a "Run" shirt, \u00e9'),
    ],
)
def test_a_clause_is_a_noun_phrase_with_a_relative_clause(caption: str, other: str) -> None:
    check_both_ways("clause_to_relative", "relative_to_clause", caption, other)


@pytest.mark.parametrize(
    "caption",
    [
        "The man rides a wave.",  # which is known already
        "A man sleeps.",
        "A cat on a bed sleeps on a pillow",  # the cat, or the bed
        "One man sits and another stands",
        "Zebras graze in a field.",  # zebras, whichever
        "A man rides a wave and a dog follows the man",
        "A man holds a sign that says stop",
        "Two people cross country skiing on a hill",
        "A fruit stand with bananas and kiwi",
        "A dining room with some plants are seen.",
        "A boy and a girl play on a swing",
        "A picture of a dog is on a wall",
    ],
)
def test_other_clauses_stay(caption: str) -> None:
    assert reworded("clause_to_relative", caption) == []
