import pytest

from tests.generators.rewordings.reworded import check_both_ways, reworded

TO_SENTENCE, TO_HEADLINE = "headline_to_sentence", "sentence_to_headline"
TO_PROGRESSIVE, TO_SIMPLE = "simple_to_progressive", "progressive_to_simple"
ADD_THERE, DROP_THERE = "add_there_is", "drop_there_is"


@pytest.mark.parametrize(
    ("caption", "other"),
    [
        ("A man riding a wave.", "A man is riding a wave."),
        ("Two dogs running", "Two dogs are running"),
        ("a plate topped with food", "a plate is topped with food"),
        ("A group of people standing around.", "A group of people are standing around."),
        ("A herd of cows standing and eating.", "A herd of cows are standing and eating."),
        ("A man and a woman walking", "A man and a woman are walking"),
        ("A horse being ridden by a man", "A horse is being ridden by a man"),
        ("A man sitting on a bench reading", "A man is sitting on a bench reading"),
        ("Elephants walking, \u00e9\U0001f600", "Elephants are walking, \u00e9\U0001f600"),
        ("A man in a hat riding a horse", "A man in a hat is riding a horse"),
        ("A woman in a red dress standing", "A woman in a red dress is standing"),
        ("A black and white cat sleeping", "A black and white cat is sleeping"),
        ("A man riding a horse that is brown", "A man is riding a horse that is brown"),
    ],
)
def test_a_headline_is_a_sentence(caption: str, other: str) -> None:
    check_both_ways(TO_SENTENCE, TO_HEADLINE, caption, other)


@pytest.mark.parametrize(
    "caption",
    [
        "A picture of a man riding a wave.",
        "The man riding a wave.",
        "Man riding a wave.",
        "A man riding a bike and a dog",
        "A man riding a bike and a woman walking",
        "A man holding a cup sitting on a bench",
        "A glass filled with milk sitting on a table",
        "A man riding a wave is smiling.",
        "A man and a woman wearing a hat",
        "A man riding a wave. He is happy.",
        "A man riding a wave takes a bow.",
        "A bathroom having a sink",
        "A man with a dog running",
        "A group of people in a field smile holding frisbees.",
        "A man on a boat sitting in a chair",
        "A man in a boat floating on a river",
    ],
)
def test_other_headlines_stay(caption: str) -> None:
    assert reworded(TO_SENTENCE, caption) == []


@pytest.mark.parametrize(
    "caption",
    [
        "The man is riding a wave.",
        "A man is riding a wave and is smiling.",
        "A man is riding a wave. ",
        "A man is happy.",
        "A man are riding a wave.",
        "He is riding a wave.",
        "A man is not riding a wave.",
    ],
)
def test_other_sentences_stay(caption: str) -> None:
    found = reworded(TO_HEADLINE, caption)
    assert found == (["A man riding a wave. "] if caption.endswith(" ") else [])


@pytest.mark.parametrize(
    ("caption", "other"),
    [
        ("A man rides a horse.", "A man is riding a horse."),
        ("Two dogs run on a beach", "Two dogs are running on a beach"),
        ("The girl holds an umbrella.", "The girl is holding an umbrella."),
        ("A plane flies in the sky", "A plane is flying in the sky"),
        ("A cup sits on a table.", "A cup is sitting on a table."),
        ("A group of men stand outside.", "A group of men are standing outside."),
        ("A group of men stands outside.", "A group of men is standing outside."),
        ("A man and a woman ride horses.", "A man and a woman are riding horses."),
        ("A man skis down a hill.", "A man is skiing down a hill."),
        ("Two buses drive on a road.", "Two buses are driving on a road."),
        ("A man in a hat rides a horse.", "A man in a hat is riding a horse."),
        ("A man looks at a dog.", "A man is looking at a dog."),
        ("a cat sleeps, \u00e9\U0001f600", "a cat is sleeping, \u00e9\U0001f600"),
    ],
)
def test_what_is_going_on_is_told_in_both_tenses(caption: str, other: str) -> None:
    check_both_ways(TO_PROGRESSIVE, TO_SIMPLE, caption, other)


@pytest.mark.parametrize(
    "caption",
    [
        "A man has a dog.",
        "A man looks like a dog.",
        "A man looks happy.",
        "A shelf holds books.",
        "A tower stands on a hill.",
        "A table stands in a room.",
        "A dog lies down on a bed.",
        "A bridge crosses a river.",
        "Giraffes eat leaves.",
        "A man sits and reads a book.",
        "A man rides a horse and waves.",
        "A picture of a man rides a horse.",
        "A man does not ride.",
        "A bowl contains fruit.",
        "A man is happy.",
        "A couple of cats lay on a bed.",
        "A MAN RIDES A HORSE.",
    ],
)
def test_a_state_is_not_told_in_the_progressive(caption: str) -> None:
    assert reworded(TO_PROGRESSIVE, caption) == []


