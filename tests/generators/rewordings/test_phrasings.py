import pytest

from eqforge.generators.text.rewordings.rules import RULES
from tests.generators.rewordings.reworded import check_both_ways, reworded


@pytest.mark.parametrize(
    ("rule", "caption", "other"),
    [
        ("each_other_as_one_another", "Two cats near each other.", "Two cats near one another."),
        ("next_to_as_beside", "a cat next to a dog", "a cat beside a dog"),
        ("next_to_as_beside", "\U0001f600 Next to it, \u00e9", "\U0001f600 Beside it, \u00e9"),
        ("on_top_of_as_atop", "A cat on top of a car!", "A cat atop a car!"),
        ("near_as_close_to", "A cat near a car", "A cat close to a car"),
        ("inside_as_inside_of", "A cat inside a car.", "A cat inside of a car."),
        ("outside_as_outside_of", "A cat outside the house", "A cat outside of the house"),
        ("filled_with_as_full_of", "A bowl filled with soup", "A bowl full of soup"),
        ("filled_with_as_full_of", "a box that is filled with mud", "a box that is full of mud"),
        ("covered_in_as_covered_with", "A car covered in snow.", "A car covered with snow."),
        ("made_of_as_made_out_of", "A bed made of wood.", "A bed made out of wood."),
        ("a_lot_of_as_lots_of", "A lot of snow on a hill", "Lots of snow on a hill"),
        ("many_as_lots_of", "Many dogs on a hill", "Lots of dogs on a hill"),
        ("many_as_a_large_number_of", "Many dogs run", "A large number of dogs run"),
        ("several_as_a_number_of", "Several men on a bus", "A number of men on a bus"),
        ("photo_as_photograph", "A photo of a cat.", "A photograph of a cat."),
        ("photo_as_photograph", "Two men taking photos.", "Two men taking photographs."),
        ("picture_as_image", "A picture of a cat.", "An image of a cat."),
        ("fire_hydrant_as_hydrant", "A red fire hydrant.", "A red hydrant."),
        ("baseball_player_as_ballplayer", "Two baseball players", "Two ballplayers"),
        ("street_light_as_streetlight", "A street light.", "A streetlight."),
        (
            "a_baseball_game_as_a_game_of_baseball",
            "A baseball game in a park",
            "A game of baseball in a park",
        ),
        ("picture_as_image", "An old picture of a cat.", "An old image of a cat."),
    ],
)
def test_either_phrase_stands_for_the_other(rule: str, caption: str, other: str) -> None:
    check_both_ways(rule, str(RULES[rule].reverse), caption, other)


@pytest.mark.parametrize(
    ("rule", "caption"),
    [
        ("next_to_as_beside", "the next to last man"),
        ("next_to_as_beside", "A CAT NEXT TO A DOG"),
        ("beside_as_next_to", "a man beside himself"),
        ("beside_as_next_to", "a man with a dog beside"),
        ("on_top_of_as_atop", "the man on top of that"),
        ("atop_as_on_top_of", "a tower with a clock atop sits on a hill"),
        ("near_as_close_to", "a man so near a dog"),
        ("close_to_as_near", "a man holding a cup close to his chest"),
        ("close_to_as_near", "close to 20 dogs"),
        ("inside_as_inside_of", "a cat inside of a car"),
        ("inside_of_as_inside", "the inside of a car"),
        ("outside_as_outside_of", "the outside a man paints"),
        ("filled_with_as_full_of", "a donut filled with jelly"),
        ("filled_with_as_full_of", "a plate filled with a bowl of soup"),
        ("filled_with_as_full_of", "a plate filled with lots of soup"),
        ("full_of_as_filled_with", "hands half full of mud"),
        ("covered_in_as_covered_with", "a car covered in a garage"),
        ("covered_with_as_covered_in", "a cake covered with a dome"),
        ("many_as_lots_of", "The many dogs"),
        ("many_as_lots_of", "how many dogs"),
        ("many_as_lots_of", "many a dog"),
        ("many_as_lots_of", "one of many dogs"),
        ("lots_of_as_many", "Lots of snow"),
        ("lots_of_as_many", "lots and lots of dogs"),
        ("a_lot_of_as_lots_of", "quite a lot of dogs"),
        ("a_lot_of_as_lots_of", "There is a lot of dogs"),
        ("several_as_a_number_of", "the several dogs"),
        ("several_as_a_number_of", "several of the dogs"),
        ("a_number_of_as_several", "A large number of dogs"),
        ("photo_as_photograph", "A photo booth"),
        ("photo_as_photograph", "A stock photo of a cat"),
        ("photograph_as_photo", "A girl photographs herself"),
        ("near_as_close_to", "a clean and near modern room"),
        ("near_as_close_to", "a dog close to a cat near a cow"),
        ("on_top_of_as_atop", "a kiss on top of her head"),
        ("next_to_as_beside", "a plane flies by next to a house"),
        ("filled_with_as_full_of", "a room filled with beds and a table"),
        ("many_as_lots_of", "many many dogs"),
        ("lots_of_as_many", "lots of cars and traffic"),
        ("many_as_a_large_number_of", "many large dogs"),
        ("picture_as_image", "A man taking a picture of a cat"),
        ("picture_as_image", "A man with a picture of a cat"),
        ("picture_as_image", "A picture frame of wood"),
        ("each_other_as_one_another", "each other man"),
        ("hydrant_as_fire_hydrant", "A red fire hydrant"),
        ("baseball_player_as_ballplayer", "A little league baseball player"),
        ("a_tennis_game_as_a_game_of_tennis", "A man at a tennis game"),
    ],
)
def test_other_senses_stay(rule: str, caption: str) -> None:
    assert reworded(rule, caption) == []


