"""`eqforge plan` counts what a build would try, and opens no video."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from eqforge.generators.demo.workspace import Workspace
from eqforge.pipelines import eq_ag, eq_gebc, eq_video, eq_youcook2
from eqforge.pipelines.base.command import plan_command
from eqforge.pipelines.base.pipeline import AnyPipeline
from eqforge.pipelines.base.plan import limit_hints
from eqforge.transforms.video.frames.extract import FrameExtractor
from tests.builds import rows


def plan(
    capsys: pytest.CaptureFixture[str], pipeline: type[AnyPipeline], *arguments: object
) -> list[list[str]]:
    """Returns the words of each line of a plan."""
    assert plan_command(pipeline, [str(argument) for argument in arguments]) == 0
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_a_plan_counts_by_split_and_opens_no_video(
    demo_workspace: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(FrameExtractor, "extract")
    lines = plan(
        capsys, eq_youcook2.EqYouCook2, "--annotations", demo_workspace.youcook2,
        "--videos", demo_workspace.videos,
    )  # fmt: skip

    # Coffee, turned, cut off and absent have 5 + 4 + 4 + 4 segments, kitchen and guests 6 each.
    assert ["training", "4", "1", "17", "17", "28"] in lines
    assert ["validation", "2", "0", "12", "12", "30"] in lines
    assert ["total", "6", "1", "29", "29", "58"] in lines


def test_a_plan_names_the_videos_that_are_missing_and_what_may_be_meant(
    demo_workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "videos"
    (folder / "people").mkdir(parents=True)
    for name in ("here.mp4", "people/corridor.MP4", "people/desk.mp4", "other/desk.mp4"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    (tmp_path / "away.mp4").touch()
    (folder / "out.mp4").symlink_to(tmp_path / "away.mp4")
    (folder / "gone.mp4").symlink_to("nowhere.mp4")
    expected = {
        "corridor.mp4": "no file of that name; did you mean 'people/corridor.MP4'?",
        "videos/people/desk": "no file of that name; did you mean 'people/desk.mp4'?",
        f"{folder}/here.mp4": f"'{folder}/here.mp4' is an absolute path; expected a path relative "
        "to the folder; did you mean 'here.mp4'?",
        "out.mp4": "the link 'out.mp4' leads out of the folder; --follow-links allows that",
        "gone.mp4": "the link 'gone.mp4' is broken",
    }
    lost = {f"without{n}.mp4": "no file of that name" for n in range(6)}
    captions = tmp_path / "captions.jsonl"
    captions.write_text(
        "".join(
            json.dumps({"video": video, "timestamp_s": time_s, "caption": f"at {time_s}"}) + "\n"
            for video in (*expected, *lost, "here.mp4")
            for time_s in (1.0, 2.0)
        )
    )
    inputs = ["--captions", str(captions), "--videos", str(folder)]
    assert plan_command(eq_video.EqVideo, [*inputs, "--pilot", "0"]) == 0

    lines = capsys.readouterr().out.splitlines()
    start = lines.index(f"  missing from --videos {folder}:") + 1
    named = dict(line.strip().split(": ", 1) for line in lines[start : start + 10])
    assert named.items() <= (expected | lost).items()
    assert len(named) == 10
    assert expected.items() <= named.items()
    assert lines[start + 10] == "    and 1 more"

    wrong = tmp_path / "people.jsonl"
    kept = [line for line in captions.read_text().splitlines() if '"corridor.mp4"' in line]
    wrong.write_text("\n".join(kept))
    with pytest.raises(SystemExit):
        eq_video.main([*("--captions", str(wrong)), *inputs[2:], "--output", str(tmp_path / "out")])
    assert capsys.readouterr().err.endswith(
        "with or without an added ending such as .mp4; did you mean 'people/corridor.MP4'?\n"
    )


@pytest.mark.parametrize(
    ("pipeline", "mode", "policy"),
    [
        (eq_video.EqVideo, "corrected", None),
        (eq_video.EqVideo, "paper", "paper"),
        (eq_youcook2.EqYouCook2, "corrected", "yunet"),
    ],
)
def test_a_plan_says_which_filters_are_on(
    demo_workspace: Workspace,
    capsys: pytest.CaptureFixture[str],
    pipeline: type[AnyPipeline],
    mode: str,
    policy: str | None,
) -> None:
    own = pipeline is eq_video.EqVideo
    inputs = (
        ["--captions", demo_workspace.captions]
        if own
        else ["--annotations", demo_workspace.youcook2]
    )
    lines = plan(
        capsys, pipeline, *inputs, "--videos", demo_workspace.videos, "--mode", mode,
        "--min-changed-area", "0.02",
    )  # fmt: skip
    on, off = (
        " ".join(next(line for line in lines if line[:2] == ["filters", which])[2:]).split(", ")
        for which in ("on:", "off:")
    )
    assert "--min-changed-area 0.02" in on
    assert ("--min-minimality 0.18" in on) == (own and mode == "corrected")
    assert "--oracle" in off
    assert ("--distinct-captions" in on) == (mode == "corrected")
    assert ("--min-luminance" in off) == (mode == "paper")
    faces = [found for found in on if found.startswith("--face-policy")]
    assert faces == ([] if policy is None else [f"--face-policy {policy}"])
    assert ("--face-policy" in off) == (policy is None)


def test_a_plan_names_what_it_refuses(
    demo_workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = plan(
        capsys, eq_gebc.EqGebc, "--annotations", demo_workspace.gebplus,
        "--videos", demo_workspace.videos, "--output", tmp_path / "out",
    )  # fmt: skip
    refused = [" ".join(words) for words in lines if words[:2] == ["rejected", "by"]]
    assert refused == [
        "rejected by the plan, boundaries: action_word: 1",
        "rejected by the plan, boundaries: equal_captions: 1",
        "rejected by the plan, boundaries: no_next_boundary: 2",
        "rejected by the plan, boundaries: other_annotator: 2",
    ]
    assert ["total", "4", "0", "18", "12", "6"] in lines

    lines = plan(
        capsys, eq_ag.EqAg, "--objects", demo_workspace.object_boxes,
        "--videos", demo_workspace.videos, "--output", tmp_path / "out",
    )  # fmt: skip
    assert ["train", "1", "0", "20", "5", "7"] in lines
    assert ["test", "1", "0", "22", "6", "10"] in lines


def test_a_plan_shows_sample_ids_that_a_build_takes(
    demo_workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = [
        "--captions", demo_workspace.captions, "--videos", demo_workspace.videos,
        "--output", tmp_path / "out",
    ]  # fmt: skip
    lines = plan(capsys, eq_video.EqVideo, *inputs)
    (shown,) = [words[2:] for words in lines if words[:2] == ["first", "samples:"]]
    name = shown[0].rstrip(",")

    lines = plan(capsys, eq_video.EqVideo, *inputs, "--only", name)

    assert ["total", "1", "0", "3", "2", "1"] in lines
    assert eq_video.main([*map(str, inputs), "--mode", "paper", "--only", name]) == 0


def test_a_pilot_measures_time_and_bytes_and_leaves_nothing_behind(
    demo_workspace: Workspace,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    lines = plan(
        capsys, eq_video.EqVideo, "--captions", demo_workspace.captions,
        "--videos", demo_workspace.videos, "--output", tmp_path / "out",
        "--mode", "paper", "--face-policy", "off", "--pilot", "1",
    )  # fmt: skip

    (pilot,) = [words for words in lines if words[:1] == ["pilot:"]]
    assert pilot[1:5] == ["1", "video,", "3", "frames"]
    assert float(pilot[6]) > 0  # seconds
    (forecast,) = [" ".join(words) for words in lines if words[:2] == ["estimate", "for"]]
    assert forecast.startswith("estimate for the whole build: ")
    # Twelve frames where the pilot had three.
    assert forecast.endswith(f"{measured_mb(demo_workspace, tmp_path) * 12 / 3:.1f} MB of images")
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not (tmp_path / "out").exists()


def measured_mb(workspace: Workspace, folder: Path) -> float:
    """The megabytes of the first video's frames, which a build of its pairs alone stores."""
    lines = workspace.captions.read_text().splitlines()
    first = min(json.loads(line)["video"] for line in lines)
    chosen = [line for line in lines if json.loads(line)["video"] == first]
    (folder / "first.jsonl").write_text("\n".join(chosen))
    named = ["--captions", str(folder / "first.jsonl"), "--videos", str(workspace.videos)]
    settings = ["--mode", "paper", "--face-policy", "off", "--output", str(folder / "first")]
    assert eq_video.main([*named, *settings]) == 0
    return sum(row["num_bytes"] for row in rows(folder / "first", "images")) / 1e6


