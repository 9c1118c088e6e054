"""Eq-Video from captioned moments: the demo's, hostile ones, and moments of real clips."""

import csv
import io
import json
import os
import random
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import av
import dlib
import numpy as np
import pytest
from PIL import Image

from eqforge.cli import main
from eqforge.commands import verify
from eqforge.generators.demo.workspace import Workspace
from eqforge.pipelines import eq_video
from eqforge.pipelines.base.command import plan_command
from eqforge.schemas.dataset.manifest import load_manifest
from tests import clips
from tests.builds import books, ids, measured, reasons, rejected, rows

CLIP = "demoCoffee1.mp4"


def write_captions(path: Path, moments: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(moment) + "\n" for moment in moments))
    return path


def build(captions: Path, videos: Path, output: Path, *arguments: str) -> Path:
    inputs = ["--captions", str(captions), "--videos", str(videos), "--output", str(output)]
    assert eq_video.main([*inputs, *arguments]) == 0
    return output


@pytest.fixture
def videos(demo_workspace: Workspace, tmp_path: Path) -> Path:
    """A folder with one clip that a test may add to."""
    (tmp_path / "videos").mkdir()
    shutil.copy(demo_workspace.videos / CLIP, tmp_path / "videos" / CLIP)
    return tmp_path / "videos"


def test_all_moments_of_a_video_are_paired(demo_workspace: Workspace, tmp_path: Path) -> None:
    """Five moments of one clip, three and four of others: 10 + 3 + 6 pairs, none with a face."""
    output = build(
        demo_workspace.captions, demo_workspace.videos, tmp_path / "out", "--mode", "paper"
    )

    assert books(output) == {"segments": (12, 12, 0), "frames": (12, 12, 0), "pairs": (19, 19, 0)}
    assert len(rows(output, "images")) == 12
    captions = map(json.loads, demo_workspace.captions.read_text().splitlines())
    by_id = {moment["id"]: moment for moment in captions}
    for row in rows(output, "samples"):
        annotation = json.loads(row["annotation"])
        for side in (0, 1):
            moment, origin = by_id[annotation[f"segment_{side}"]], row[f"origin_{side}"]
            middle_s = moment.get("timestamp_s")
            if middle_s is None:
                middle_s = (moment["start_s"] + moment["end_s"]) / 2
            assert row[f"caption_{side}"] == moment["caption"]
            assert origin["requested_timestamp_s"] == middle_s
            assert origin["licence"] == "CC0-1.0"
            assert origin["source_path"] == row["source_id"] == moment["video"]


