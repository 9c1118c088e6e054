import json
from pathlib import Path
from typing import Any

import pytest

from eqforge import verify
from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.swap import swap_coordination
from eqforge.pipelines import training_captions
from eqforge.schemas.dataset import open_dataset
from eqforge.transforms import caption_edits


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


def test_every_text_alone_is_the_same_as_in_the_whole_dataset(
    captions: Path, tmp_path: Path
) -> None:
    """Another caption of the image names the umbrella, which no hard negative may then bring in."""
    everything = build(tmp_path / "all", "--captions", captions)
    refused = {
        row["candidate_id"]: row for row in open_dataset(str(tmp_path / "all")).rows("rejects")
    }

    for name in (*everything, *refused):
        output = tmp_path / name.replace("/", "-")
        alone = build(output, "--captions", captions, "--only", name)
        rejects = {row["candidate_id"]: row for row in open_dataset(str(output)).rows("rejects")}
        assert alone == {key: row for key, row in everything.items() if key == name}
        assert rejects == {key: row for key, row in refused.items() if key == name}


def test_the_limit_takes_the_last_image_whole(captions: Path, tmp_path: Path) -> None:
    everything = build(tmp_path / "all", "--captions", captions)
    first = build(tmp_path / "first", "--captions", captions, "--limit", 1)

    assert {row["caption_id"] for row in first.values()} == {"one", "three"}
    assert first == {name: everything[name] for name in first}


def test_a_caption_that_breaks_a_step_is_a_reject_and_the_others_stay(
    captions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(analysis: Analysis) -> Any:
        if "cat" in analysis.text:
            raise RecursionError("too deep")
        return swap_coordination(analysis)

    monkeypatch.setattr(caption_edits, "swap_coordination", fail)
    rows = build(tmp_path / "out", "--captions", captions, "--max-error-rate", 0.2)

    assert "one/hard_positive" in rows
    assert "two/original" in rows
    errors = {
        row["candidate_id"]: row["reason"]
        for row in open_dataset(str(tmp_path / "out")).rows("rejects")
        if row["reason"].startswith("error:")
    }
    assert errors == {"two/hard_positive": "error:RecursionError"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model-batch", "0"], "--model-batch 0: expected 1 or more"),
        (["--model-retries", "-1"], "--model-retries -1: expected 0 or more"),
    ],
)
def test_a_setting_out_of_its_range_is_one_message(
    captions: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    command = ["--captions", str(captions), *arguments, "--output", str(tmp_path / "out")]

    with pytest.raises(SystemExit) as left:
        training_captions.main(command)

    assert left.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
