"""Pairs judged by an oracle that knows what it sees: a tiny BLIP, trained here on the photographs.

24 photographs of COCO with their captions are shown in six clips, four in each, and in a seventh
clip four of them with the captions passed on by one.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eqforge.commands import verify
from eqforge.pipelines import eq_video
from tests.builds import books, ids, reasons, rows
from tests.optional import optional
from tests.photographs import Photograph, captioned_photographs, write_clip_of
from tests.tiny_models import train_blip

optional("transformers")

SHOWN, CLIPS = 4, 6
PAIRS = SHOWN * (SHOWN - 1) // 2
SWAPPED = "swapped.mp4"


@dataclass(frozen=True)
class Made:
    folder: Path
    blip: Path

    def build(self, output: Path, *arguments: object) -> Path:
        inputs = ["--captions", self.folder / "captions.jsonl", "--videos", self.folder / "videos"]
        plain = [
            "--mode",
            "paper",
            "--face-policy",
            "off",
            "--output",
            output,
            "--oracle",
            f"blip-itm:{self.blip}",
        ]
        assert eq_video.main([str(part) for part in [*inputs, *plain, *arguments]]) == 0
        return output


@pytest.fixture(scope="module")
def made(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("photographs")
    (folder / "videos").mkdir()
    photographs = captioned_photographs(data_folder, SHOWN * CLIPS)
    moments = []
    for clip in range(CLIPS):
        shown = photographs[clip * SHOWN : (clip + 1) * SHOWN]
        moments += [*write_moments(folder, f"clip{clip}.mp4", shown, [p.caption for p in shown])]
    shown = photographs[::CLIPS]
    captions = [photograph.caption for photograph in shown]
    moments += [*write_moments(folder, SWAPPED, shown, captions[1:] + captions[:1])]
    (folder / "captions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in moments))
    pictures, learnt = [p.read() for p in photographs], [p.caption for p in photographs]
    return Made(folder, train_blip(folder / "blip", pictures, learnt))


def write_moments(
    folder: Path, video: str, shown: list[Photograph], captions: list[str]
) -> Iterator[dict[str, Any]]:
    write_clip_of(folder / "videos" / video, shown)
    for second, caption in enumerate(captions):
        yield {"video": video, "timestamp_s": second + 0.5, "caption": caption}


@pytest.fixture(scope="module")
def scored(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every pair with its scores, none refused for them."""
    limits = ["--oracle-min", "None", "--oracle-max", "None"]
    return made.build(tmp_path_factory.mktemp("scored") / "out", *limits)


def probabilities(row: dict[str, Any]) -> dict[str, float]:
    return {
        score["name"].removeprefix("oracle_1_"): score["value"]
        for score in row["scores"]
        if score["name"].startswith("oracle_")
    }


def test_matched_captions_rank_above_swapped_ones(scored: Path) -> None:
    """Of all pairs of a matched and a swapped score, nearly all have the matched one above."""
    matched, crossed, swapped = [], [], []
    for row in rows(scored, "samples"):
        found = probabilities(row)
        own = [found["c0_i0"], found["c1_i1"]]
        if row["source_id"] == SWAPPED:
            swapped += own
        else:
            matched += own
            crossed += [found["c1_i0"], found["c0_i1"]]

    assert len(matched) == len(crossed) == 2 * PAIRS * CLIPS
    assert len(swapped) == 2 * PAIRS
    for others in (crossed, swapped):
        above = np.array(matched)[:, None] > np.array(others)
        assert above.mean() > 0.95


