"""Reports of what was judged: the probability and the judges' verdict are found and shown."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.commands import report
from eqforge.evaluation.report.items import Item
from eqforge.evaluation.report.write import judged
from eqforge.pipelines import hard_positives, training_captions
from eqforge.schemas.dataset.reader import open_dataset
from tests.reports import chunks, numbers

CAPTIONS = ("A man holds a red umbrella.", "Two dogs sit beside a blue car.", "A cat on a sofa.")
ENTAILS = "caption_entails_positive"
Main = Callable[[list[str]], int]


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    path = tmp_path / "captions.jsonl"
    rows = [{"id": f"c{n}", "image": f"{n}.jpg", "caption": c} for n, c in enumerate(CAPTIONS)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def built(main: Main, captions: Path, *arguments: str) -> tuple[Path, dict[str, dict[str, Any]]]:
    """Builds a dataset; returns its report and its judgements."""
    dataset, output = captions.parent / "dataset", captions.parent / "report"
    assert main(["--captions", str(captions), *arguments, "--output", str(dataset)]) == 0
    assert report.main([str(dataset), "--output", str(output)]) == 0
    rows = open_dataset(str(dataset)).rows("judgements")
    return output, {row["sample_id"]: row for row in rows}


def test_the_precision_of_rules_is_shown_and_sorted_by(captions: Path) -> None:
    written, known = built(hard_positives.main, captions)
    items = chunks(written, "samples", "items")
    given = [known[item["id"]]["probability"] for item in items]
    assert np.array_equal(numbers(written, "samples", "probability"), np.array(given, np.float32))
    for item, rows in zip(items, chunks(written, "samples", "rows"), strict=True):
        assert ["probability", str(known[item["id"]]["probability"])] in item["facts"]
        assert [table for table, _ in rows] == ["samples", "judgements"]
        assert rows[1][1] == known[item["id"]]
        assert "judgement" not in rows[0][1]


def test_a_dataset_whose_captions_were_all_refused_has_a_report(captions: Path) -> None:
    captions.write_text(json.dumps({"id": "c", "image": "c.jpg", "caption": "Dog"}) + "\n")
    written, known = built(hard_positives.main, captions)
    assert known == {}
    assert (written / "index.html").exists()


def test_of_training_captions_the_least_of_the_texts_counts(captions: Path) -> None:
    written, known = built(training_captions.main, captions)
    found = numbers(written, "samples", "probability").tolist()
    for item, shown in zip(chunks(written, "samples", "items"), found, strict=True):
        given = [row["probability"] for name, row in known.items() if name.startswith(item["id"])]
        assert len(given) == 3
        assert shown == pytest.approx(min(value for value in given if value is not None))


@pytest.mark.parametrize(
    ("given", "expected"),
    [((0.9, 0.8), "for"), ((0.1, 0.2), "against"), ((0.9, 0.2), "disagree"), ((None, 0.9), "for")],
)
def test_what_judges_say_is_told_in_a_word(given: tuple[float | None, ...], expected: str) -> None:
    answers = [
        {"judge": judge, "model": "m", "revision": "1", "question": ENTAILS, "probability": each}
        for judge, each in zip(("nli", "llm"), given, strict=True)
    ]
    known = {"sample_id": "a", "probability": None, "basis": "", "answers": answers}
    item, (row,) = judged(lambda _: Item(id="a"), [{"sample_id": "a", "judgement": known}])
    assert item.facts == (("judges", expected),)
    assert item.rows == (("judgements", known),)
    assert row == {"sample_id": "a", "judges": expected}
    plain = Item(id="b")
    assert judged(lambda _: plain, [{"sample_id": "b"}]) == (plain, [{"sample_id": "b"}])
