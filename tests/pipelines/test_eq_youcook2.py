"""Eq-YouCook2 from the demo's cooking videos; the numbers are counted by hand from their shots.

Six videos have 5, 6, 6, 4, 4 and 4 segments: 29 frames and 10 + 15 + 15 + 6 + 6 + 6 = 58 pairs. The
last video is missing, the second half of the one before it is cut off, two frames of the third show
a face, one of the second is black.
"""

import json
import math
from collections import Counter
from itertools import combinations
from pathlib import Path

import imagehash
import pytest

from eqforge.commands import verify
from eqforge.core.identity import sha256_hex
from eqforge.generators.demo.workspace import Workspace
from eqforge.pipelines import eq_youcook2
from tests.builds import books, ids, measured, reasons, rejected, rows

MISSED = {"video_missing": 4, "undecodable": 2}


@pytest.fixture(scope="module")
def paper(demo_workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(demo_workspace, tmp_path_factory.mktemp("paper"), "--mode", "paper")


@pytest.fixture(scope="module")
def corrected(demo_workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(demo_workspace, tmp_path_factory.mktemp("corrected"))


def build(workspace: Workspace, output: Path, *arguments: str) -> Path:
    inputs = ["--annotations", str(workspace.youcook2), "--videos", str(workspace.videos)]
    assert eq_youcook2.main([*inputs, "--output", str(output), *arguments]) == 0
    return output


def test_paper_mode_drops_faces_alone(paper: Path) -> None:
    """Usable frames: 5, 6, 4, 4, 2 and 0, so 10 + 15 + 6 + 6 + 1 = 38 pairs."""
    assert books(paper) == {"segments": (29, 29, 0), "frames": (29, 21, 8), "pairs": (58, 38, 20)}
    assert reasons(paper, "frames") == {"face_found": 2, **MISSED}
    assert rejected(paper, "face_found") == [
        "eq-youcook2/demoGuests3/000",
        "eq-youcook2/demoGuests3/001",
    ]
    assert reasons(paper, "pairs") == {"frame_rejected": 20}
    assert len(rows(paper, "images")) == 21


def test_the_faces_of_paper_mode_are_counted_by_face_recognition(paper: Path) -> None:
    for row in rows(paper, "images"):
        (score,) = [score for score in row["scores"] if "face" in score["name"]]
        assert (score["name"], score["value"]) == ("face_recognition_hog", 0.0)
        assert (score["scorer"], score["version"]) == ("face_recognition.face_locations", "1.3.0")


def test_paper_mode_pairs_every_two_usable_segments(paper: Path, demo_workspace: Workspace) -> None:
    usable = {
        "demoCoffee1": range(5),
        "demoKitchn2": range(6),
        "demoGuests3": range(2, 6),
        "demoTurned4": range(4),
        "demoCutOff5": range(2),
    }
    expected = {
        f"eq-youcook2/{video}/{i:03d}-{j:03d}"
        for video, segments in usable.items()
        for i, j in combinations(segments, 2)
    }
    assert ids(paper) == sorted(expected)
    splits = Counter(row["split"] for row in rows(paper, "samples"))
    assert splits == {"training": 10 + 6 + 1, "validation": 15 + 6}


def test_corrected_mode_also_drops_the_black_frame(corrected: Path) -> None:
    """Usable frames: 5, 5, 4, 4 and 2; 10 + 10 + 6 + 6 + 1 = 33 pairs are left."""
    assert reasons(corrected, "frames") == {"face_found": 2, "black_image": 1, **MISSED}
    assert rejected(corrected, "black_image") == ["eq-youcook2/demoKitchn2/005"]
    assert books(corrected)["frames"] == (29, 20, 9)
    assert reasons(corrected, "pairs") == {"frame_rejected": 58 - 33}


def test_pairs_of_two_shots_are_kept_with_their_scores(paper: Path, corrected: Path) -> None:
    black = {name for name in ids(paper) if "demoKitchn2" in name and name.endswith("005")}
    assert set(ids(corrected)) == set(ids(paper)) - black
    for row in rows(corrected, "samples"):
        versions = {score["name"]: score["version"] for score in row["scores"]}
        assert versions == {"cut_histogram_change": "2", "cut_registered_points": "2"}


def test_captions_are_the_sentences_and_frames_the_middles(
    paper: Path, demo_workspace: Workspace
) -> None:
    database = json.loads(demo_workspace.youcook2.read_text())["database"]
    for row in rows(paper, "samples"):
        segments = database[row["source_id"]]["annotations"]
        for side, number in enumerate(row["sample_id"].rpartition("/")[2].split("-")):
            segment, origin = segments[int(number)], row[f"origin_{side}"]
            assert row[f"caption_{side}"] == segment["sentence"]
            assert origin["requested_timestamp_s"] == sum(segment["segment"]) / 2
            assert 0 <= origin["requested_timestamp_s"] - origin["timestamp_s"] <= 0.1 + 1e-6
            assert origin["frame_id"] == f"eq-youcook2/{row['source_id']}/{number}"
            source = demo_workspace.videos / origin["source_path"]
            assert origin["source_sha256"] == sha256_hex(source.read_bytes())


def test_a_turned_video_comes_out_upright(paper: Path) -> None:
    images = {row["image_id"]: row for row in rows(paper, "images")}
    turned = [row for row in rows(paper, "samples") if row["source_id"] == "demoTurned4"]
    assert len(turned) == 6
    for row in turned:
        assert row["origin_0"]["rotation_deg"] in (90, 270)
        image = images[row["image_0_id"]]
        assert (image["width_px"], image["height_px"]) == (360, 480)


def test_measured_columns_agree_with_the_images(paper: Path) -> None:
    images = {row["image_id"]: row for row in rows(paper, "images")}
    for row in rows(paper, "samples"):
        first, second = (images[row[f"image_{side}_id"]]["phash"] for side in (0, 1))
        assert row["phash_distance"] == sum(
            imagehash.hex_to_hash(first[place : place + 16])
            - imagehash.hex_to_hash(second[place : place + 16])
            for place in (0, 16, 32)
        )
        assert 0 <= row["changed_area_fraction"] <= 1
        assert -1 <= row["ssim"] <= 1
        words = [row[f"caption_{side}"].split() for side in (0, 1)]
        assert row["word_edit_distance"] >= abs(len(words[0]) - len(words[1]))


def test_both_modes_verify(paper: Path, corrected: Path) -> None:
    assert verify.main([str(paper)]) == 0
    assert verify.main([str(corrected)]) == 0


def test_at_most_so_many_pairs_of_a_video_are_kept(
    demo_workspace: Workspace, tmp_path: Path
) -> None:
    output = build(
        demo_workspace, tmp_path, "--mode", "paper", "--max-pairs-per-video", "3",
        "--face-policy", "off",
    )  # fmt: skip
    by_video = Counter(row["source_id"] for row in rows(output, "samples"))
    assert by_video == {
        "demoCoffee1": 3,
        "demoKitchn2": 3,
        "demoGuests3": 3,
        "demoTurned4": 3,
        "demoCutOff5": 1,
    }
    # 10, 15, 15, 6 and 1 pairs could have been had.
    assert reasons(output, "pairs")["over_pair_limit"] == 7 + 12 + 12 + 3


def test_the_real_annotations_give_53550_candidate_pairs_in_under_1_gb(
    data_folder: Path, tmp_path: Path
) -> None:
    annotations = data_folder / "youcook2" / "youcookii_annotations_trainval.json"
    entries = json.loads(annotations.read_text())["database"].values()
    by_hand: Counter[str] = Counter()
    for entry in entries:
        by_hand[entry["subset"]] += math.comb(len(entry["annotations"]), 2)
    assert by_hand == {"training": 40_175, "validation": 13_375}

    inputs = ["--annotations", annotations, "--videos", tmp_path, "--output", tmp_path / "out"]
    done = measured("plan", "eq-youcook2", *inputs, "--mode", "paper")

    table = [line.split() for line in done.out.splitlines()]
    assert ["training", "1,333", "1,333", "10,337", "10,337", "40,175"] in table
    assert ["validation", "457", "457", "3,492", "3,492", "13,375"] in table
    assert ["total", "1,790", "1,790", "13,829", "13,829", "53,550"] in table
    assert done.status == 0
    assert done.peak_mb < 1_000
    assert not (tmp_path / "out").exists()
