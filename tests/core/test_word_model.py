import math

import pytest

from eqforge.core.word_model import WordModel

TEXTS = ("A red bus.", "a red car", "the bus stops")


def _learnt(texts: tuple[str, ...]) -> WordModel:
    model = WordModel()
    model.learn(texts)
    return model


def test_words_are_as_likely_as_they_were_after_the_two_before_them() -> None:
    # "a" begins two texts of three, "red" follows it always, "bus" each other time; then it ends.
    assert _learnt(TEXTS).score("A red bus") == pytest.approx(math.log(2 / 3 * 1 * 1 / 2 * 1))


def test_each_word_of_context_that_was_not_seen_before_it_costs_a_factor() -> None:
    # After "the red" nothing is known, after "red" one of two is a car; 15 marks and words in all.
    expected = [1 / 3, 0.4**2 * 2 / 15, 0.4 * 1 / 2, 1]
    assert _learnt(TEXTS).score("the red car") == pytest.approx(sum(map(math.log, expected)))


def test_a_word_that_was_never_seen_counts_for_half_a_time() -> None:
    # It costs 0.4 for the start, and the end after it 0.4 twice; three texts end.
    expected = [0.4 * 0.5 / 15, 0.4**2 * 3 / 15]
    assert _learnt(TEXTS).score("zebras") == pytest.approx(sum(map(math.log, expected)))


def test_what_is_forgotten_was_never_learnt() -> None:
    model = _learnt(TEXTS)
    model.forget(TEXTS[1:])
    known = _learnt(TEXTS[:1])
    for text in (*TEXTS, "", "a red zebra"):
        assert model.score(text) == known.score(text)


def test_nothing_is_known_of_nothing() -> None:
    # Each of two words and the end counts for half a time; five words of context are left out.
    expected = 3 * math.log(0.5) + 5 * math.log(0.4)
    assert WordModel().score("a bus") == pytest.approx(expected)
