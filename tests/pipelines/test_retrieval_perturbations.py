import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from eqforge import verify
from eqforge.generators.text.perturbations.record import PERTURBATIONS
from eqforge.pipelines import retrieval_perturbations
from eqforge.schemas.dataset import open_dataset

CAPTIONS = (
    "A small brown dog runs across the green grass.",
    "Two men and a woman are sitting on a red sofa.",
    "x",
)


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    """A user's file of three captions and one that is empty."""
    lines = [
        {"image": f"{number}.jpg", "caption": text, "id": f"c{number}"}
        for number, text in enumerate((*CAPTIONS, "   "))
    ]
    path = tmp_path / "captions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def build(output: Path, *arguments: object) -> list[dict[str, Any]]:
    """Builds, verifies and returns the samples."""
    command = [*map(str, arguments), "--output", str(output)]
    assert retrieval_perturbations.main(command) == 0
    assert verify.main([str(output)]) == 0
    return list(open_dataset(str(output)).rows("samples"))


def test_every_caption_has_every_perturbation_once(captions: Path, tmp_path: Path) -> None:
    rows = build(tmp_path / "out", "--captions", captions)

    assert Counter(row["caption_id"] for row in rows) == {"c0": 13, "c1": 13, "c2": 13}
    assert {row["perturbation"] for row in rows} == set(PERTURBATIONS)
    dataset = open_dataset(str(tmp_path / "out"))
    assert [r["reason"] for r in dataset.rows("rejects")] == ["empty_caption"]
    assert {r["caption_id"]: r["words"] for r in dataset.rows("captions")} == {
        "c0": 9,
        "c1": 11,
        "c2": 1,
    }


def test_a_perturbed_caption_differs_or_says_why_not(captions: Path, tmp_path: Path) -> None:
    for row in build(tmp_path / "out", "--captions", captions):
        assert row["applied"] == (row["perturbed_caption"] != row["caption"])
        assert (row["reason"] is None) == row["applied"]


def test_outside_the_stored_spans_nothing_changes(captions: Path, tmp_path: Path) -> None:
    for row in build(tmp_path / "out", "--captions", captions):
        outside = [_without(row["caption"], row["spans"])]
        outside.append(_without(row["perturbed_caption"], row["perturbed_spans"]))
        assert outside[0] == outside[1]


def _without(text: str, spans: list[dict[str, int]]) -> str:
    for span in reversed(spans):
        text = text[: span["start"]] + text[span["end"] :]
    return text


def test_one_sample_alone_is_the_same_as_in_the_whole_dataset(
    captions: Path, tmp_path: Path
) -> None:
    everything = build(tmp_path / "all", "--captions", captions)

    (row,) = build(tmp_path / "one", "--captions", captions, "--only", "c1/shuffle_all_words")

    assert row in everything


def test_paper_mode_writes_the_published_typo(captions: Path, tmp_path: Path) -> None:
    rows = build(tmp_path / "out", "--captions", captions, "--mode", "paper")

    distracted = [r["perturbed_caption"] for r in rows if r["perturbation"] == "distraction_true"]
    assert all(text.endswith("and true it true.") for text in distracted)


def test_coco_captions_balance(data_folder: Path, tmp_path: Path) -> None:
    """500 of COCO's captions through all 13; the generator's own test takes all 25,014."""
    rows = build(
        tmp_path / "out",
        *("--captions", data_folder / "coco" / "captions_val2017.json", "--limit", 500),
    )

    assert len(rows) == 500 * 13