@pytest.mark.parametrize(
    "caption",
    [
        "A man is eating and drinking.",
        "A man is going to eat.",
        "A man is trying to eat.",
        "A man is being watched.",
        "A man is not riding a horse.",
        "A man who is riding a horse.",
        "Giraffes are eating leaves.",
        "A couple of cats are laying on a bed.",
        "A man is eating but is sad.",
    ],
)
def test_what_is_no_single_activity_stays_progressive(caption: str) -> None:
    assert reworded(TO_SIMPLE, caption) == []


@pytest.mark.parametrize(
    ("caption", "other"),
    [
        ("A man riding a wave.", "There is a man riding a wave."),
        ("two dogs on a bed", "there are two dogs on a bed"),
        ("2 dogs on a bed", "There are 2 dogs on a bed"),
        ("Zebras in a field!", "There are zebras in a field!"),
        ("A couple of cats on a mat.", "There are a couple of cats on a mat."),
        ("A group of people standing.", "There is a group of people standing."),
        ("A few men sitting.", "There are a few men sitting."),
        ("A man who is sitting.", "There is a man who is sitting."),
        ("Food on a table \u00e9\U0001f600", "There is food on a table \u00e9\U0001f600"),
        ("A kitchen with a stove and a sink.", "There is a kitchen with a stove and a sink."),
        ("An apple.", "There is an apple."),
        ("Two cats and a dog", "There are two cats and a dog"),
        ("A dog runs", None),
        ("A dog running while a man walks", "There is a dog running while a man walks"),
    ],
)
def test_what_a_caption_names_is_there(caption: str, other: str | None) -> None:
    if other is None:
        assert reworded(ADD_THERE, caption) == []
    else:
        check_both_ways(ADD_THERE, DROP_THERE, caption, other)


@pytest.mark.parametrize(
    "caption",
    [
        "The man riding a wave.",
        "Man riding a wave.",
        "His dog on a bed.",
        "A picture of a dog.",
        "A close up of a dog.",
        "A view of a street.",
        "A day at the beach.",
        "A dog jumped over a fence.",
        "Other people standing.",
        "All dogs on a bed.",
        "A dog. A cat.",
        "Kim on a bed.",
        "A DOG ON A BED",
        "No dogs on a bed",
        "Close up of a dog",
        "A man sits.",
        "two men and a cat sleep on a bed",
    ],
)
def test_what_introduces_nothing_is_not_there(caption: str) -> None:
    assert reworded(ADD_THERE, caption) == []


@pytest.mark.parametrize(
    "caption",
    [
        "There is the man.",
        "There are a man on a horse.",
        "there are 2 dogs on a bed",
        "There is a Dog.",
        "There is no dog.",
        "There is a man on a horse and he is happy.",
        "There was a man.",
        "There is",
        "There  is a man.",
    ],
)
def test_other_clauses_with_there_stay(caption: str) -> None:
    found = reworded(DROP_THERE, caption)
    assert all(caption in reworded(ADD_THERE, text) for text in found)


@pytest.mark.parametrize(
    ("caption", "other"),
    [
        ("A man is riding a wave.", "There is a man riding a wave."),
        ("two dogs are sitting on a bed", "there are two dogs sitting on a bed"),
        ("A bus is parked on a street", "There is a bus parked on a street"),
        ("A group of people are standing.", "There is a group of people standing."),
    ],
)
def test_a_clause_with_a_new_subject_says_what_is_there(caption: str, other: str) -> None:
    check_both_ways("clause_to_there_is", "there_is_to_clause", caption, other)


@pytest.mark.parametrize(
    ("caption", "other"),
    [
        ("A dog is on a couch", "There is a dog on a couch"),
        ("A bike is in front of a house", "There is a bike in front of a house"),
        ("A train is on the train tracks.", "There is a train on the train tracks."),
        ("A television is on", None),
        ("A dog is in a house and on a couch", None),
        ("The dog is on a couch", None),
        ("A dog is happy", None),
        ("A dog is on a couch and a cat is in a box", None),
    ],
)
def test_what_is_in_a_place_is_there(caption: str, other: str | None) -> None:
    assert reworded("place_to_there_is", caption) == ([] if other is None else [other])


def test_a_man_who_is_going_to_do_something_does_not_do_it() -> None:
    assert reworded("clause_to_there_is", "A man is going to leak water") == []


def test_there_is_may_be_contracted() -> None:
    there, back = "there_is_to_theres", "theres_to_there_is"
    check_both_ways(there, back, "There is a dog on a bed", "There's a dog on a bed")
    assert reworded(back, "there\u2019s a dog") == ["there is a dog"]
    assert reworded(there, "There is snow") == []


