"""What follows from answers: limits, disagreement, probabilities."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.core.errors import InputError
from eqforge.schemas.records.judgements import (
    QUESTIONS,
    JudgeAnswer,
    disputed_by_judges,
    disputed_by_rules,
)
from eqforge.schemas.records.scores import Rejection
from eqforge.transforms.judges import decide
from eqforge.transforms.judges.decide import JUDGE_REASONS, answers_about, refuse
from eqforge.transforms.judges.settings import JudgeSettings, prepare_judges


def said(question: str, probability: float | None, judge: str = "nli") -> JudgeAnswer:
    return JudgeAnswer(
        judge=judge, model="m", revision="1", question=question, probability=probability
    )


def settings(**limits: Any) -> JudgeSettings:
    return JudgeSettings(verify=("nli:x",), **limits)


@pytest.mark.parametrize(
    ("question", "limit", "reason"),
    [
        ("caption_entails_positive", "entailed_min", "not_entailed"),
        ("positive_entails_caption", "entailed_min", "not_entailed"),
        ("negative_contradicts_caption", "contradicted_min", "not_contradicted"),
        ("negative_contradicts_positive", "contradicted_min", "not_contradicted"),
        ("caption_shown", "shown_min", "not_shown"),
        ("positive_shown", "shown_min", "not_shown"),
        ("negative_not_shown", "shown_min", "shown"),
    ],
)
def test_a_limit_refuses_what_is_below_it(question: str, limit: str, reason: str) -> None:
    assert refuse([said(question, 0.7)], settings(**{limit: 0.7})) is None
    assert refuse([said(question, 0.1)], settings()) is None
    found = refuse([said(question, 0.69)], settings(**{limit: 0.7}))
    assert found == Rejection(
        reason=reason, value=0.69, threshold=0.7, detail=f"nli:m@1: {question}"
    )
    assert found is not None
    assert found.reason in JUDGE_REASONS


def test_all_judges_of_a_text_have_to_refuse_it_where_that_is_asked_for() -> None:
    two = [said("caption_entails_positive", 0.2), said("caption_entails_positive", 0.9, "llm")]
    assert refuse(two, settings(entailed_min=0.5)) is not None
    assert refuse(two, settings(entailed_min=0.5, refuse_by="all")) is None
    both = [two[0], replace(two[1], probability=0.4)]
    assert refuse(both, settings(entailed_min=0.5, refuse_by="all")) is not None
    # A judge that was not asked about the negative has nothing to keep it by.
    mixed = [*two, said("negative_contradicts_caption", 0.1)]
    found = refuse(mixed, settings(entailed_min=0.5, contradicted_min=0.5, refuse_by="all"))
    assert found is not None
    assert found.reason == "not_contradicted"


answers = st.lists(
    st.builds(
        said,
        st.sampled_from(sorted(QUESTIONS)),
        st.none() | st.floats(0, 1),
        st.sampled_from(["nli", "llm", "vqa"]),
    ),
    max_size=8,
)
limits = st.fixed_dictionaries(
    {
        name: st.none() | st.floats(0, 1)
        for name in ("entailed_min", "contradicted_min", "shown_min")
    }
)


@given(answers, limits)
def test_all_refuses_nothing_that_any_does_not(
    found: list[JudgeAnswer], named: dict[str, float | None]
) -> None:
    by_any = refuse(found, settings(**named))
    if set(named.values()) != {None}:
        by_all = refuse(found, settings(**named, refuse_by="all"))
        assert by_all is None or by_any is not None
    assert refuse(found, settings()) is None
    parts = {QUESTIONS[each.question].part for each in found}
    split = [refuse(answers_about(found, part), settings(**named)) for part in parts]
    assert (by_any is None) == (not any(split))


@given(answers)
def test_judges_that_disagree_are_at_odds_with_the_rules_too(found: list[JudgeAnswer]) -> None:
    assert disputed_by_rules(found) or not disputed_by_judges(found)
    assert not disputed_by_judges([each for each in found if each.judge == "nli"])
    assert disputed_by_rules(found) == any(
        each.probability is not None and each.probability <= 0.5 for each in found
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"verify": ("vqa",)}, "expected KIND:SOURCE, where KIND is one of nli, llm, vqa"),
        ({"verify": ("nlu:x",)}, "did you mean 'nli'"),
        ({"verify": ("nli:x,devise=cpu",)}, "unknown option 'devise'; nli has"),
        ({"verify": ("nli:x", "nli:x")}, "--verify nli:x was passed twice"),
        ({"verify": ("nli:x",), "entailed_min": 50}, "write 0.5 for 50%"),
        ({"entailed_min": 0.5}, "--entailed-min needs judges; specify them with --verify"),
        ({"refuse_by": "all"}, "--refuse-by needs judges; specify them with --verify"),
        (
            {"verify": ("nli:x",), "refuse_by": "all"},
            "--refuse-by all has no effect without a limit; also pass one, such as",
        ),
        ({"verify_requests": 9}, "--verify-requests needs judges"),
    ],
)
def test_wrong_settings_are_one_clear_error(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        JudgeSettings(**given)


def test_a_judge_that_sees_needs_pictures() -> None:
    with pytest.raises(
        InputError, match="--verify vqa: this judge needs images; pass --images FOLDER"
    ):
        prepare_judges(JudgeSettings(verify=("vqa:x",)), "unused")


def test_nothing_is_judged_where_nobody_is_asked_and_nothing_known() -> None:
    assert prepare_judges(JudgeSettings(), "unused") is None
    least = JudgeSettings(probability_min=0.5)
    with pytest.raises(InputError, match="--probability-min works only with rows"):
        prepare_judges(least, "unused")
    assert prepare_judges(least, "unused", by_rules=True) is not None
    assert decide.JUDGE_REASONS.keys() >= {each.reason for each in QUESTIONS.values()}


def test_servers_are_asked_no_more_than_allowed() -> None:
    server = JudgeSettings(verify=("llm:m@http://localhost:1/v1", "nli:x"), verify_requests=400)
    assert server.check_requests(100) == 400
    with pytest.raises(InputError, match="--verify-requests 400: this build may need 404 requests"):
        server.check_requests(101)
