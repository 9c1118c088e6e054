"""Hand-written answers become the numbers that a few lines of counting give."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from eqforge.cli import main as command
from eqforge.core.errors import InputError
from eqforge.evaluation.conversations.answers import Answered, chance_of, judge_answers
from eqforge.evaluation.conversations.questions import ARRANGEMENTS, QUESTION, ask, check_template
from eqforge.evaluation.conversations.run import side_by_side
from tests.made_datasets import pair_tables, write_pairs
from tests.statuses import status_of

main = status_of(command)


def answered(sample: str, lefts: Sequence[int | None]) -> list[Answered]:
    """The numbers given to the left image, in the order of ARRANGEMENTS."""
    return [
        Answered(sample_id=sample, orders=one.names, left=left, true_left=one.truth[0])
        for one, left in zip(ARRANGEMENTS, lefts, strict=True)
    ]


def test_the_four_orders_and_their_truths() -> None:
    found = [(*one.names, one.truth) for one in ARRANGEMENTS]
    assert found == [
        ("01", "01", (1, 2)),
        ("01", "10", (2, 1)),
        ("10", "01", (2, 1)),
        ("10", "10", (1, 2)),
    ]
    asked = [ask("{caption_1}|{caption_2}", ("zero", "one"), one) for one in ARRANGEMENTS]
    assert asked == ["zero|one", "one|zero", "zero|one", "one|zero"]


def test_captions_with_braces_are_left_alone() -> None:
    asked = ask(QUESTION, ("a {caption_2} sign", "{x}"), ARRANGEMENTS[0])
    assert "caption 1: a {caption_2} sign; caption 2: {x}. Please" in asked


@pytest.mark.parametrize("template", ["", "{caption_1}", "{caption_2} {caption_1}", QUESTION * 2])
def test_a_question_needs_both_captions_once(template: str) -> None:
    with pytest.raises(InputError, match="--question"):
        check_template(template)


def test_what_each_kind_of_answerer_counts() -> None:
    answers = [
        *answered("a-right", [1, 2, 2, 1]),
        *answered("b-says-12", [1, 1, 1, 1]),
        *answered("c-wrong", [2, 1, 1, 2]),
        *answered("d-mute", [None] * 4),
        *answered("e-half-mute", [1, None, 2, 1]),
    ]
    keys, credits = judge_answers(reversed(answers))
    assert keys == ["a-right", "b-says-12", "c-wrong", "d-mute", "e-half-mute"]
    assert {name: values.tolist() for name, values in credits.items()} == {
        "captions 1,2": [1, 1, 0, 0, 1],
        "captions 2,1": [1, 0, 0, 0, 0],
        "every order": [1, 0.5, 0, 0, 0.75],
        "consistent": [1, 0, 1, 0, 0],
        "right in all": [1, 0, 0, 0, 0],
        "1;2": [0.5, 1, 0.5, 0, 0.5],
        "not read": [0, 0, 0, 1, 0.25],
    }


@pytest.mark.parametrize("orders", [2, 4])
def test_chance_is_what_all_throws_of_a_coin_give(orders: int) -> None:
    answers = [
        one
        for number, lefts in enumerate(itertools.product([1, 2], repeat=orders))
        for one in answered(f"{number:02d}", [*lefts, 1, 1][:4])[:orders]
    ]
    _, credits = judge_answers(answers)
    expected = chance_of(orders)
    assert {name: credits[name].mean() for name in expected} == expected


def test_answers_have_to_be_complete() -> None:
    whole = answered("a", [1, 2, 2, 1])
    with pytest.raises(InputError, match="has two answers with image_order '"):
        judge_answers([*whole, whole[0]])
    with pytest.raises(InputError, match="no answer with image_order '1"):
        judge_answers(whole[:3])


def test_answers_of_another_program_are_measured_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = write_pairs(tmp_path / "pairs", pair_tables(1, 2))
    (key,) = [row["sample_id"] for row in pair_tables(1, 2)["samples"]]
    said = {"0101": "1;2", "0110": "The left image is caption 2.", "1001": "2; 1", "1010": "?"}
    lines = [
        {"sample_id": key, "image_order": k[:2], "caption_order": k[2:], "answer": answer}
        for k, answer in said.items()
    ]
    path = tmp_path / "gpt.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["converse", str(dataset), "--answers", str(path), "--show", "json"]) == 0
    measures = json.loads(capsys.readouterr().out)["measures"]
    found = {m["metric"]: m["value"] for m in measures}
    assert {m["model"] for m in measures} == {"gpt"}
    assert found["captions 1,2"] == found["captions 2,1"] == 1.0
    assert (found["every order"], found["right in all"], found["not read"]) == (0.75, 0.0, 0.25)
    for wrong, sentence in (
        ({"sample_id": "x"}, "the field 'image_order' is missing"),
        (
            lines[0] | {"sample_id": "x"},
            "sample_id: no pair with the id 'x' was chosen from the dataset",
        ),
        (lines[0] | {"answer": None}, "answer: expected a string, found null"),
        (lines[0] | {"image_order": "11"}, "image_order: unknown value '11'"),
        (["x"], "expected an object, found a list"),
    ):
        path.write_text(json.dumps(wrong) + "\n")
        assert main(["converse", str(dataset), "--answers", str(path)]) == 2
        err = capsys.readouterr().err
        assert f"{path}: line 1: {sentence}" in err
        assert "Error(" not in err


def test_an_answer_that_is_missing_is_an_error_unless_it_is_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = pair_tables(2, 3)
    dataset = write_pairs(tmp_path / "pairs", tables)
    keys = sorted(row["sample_id"] for row in tables["samples"])
    lines = [
        {"sample_id": keys[0], "image_order": i, "caption_order": c, "answer": "1;2"}
        for i, c in itertools.product(("01", "10"), repeat=2)
    ]
    path = tmp_path / "gpt.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    asked = ["converse", str(dataset), "--answers", str(path)]
    assert main(asked) == 2
    message = f"{len(keys) - 1} of {len(keys)} pairs have no answer, for example '{keys[1]}'"
    assert message in capsys.readouterr().err
    assert main([*asked, "--allow-missing", "--show", "json"]) == 0
    measured = json.loads(capsys.readouterr().out)["measures"][0]
    assert [measured[n] for n in ("scored", "missing")] == [1, len(keys) - 1]
    assert main([*asked, "--by", "origin_0"]) == 2
    assert "the column 'origin_0' has the type struct" in capsys.readouterr().err


def test_images_of_one_height_stand_beside_each_other_pixel_by_pixel() -> None:
    rng = np.random.default_rng(0)
    left, right = (rng.integers(0, 256, (5, w, 3), dtype=np.uint8) for w in (4, 7))
    assert (side_by_side(left, right) == np.hstack([left, right])).all()
    with_bar = side_by_side(left, right, gap_px=2)
    assert (with_bar[:, 4:6] == 255).all()
    assert (with_bar[:, 6:] == right).all()


def test_the_taller_image_is_scaled_down_with_its_proportions() -> None:
    tall = np.full((40, 20, 3), 9, dtype=np.uint8)
    low = np.full((10, 30, 3), 200, dtype=np.uint8)
    for first, second in ((tall, low), (low, tall)):
        assert side_by_side(first, second).shape == (10, 5 + 30, 3)
    assert (side_by_side(tall, low)[:, :5] == 9).all()
