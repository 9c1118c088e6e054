"""Eq-AG from the demo's scene graphs; the numbers are counted by hand from their relations.

The astronaut's picture is seen in 8 frames with three states, aaabbbcc; the cameraman's note in 11,
aaabbbccccc, the last one behind the end of the video. Two states differ in at least two kinds of
relation. With one frame skipped after each chosen one, the picture's frames 0, 2, 3, 5 and 7
serve, with 6 pairs across a-b and a-c and 1 across b-c; the note's 0, 2, 3, 5, 7 and 9 serve, with
8 and 2. Frame 3, which follows 2, serves in no pair after 2 was chosen.
Clothes (10 frames) and phone (8 of 11 seen) never change.
"""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from eqforge.commands import verify
from eqforge.generators.demo.workspace import Workspace
from eqforge.pipelines import eq_ag
from tests.builds import books, ids, reasons, rejected, rows

KINDS = ("attention_relationship", "spatial_relationship", "contacting_relationship")


@pytest.fixture(scope="module")
def paper(demo_workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(demo_workspace, tmp_path_factory.mktemp("paper"), "--mode", "paper")


@pytest.fixture(scope="module")
def corrected(demo_workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    persons = ["--persons", str(demo_workspace.person_boxes)]
    return build(demo_workspace, tmp_path_factory.mktemp("corrected"), *persons)


def build(workspace: Workspace, output: Path, *arguments: str) -> Path:
    inputs = ["--objects", str(workspace.object_boxes), "--videos", str(workspace.videos)]
    assert eq_ag.main([*inputs, "--output", str(output), *arguments]) == 0
    return output


def graphs(workspace: Workspace) -> dict[tuple[str, int, str], dict[str, Any]]:
    """The annotated objects by video, frame number and class."""
    return {
        (key.split("/")[0], int(key[-10:-4]), row["class"]): row
        for key, objects in pickle.loads(workspace.object_boxes.read_bytes()).items()
        for row in objects
    }


def test_every_object_is_used_or_refused(paper: Path) -> None:
    assert books(paper)["objects"] == (2 * 10 + 2 * 11, 5 + 6, 31)
    assert reasons(paper, "objects") == {
        "object_invisible": 2 + 3,
        "no_partner": 10 + 8,
        "near_chosen_frame": 3 + 5,
    }


def test_paper_mode_keeps_all_17_pairs(paper: Path) -> None:
    found = books(paper)
    assert found["frames"] == (11, 11, 0)
    assert found["pairs"] == (17, 17, 0)
    by_object = [name.rpartition("/")[0] for name in ids(paper)]
    assert by_object.count("eq-ag/DEMO1.mp4/picture") == 7
    assert by_object.count("eq-ag/DEMO2.mp4/paper_notebook") == 10
    assert len(rows(paper, "images")) == 11


def test_corrected_mode_drops_equal_captions_and_keeps_what_may_be_a_cut(corrected: Path) -> None:
    """Both states a and c say "not looking at the picture … on the side of him/her" first."""
    assert reasons(corrected, "pairs") == {"equal_captions": 2}
    assert rejected(corrected, "equal_captions") == [
        "eq-ag/DEMO1.mp4/picture/000007-000100",
        "eq-ag/DEMO1.mp4/picture/000025-000100",
    ]
    assert books(corrected)["pairs"] == (17, 15, 2)


def test_the_two_frames_of_a_pair_differ_in_two_kinds_of_relation(
    paper: Path, demo_workspace: Workspace
) -> None:
    found = graphs(demo_workspace)
    for row in rows(paper, "samples"):
        annotation = json.loads(row["annotation"])
        numbers = [int(number) for number in row["sample_id"].rpartition("/")[2].split("-")]
        first, second = (found[row["source_id"], n, annotation["object"]] for n in numbers)
        changed = [kind for kind in KINDS if set(first[kind]) != set(second[kind])]
        assert len(changed) >= 2
        assert annotation["changed_relations"].split(",") == [
            kind.split("_")[0] for kind in changed
        ]
        assert json.loads(annotation["object_box_xywh_0"]) == pytest.approx(first["bbox"])
        assert json.loads(annotation["object_box_xywh_1"]) == pytest.approx(second["bbox"])


def test_the_frame_is_the_numbered_one(paper: Path) -> None:
    """Action Genome counts from 1, the decoder from 0."""
    for row in rows(paper, "samples"):
        for side in (0, 1):
            origin = row[f"origin_{side}"]
            assert origin["frame_index"] == int(origin["frame_id"].rpartition("/")[2]) - 1


def test_the_first_of_the_listed_captions_is_the_sample_s(paper: Path, corrected: Path) -> None:
    for output in (paper, corrected):
        for row in rows(output, "samples"):
            assert row["caption_0"] == row["captions_0"][0]
            assert row["caption_1"] == row["captions_1"][0]
    captions = {row["caption_1"] for row in rows(corrected, "samples")}
    assert "The person is looking at the paper which is in front of him/her." in captions


def test_persons_boxes_stand_in_the_annotation_where_they_are_given(
    corrected: Path, paper: Path, demo_workspace: Workspace
) -> None:
    persons = pickle.loads(demo_workspace.person_boxes.read_bytes())
    for row in rows(corrected, "samples"):
        annotation = json.loads(row["annotation"])
        number = row["sample_id"].rpartition("/")[2].split("-")[0]
        boxes = persons[f"{row['source_id']}/{number}.png"]["bbox"].tolist()
        assert json.loads(annotation["person_boxes_xyxy_0"]) == boxes
    assert not any("person_boxes" in row["annotation"] for row in rows(paper, "samples"))


def test_two_skipped_frames_leave_fewer_pairs(demo_workspace: Workspace, tmp_path: Path) -> None:
    """As section 4.1 has it: frames 0, 3 and 6 of aaabbbcc(ccc), and for the note also 9."""
    output = build(demo_workspace, tmp_path, "--mode", "paper", "--skip-frames", "2")
    assert ids(output) == [
        *(f"eq-ag/DEMO1.mp4/picture/{pair}" for pair in pairs([7, 49, 91])),
        *(f"eq-ag/DEMO2.mp4/paper_notebook/{pair}" for pair in pairs([6, 41, 71], last=111)),
    ]


def pairs(numbers: list[int], last: int | None = None) -> list[str]:
    """The ids of pairs of frames in three states; the last frame is in the third state, too."""
    a, b, c = numbers
    third = [c] if last is None else [c, last]
    found = [(a, b), *((a, n) for n in third), *((b, n) for n in third)]
    return [f"{first:06d}-{second:06d}" for first, second in found]


def test_only_listed_frames_are_used(demo_workspace: Workspace, tmp_path: Path) -> None:
    listed = [
        line
        for line in demo_workspace.frame_list.read_text().splitlines()
        if line in ("DEMO1.mp4/000007.png", "DEMO1.mp4/000049.png")
    ]
    (tmp_path / "frames.txt").write_text("\n".join(listed))

    output = build(
        demo_workspace, tmp_path / "out", "--mode", "paper",
        "--frame-list", str(tmp_path / "frames.txt"),
    )  # fmt: skip

    assert ids(output) == ["eq-ag/DEMO1.mp4/picture/000007-000049"]


def test_both_modes_verify(paper: Path, corrected: Path) -> None:
    assert verify.main([str(paper)]) == 0
    assert verify.main([str(corrected)]) == 0
