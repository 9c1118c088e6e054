import pytest

from eqforge.generators.text.rewordings.rules import RULES
from tests.generators.rewordings.reworded import check_both_ways, reworded

PASSIVE, ACTIVE = "active_to_passive", "passive_to_active"


@pytest.mark.parametrize(
    ("caption", "other"),
    [
        ("A man riding a horse.", "A horse being ridden by a man."),
        ("a man is holding an umbrella", "an umbrella is being held by a man"),
        ("A boy holds an umbrella.", "An umbrella is held by a boy."),
        ("Two people riding horses", "Horses being ridden by two people"),
        ("A man eating a slice of pizza!", "A slice of pizza being eaten by a man!"),
        ("A man walking two dogs on a beach.", "Two dogs being walked by a man on a beach."),
        ("A man is walking two dogs.", "Two dogs are being walked by a man."),
        ("A truck pulling a boat", "A boat being pulled by a truck"),
        ("The boy is flying a red kite.", "A red kite is being flown by the boy."),
    ],
)
def test_what_is_done_is_told_from_either_side(caption: str, other: str) -> None:
    check_both_ways(PASSIVE, ACTIVE, caption, other)


@pytest.mark.parametrize(
    "caption",
    [
        "A man riding a horse with a hat.",
        "A man riding a skateboard down a street.",
        "Two men holding an umbrella.",
        "A man holding his hat.",
        "A man brushing his teeth.",
        "A couple holding hands",
        "A cow eats grass.",
        "A picture of a man riding a horse.",
        "A man having a dog.",
        "A man sitting on a horse.",
        "A shelf holding a cup",
        "A man riding a horse and a dog.",
        "Man riding a horse",
        "A man hitting a trick",
        "A group of people holding other people",
        "A man  riding a horse",
        "A MAN RIDING A HORSE",
        "A man riding the horse",
    ],
)
def test_other_actives_stay(caption: str) -> None:
    assert reworded(PASSIVE, caption) == []


@pytest.mark.parametrize(
    "caption",
    [
        "A horse ridden by a man.",
        "A horse is being ridden.",
        "A horse being ridden by the sea.",
        "A house surrounded by trees",
        "An umbrella being held by two men.",
        "A cup being held by a shelf.",
    ],
)
def test_other_passives_stay(caption: str) -> None:
    assert reworded(ACTIVE, caption) == []


@pytest.mark.parametrize(
    ("relation", "converse", "caption", "other"),
    [
        ("next_to", "next_to", "A dog next to a cat.", "A cat next to a dog."),
        ("near", "near", "an apple is near two cups", "two cups are near an apple"),
        ("beside", "beside", "A chair beside a table", "A table beside a chair"),
        ("above", "below", "A clock above a door.", "A door below a clock."),
        ("above", "below", "A clock is above two doors", "Two doors are below a clock"),
        (
            "to_the_left_of",
            "to_the_right_of",
            "A cup to the left of an apple.",
            "An apple to the right of a cup.",
        ),
        ("next_to", "next_to", "There is a dog next to a cat", "There is a cat next to a dog"),
    ],
)
def test_arguments_change_places(relation: str, converse: str, caption: str, other: str) -> None:
    there, back = f"exchange_around_{relation}", f"exchange_around_{converse}"
    check_both_ways(there, back, caption, other)


@pytest.mark.parametrize(
    ("relation", "caption"),
    [
        ("next_to", "A dog next to a house."),
        ("next_to", "A dog next to the cat."),
        ("next_to", "A dog next to a dog."),
        ("next_to", "A dog next to another dog."),
        ("next_to", "A dog next to a cat on a mat."),
        ("next_to", "A dog sitting next to a cat."),
        ("next_to", "A dog next to its owner"),
        ("next_to", "A photo of a dog next to a cat"),
        ("next_to", "There is a dog next to two cats"),
        ("near", "A man near a beach"),
        ("above", "A plane above a city"),
        ("to_the_left_of", "A cup to the left of a man"),
    ],
)
def test_arguments_of_other_kinds_stay(relation: str, caption: str) -> None:
    assert reworded(f"exchange_around_{relation}", caption) == []


