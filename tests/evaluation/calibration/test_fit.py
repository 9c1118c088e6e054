"""Curves from labels: what they give on answers whose truth is known, and what they refuse."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.evaluation.calibration import command
from eqforge.evaluation.calibration.fit import FitSettings, calibration_error, fit
from eqforge.evaluation.calibration.rows import JudgedRow, Labelled, LabelledRow, with_labels
from eqforge.schemas.records.judgements import JudgeAnswer, log_odds
from eqforge.sources.row_labels import RowLabel

QUESTIONS = ("caption_entails_positive", "negative_contradicts_caption")


def row(name: str, image: str, probabilities: Sequence[float | None], **label: Any) -> LabelledRow:
    answers = tuple(
        JudgeAnswer(judge="nli", model="m", revision="1", question=question, probability=given)
        for question, given in zip(QUESTIONS, probabilities, strict=True)
    )
    found = JudgedRow(id=name, image=image, texts=None, answers=answers)
    return LabelledRow(row=found, label=RowLabel(id=name, **label))


def drawn(count: int, seed: int = 0, boast: float = 3.0) -> list[LabelledRow]:
    """Rows whose judge has the truth's log-odds, but three times as sure as it should be."""
    rng = random.Random(seed)

    def one() -> tuple[float, bool]:
        truth = rng.uniform(-1.5, 1.5)
        return 1 / (1 + np.exp(-boast * truth)), bool(rng.random() < 1 / (1 + np.exp(-truth)))

    rows = []
    for number in range(count):
        (first, positive), (second, negative) = one(), one()
        name = f"{number:05d}"
        label = {"positive": positive, "negative": negative}
        rows.append(row(name, str(number // 2), (first, second), **label))
    return rows


@pytest.mark.parametrize("method", ["logistic", "isotonic"])
def test_a_judge_that_boasts_is_put_right(method: Any) -> None:
    rows = drawn(1500)
    found = fit(rows, FitSettings(method=method, resamples=200))

    for part in ("hard_positive", "hard_negative"):
        check = found.checks[part]
        raw = np.array([each.row.answers[part == "hard_negative"].probability for each in rows])
        right = np.array([each.label.is_right(part) for each in rows], dtype=bool)
        assert check.rows == 1500
        assert check.right == right.sum()
        assert calibration_error(raw, right) > 0.12
        assert check.ece < 0.05
        assert check.brier < check.brier_of_share
        assert check.brier_interval[0] < check.brier < check.brier_interval[1]
        assert check.ece_interval[0] <= check.ece_interval[1]
    assert found.checks["rows"].right < found.checks["hard_positive"].right
    if method == "logistic":  # a third of the judge's log-odds, but for those cut off at 0.999
        (weight,) = found.hard_positive.weights
        assert 0.28 < weight < 0.4
        assert abs(found.hard_positive.bias) < 0.15


def test_the_order_of_rows_in_a_file_changes_nothing() -> None:
    rows = drawn(60)
    labels = [each.label for each in rows]
    judged = [each.row for each in rows]
    mixed = random.Random(1).sample(range(60), 60)
    first = with_labels(judged, labels).rows
    second = with_labels([judged[i] for i in mixed], [labels[i] for i in mixed[::-1]]).rows
    assert fit(first, FitSettings(resamples=20)) == fit(second, FitSettings(resamples=20))


@pytest.mark.parametrize("method", ["logistic", "isotonic"])
def test_no_curve_is_sure_of_a_text(method: Any) -> None:
    rows = [
        row(f"{n}", f"{n}", (0.1 + 0.8 * (n > 5), 0.9), positive=n > 5, negative="false")
        for n in range(18)
    ]
    found = fit(rows, FitSettings(method=method, resamples=20))
    for part, told in ((found.hard_positive, (-9.0, 9.0)), (found.hard_negative, (9.0,))):
        assert all(0 < part.of([odds]) < 1 for odds in told)
    if method == "isotonic":  # of 18 labels
        assert found.hard_positive.of([9.0]) == pytest.approx(19 / 20)


def test_readings_of_several_samples_count_together() -> None:
    judged = JudgedRow(id="a", image="a", texts="d" * 16, answers=())
    labels = [
        RowLabel(id="a", sample="one", positive=["ok", "ok"], negative="false", texts="d" * 16),
        RowLabel(id="a", sample="two", positive="wrong", near=True, texts=""),
        RowLabel(id="a", sample="old", positive="ok", negative="true", texts="e" * 16),
    ]
    for order in (labels, labels[::-1]):
        found = with_labels([judged], order)
        (labelled,) = found.rows
        parts = ("hard_positive", "hard_negative")
        assert [labelled.label.is_right(part) for part in parts] == [False, True]
        assert found.other_texts == 1


def test_where_all_are_right_all_get_the_rule_of_succession() -> None:
    rows = [row(f"{n}", f"{n}", (0.5, 0.9), positive="ok", negative="false") for n in range(18)]
    found = fit(rows, FitSettings(resamples=20))
    given = found.hard_positive.of([log_odds(0.1)])
    assert given == pytest.approx(19 / 20)
    assert found.checks["rows"].brier_of_share == 0


def test_a_text_that_a_judge_could_not_read_is_left_out_of_its_curve_alone() -> None:
    rows = drawn(40)
    lost = row("00000x", "x", (None, 0.9), positive="ok", negative="false")
    found = fit([lost, *rows], FitSettings(resamples=20))
    assert found.checks["hard_positive"].rows == 40
    assert found.checks["hard_negative"].rows == 41
    assert found.checks["rows"].rows == 40


def test_labels_of_one_text_alone_are_not_enough() -> None:
    rows = [row(f"{n}", f"{n}", (0.5, 0.9), positive="ok") for n in range(18)]
    with pytest.raises(InputError, match="no label is of a hard negative that all judges"):
        fit(rows, FitSettings())
    with pytest.raises(InputError, match=r"labels of 3 pictures .* expected 5 at least"):
        fit(drawn(6), FitSettings())


def test_the_calibration_error_by_hand() -> None:
    given = np.array([0.1, 0.1, 0.9, 0.9])
    right = np.array([False, True, True, True])
    # Four bins of one: 0.1, 0.9, 0.1 and 0.1.
    assert calibration_error(given, right) == pytest.approx(0.3)
    assert calibration_error(np.full(40, 0.5), np.tile([True, False], 20)) == pytest.approx(0)


def test_judges_that_tell_nothing_apart_are_told() -> None:
    rng = random.Random(0)
    told = drawn(300)
    idle = [
        row(f"{n:05d}", f"{n}", (rng.random(), rng.random()), positive=n % 9 > 0, negative="false")
        for n in range(300)
    ]
    for rows, expected in ((told, False), (idle, True)):
        found = fit(rows, FitSettings(resamples=20))
        lines = list(command._lines(Labelled(rows=tuple(rows), other_texts=0, not_there=0), found))
        said = "hard positives; rows, both texts right: judges tell right from wrong no better than"
        assert any(line.startswith(said) for line in lines) == expected
        assert len(lines) == 4 + expected
