"""Captions of VL-CheckList reworded by rules, and negatives that say nothing for sure."""

import random

import pytest

from eqforge.generators.text.hard_positives.corrected import RewordedFoil, reword_by_rules
from eqforge.generators.text.hard_positives.reconcile import REFUSALS
from eqforge.generators.text.taggers import load_tagger
from eqforge.schemas.records.scores import Rejection
from eqforge.sources.vl_checklist import VlChecklistRecord
from tests.cases import cases_of

cases = cases_of(__file__)

DRAWS = 20


def _outcomes(positive: str, negative: str) -> set[str]:
    """Returns the hard positives that seeds draw, or the reason why there is none."""
    record = VlChecklistRecord(index=0, image="1.jpg", positives=(positive,), negatives=(negative,))
    made = [reword_by_rules(record, load_tagger(), random.Random(seed)) for seed in range(DRAWS)]
    return {each.edited.text if isinstance(each, RewordedFoil) else each.reason for each in made}


@pytest.mark.parametrize(
    ("positive", "negative", "hard_positives"),
    [
        ("red barn", "blue barn", {"red-colored barn"}),
        ("cat under car", "cat above car", {"cat underneath car"}),
        ("man near window", "man far from window", {"man close to window", "guy near window"}),
    ],
)
def test_what_the_negative_changed_is_reworded(
    positive: str, negative: str, hard_positives: set[str]
) -> None:
    assert _outcomes(positive, negative) == hard_positives


@pytest.mark.parametrize(
    ("positive", "negative", "reason"),
    cases("a_negative_that_may_be_true_is_refused_with_a_reason"),
)
def test_a_negative_that_may_be_true_is_refused_with_a_reason(
    positive: str, negative: str, reason: str
) -> None:
    assert _outcomes(positive, negative) == {reason}
    assert reason in REFUSALS


def test_a_refusal_names_the_words() -> None:
    record = VlChecklistRecord(
        index=0, image="1.jpg", positives=("white couch",), negatives=("beige couch",)
    )
    refusal = reword_by_rules(record, load_tagger(), random.Random(0))
    assert refusal == Rejection(reason="negative_not_clear", detail="white | beige")
