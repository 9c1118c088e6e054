"""Questions that their texts answer, and those that only a picture does."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from eqforge.cli import main
from eqforge.core.errors import InputError
from eqforge.evaluation.shortcuts.answerers import Answerer, blind_answerers, posed
from eqforge.evaluation.shortcuts.blind import BlindAudit, audit_questions
from eqforge.evaluation.shortcuts.command import main as command
from eqforge.evaluation.shortcuts.probes import PROBES
from eqforge.schemas.dataset.reader import open_dataset
from tests.published import SOURCES
from tests.statuses import status_of

audit = status_of(command)
Rows = list[dict[str, Any]]


def question(group: int, image: int, text: str, answer: str, *options: str) -> dict[str, Any]:
    named = {"group_id": group, "image": f"{group}-{image}.jpg"}
    return {**named, "question": text, "answer": answer, "options": list(options)}


def imported(folder: Path, rows: Rows, name: str = "out") -> Path:
    source = folder / f"{name}.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    out = folder / name
    assert main(["import", "own-questions", str(source), "--output", str(out), "--quiet"]) == 0
    return out


def audited(folder: Path, **settings: Any) -> BlindAudit:
    return audit_questions(open_dataset(str(folder)), **settings)


def found(report: BlindAudit, metric: str = "accuracy") -> dict[str, float]:
    return {each.probe: each.accuracy for each in report.results if each.metric == metric}


def bounds(report: BlindAudit) -> dict[str, float]:
    return {each.metric: each.at_most for each in report.results}


def test_naturalbench_cannot_be_answered_blind(data_folder: Path, tmp_path: Path) -> None:
    source, out = data_folder / "published/naturalbench", tmp_path / "out"
    assert main(["import", "natural-bench", str(source), "--output", str(out), "--quiet"]) == 0
    few = {name: blind_answerers()[name] for name in ("prior", "length")}
    report = audited(out, answerers=few)
    assert (report.questions, report.texts, report.groups, report.left_out) == (3800, 1892, 950, 0)
    assert report.answers == {"letter": {"A": 214, "B": 214}, "yes/no": {"no": 1686, "yes": 1686}}
    assert bounds(report) == {"accuracy": 0.5, "question": 0.0, "image": 0.5, "group": 0.0}
    assert {each.metric: each.chance for each in report.results} == {
        "accuracy": 0.5,
        "question": 0.25,
        "image": 0.25,
        "group": 0.0625,
    }
    assert found(report) == {"prior": 0.5, "length": 0.5}
    assert not any(each.is_shortcut for each in report.results)
    assert report.given_away == ()


def test_published_groups_bound_what_the_best_blind_answers_reach(tmp_path: Path) -> None:
    out = tmp_path / "out"
    source = SOURCES["natural-bench"](tmp_path)
    assert main(["import", "natural-bench", str(source), "--output", str(out), "--quiet"]) == 0
    best = Answerer(answers=lambda asked: ["yes" if "0" in one.question else "no" for one in asked])
    report = audited(out, answerers={"best": best}, folds=2)
    reached = {each.metric: each.accuracy for each in report.results}
    assert reached == bounds(report) == {"accuracy": 0.5, "question": 0, "image": 0.5, "group": 0}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Questions whose first words, and how many are yes, give the answers away; and shuffled."""
    folder = tmp_path_factory.mktemp("told")
    rows = [
        question(n // 2, n, f"{'Is there' if n % 3 else 'Could it be'} 狗 {n}?", answer)
        for n in range(120)
        for answer in ["Yes" if n % 3 else "No"]
    ]
    shuffled = rows.copy()
    random.Random(3).shuffle(shuffled)
    return imported(folder, rows), imported(folder, shuffled, "shuffled")


def test_first_words_and_usual_answers_are_found(
    told: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    report = audited(told[0])
    assert report.answers == {"yes/no": {"no": 40, "yes": 80}}
    assert set(found(report)) == {"prior", *PROBES}
    assert found(report)["prior"] == 80 / 120
    assert {
        name: found(report)[name] for name in ("position", "words", "letters")
    } == dict.fromkeys(("position", "words", "letters"), 1.0)
    assert all(each.is_shortcut for each in report.results if each.metric == "accuracy")
    assert found(report, "group")["words"] == 1.0
    (words,) = (each for each in report.given_away if each.probe == "words")
    assert (words.form, words.sides) == ("yes/no", ("yes", "no"))
    clues = {clue.text: clue for clue in words.clues}
    assert (clues["is there"].right, clues["is there"].wrong) == (80, 0)
    assert clues["is there"].weight > 0 > clues["could it"].weight
    printed = []
    for folder in told:
        assert audit([str(folder), "--json"]) == 0
        printed.append(json.loads(capsys.readouterr().out))
    assert printed[0] == {**printed[1], "name": str(told[0])}
    assert len(printed[0]["results"]) == 4 * len(found(report))


def test_the_report_and_its_limit(
    told: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit([str(told[0]), "--fail-above", "0.9"]) == 1
    out = capsys.readouterr().out
    assert "120 questions with 120 texts in 60 groups were answered without their images." in out
    assert "  yes/no       no 40, yes 80\n" in out
    assert "  prior                      66.67%  [" in out
    assert "    yes   +" in out
    assert "    no   -" in out
    assert audit([str(told[0]), "--fail-above", "1"]) == 0
    assert audit([str(told[0]), "--hard-positives", "x.json"]) == 2
    assert "--hard-positives cannot be used with the questions" in capsys.readouterr().err


def test_options_are_judged_by_their_texts_and_places(tmp_path: Path) -> None:
    rng = random.Random(5)
    rows = []
    for n in range(60):
        right, wrong = f"it is the {'very ' * 3}thing {n}", f"thing {n}"
        options = [right, wrong] if rng.random() < 0.5 else [wrong, right]
        rows.append(question(n, 0, "What is it?", right, *options))
    # A group with a free answer is left out whole.
    rows += [question(99, 0, "Who?", "she"), question(99, 1, "Who is it?", "Yes")]
    report = audited(imported(tmp_path, rows))
    assert (report.questions, report.left_out, report.groups) == (60, 2, 60)
    assert found(report)["length"] == found(report)["words"] == 1.0
    assert abs(found(report)["prior"] - 0.5) < 0.2
    sides = {each.probe: (each.form, each.sides) for each in report.given_away}
    assert sides["words"] == ("options", ("right", "wrong"))


def test_what_a_question_says_is_read_as_metrics_does() -> None:
    def read(answer: str, *options: str) -> tuple[str, str]:
        one = posed(question(1, 1, "?", answer, *options))
        return one.form, one.answer

    assert read("Yes") == ("yes/no", "yes")
    assert read("FALSE") == ("true/false", "false")
    assert read("B") == ("letter", "B")
    assert read("er", "sie", "er") == ("options", "B")


def test_too_few_groups(tmp_path: Path) -> None:
    one = imported(tmp_path, [question(1, 0, "Is it?", "Yes")])
    with pytest.raises(InputError, match=r"at least 5 groups of .*\. Found 1; add groups"):
        audited(one)
    free = imported(tmp_path, [question(n, 0, "Who?", "she") for n in range(9)], "free")
    with pytest.raises(InputError, match="Found 0; add groups"):
        audited(free)