@pytest.mark.parametrize(
    ("caption", "other"),
    [
        ("Cat on a bed", "A cat on a bed"),
        ("old train on tracks", "an old train on tracks"),
        ("Pair of shoes on a bed", "A pair of shoes on a bed"),
        ("Broccoli on a plate", None),
        ("Cats on a bed", None),
        ("A cat on a bed", None),
        ("Someone on a bed", None),
        ("Kim on a bed", None),
        ("Cat and dog on a bed", None),
    ],
)
def test_an_article_that_a_headline_lacks_is_added(caption: str, other: str | None) -> None:
    assert reworded("add_article", caption) == ([] if other is None else [other])


@pytest.mark.parametrize(
    ("caption", "other"),
    [
        ("A man rides a wave.", "A man riding a wave."),
        ("A toilet sits in front of a tree", "A toilet sitting in front of a tree"),
        ("A bridge crosses a river", "A bridge crossing a river"),
        ("Two dogs sleep on a bed, \u00e9", "Two dogs sleeping on a bed, \u00e9"),
        ("A man in a hat rides a horse", "A man in a hat riding a horse"),
        ("A hawk perches on a branch", "A hawk perching on a branch"),
    ],
)
def test_a_clause_is_a_headline_without_its_ending(caption: str, other: str) -> None:
    check_both_ways("present_to_participle", "participle_to_present", caption, other)


@pytest.mark.parametrize(
    ("rule", "caption"),
    [
        ("present_to_participle", "The man rides a wave."),
        ("present_to_participle", "Giraffes eat leaves"),
        ("participle_to_present", "Giraffes eating leaves in a field"),
        ("present_to_participle", "A man sits and reads a book"),
        ("present_to_participle", "A boy rides a bike and a girl rides a horse"),
        ("present_to_participle", "A cat lies down on a bed"),
        ("participle_to_present", "One person standing and another bending over"),
        ("participle_to_present", "A train coming down the tracks"),
        ("participle_to_present", "A man riding a wave is happy"),
    ],
)
def test_clauses_and_headlines_that_say_more_stay(rule: str, caption: str) -> None:
    assert reworded(rule, caption) == []


@pytest.mark.parametrize(
    ("caption", "other"),
    [
        ("A view of a street.", "This is a view of a street."),
        ("an old photo of a boat", "this is an old photo of a boat"),
        ("A close up of a cat, \u00e9", "This is a close up of a cat, \u00e9"),
        ("A beach scene with a dog", "This is a beach scene with a dog"),
        ("The back of a bus in a city", "This is the back of a bus in a city"),
    ],
)
def test_a_picture_is_shown(caption: str, other: str) -> None:
    check_both_ways("add_this_is", "drop_this_is", caption, other)


@pytest.mark.parametrize(
    ("rule", "caption", "other"),
    [
        ("drop_this_is", "This is a stop sign in a field", "A stop sign in a field"),
        ("add_this_is", "A stop sign in a field", None),
        ("add_this_is", "A picture of a dog is on a wall", None),
        ("add_this_is", "A photo booth", None),
        ("add_this_is", "The view", None),
        ("drop_this_is", "This is what a house looks like", None),
        ("drop_this_is", "This is a dog and this is a cat", None),
        (
            ADD_THERE,
            "A cat and a mouse on the ground.",
            "There is a cat and a mouse on the ground.",
        ),
        (ADD_THERE, "A herd of zebra in a field", "There is a herd of zebra in a field"),
        (ADD_THERE, "A giraffe and its herd in a zoo", "There is a giraffe and its herd in a zoo"),
        (ADD_THERE, "a pizza cut in half", "there is a pizza cut in half"),
        (ADD_THERE, "A sign for a ball game", "There is a sign for a ball game"),
        (
            ADD_THERE,
            "A statue of a man sitting on a bench",
            "There is a statue of a man sitting on a bench",
        ),
        (ADD_THERE, "A couple cut into a cake", None),
        (ADD_THERE, "A bus turned in to a street", None),
        (ADD_THERE, "A watch set to 12:25 sits on a table", None),
        (ADD_THERE, "A flower and vase that are in water", None),
        ("there_is_to_clause", "There is a statue of a man sitting on a bench", None),
        ("present_to_participle", "Cows graze in a field.", "Cows grazing in a field."),
        ("add_article", "View of a street", "A view of a street"),
        ("add_article", "Group of zebras walking", "A group of zebras walking"),
        ("add_article", "Brick building behind a street", "A brick building behind a street"),
    ],
)
def test_whole_noun_phrases(rule: str, caption: str, other: str | None) -> None:
    assert reworded(rule, caption) == ([] if other is None else [other])