@pytest.mark.parametrize(
    ("rule", "caption", "other"),
    [
        ("in_as_wearing", "A man in a hat.", "A man wearing a hat."),
        ("in_as_wearing", "two boys in blue shirts", "two boys wearing blue shirts"),
        ("in_as_wearing", "A man in a suit and tie", "A man wearing a suit and tie"),
        (
            "in_as_wearing",
            "\U0001f600 A man in shorts \U0001f600",
            "\U0001f600 A man wearing shorts \U0001f600",
        ),
        ("wearing_as_dressed_in", "A man wearing a suit", "A man dressed in a suit"),
    ],
)
def test_clothes_are_worn(rule: str, caption: str, other: str) -> None:
    check_both_ways(rule, str(RULES[rule].reverse), caption, other)


@pytest.mark.parametrize(
    ("rule", "caption"),
    [
        ("in_as_wearing", "A cat in a hat"),
        ("in_as_wearing", "A man in a field"),
        ("in_as_wearing", "A man in uniform"),
        ("in_as_wearing", "A man in a suit wearing a hat"),
        ("in_as_wearing", "A man in a jacket pocket"),
        ("in_as_wearing", "A man in a hat and a dog"),
        ("wearing_as_in", "A man wearing a hat and riding a bike"),
        ("wearing_as_in", "A man wearing a hat while riding a bike"),
        ("wearing_as_in", "A man is wearing a hat"),
        ("wearing_as_in", "A man wearing a smile"),
        ("wearing_as_dressed_in", "A man wearing a hat"),
        ("in_as_wearing", "A MAN IN A HAT"),
    ],
)
def test_what_is_no_clothing_stays(rule: str, caption: str) -> None:
    assert reworded(rule, caption) == []


@pytest.mark.parametrize(
    ("caption", "other"),
    [
        ("A cat with a long tail.", "A cat that has a long tail."),
        ("A man with a beard", "A man who has a beard"),
        ("Two cows with horns.", "Two cows that have horns."),
        ("A kitchen with a stove and a sink.", "A kitchen that has a stove and a sink."),
        ("A vase with flowers in it!", "A vase that has flowers in it!"),
        ("A dog with a ball in its mouth", "A dog that has a ball in its mouth"),
        ("There is a bus with two doors", "There is a bus that has two doors"),
        ("A photo of a room with a bed.", "A photo of a room that has a bed."),
        ("A bed with a cat on top of it", "A bed that has a cat on top of it"),
    ],
)
def test_with_says_what_something_has(caption: str, other: str) -> None:
    check_both_ways("with_as_that_has", "that_has_as_with", caption, other)


@pytest.mark.parametrize(
    "caption",
    [
        "A man with a dog.",
        "A sandwich with fries.",
        "A cat with a long tail on a bed.",
        "A man with a beard riding a horse.",
        "A man with his hat.",
        "A bowl of apples with leaves in it",
        "Cat with a tail",
        "A CAT WITH A TAIL",
        "A man playing with a cat",
    ],
)
def test_with_says_other_things_too(caption: str) -> None:
    assert reworded("with_as_that_has", caption) == []


@pytest.mark.parametrize(
    ("caption", "other"),
    [
        ("A cat has a long tail.", "A cat with a long tail."),
        ("Two rooms have a bed and a sink", "Two rooms with a bed and a sink"),
    ],
)
def test_what_something_has_makes_a_headline(caption: str, other: str) -> None:
    check_both_ways("has_as_with", "with_as_has", caption, other)


@pytest.mark.parametrize(
    "caption",
    [
        "A man has fallen",
        "A woman has her picture taken",
        "The cat has a long tail",
        "A man has a hat and is sitting",
        "A man has no hat",
    ],
)
def test_other_clauses_with_has_stay(caption: str) -> None:
    assert reworded("has_as_with", caption) == []