@pytest.mark.parametrize("pilot", [["--pilot"], ["--pilot", "many"], ["--pilot", "-1"]])
def test_a_wrong_pilot_is_refused(
    demo_workspace: Workspace, capsys: pytest.CaptureFixture[str], pilot: list[str]
) -> None:
    inputs = ["--captions", demo_workspace.captions, "--videos", demo_workspace.videos]
    with pytest.raises(SystemExit) as left:
        plan_command(eq_video.EqVideo, [*map(str, inputs), *pilot])

    assert left.value.code == 2
    assert "--pilot" in capsys.readouterr().err


def test_a_build_and_a_pilot_that_keep_nothing_name_limits_that_would_keep_pairs(
    demo_workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = ["--captions", str(demo_workspace.captions), "--videos", str(demo_workspace.videos)]
    argv = [*own, "--face-policy", "off", "--output", str(tmp_path / "out")]
    strict = [*argv, "--min-minimality", "0.97"]
    assert plan_command(eq_video.EqVideo, [*strict, "--pilot", "9"]) == 0
    planned = capsys.readouterr().out
    assert eq_video.main(strict) == 0
    printed = capsys.readouterr().out

    values = sorted(row["value"] for row in rows(tmp_path / "out", "rejects"))
    found = re.search(
        r"--min-minimality 0.97 rejected (\d+) by .*; ([\d.]+) would keep (\d+)", printed
    )
    assert found is not None
    assert found[0] in planned
    assert int(found[1]) == len(values)
    assert int(found[3]) == sum(value >= float(found[2]) for value in values) >= len(values) / 4
    assert f"with --keep-best 3 (or --min-minimality {found[2]}) and --overwrite" in printed
    looser = [*argv, "--min-minimality", found[2], "--overwrite"]
    assert eq_video.main(looser) == 0
    assert len(rows(tmp_path / "out", "samples")) == int(found[3])
    assert "would keep" not in capsys.readouterr().out


def test_hints_of_limits_go_away_from_the_limit() -> None:
    usual = eq_video.EqVideo.usual(output="x")
    gates = replace(usual.settings.gates, max_luminance_shift=20.0, min_ssim=0.6)
    config = replace(usual, settings=replace(usual.settings, gates=gates))
    rejects = [("ssim", 0.5, 0.6), ("luminance_shift", -40.0, 20.0), ("ssim", -0.11, 0.6)]
    assert list(limit_hints(config, [*rejects, ("ssim", 0.2, 0.1)])) == [
        "  --min-ssim 0.6 rejected 2 by ssim; 0.5 would keep 1, -0.11 would keep 2",
        "  --max-luminance-shift 20 rejected 1 by luminance_shift; 40 would keep 1",
        "to keep more pairs, run the same command with --min-ssim 0.5 and --overwrite",
    ]
    assert list(limit_hints(config, [])) == []
