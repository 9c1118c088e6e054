"""Answers to questions in groups: NaturalBench's four accuracies, MMVP's pairs."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from eqforge.cli import main
from eqforge.evaluation.tasks.questions import is_right
from tests.builds import rows
from tests.evaluation.harnesses import made
from tests.published import SOURCES
from tests.transforms.export.test_harness_tasks import questions


@pytest.mark.parametrize(
    ("said", "answer", "options", "right"),
    [
        ("Yes", "Yes", (), True),
        ("yes, it is.", "Yes", (), True),
        ("Yesterday", "Yes", (), False),
        ("A", "A", (), True),
        ("B: a helmet", "A", (), False),
        ("b. Closed", "Closed", ("Open", "Closed"), True),
        ("closed!", "Closed", ("Open", "Closed"), True),
        ("(a) Closed", "Closed", ("Open", "Closed"), False),
        ("A closed one", "Closed", ("Open", "Closed"), False),
        ("", "Yes", (), False),
        ("the", "A", (), False),
        ("A cup is on the left, so the answer is B", "A", (), False),
        ("A", "A", ("B", "A"), True),
        ("A. Jones", "A. Jones", ("B. Smith", "A. Jones"), True),
        ("是", "是", (), True),
    ],
)
def test_an_answer_is_right(said: str, answer: str, options: tuple[str, ...], right: bool) -> None:
    assert is_right(said, answer, options) is right


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("questions")
    out = folder / "out"
    source = SOURCES["natural-bench"](folder)
    assert main(["import", "natural-bench", str(source), "--output", str(out)]) == 0
    return out


def measured(
    dataset: Path, answers: dict[str, Any], tmp_path: Path, *options: str
) -> dict[str, float]:
    path, result = tmp_path / "answers.jsonl", tmp_path / "metrics"
    lines = [json.dumps({"sample_id": key, "answer": text}) for key, text in answers.items()]
    path.write_text("\n".join(lines))
    arguments = ["metrics", str(dataset), str(path), "--output", str(result), "--resamples", "50"]
    assert main([*arguments, *options]) == 0
    found = json.loads((result / "metrics.json").read_text())["measures"]
    return {each["metric"]: each["value"] for each in found if each["subset"] == "all"}


def test_what_counts_together(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = {row["sample_id"]: row for row in rows(dataset, "samples")}
    right = {key: row["answer"] for key, row in samples.items()}
    assert measured(dataset, right, tmp_path) == dict.fromkeys(
        ("accuracy", "question", "image", "group"), 1.0
    )
    blind = dict.fromkeys(samples, "Yes")
    assert measured(dataset, blind, tmp_path) == {
        "accuracy": 0.5, "question": 0.0, "image": 0.0, "group": 0.0
    }  # fmt: skip
    one = min(samples)
    wrong = right | {one: "perhaps"}
    capsys.readouterr()
    assert measured(dataset, wrong, tmp_path) == {
        "accuracy": 7 / 8, "question": 3 / 4, "image": 3 / 4, "group": 1 / 2
    }  # fmt: skip
    said = " ".join(capsys.readouterr().out.split())
    assert "answers: 1 of 8 answers count as wrong, because" in said
    del wrong[one]
    assert measured(dataset, wrong, tmp_path, "--allow-missing") == dict.fromkeys(
        ("accuracy", "question", "image", "group"), 1.0
    )


def test_what_counts_together_with_a_wrong_question_is_left_out(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two groups of two questions on two images each: the rest of a unit would be easier."""
    answers = {row["sample_id"]: row["answer"] for row in rows(dataset, "samples")}
    one, *others = sorted(answers)
    answers[others[-1]] = "perhaps"  # of the other group
    errata = tmp_path / "errata.jsonl"
    errata.write_text(
        json.dumps({"id": one, "action": "drop", "reason": "both are true", "who": "a"})
    )
    expected = {"accuracy": 6 / 7, "question": 2 / 3, "image": 2 / 3, "group": 0.0}
    assert measured(dataset, answers, tmp_path, "--errata", str(errata)) == expected
    assert "errata: 1 sample left out (drop): both are true" in capsys.readouterr().out
    del answers[one]  # needs no answer
    assert measured(dataset, answers, tmp_path, "--errata", str(errata)) == expected


