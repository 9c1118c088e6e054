"""What harnesses wrote is laid over the items of a report: right where all questions are."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from eqforge.cli import main
from eqforge.commands import report
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.schemas.records.questions import Question
from tests.evaluation.harnesses import made
from tests.evaluation.report.pages import THEMES, Page, violations
from tests.exported import pairs as some_pairs
from tests.exported import picture, write_pairs
from tests.published import SOURCES
from tests.reports import chunks, facet, given, numbers, write_report


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pictures = [picture(number) for number in range(13)]
    return write_pairs(tmp_path_factory.mktemp("pairs") / "d", [*some_pairs(12)["test"]], pictures)


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("questions")
    source, output = SOURCES["natural-bench"](folder), folder / "out"
    assert main(["import", "natural-bench", str(source), "--output", str(output)]) == 0
    return output


def now_and_then(question: Question) -> str:
    """Right about most samples, about some in parts, and about others in nothing."""
    chances = random.Random(question.sample_id).choice((0, 0.6, 1))
    is_right = random.Random(question.question_id).random() < chances
    return made.right(question) if is_right else made.wrong(question)


@pytest.mark.parametrize("suffix", [".jsonl", ".xlsx"])
def test_a_pair_is_right_where_all_its_questions_are(
    pairs: Path, tmp_path: Path, suffix: str
) -> None:
    if suffix == ".xlsx":
        pytest.importorskip("python_calamine")
    gone, *asked = made.asked(pairs)
    path = tmp_path / f"m{suffix}"
    if suffix == ".jsonl":
        made.write_log(path, asked, now_and_then)
    else:
        made.write_table(path, made.predictions(asked, now_and_then))

    written = write_report(pairs, tmp_path / "r", "--scores", str(path))

    right: dict[str, list[bool]] = {}
    for each in asked:
        right.setdefault(each.sample_id, []).append(now_and_then(each) == each.answer)
    items = [item["id"] for item in chunks(written, "samples", "items")]
    (model,) = given(written, "samples/index")["models"]
    assert (model["name"], model["share"]) == ("m", True)
    verdicts = dict(zip(items, facet(written, "samples", "model: m"), strict=True))
    shares = numbers(written, "samples", "questions right", "model: m")
    assert verdicts.pop(gone.sample_id) == ["not scored"]
    assert {said for (said,) in verdicts.values()} == {"right", "wrong"}
    for name, (said,) in verdicts.items():
        assert (said == "right") == all(right[name])
        assert shares[items.index(name)] == np.float32(np.mean(right[name]))


def test_a_group_of_questions_is_right_where_all_are(questions: Path, tmp_path: Path) -> None:
    rows = list(open_dataset(str(questions)).rows("samples"))
    first, *others = sorted({row["group_id"] for row in rows})
    wrong = next(row["sample_id"] for row in rows if row["group_id"] == first)
    lines = [
        {
            "sample_id": row["sample_id"],
            "answer": "?" if row["sample_id"] == wrong else row["answer"],
        }
        for row in rows
    ]
    (tmp_path / "m.jsonl").write_text("\n".join(map(json.dumps, lines)))

    written = write_report(questions, tmp_path / "r", "--scores", str(tmp_path / "m.jsonl"))

    items = [item["id"] for item in chunks(written, "samples", "items")]
    verdicts = dict(zip(items, facet(written, "samples", "model: m"), strict=True))
    assert verdicts == {first: ["wrong"]} | {name: ["right"] for name in others}
    count = sum(row["group_id"] == first for row in rows)
    shares = numbers(written, "samples", "questions right", "model: m")
    assert shares[items.index(first)] == np.float32(1 - 1 / count)


def test_groups_are_readable_by_everybody(
    questions: Path, tmp_path: Path, opened: Callable[..., Page]
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    rows = open_dataset(str(questions)).rows("samples", ["sample_id", "answer"])
    (tmp_path / "m.jsonl").write_text("\n".join(map(json.dumps, rows)))
    written = write_report(questions, tmp_path / "r", "--scores", str(tmp_path / "m.jsonl"))
    for theme, rules in THEMES.items():
        page = opened(written, color_scheme=theme, bypass_csp=True).open("samples.html")
        said = page.page.locator(".card .verdicts li").all_inner_texts()
        assert set(said) == {"right m 100%"}
        assert violations(Axe(), page, *rules) == []
        page.page.locator(".cover").first.click()
        page.page.wait_for_selector("#single .stage")
        assert violations(Axe(), page, *rules) == []


def test_what_cannot_be_laid_over_says_why(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = {"acc": 0.5, "text_acc": 0.5, "image_acc": 0.5}
    sums = {"pretrained": "p", "model": "m", "task": "image_caption_selection", "metrics": metrics}
    strange = {"doc_id": 0, "filtered_resps": "A", "a": {"id": "nobody", "score": 1}}
    nobody = "the dataset does not contain 1 of the 1 samples, such as 'nobody'"
    for name, text, said in (
        ("a.txt", "", "Answers from lmms-eval (*_samples_*.jsonl)"),
        ("sums.json", json.dumps(sums), "CLIP_benchmark writes no results per sample"),
        ("log.jsonl", json.dumps(strange), nobody),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(SystemExit):
            report.main(
                [str(pairs), "--output", str(tmp_path / "r"), "--scores", str(tmp_path / name)]
            )
        assert said in capsys.readouterr().err
        assert not (tmp_path / "r").exists()