def test_a_name_that_leads_out_of_the_folder_is_refused_and_never_read(
    videos: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.mp4"
    shutil.copy(videos / CLIP, outside)
    (videos / "loop.mp4").symlink_to(videos / "pool.mp4")
    (videos / "pool.mp4").symlink_to(videos / "loop.mp4")
    (videos / "link.mp4").symlink_to(outside)
    (videos / "folder").symlink_to(tmp_path)
    (videos / "inside.mp4").symlink_to(videos / CLIP)
    hostile = [
        "../outside.mp4",
        str(outside),
        "loop.mp4",
        "link.mp4",
        "folder/outside.mp4",
        f"folder/videos/../../{tmp_path.name}/outside.mp4",
    ]
    captions = write_captions(
        tmp_path / "captions.jsonl",
        (
            {"video": name, "timestamp_s": time_s, "caption": f"moment {time_s}"}
            for name in [*hostile, "inside.mp4"]
            for time_s in (1.0, 8.0)
        ),
    )
    read_before = outside.stat().st_atime_ns
    os.utime(outside, ns=(read_before - 10**15, outside.stat().st_mtime_ns))

    output = build(captions, videos, tmp_path / "out", "--mode", "paper", "--face-policy", "off")

    assert reasons(output, "frames") == {"outside_root": 2 * len(hostile)}
    assert {row["source_id"] for row in rows(output, "rejects")} == set(hostile)
    assert [row["source_id"] for row in rows(output, "samples")] == ["inside.mp4"]
    if not os.statvfs(outside).f_flag & getattr(os, "ST_NOATIME", 0):
        assert outside.stat().st_atime_ns == read_before - 10**15


def test_a_link_out_of_the_folder_is_followed_where_that_is_asked_for(
    videos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (videos / CLIP).rename(tmp_path / "elsewhere.mp4")
    (videos / CLIP).symlink_to(tmp_path / "elsewhere.mp4")
    clips.write_clip(videos / "here.mp4", SMALL)
    captions = write_captions(
        tmp_path / "captions.jsonl",
        (moment(name, time_s) for name in (CLIP, "here.mp4") for time_s in (0.2, 1.0)),
    )

    refused = build(captions, videos, tmp_path / "refused", "--mode", "paper")
    assert "--follow-links allows links out of the folder" in capsys.readouterr().out
    followed = build(captions, videos, tmp_path / "followed", "--mode", "paper", "--follow-links")

    assert {row["source_id"] for row in rows(refused, "samples")} == {"here.mp4"}
    (detail,) = {row["detail"] for row in rows(refused, "rejects") if row["stage"] == "frames"}
    assert detail == f"the link {CLIP!r} leads out of the folder; --follow-links allows that"
    assert {row["source_id"] for row in rows(followed, "samples")} == {CLIP, "here.mp4"}


def test_videos_that_are_all_links_out_of_the_folder_are_told_as_such(
    videos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (videos / CLIP).rename(tmp_path / "elsewhere.mp4")
    (videos / CLIP).symlink_to(tmp_path / "elsewhere.mp4")
    captions = write_captions(
        tmp_path / "captions.jsonl", (moment(CLIP, time_s) for time_s in (0.2, 1.0))
    )

    with pytest.raises(SystemExit) as ended:
        build(captions, videos, tmp_path / "out")

    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(
        f"the folder contains none of the planned videos; the link {CLIP!r} leads out of the "
        "folder; "
        "--follow-links allows that\n"
    )


SMALL = clips.Clip(size=(48, 32))


def test_a_dataset_without_samples_warns_and_says_what_to_do(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = {"milliseconds": (200, 1000), "one": (0.2,)}
    said = {}
    for name, times_s in times.items():
        captions = write_captions(
            tmp_path / f"{name}.jsonl", (moment("a.mp4", time_s) for time_s in times_s)
        )
        output = str(tmp_path / name)
        inputs = ["--captions", str(captions), "--videos", str(small), "--output", output]
        assert eq_video.main(inputs) == 0
        printed = capsys.readouterr()
        said[name] = printed.out.splitlines()[-1].partition(" contains ")[2]
        assert main(["build", "eq-video", *inputs, "--json"]) == 0
        again = capsys.readouterr()
        assert json.loads(again.out)["warning"].endswith(said[name])
        assert printed.err.startswith("eq-video: 1 video, ")
        assert f", {int(name == 'one')} rejected by the plan\n" in printed.err
        assert main(["build", "eq-video", *inputs, "--quiet"]) == 0
        assert said[name] in capsys.readouterr().out
    sentences = {
        reason: text for each in eq_video.EqVideo.stages for reason, text in each.reasons.items()
    }
    assert said == {
        name: f"no samples; the stage {stage!r} rejected {count} for {reason!r}: "
        f"{sentences[reason]}"
        for name, stage, reason, count in (
            ("milliseconds", "frames", "after_last_frame", "2 candidates"),
            ("one", "segments", "too_few_moments", "1 candidate"),
        )
    }


def moment(video: str, time_s: float, **more: Any) -> dict[str, Any]:
    return {"video": video, "timestamp_s": time_s, "caption": f"{video} at {time_s}"} | more


def files_of(output: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (output / "data").iterdir()}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A folder of three small clips."""
    (tmp_path / "videos").mkdir()
    for name in ("a.mp4", "b.mp4", "c.mp4"):
        clips.write_clip(tmp_path / "videos" / name, SMALL)
    return tmp_path / "videos"


def test_the_order_of_the_lines_leaves_every_byte_as_it_is(small: Path, tmp_path: Path) -> None:
    """Among them moments of one time, one line twice, a bad one, and a limit that cuts."""
    moments = [
        *(moment(name, time_s) for name in ("b.mp4", "a.mp4", "c.mp4") for time_s in (1.5, 0.9)),
        {"video": "a.mp4", "start_s": 0.5, "end_s": 0.7, "caption": "one", "shot": 1},
        {"video": "a.mp4", "start_s": 0.5, "end_s": 0.7, "caption": "another"},
        moment("b.mp4", 0.1, id="named"),
        moment("b.mp4", 0.1, id="named"),
        moment("b.mp4", -1),
        {"caption": "of no video"},
    ]
    rng = random.Random(3)
    found = []
    for number, order in enumerate([moments, rng.sample(moments, len(moments))]):
        captions = write_captions(tmp_path / f"{number}.jsonl", order)
        arguments = ("--mode", "paper", "--face-policy", "off", "--max-error-rate", "0.5")
        whole = build(captions, small, tmp_path / f"whole{number}", *arguments)
        part = build(captions, small, tmp_path / f"part{number}", *arguments, "--limit", "4")
        found.append((files_of(whole), files_of(part)))
        assert verify.main([str(whole)]) == 0

    assert found[0] == found[1]
    assert books(whole)["segments"] == (12, 9, 3)
    assert reasons(whole, "segments") == {"bad_segment": 2, "duplicate_moment": 1}
    assert reasons(whole, "pairs") == {"same_image": 1}  # one and another
    samples = rows(whole, "samples")
    assert len(samples) == 6 + 3 + 1 - 1
    for row in samples:
        assert row["origin_0"]["timestamp_s"] < row["origin_1"]["timestamp_s"]
    carried = [json.loads(row["annotation"]).get("shot_0") for row in samples]
    assert carried.count("1") == 2
    assert len(rows(part, "samples")) <= 4


def test_videos_of_one_caption_each_leave_a_trace(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (small / "c.mp4").unlink()
    names = ["a.mp4", "b.mp4", "c.mp4", "../out.mp4"]
    captions = write_captions(tmp_path / "captions.jsonl", (moment(name, 1.0) for name in names))

    output = build(captions, small, tmp_path / "out", "--mode", "paper")

    assert books(output) == {"segments": (4, 0, 4), "frames": (2, 0, 2), "pairs": (0, 0, 0)}
    assert reasons(output, "segments") == {"too_few_moments": 4}
    assert rejected(output, "video_missing") == ["eq-video/c.mp4"]
    assert rejected(output, "outside_root") == ["eq-video/../out.mp4"]
    assert verify.main([str(output)]) == 0

    capsys.readouterr()
    inputs = ["--captions", str(captions), "--videos", str(small)]
    assert plan_command(eq_video.EqVideo, inputs) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "rejected by the plan, segments: too_few_moments: 4" in lines
    assert (
        "a pair needs two usable frames from one video; videos with fewer frames give no pairs"
        in lines
    )


def test_a_bad_line_is_a_reject_like_any_other(small: Path, tmp_path: Path) -> None:
    good = [moment("a.mp4", 0.1 * n) for n in range(3)]
    captions = write_captions(tmp_path / "captions.jsonl", [*good, moment("a.mp4", 2, caption=7)])

    output = build(captions, small, tmp_path / "out", "--mode", "paper", "--max-error-rate", "0.25")

    assert len(rows(output, "samples")) == 3
    (row,) = rows(output, "rejects")
    assert (row["stage"], row["reason"], row["source_id"]) == ("segments", "bad_segment", "a.mp4")
    assert row["detail"] == "caption: expected a string, found 7"


def test_captions_no_model_can_be_tested_with_are_rejects(videos: Path, tmp_path: Path) -> None:
    texts = {
        "bell": "a \x07 bell",
        "huge": "x" * 10_000_000,
        "empty": " \u200b ",
        "long": "word " * 200,
        "cup": "a red cup",
        "spoon": "a spoon",
    }
    captions = write_captions(
        tmp_path / "captions.jsonl",
        (
            {"video": CLIP, "id": name, "timestamp_s": 1.0 + number, "caption": text}
            for number, (name, text) in enumerate(texts.items())
        ),
    )

    output = build(captions, videos, tmp_path / "out", "--face-policy", "off")

    assert rejected(output, "control_characters") == [f"eq-video/{CLIP}/bell"]
    assert rejected(output, "caption_too_long_chars") == [f"eq-video/{CLIP}/huge"]
    assert rejected(output, "caption_too_long_tokens") == [f"eq-video/{CLIP}/long"]
    assert rejected(output, "empty_caption") == [f"eq-video/{CLIP}/empty"]
    assert books(output)["segments"] == (6, 2, 4)
    assert verify.main([str(output)]) == 0


REAL = {
    "decord/corrupted.mp4": (0.05, 1.55, 2.65, 4.0),
    "decord/video_90.mov": (0.0, 0.07),
    "face_recognition/short_hamilton_clip.mp4": (1.0, 3.0, 5.0, 7.0, 9.0),
    "missing.mp4": (1.0, 2.0),
    "moviepy/-video-with-dash-.mp4": (0.5, 1.5),
    "moviepy/bitmap.mp4": (0.5, 1.5),
    "moviepy/fire2.mp4": (0.5, 1.5),
    "moviepy/no_duration.webm": (1.0, 4.0, 6.0),
    "moviepy/result.webm": (0.0, 1.0),
    "torchcodec/h264_10bits.mp4": (0.1, 0.9),
    "torchcodec/nasa_13013.mp4.audio.mp3": (1.0, 2.0),
}


@pytest.fixture(scope="module")
def real(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both modes of a dataset of moments of real clips."""
    folder = tmp_path_factory.mktemp("real")
    moments = (
        {"video": name, "id": f"{time_s:.2f}", "timestamp_s": time_s, "caption": f"at {time_s}"}
        for name, times_s in REAL.items()
        for time_s in times_s
    )
    captions = write_captions(folder / "captions.jsonl", moments)
    return {
        mode: build(captions, data_folder / "videos", folder / mode, "--mode", mode)
        for mode in ("paper", "corrected")
    }


def test_pairs_that_change_in_part_are_kept_by_default(
    demo_workspace: Workspace, tmp_path: Path
) -> None:
    """Where photographs are moved below a still camera; the other clips cut and pan."""
    output = build(demo_workspace.captions, demo_workspace.videos, tmp_path / "out")

    kept = rows(output, "samples")
    assert {row["source_id"] for row in kept} == {"own/desk.mp4"}
    assert len(kept) == 6
    assert all(0.02 <= row["changed_area_fraction"] <= 0.3 for row in kept)
    assert reasons(output, "pairs") == {"not_minimal": 13}


def test_captions_of_any_form_give_the_same_pairs(
    demo_workspace: Workspace, videos: Path, tmp_path: Path
) -> None:
    """A table, and subtitles beside the videos, one of them in a folder below."""
    times = {"demoCoffee1": (1.0, 8.0), f"below/{CLIP.removesuffix('.mp4')}": (2.0, 8.0)}
    (videos / "below").mkdir()
    shutil.copy(videos / CLIP, videos / "below" / CLIP)
    for name, (first, second) in times.items():
        cues = [f"00:00:0{s:.3f} --> 00:00:0{s + 1:.3f}\n<i>at {s}</i>\n" for s in (first, second)]
        (videos / name).with_suffix(".vtt").write_text("\n".join(["WEBVTT\n", *cues]))
    moments = [(name, s, s + 1, f"at {s}") for name, both in times.items() for s in both]
    with open(tmp_path / "captions.csv", "w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("video", "start_s", "end_s", "caption"), *moments])

    built = [
        build(captions, videos, tmp_path / f"out-{n}", "--mode", "paper", "--face-policy", "off")
        for n, captions in enumerate([tmp_path / "captions.csv", videos])
    ]

    table, subtitles = (rows(output, "samples") for output in built)
    assert table == subtitles
    assert {row["source_id"] for row in table} == set(times)
    assert [file.name for file in load_manifest(str(built[1])).inputs] == [
        "below/demoCoffee1.vtt",
        "demoCoffee1.vtt",
    ]


def test_of_real_clips_every_frame_that_is_there_is_kept(real: dict[str, Path]) -> None:
    """corrupted.mp4 has 28 good frames at 10 a second; no_duration.webm 74 at 15000/1001."""
    for output in real.values():
        assert rejected(output, "undecodable") == ["eq-video/decord/corrupted.mp4/4.00"]
        assert rejected(output, "after_last_frame") == ["eq-video/moviepy/no_duration.webm/6.00"]
        assert reasons(output, "frames")["video_missing"] == 2
        assert reasons(output, "frames")["no_video_stream"] == 2
        assert rejected(output, "video_empty") == [
            "eq-video/moviepy/result.webm/0.00",
            "eq-video/moviepy/result.webm/1.00",
        ]
    kept = {row["source_id"] for row in rows(real["paper"], "samples")}
    lost = {
        "missing.mp4",
        "moviepy/result.webm",
        "torchcodec/nasa_13013.mp4.audio.mp3",
        "face_recognition/short_hamilton_clip.mp4",
    }
    assert kept == set(REAL) - lost


def test_of_real_clips_faces_are_dropped_where_dlib_sees_them(
    real: dict[str, Path], data_folder: Path
) -> None:
    """Asked directly, with the setting of face_recognition."""
    name = "face_recognition/short_hamilton_clip.mp4"
    detect = dlib.get_frontal_face_detector()
    with_face = []
    with av.open(str(data_folder / "videos" / name)) as container:
        start_s = container.start_time / 1_000_000
        shown = []
        for frame in container.decode(video=0):
            assert frame.pts is not None
            assert frame.time_base is not None
            time_s = float(frame.pts * frame.time_base) - start_s
            shown.append((time_s, frame.to_ndarray(format="rgb24")))
    for time_s in REAL[name]:
        pixels = [pixels for start, pixels in shown if start <= time_s + 1e-9][-1]
        if detect(np.ascontiguousarray(pixels), 1):
            with_face.append(f"eq-video/{name}/{time_s:.2f}")
    assert len(with_face) == 4
    assert rejected(real["paper"], "face_found") == with_face
    # People's own videos show people: nobody asked for them to be dropped.
    assert rejected(real["corrected"], "face_found") == []
    assert any(name in pair for pair in rejected(real["corrected"], "not_minimal"))


def test_of_real_clips_the_odd_ones_behave(real: dict[str, Path]) -> None:
    """1x1 pictures are pictures for paper mode; corrected mode sees that they show nothing."""
    images = {row["image_id"]: row for row in rows(real["paper"], "images")}
    sizes = {
        row["source_id"]: (images[name]["width_px"], images[name]["height_px"])
        for row in rows(real["paper"], "samples")
        for name in (row["image_0_id"], row["image_1_id"])
    }
    assert sizes["moviepy/bitmap.mp4"] == sizes["moviepy/-video-with-dash-.mp4"] == (1, 1)
    assert sizes["decord/video_90.mov"] == (320, 568)  # 568x320, turned
    assert sizes["moviepy/fire2.mp4"] == (1280, 720)  # upside down, turned
    assert sizes["torchcodec/h264_10bits.mp4"] == (200, 200)
    assert rejected(real["corrected"], "constant_image") == [
        f"eq-video/moviepy/{name}/{time_s}"
        for name in ("-video-with-dash-.mp4", "bitmap.mp4")
        for time_s in ("0.50", "1.50")
    ]
    for row in images.values():
        Image.open(io.BytesIO(row["image"]["bytes"])).load()
    assert [verify.main([str(output)]) for output in real.values()] == [0, 0]


def test_memory_hardly_grows_with_the_number_of_videos(tmp_path: Path) -> None:
    """Whatever the engine holds of a video, it is little: no pixels, no encoded pictures."""
    small, large = (peak_mb_of_videos(tmp_path / str(number), number) for number in (10, 60))
    assert large < 1_000
    assert large - small < 9  # megabytes for 50 videos, 150 frames and 150 pairs


def peak_mb_of_videos(folder: Path, number: int) -> float:
    """Returns the peak megabytes of building a dataset whose videos are links to one small clip."""
    (folder / "videos").mkdir(parents=True)
    clip = clips.write_clip(folder / "clip.mp4", clips.Clip(size=(48, 32)))
    for video in range(number):
        (folder / "videos" / f"{video:04d}.mp4").hardlink_to(clip)
    captions = write_captions(
        folder / "captions.jsonl",
        (
            {"video": f"{video:04d}", "timestamp_s": time_s, "caption": f"{video} at {time_s}"}
            for video in range(number)
            for time_s in (0.1, 0.9, 1.5)
        ),
    )
    done = measured(
        "build", "eq-video", "--captions", captions, "--videos", folder / "videos",
        "--output", folder / "out", "--mode", "paper", "--face-policy", "off",
    )  # fmt: skip
    assert done.status == 0
    assert len(ids(folder / "out")) == 3 * number
    return done.peak_mb
