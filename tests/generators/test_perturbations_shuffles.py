import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import Edit, apply_edits
from eqforge.generators.text.perturbations import corrected
from eqforge.generators.text.perturbations.corrected import (
    find_words,
    shuffle_all_words,
    shuffle_nouns_and_adjectives,
    shuffle_other_words,
    shuffle_trigrams,
    shuffle_within_trigrams,
)
from eqforge.generators.text.perturbations.record import Reason
from eqforge.generators.text.taggers import load_tagger
from tests.cases import cases_of

cases = cases_of(__file__)

Shuffle = Callable[[Analysis, random.Random], list[Edit] | Reason]


def orders(shuffle: Shuffle, text: str, seeds: int = 600) -> Counter[str]:
    """The texts a shuffle makes, and how often, over many seeds."""
    (analysis,) = load_tagger().analyse([text])
    results = Counter[str]()
    for seed in range(seeds):
        edits = shuffle(analysis, random.Random(seed))
        assert not isinstance(edits, Reason)
        results[apply_edits(text, edits).text] += 1
    return results


def test_words_are_what_stands_between_spaces_without_outer_punctuation() -> None:
    text = '"A man\'s t-shirt," (red/blue) - cafe\u0301!'
    words = [text[start:end] for start, end in find_words(text)]
    assert words == ["A", "man's", "t-shirt", "red/blue", "cafe\u0301"]


def test_all_other_orders_of_words_are_drawn_equally_often() -> None:
    found = orders(shuffle_all_words, "One, two: three.", seeds=1_000)
    assert set(found) == {
        "One, three: two.",
        "Two, one: three.",
        "Two, three: one.",
        "Three, one: two.",
        "Three, two: one.",
    }
    assert all(150 < count < 250 for count in found.values())


def test_nouns_and_adjectives_change_places_among_themselves() -> None:
    found = orders(shuffle_nouns_and_adjectives, "a red man's cat, a wet dog")
    nouns = ["man", "cat", "dog"]
    for text in found:
        assert sorted(word for word in nouns if word in text) == sorted(nouns)
        assert text.replace("red", "?").replace("wet", "?").startswith("a ? ")
        assert "'s" in text
        assert text.count(",") == 1
    assert len(found) == 6 * 2 - 1


def test_nouns_glued_to_other_words_stay() -> None:
    found = orders(shuffle_nouns_and_adjectives, "a dog near a cat-tree_house and a cow", seeds=20)
    assert set(found) == {"a cow near a cat-tree_house and a dog"}


def test_all_but_nouns_and_adjectives_move() -> None:
    found = orders(shuffle_other_words, "the man's hat on a red box")
    assert set(found) == {
        "the man's hat a on red box",
        "on man's hat the a red box",
        "on man's hat a the red box",
        "a man's hat the on red box",
        "a man's hat on the red box",
    }


def test_words_move_within_their_group_of_three() -> None:
    found = orders(shuffle_within_trigrams, "one two three four five")
    assert len(found) == 6 * 2 - 1
    for text in found:
        words = text.split()
        assert sorted(words[:3]) == ["one", "three", "two"]
        assert sorted(words[3:]) == ["five", "four"]


def test_groups_of_three_move_whole() -> None:
    found = orders(shuffle_trigrams, "one two three, four five six; seven.", seeds=200)
    assert set(found) == {
        "one two three, seven four five; six.",
        "four five six, one two three; seven.",
        "four five six, seven one two; three.",
        "seven one two, three four five; six.",
        "seven four five, six one two; three.",
    }


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    cases("a_sentences_capital_stays_at_its_start_and_a_names_goes_with_it"),
)
def test_a_sentences_capital_stays_at_its_start_and_a_names_goes_with_it(
    name: str, text: str, expected: set[str] | None
) -> None:
    shuffle: Shuffle = getattr(corrected, f"shuffle_{name}")
    if expected is None:  # all orders read the same
        (analysis,) = load_tagger().analyse([text])
        assert shuffle(analysis, random.Random(0)) is Reason.ONE_ORDER_ONLY
    else:
        assert set(orders(shuffle, text, seeds=60)) == expected


@given(
    st.lists(
        st.sampled_from(
            ("A", "a", "The", "Dog", "TV", "iPhone", "runs", ".", "I", "\u0130", "\u00c9t\u00e9")
        )
    )
)
def test_the_first_letter_of_a_shuffled_caption_keeps_its_case(words: list[str]) -> None:
    text = " ".join(words)
    (analysis,) = load_tagger().analyse([text])
    for shuffle in (shuffle_all_words, shuffle_trigrams, shuffle_nouns_and_adjectives):
        edits = shuffle(analysis, random.Random(0))
        if isinstance(edits, Reason):
            continue
        after = apply_edits(text, edits).text
        first = find_words(after)[0][0]
        assert after[first].isupper() >= text[first].isupper() or "iPhone" in text
        assert after.casefold() != text.casefold()