def test_each_place_is_one_rewording() -> None:
    caption = "A cat next to a dog next to a cow"

    assert reworded("next_to_as_beside", caption) == [
        "A cat beside a dog next to a cow",
        "A cat next to a dog beside a cow",
    ]


@pytest.mark.parametrize(
    ("caption", "other"),
    [
        ("A man with two dogs.", "A man with 2 dogs."),
        ("The three big dogs", "The 3 big dogs"),
        ("his twelve sheep", "his 12 sheep"),
        ("\U0001f600 with two dogs, \u00e9", "\U0001f600 with 2 dogs, \u00e9"),
        ("a group of four people", "a group of 4 people"),
    ],
)
def test_numbers_are_written_in_words_or_digits(caption: str, other: str) -> None:
    check_both_ways("number_to_digits", "digits_to_number", caption, other)


@pytest.mark.parametrize(
    ("rule", "caption", "other"),
    [
        ("number_to_digits", "Two dogs", None),
        ("digits_to_number", "2 dogs", None),
        ("first_digits_to_number", "2 dogs", "Two dogs"),
        ("first_digits_to_number", "A man with 2 dogs", None),
        ("a_person_as_someone", "A person riding a horse", "Someone riding a horse"),
        ("someone_as_a_person", "Someone on a bed", "A person on a bed"),
        ("someone_as_a_person", "A dog and someone on a bed", None),
        ("someone_as_a_person", "Someone else on a bed", None),
        ("a_person_as_someone", "A statue of a person", None),
        ("a_person_as_someone", "A person shaped cake", None),
        ("close_up_of_as_close_up_view_of", "A close up of a dog", "A close up view of a dog"),
        ("close_up_view_of_as_close_up_of", "A very close up view of a dog", None),
        ("laptop_as_laptop_computer", "Two laptops", "Two laptop computers"),
        ("laptop_as_laptop_computer", "A laptop computer", None),
        ("laptop_as_laptop_computer", "A laptop keyboard", None),
        ("stuffed_toy_as_stuffed_animal", "A stuffed toy", "A stuffed animal"),
        ("city_street_as_street_in_a_city", "A busy city street", "A busy street in a city"),
        ("city_street_as_street_in_a_city", "The city street", None),
        ("city_street_as_street_in_a_city", "A city street sign", None),
    ],
)
def test_where_a_phrase_stands_decides(rule: str, caption: str, other: str | None) -> None:
    assert reworded(rule, caption) == ([] if other is None else [other])


@pytest.mark.parametrize(
    "caption",
    [
        "one dog",
        "thirteen dogs",
        "two story houses",
        "a two tone car",
        "a two-story house",
        "a dog and Two cats",
        "TWO DOGS",
        "two dogs",  # "2 dogs" would come back with a capital
        "two or three dogs",
        "at two o'clock",
        "one two three dogs",
    ],
)
def test_numbers_that_count_nothing_stay(caption: str) -> None:
    assert reworded("number_to_digits", caption) == []


@pytest.mark.parametrize(
    "caption",
    ["1 dog", "13 dogs", "No. 2 pencils", "size 2 shoes", "2 story houses", "10:30 trains"],
)
def test_digits_that_count_nothing_stay(caption: str) -> None:
    assert reworded("digits_to_number", caption) == []
