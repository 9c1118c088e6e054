import json
from pathlib import Path
from typing import Any

import pytest

from eqforge import verify
from eqforge.pipelines import training_captions
from eqforge.schemas.dataset import open_dataset


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    """A user's file of three captions of two images."""
    lines = [
        {"image": "b.jpg", "caption": "A man holds a red umbrella.", "id": "one"},
        {"image": "a.jpg", "caption": "A dog and a cat on a sofa.", "id": "two"},
        {"image": "b.jpg", "caption": "Zzz", "id": "three"},
    ]
    path = tmp_path / "captions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def build(output: Path, *arguments: object) -> dict[str, dict[str, Any]]:
    """Builds, verifies and returns the samples by id."""
    assert training_captions.main([*map(str, arguments), "--output", str(output)]) == 0
    assert verify.main([str(output)]) == 0
    return {row["sample_id"]: row for row in open_dataset(str(output)).rows("samples")}


def test_each_caption_gives_itself_a_hard_positive_and_a_hard_negative(
    captions: Path, tmp_path: Path
) -> None:
    rows = build(tmp_path / "out", "--captions", captions)

    assert rows["one/original"]["text"] == "A man holds a red umbrella."
    assert rows["one/hard_positive"]["text"] in (
        "A man holds a crimson umbrella.",
        "A man grasps a red umbrella.",
    )
    assert rows["two/hard_positive"]["text"] == "A cat and a dog on a sofa."
    for name in ("one", "two"):
        assert rows[f"{name}/hard_negative"]["text"] != rows[f"{name}/original"]["text"]
        assert rows[f"{name}/hard_negative"]["generator"] is not None


def test_a_text_that_cannot_be_made_is_a_reject_and_the_others_stay(
    captions: Path, tmp_path: Path
) -> None:
    rows = build(tmp_path / "out", "--captions", captions)

    rejects = list(open_dataset(str(tmp_path / "out")).rows("rejects"))
    assert "three/original" in rows
    assert "three/hard_positive" in {reject["candidate_id"] for reject in rejects}
    stages = open_dataset(str(tmp_path / "out")).manifest.stages
    assert stages["training_texts"].candidates == 9


def test_one_text_alone_is_the_same_as_in_the_whole_dataset(captions: Path, tmp_path: Path) -> None:
    everything = build(tmp_path / "all", "--captions", captions)

    alone = build(tmp_path / "one", "--captions", captions, "--only", "one/hard_positive")

    assert alone == {"one/hard_positive": everything["one/hard_positive"]}


def test_the_seed_decides_the_hard_negative(captions: Path, tmp_path: Path) -> None:
    first, again, other = (
        build(tmp_path / name, "--captions", captions, "--seed", seed)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )

    assert first == again
    assert first != other