def test_the_limits_decide_and_the_books_balance(made: Made, scored: Path, tmp_path: Path) -> None:
    limits = ["--oracle-min", "0.5", "--oracle-max", "0.25"]
    output = made.build(tmp_path / "out", *limits)

    expected: dict[str, str] = {}
    for row in rows(scored, "samples"):
        found = probabilities(row)
        if not min(found["c0_i0"], found["c1_i1"]) > 0.5:
            expected[row["sample_id"]] = "own_caption_mismatch"
        elif not max(found["c1_i0"], found["c0_i1"]) < 0.25:
            expected[row["sample_id"]] = "crossed_caption_match"
    refused = {row["candidate_id"]: row for row in rows(output, "rejects")}
    assert {name: row["reason"] for name, row in refused.items()} == expected
    total = PAIRS * (CLIPS + 1)
    assert books(output)["pairs"] == (total, total - len(expected), len(expected))
    assert reasons(output, "pairs")["own_caption_mismatch"] >= PAIRS
    kept = {row["source_id"] for row in rows(output, "samples")}
    assert kept == {f"clip{clip}.mp4" for clip in range(CLIPS)}
    assert total - len(expected) > PAIRS * CLIPS * 0.8
    for name, row in refused.items():
        assert row["threshold"] == {"own_caption_mismatch": 0.5}.get(expected[name], 0.25)
        assert row["detail"].startswith("oracle_1_c")
    assert verify.main([str(output)]) == 0


def test_published_scores_decide_as_the_model_that_gave_them(
    made: Made, scored: Path, tmp_path: Path
) -> None:
    """The scores of the first build, in a file, joined by the images' ids and the captions."""
    listed = {
        (row[f"image_{image}_id"], row[f"caption_{caption}"]): found[f"c{caption}_i{image}"]
        for row in rows(scored, "samples")
        for found in (probabilities(row),)
        for image in (0, 1)
        for caption in (0, 1)
    }
    table = pa.table(
        {
            "image": [image for image, _ in listed],
            "caption": [caption for _, caption in listed],
            "probability": list(listed.values()),
        }
    )
    pq.write_table(table, tmp_path / "scores.parquet")
    matrix = f"matrix:{tmp_path / 'scores.parquet'},family=blip"
    limits = ["--oracle-min", "0.5", "--oracle-max", "0.25"]

    by_model = made.build(tmp_path / "model", *limits)
    by_file = made.build(tmp_path / "file", *limits, "--oracle", matrix)

    assert ids(by_file) == ids(by_model)
    assert reasons(by_file, "pairs") == reasons(by_model, "pairs")
    assert len(ids(by_file)) > PAIRS


def test_one_pair_alone_has_the_same_scores(made: Made, scored: Path, tmp_path: Path) -> None:
    wanted = rows(scored, "samples")[-1]
    limits = ["--oracle-min", "None", "--oracle-max", "None"]
    output = made.build(tmp_path / "out", *limits, "--only", wanted["sample_id"])
    assert rows(output, "samples") == [wanted]


def test_the_manifest_says_who_judged(made: Made, tmp_path: Path) -> None:
    output = made.build(tmp_path / "out", "--limit", "1", "--evaluated-families", "blip", "clip")

    manifest = json.loads((output / "dataset.json").read_text())
    (judge,) = manifest["config"]["settings"]["oracle"]["oracle"]
    assert (judge["kind"], judge["family"], judge["model"]) == ("blip-itm", "blip", "blip")
    assert judge["revision"].startswith("sha256:")
    assert len(judge["preprocessing"]) == 64
    (warning,) = manifest["warnings"]
    assert "belongs to the family 'blip', which is evaluated on this dataset" in warning
    assert str(made.folder) not in (output / "dataset.json").read_text()
    assert "is evaluated on this dataset" in (output / "README.md").read_text()


def test_a_model_that_cannot_be_loaded_is_said_before_any_work(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    for oracle in (f"blip-itm:{tmp_path}", "clip:openai/clip-vit-base-patch32"):
        with pytest.raises(SystemExit) as left:
            made.build(output, "--oracle", oracle)
        assert left.value.code == 2
        assert not output.exists()
    shown = capsys.readouterr().err
    assert "Pass a folder saved by Transformers" in shown
    assert "write ID@COMMIT" in shown
