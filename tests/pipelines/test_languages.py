"""Captions in other languages than that of the rules are rejects, unless one says otherwise."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from eqforge.commands import verify
from eqforge.pipelines import hard_positives, retrieval_perturbations, training_captions
from tests.builds import books, rejected, rows

GERMAN = "Ein alter Mann und eine junge Frau sitzen auf einer Bank im Park."
CHINESE = "两只红色的狗在沙滩上奔跑。"
ENGLISH = "A man holds a red umbrella and a woman rides a brown horse."
DATASETS = [hard_positives.main, retrieval_perturbations.main, training_captions.main]
NAMES = ["hard-positives", "retrieval-perturbations", "training-captions"]


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    """A caption in each of three languages."""
    lines = (
        {"image": f"{name}.jpg", "caption": text, "id": name}
        for name, text in (("de", GERMAN), ("zh", CHINESE), ("en", ENGLISH))
    )
    path = tmp_path / "captions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("main", DATASETS, ids=NAMES)
def test_a_caption_in_another_language_is_a_reject(
    main: Callable[[list[str]], int], captions: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    assert main(["--captions", str(captions), "--output", str(output)]) == 0
    assert verify.main([str(output)]) == 0

    assert sorted(rejected(output, "not_english")) == ["de", "zh"]
    assert books(output)["captions"] == (3, 1, 2)
    assert {row["image"] for row in rows(output, "samples")} == {"en.jpg"}
    details = {row["candidate_id"]: row["detail"] for row in rows(output, "rejects")}
    assert (details["de"], details["zh"]) == ("likeliest: de", "likeliest: zh")


@pytest.mark.parametrize("choice", [["--language", "any"], ["--mode", "paper"]])
def test_any_language_is_edited_where_one_says_so(
    choice: list[str], captions: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    command = ["--captions", str(captions), "--output", str(output), *choice]
    assert retrieval_perturbations.main(command) == 0

    assert rejected(output, "not_english") == []
    assert {row["caption_id"] for row in rows(output, "captions")} == {"de", "zh", "en"}


def test_text_pairs_are_judged_by_all_their_captions(tmp_path: Path) -> None:
    negative = "A woman holds a red umbrella and a man rides a brown horse."
    pairs = [
        {"image": "a", "caption": GERMAN, "hard_negative": "Ein Hund.", "id": "german"},
        {"image": "b", "caption": ENGLISH, "hard_negative": negative, "id": "english"},
    ]
    path = tmp_path / "pairs.json"
    path.write_text(json.dumps(pairs))
    output = tmp_path / "out"
    assert hard_positives.main(["--pairs", str(path), "--output", str(output)]) == 0
    assert rejected(output, "not_english") == ["german"]