def test_groups_that_lack_a_question_are_told(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = min(rows(dataset, "samples"), key=lambda row: str(row["sample_id"]))
    errata, less = tmp_path / "errata.jsonl", tmp_path / "less"
    errata.write_text(
        json.dumps({"id": gone["sample_id"], "action": "drop", "reason": "wrong", "who": "a"})
    )
    source = SOURCES["natural-bench"](tmp_path)
    arguments = ["import", "natural-bench", str(source), "--errata", str(errata)]
    assert main([*arguments, "--output", str(less)]) == 0
    measured(less, {row["sample_id"]: "Yes" for row in rows(less, "samples")}, tmp_path)
    said = capsys.readouterr().out
    assert (
        "1 of 2 groups have fewer than 4 questions, so they are easier to answer completely" in said
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"natural-bench/none": "Yes"}, "found answers for 1 sample outside the dataset"),
        ({}, "8 of 8 samples have no answer"),
    ],
)
def test_other_answers_are_refused(
    change: dict[str, Any],
    message: str,
    dataset: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit, match="2"):
        measured(dataset, change, tmp_path)
    assert message in capsys.readouterr().err
    answers: dict[str, Any] = {row["sample_id"]: 1 for row in rows(dataset, "samples")}
    with pytest.raises(SystemExit, match="2"):
        measured(dataset, answers, tmp_path)
    assert "expected text, found 1" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".jsonl", ".tsv"])
def test_what_a_harness_wrote_is_joined_by_id(suffix: str, tmp_path: Path) -> None:
    pictured = questions(tmp_path)
    asked = made.asked(pictured)

    def written(model: made.Model, order: int) -> dict[str, float]:
        path = tmp_path / f"m{order}{suffix}"
        shuffled = random.Random(order).sample(asked, len(asked))
        if suffix == ".jsonl":
            made.write_log(path, shuffled, model)
        else:
            lines = [{"index": one.question_id, "prediction": model(one)} for one in shuffled]
            made.write_table(path, lines)
        result = tmp_path / f"{order}"
        assert main(["metrics", str(pictured), str(path), "--output", str(result)]) == 0
        found = json.loads((result / "metrics.json").read_text())["measures"]
        group = next(one for one in found if one["metric"] == "group")
        assert (group["clusters"], group["chance"]) == (2, 1 / 16)
        # Of two groups, none and all: Clopper and Pearson's of 0 and 2 of 2.
        bound = 0.025 ** (1 / 2)
        limits = (0, 1 - bound) if group["value"] == 0 else (bound, 1)
        assert (group["low"], group["high"]) == pytest.approx(limits)
        return {one["metric"]: one["value"] for one in found}

    nothing = {"accuracy": 0.5, "question": 0.0, "image": 0.0, "group": 0.0}
    assert written(lambda one: "Yes", 1) == written(lambda one: "No", 2) == nothing
    assert written(made.right, 3) == dict.fromkeys(nothing, 1.0)


def test_answers_of_another_dataset_or_form_are_refused(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = made.write_log(tmp_path / "m.jsonl", made.asked(questions(tmp_path)), made.right)
    for data, message in (
        (path.read_text(), "the dataset does not contain 8 of the 8 questions"),
        ('{"task": "x", "pretrained": "y", "metrics": {}}', "contains no answers to questions of"),
    ):
        other = tmp_path / ("m.jsonl" if "doc_id" in data else "m.json")
        other.write_text(data)
        with pytest.raises(SystemExit, match="2"):
            main(["metrics", str(dataset), str(other)])
        assert message in capsys.readouterr().err
