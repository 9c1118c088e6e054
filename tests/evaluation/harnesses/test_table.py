"""What harnesses write becomes the papers' numbers, joined by id; what does not fit is an error."""

import csv
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eqforge.evaluation.tables.command import main as command
from tests.evaluation.harnesses import made
from tests.evaluation.written import rows_by
from tests.made_datasets import (
    caption,
    image_rows,
    pair_tables,
    picture,
    write_dataset,
    write_pairs,
)
from tests.statuses import status_of

main = status_of(command)
Numbers = dict[tuple[str, str], dict[str, str]]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """18 pairs of frames of three videos."""
    return write_pairs(tmp_path_factory.mktemp("pairs") / "d", pair_tables(3))


@pytest.fixture(scope="module")
def rewordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six captions of three images, with a hard positive and a hard negative each."""
    pictures = {f"i{number}": picture(number) for number in range(3)}
    texts = ("caption", "hard_positive", "hard_negative")
    samples = [
        {
            "sample_id": f"s/{row}",
            "image": f"{row % 3}.png",
            "image_id": f"i{row % 3}",
            "hard_negative_kind": "swap" if row % 2 else "replace",
            **{name: caption(10 * row + place) for place, name in enumerate(texts)},
        }
        for row in range(6)
    ]
    tables = {"samples": samples, "images": image_rows(pictures)}
    return write_dataset(tmp_path_factory.mktemp("texts") / "d", "hard-positives", tables)


def measured(folder: Path, *arguments: object) -> Numbers:
    assert main([*map(str, arguments), "--output", str(folder / "out")]) == 0
    return rows_by(folder / "out")


def values(numbers: Numbers, subset: str = "all") -> dict[str, float]:
    return {name: float(row["value"]) for (part, name), row in numbers.items() if part == subset}


def test_errata_leave_samples_out_whatever_was_answered(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = made.asked(pairs)
    one = asked[0].sample_id
    path = made.write_log(
        tmp_path / "m.jsonl",
        asked,
        lambda question: "neither" if question.sample_id == one else made.right(question),
    )
    errata = tmp_path / "errata.jsonl"
    errata.write_text(json.dumps({"id": one, "action": "drop", "reason": "no cat", "who": "a"}))
    assert values(measured(tmp_path, pairs, path))["group"] == 17 / 18
    numbers = measured(tmp_path, pairs, path, "--errata", errata)
    assert (values(numbers)["group"], numbers["all", "group"]["scored"]) == (1, "17")
    assert "errata: 1 sample left out (drop): no cat" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (made.right, (1, 1, 1, 1, 0.5, 0)),
        (made.wrong, (0, 0, 0, 0, 0.5, 0)),
        (made.says_a, (0, 0, 0, 0.5, 1, 0)),
        (made.right_about_captions, (1, 0, 0, 0.5, 0.5, 0)),
        (lambda question: "neither", (0, 0, 0, 0, 0, 1)),
    ],
)
def test_models_that_are_no_models_get_what_they_deserve(
    pairs: Path, tmp_path: Path, model: made.Model, expected: tuple[float, ...]
) -> None:
    path = made.write_log(tmp_path / "m.jsonl", made.asked(pairs), model)
    numbers = measured(tmp_path, pairs, path)
    names = ("text", "image", "group", "accuracy", "says A", "not read")
    assert values(numbers) == dict(zip(names, expected, strict=True))
    row = numbers["all", "group"]
    assert (row["expected"], row["scored"], row["clusters"]) == ("18", "18", "3")
    assert [float(numbers["all", name]["chance"]) for name in names[:4]] == [
        1 / 16,
        1 / 16,
        1 / 256,
        1 / 2,
    ]


@pytest.mark.parametrize("suffix", [".jsonl", ".xlsx", ".tsv", ".csv", ".json"])
def test_every_form_and_order_gives_the_same_bytes(
    pairs: Path, tmp_path: Path, suffix: str
) -> None:
    if suffix == ".xlsx":
        pytest.importorskip("python_calamine")
    questions = made.asked(pairs)
    said = {one.question_id: random.Random(one.question_id).choice("AB") for one in questions}
    results = []
    for name, order in (
        ("1", questions),
        ("2", random.Random(0).sample(questions, len(questions))),
    ):
        path = tmp_path / name / f"m{suffix}"
        path.parent.mkdir()
        if suffix == ".jsonl":
            made.write_log(path, order, lambda one: said[one.question_id])
        else:
            made.write_table(path, made.predictions(order, lambda one: said[one.question_id]))
        results.append(measured(path.parent, pairs, path))
    log = made.write_log(tmp_path / "m.jsonl", questions, lambda one: said[one.question_id])
    assert results[0] == results[1] == measured(tmp_path, pairs, log)


def test_rewordings_give_the_numbers_of_hard_positives(rewordings: Path, tmp_path: Path) -> None:
    def only_the_caption(question: Any) -> str:
        return made.right(question) if question.number == 0 else made.wrong(question)

    path = made.write_log(tmp_path / "m.jsonl", made.asked(rewordings), only_the_caption)
    numbers = measured(tmp_path, rewordings, path)
    expected = {"original": 1, "augmented": 0, "brittleness": 1, "accuracy": 0.5}
    assert values(numbers) == expected | {"says A": 0.5, "not read": 0}
    assert numbers["all", "original"]["clusters"] == "3"
    assert {subset for subset, _ in numbers} == {"all", "replace", "swap"}
    chances = [float(numbers["all", name]["chance"]) for name in list(expected)[:3]]
    assert chances == [1 / 4, 1 / 16, 3 / 8]


def test_a_model_that_was_asked_for_captions_only_has_a_text_score_only(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = [one for one in made.asked(pairs) if one.asks == "text"]
    path = made.write_log(tmp_path / "m.jsonl", questions, made.right)
    numbers = values(measured(tmp_path, pairs, path))
    assert numbers == {"text": 1, "accuracy": 1, "says A": 0.5, "not read": 0}
    assert "all questions ask for the text, so there is no group score" in capsys.readouterr().out


def test_models_are_compared_on_the_samples_of_both(pairs: Path, tmp_path: Path) -> None:
    questions = made.asked(pairs)
    paths = [
        made.write_log(tmp_path / "right.jsonl", questions, made.right),
        made.write_table(tmp_path / "a.json", made.predictions(questions, made.says_a)),
    ]
    measured(tmp_path, pairs, *paths)
    with (tmp_path / "out" / "comparisons.csv").open() as stream:
        found = {row["metric"]: float(row["difference"]) for row in csv.DictReader(stream)}
    assert found == {"text": -1, "image": -1, "group": -1, "accuracy": -0.5} | {
        "says A": 0.5,
        "not read": 0,
    }


def _drop(questions: list[Any]) -> list[Any]:
    return questions[1:]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            _drop,
            "18 samples, for example 'made/v002/2-3'; pass --allow-missing",
        ),
        (lambda found: [*found, found[3]], "line 145: the question 'q"),
        (lambda found: [], "contains no scores"),
    ],
)
def test_missing_and_repeated_answers_are_errors(
    pairs: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[list[Any]], list[Any]],
    message: str,
) -> None:
    path = made.write_log(tmp_path / "m.jsonl", change(made.asked(pairs)), made.right)
    assert main([str(pairs), str(path)]) == 2
    assert message in capsys.readouterr().err


def test_a_sample_that_is_answered_in_part_is_left_out_and_counted(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = made.predictions(made.asked(pairs), made.right)
    rows[0]["prediction"] = "Failed to obtain answer via API."
    path = made.write_table(tmp_path / "m.tsv", rows)
    assert main([str(pairs), str(path)]) == 2
    assert "(1 question failed in the harness)" in capsys.readouterr().err
    row = measured(tmp_path, pairs, path, "--allow-missing")["all", "text"]
    assert (row["expected"], row["scored"], row["missing"]) == ("18", "17", "1")
    assert "left out: 1 sample with unanswered questions" in capsys.readouterr().out


def test_answers_to_another_dataset_are_refused(
    pairs: Path, rewordings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = made.write_log(tmp_path / "m.jsonl", made.asked(rewordings), made.right)
    assert main([str(pairs), str(path)]) == 2
    message = "the dataset does not contain 24 of the 24 questions"
    assert message in capsys.readouterr().err


def _line(**changes: Any) -> dict[str, Any]:
    about = {"doc_id": 0, "filtered_resps": "A"}
    return about | {"accuracy": {"question_id": "q0"}} | changes


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.jsonl", json.dumps(_line(filtered_resps=["A", "B"])), "line 1: expected one string"),
        ("m.jsonl", json.dumps(_line(accuracy=1.0)), "no metric has a question_id"),
        ("m.jsonl", json.dumps(_line()) + "\n{", "line 2: not valid JSON"),
        ("m.jsonl", json.dumps(_line()) + "\n[1]", "line 2: expected an object, found a list"),
        ("m.csv", "index,prediction\nq0,A\n", "the dataset does not contain 1 of the 1 questions"),
        ("m.csv", "prediction\nA\n", "record 1: the column index is missing"),
        ("m.tsv", "index\tsaid\nq0\tA\n", "prediction is missing"),
        ("m.json", '[{"prediction": "A"}]', "index is missing"),
        ("m.xlsx", "PK", "cannot be read as Excel"),
    ],
)
def test_files_of_another_form_are_one_clear_error(
    pairs: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    content: str,
    message: str,
) -> None:
    if name.endswith("xlsx"):
        pytest.importorskip("python_calamine")
    (tmp_path / name).write_text(content)
    assert main([str(pairs), str(tmp_path / name)]) == 2
    assert message in capsys.readouterr().err


def test_scores_and_answers_are_not_measured_together(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = made.write_log(tmp_path / "m.jsonl", made.asked(pairs), made.right)
    (tmp_path / "s.json").write_text('{"a": [1, 2, 3, 4]}')
    assert main([str(pairs), str(log), str(tmp_path / "s.json")]) == 2
    assert "s.json is not a harness result, but another input is" in capsys.readouterr().err
    assert main([str(pairs), str(log), "--ties", "half"]) == 2
    assert "--ties cannot be used with this table (harnesses)" in capsys.readouterr().err
