import random
from typing import get_args

import pytest

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import Edit, apply_edits
from eqforge.generators.text.graded.climb import Climber
from eqforge.generators.text.graded.records import Step, are_apart, compose, step_of
from eqforge.generators.text.graded.steps import (
    FALSE_KINDS,
    FAMILIES,
    false_steps,
    offers_negative,
    offers_rewording,
    rewording_steps,
)
from eqforge.generators.text.hard_negatives.records import NegativeKind
from eqforge.generators.text.rewordings.rules import FAMILIES as RULES
from eqforge.generators.text.taggers import load_tagger

CAPTION = "A man riding a large wave next to two dogs."


def analyse(text: str) -> Analysis:
    return load_tagger(None).analyse([text])[0]


def step(start: int, end: int, text: str) -> Step:
    return Step(kind="k", edits=(Edit(start=start, end=end, replacement=text),))


def climber(offers: object, takes: object = lambda text: True) -> Climber:
    return Climber(analyse=analyse, offers=offers, takes=takes)  # type: ignore[arg-type]


def test_the_families_are_those_of_the_rules_and_an_exchange() -> None:
    assert set(FAMILIES) == {"swap", *RULES}
    assert set(FALSE_KINDS) < set(get_args(NegativeKind))


def test_a_word_stands_between_steps_that_are_apart() -> None:
    caption = "a red car, big dog"
    red, car, dog = step(2, 5, "blue"), step(6, 9, "bus"), step(15, 18, "cat")
    assert are_apart(caption, (dog, red))
    assert not are_apart(caption, (red, car))
    assert not are_apart(caption, (red, red))
    assert not are_apart(caption, (car, step(11, 14, "small")))  # a comma is no word
    assert compose(caption, (dog, red)).text == "a blue car, big cat"


def test_a_step_makes_the_text_that_it_was_made_of() -> None:
    edited = apply_edits(CAPTION, [Edit(start=2, end=5, replacement="woman")])
    assert compose(CAPTION, (step_of("k", CAPTION, edited),)) == edited


@pytest.mark.parametrize("seed", range(20))
def test_rewordings_that_make_no_sentence_together_are_not_composed(seed: int) -> None:
    """ "There is a man" and "a man is riding" stand apart, and are one clause too many."""
    analysis = analyse(CAPTION)
    steps = {found.kind: found for found in rewording_steps(analysis)}
    both = (steps["existential/add_there_is"], steps["headline/headline_to_sentence"])
    assert are_apart(CAPTION, both)
    assert compose(CAPTION, both).text == "There is a man is riding a large wave next to two dogs."

    ladder = climber(offers_rewording).climb(analysis, both, 2, random.Random(seed))
    assert len(ladder) == 1
    ladder = climber(offers_rewording).climb(analysis, steps.values(), 3, random.Random(seed))
    assert len(ladder) == 3
    assert not {found.kind for found in both} <= {found.kind for found in ladder}


@pytest.mark.parametrize("seed", range(20))
def test_false_edits_are_composed_and_put_in_nothing_known(seed: int) -> None:
    analysis, rng = analyse(CAPTION), random.Random(seed)
    known = frozenset(("woman", "small"))
    steps = list(false_steps(analysis, known, rng))
    ladder = climber(offers_negative).climb(analysis, steps, 3, rng)
    assert len(ladder) > 1
    assert not known & set(compose(CAPTION, ladder).text.lower().rstrip(".").split())


def test_what_a_caption_denies_is_not_changed() -> None:
    denied = analyse("A man is not riding a large wave next to two dogs.")
    assert list(false_steps(denied, frozenset(), random.Random(0))) == []


def test_a_text_that_may_not_be_taken_ends_the_ladder_below() -> None:
    analysis = analyse(CAPTION)
    steps = list(rewording_steps(analysis))
    single = {compose(CAPTION, (one,)).text for one in steps}
    for takes, height in ((lambda text: False, 0), (lambda text: text in single, 1)):
        ladder = climber(offers_rewording, takes).climb(analysis, steps, 3, random.Random(0))
        assert len(ladder) == height


def test_a_caption_of_many_places_takes_no_longer() -> None:
    """Sets of steps are drawn: there are millions of three out of two hundred."""
    text = ", ".join(["a red cat near a big dog on a large couch"] * 40)
    analysis = analyse(text)
    steps = list(false_steps(analysis, frozenset(), random.Random(0)))
    assert len(steps) > 100
    assert len(climber(offers_negative).climb(analysis, steps, 3, random.Random(0))) <= 3
