"""Eq-GEBC from the demo's event videos; the numbers are counted by hand from their changes.

The rocket has boundaries 0 to 5, and 3 a second time from annotator B. Boundaries 0 and 1 would
give a caption with the word "up"; 1 and 2, 3 and 4 become pairs; 5 has no next. The cat's 0 and 1
would say the same twice; 1 and 2, 3 and 4 become pairs; 4 has an annotator B. Of the people's three
boundaries 0 and 1 become a pair. The last video has two boundaries, one pair, and no bytes.
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.commands import verify
from eqforge.evaluation.tables.command import main as metrics
from eqforge.evaluation.tables.papers import main as papers
from eqforge.generators.demo.workspace import Workspace
from eqforge.generators.text.words import ACTION_WORDS, read_word_list
from eqforge.pipelines import eq_gebc
from eqforge.schemas.dataset.manifest import load_manifest
from eqforge.sources.captioned_videos import read_gebplus
from tests.builds import books, ids, measured, reasons, rejected, rows
from tests.evaluation.written import rows_by

PAIRS = [
    "eq-gebc/demoGebCat2/001A-002A",
    "eq-gebc/demoGebCat2/003A-004A",
    "eq-gebc/demoPeople3/000A-001A",
    "eq-gebc/demoRocket1/001A-002A",
    "eq-gebc/demoRocket1/003A-004A",
]


@pytest.fixture(scope="module")
def paper(demo_workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(demo_workspace, tmp_path_factory.mktemp("paper"), "--mode", "paper")


@pytest.fixture(scope="module")
def corrected(demo_workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    limits = ["--min-histogram-change", "0.35", "--max-registered-points", "7"]
    return build(demo_workspace, tmp_path_factory.mktemp("corrected"), *limits)


def build(workspace: Workspace, output: Path, *arguments: str) -> Path:
    return build_of([str(workspace.gebplus)], workspace, output, *arguments)


def annotated(workspace: Workspace) -> dict[str, dict[str, Any]]:
    videos = json.loads(workspace.gebplus.read_text()).values()
    return {record["boundary_id"]: record for records in videos for record in records}


def test_several_files_make_one_dataset_whatever_their_order(
    demo_workspace: Workspace, paper: Path, tmp_path: Path
) -> None:
    videos = json.loads(demo_workspace.gebplus.read_text())
    of_val = {"demoRocket1": videos.pop("demoRocket1")}
    for name, part in {"train": videos, "val": of_val}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(part))
    train, val = (str(tmp_path / f"{name}.json") for name in ("train", "val"))

    one, other = (
        build_of(files, demo_workspace, tmp_path / f"out-{files[0][-8:-5]}", "--mode", "paper")
        for files in ((train, val), (val, train))
    )

    for path in sorted(one.rglob("*.*")):
        if "_work" not in path.parts:
            assert path.read_bytes() == (other / path.relative_to(one)).read_bytes()
    assert ids(one) == ids(paper)
    splits = {(row["source_id"], row["split"]) for row in rows(one, "samples")}
    assert splits == {("demoGebCat2", "train"), ("demoPeople3", "train"), ("demoRocket1", "val")}
    manifest = load_manifest(str(one))
    assert manifest.config["annotations"] == ["train.json", "val.json"]
    assert [file.name for file in manifest.inputs[:2]] == ["train.json", "val.json"]
    assert load_manifest(str(paper)).config["annotations"] == "gebplus.json"


def build_of(files: Sequence[str], workspace: Workspace, output: Path, *arguments: str) -> Path:
    inputs = ["--annotations", *files, "--videos", str(workspace.videos)]
    assert eq_gebc.main([*inputs, "--output", str(output), *arguments]) == 0
    return output


def test_every_boundary_is_used_or_refused(paper: Path) -> None:
    assert books(paper)["boundaries"] == (18, 12, 6)
    assert reasons(paper, "boundaries") == {
        "action_word": 1,
        "equal_captions": 1,
        "no_next_boundary": 2,
        "other_annotator": 2,
    }
    assert rejected(paper, "action_word") == ["eq-gebc/demoRocket1/000A"]
    assert rejected(paper, "equal_captions") == ["eq-gebc/demoGebCat2/000A"]
    assert rejected(paper, "other_annotator") == [
        "eq-gebc/demoGebCat2/004B",
        "eq-gebc/demoRocket1/003B",
    ]


def test_paper_mode_keeps_every_pair_whose_frames_are_there(paper: Path) -> None:
    assert ids(paper) == PAIRS
    found = books(paper)
    assert found["frames"] == (12, 10, 2)
    assert reasons(paper, "frames") == {"video_empty": 2}
    assert found["pairs"] == (6, 5, 1)


def test_with_limits_for_cuts_pairs_across_one_are_dropped(corrected: Path) -> None:
    assert reasons(corrected, "pairs") == {"frame_rejected": 1, "camera_cut": 2}
    # The two pairs whose frames show different photographs.
    assert rejected(corrected, "camera_cut") == [PAIRS[1], PAIRS[2]]
    assert ids(corrected) == [PAIRS[0], *PAIRS[3:]]


def test_captions_are_the_statuses_and_in_corrected_mode_have_their_subject(
    paper: Path, corrected: Path, demo_workspace: Workspace
) -> None:
    found = annotated(demo_workspace)
    for output, with_subject in ((paper, False), (corrected, True)):
        for row in rows(output, "samples"):
            annotation = json.loads(row["annotation"])
            first, second = found[annotation["boundary_0"]], found[annotation["boundary_1"]]
            before, after = first["status_before"], second["status_after"]
            if with_subject:
                before, after = f"{first['subject']} {before}", f"{second['subject']} {after}"
            assert (row["caption_0"], row["caption_1"]) == (before, after)


def test_frames_lie_between_the_right_boundaries(
    paper: Path, corrected: Path, demo_workspace: Workspace
) -> None:
    """Within their stretch, at most a second from the boundary; in the middle when corrected."""
    found = annotated(demo_workspace)
    for output, share in ((paper, 1.0), (corrected, 0.5)):
        for row in rows(output, "samples"):
            annotation = json.loads(row["annotation"])
            first, second = found[annotation["boundary_0"]], found[annotation["boundary_1"]]
            before_s, after_s = (row[f"origin_{i}"]["requested_timestamp_s"] for i in (0, 1))
            before = min(share * (first["timestamp"] - first["prev_timestamp"]), 1.0)
            after = min(share * (second["next_timestamp"] - second["timestamp"]), 1.0)
            assert before_s == pytest.approx(first["timestamp"] - before)
            assert after_s == pytest.approx(second["timestamp"] + after)


def test_a_word_list_of_ones_own_replaces_the_action_words(
    demo_workspace: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "words.txt").write_text("camera\n")
    output = build(
        demo_workspace, tmp_path / "out", "--mode", "paper",
        "--action-words", str(tmp_path / "words.txt"),
    )  # fmt: skip
    # The cat looks at the camera before or after every boundary, the man through one; what is left
    # are the rocket's pairs and the two boundaries of the people's last change.
    assert ids(output) == [
        "eq-gebc/demoPeople3/001A-002A",
        "eq-gebc/demoRocket1/000A-001A",
        "eq-gebc/demoRocket1/002A-003A",
        "eq-gebc/demoRocket1/004A-005A",
    ]
    assert rejected(output, "action_word") == [
        *(f"eq-gebc/demoGebCat2/{number:03d}A" for number in range(4)),
        "eq-gebc/demoPeople3/000A",
    ]


def test_both_modes_verify(paper: Path, corrected: Path) -> None:
    assert verify.main([str(paper)]) == 0
    assert verify.main([str(corrected)]) == 0


def test_all_of_the_real_annotations_are_accounted_for(data_folder: Path, tmp_path: Path) -> None:
    """2,082 videos, 7,279 boundaries; a boundary is half of a pair or refused with a reason."""
    annotations = data_folder / "gebplus" / "val.json"
    (tmp_path / "videos").mkdir()
    # One video is there, and has no bytes: a folder with none of them is refused as the wrong one.
    first = next(iter(json.loads(annotations.read_text())))
    (tmp_path / "videos" / f"{first}.mp4").touch()

    done = measured(
        "build", "eq-gebc", "--annotations", annotations, "--videos", tmp_path / "videos",
        "--output", tmp_path / "out", "--mode", "paper",
    )  # fmt: skip

    assert done.status == 0
    assert done.peak_mb < 1_000
    found = books(tmp_path / "out")
    candidates, kept, refused = found["boundaries"]
    assert candidates == sum(len(video.boundaries) for video in read_gebplus(annotations)) == 7_279
    assert kept + refused == 7_279
    assert found["pairs"] == (kept // 2, 0, kept // 2)
    refused_frames = [row for row in rows(tmp_path / "out", "rejects") if row["stage"] == "frames"]
    of_frames = [row for row in refused_frames if row["candidate_id"].count("/") == 2]
    assert len(of_frames) == kept
    assert {row["reason"] for row in refused_frames} == {"video_missing", "video_empty"}
    # A video of which no frame is wanted is told of, too, where its file is missing.
    with_pairs = {row["source_id"] for row in of_frames}
    of_videos = [row for row in refused_frames if row["candidate_id"].count("/") == 1]
    assert {row["reason"] for row in of_videos} == {"video_missing"}
    assert sorted(row["candidate_id"] for row in of_videos) == sorted(
        f"eq-gebc/{video}"
        for video in json.loads(annotations.read_text())
        if video not in with_pairs and video != first
    )
    assert found["frames"] == (len(refused_frames), 0, len(refused_frames))
    others = 7_279 - 6_751  # boundaries that a second annotator described, too
    assert reasons(tmp_path / "out", "boundaries")["other_annotator"] == others
    assert_refusals_hold(annotations, tmp_path / "out")


def assert_refusals_hold(annotations: Path, output: Path) -> None:
    """Checks the reasons of the refused boundaries against the file, in other words."""
    action_words = set(read_word_list(ACTION_WORDS))
    chosen: dict[tuple[str, int], dict[str, Any]] = {}
    for video, records in json.loads(annotations.read_text()).items():
        for record in sorted(records, key=lambda record: record["boundary_id"], reverse=True):
            number = int(record["boundary_id"].removeprefix(f"{video}_")[:-1])
            chosen[video, number] = record
    seen: Counter[str] = Counter()
    for row in rows(output, "rejects"):
        if row["stage"] != "boundaries" or row["reason"] == "other_annotator":
            continue
        _, video, name = row["candidate_id"].split("/")
        first, second = (chosen.get((video, int(name[:-1]) + step)) for step in (0, 1))
        seen[row["reason"]] += 1
        if row["reason"] == "no_next_boundary":
            assert second is None
            continue
        assert first is not None
        assert second is not None
        texts = first["status_before"], second["status_after"]
        words = {word.strip(".,;:!?'\"()").lower() for text in texts for word in text.split()}
        if row["reason"] == "action_word":
            assert words & action_words
        if row["reason"] == "equal_captions":
            assert len({" ".join(text.lower().split()).rstrip(" .,;:!?") for text in texts}) == 1
    assert seen["action_word"] > 0
    assert seen["no_next_boundary"] > 0


def test_boundary_grounding_finds_the_adjacent_frames_that_score_best(
    demo_workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = build(demo_workspace, tmp_path / "g", "--mode", "paper", "--grounding")
    assert books(dataset)["boundaries"] == (18, 15, 3)
    assert reasons(dataset, "boundaries") == {"other_annotator": 2, "equal_captions": 1}
    samples, rng = rows(dataset, "samples"), np.random.default_rng(0)
    with (tmp_path / "scores.csv").open("w") as stream:
        print("sample_id,c0_i0,c1_i0,c0_i1,c1_i1", file=stream)
        for row in samples:
            row["scores"] = rng.random(4).tolist()
            print(row["sample_id"], *row["scores"], sep=",", file=stream)
    assert metrics([str(dataset), f"{tmp_path}/scores.csv", "--output", str(tmp_path / "t")]) == 0

    known, errors_s = annotated(demo_workspace), {}
    for boundary, record in known.items():
        own = [row for row in samples if json.loads(row["annotation"])["boundary"] == boundary]
        if own:
            best = max(own, key=lambda row: row["scores"][0] + row["scores"][3])
            first, second = (best[f"origin_{n}"]["requested_timestamp_s"] for n in (0, 1))
            assert second - first == pytest.approx(0.2)
            errors_s[boundary] = abs((first + second) / 2 - record["timestamp"])
            assert own[0]["caption_0"] == record["status_before"]
    assert len(errors_s) == 13
    table = rows_by(tmp_path / "t")
    for limit in ("0.1", "0.2", "0.5", "1", "1.5", "2", "2.5", "3"):
        expected = np.mean([error < float(limit) - 1e-9 for error in errors_s.values()])
        assert float(table["all", f"{limit} s"]["value"]) == pytest.approx(expected)
    assert papers([str(tmp_path / "t"), "--paper", "eqben"]) == 0
    assert "Table 12" in capsys.readouterr().out

    with pytest.raises(SystemExit):
        build(demo_workspace, tmp_path / "x", "--grounding")
    assert "--grounding works only with --mode paper" in capsys.readouterr().err
