"""Datasets of folders of frames: as those of the videos, and every way in which a folder is odd."""

import hashlib
import io
import json
import random
import shutil
import tarfile
from collections.abc import Container, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import fsspec
import numpy as np
import pytest
from av.video.reformatter import VideoReformatter
from PIL import Image

from eqforge.cli import main
from eqforge.commands import verify
from eqforge.generators.demo.workspace import Workspace
from eqforge.schemas.records.frames import FRAME_REASONS
from eqforge.transforms.video.frames.answers import upright_rgb
from tests import clips
from tests.builds import dataset_bytes, finished_work, ids, reasons, rows
from tests.web_server import WebServer

RATE = 25
SMALL = clips.Clip(size=(48, 32), options={"g": "12", "bf": "3"})
PAPER = ("--mode", "paper", "--face-policy", "off", "--image-format", "png")


def dump(
    video: Path, folder: Path, name: str = "{:06d}.png", only: Container[int] | None = None
) -> Path:
    """Writes the frames of a video as pictures, with the pixels that the decoder gives."""
    folder.mkdir(parents=True)
    reformatter = VideoReformatter()
    with av.open(str(video)) as container:
        for number, frame in enumerate(container.decode(video=0), start=1):
            if only is None or number in only:
                picture = Image.fromarray(upright_rgb(frame, reformatter))
                picture.save(folder / name.format(number), compress_level=1)
    return folder


def captions(path: Path, moments: Iterable[tuple[str, float]]) -> Path:
    path.write_text(
        "".join(
            json.dumps({"video": video, "timestamp_s": time_s, "caption": f"{video} at {time_s}"})
            + "\n"
            for video, time_s in moments
        )
    )
    return path


def arguments(said: Path, videos: object, output: Path, *more: str) -> list[str]:
    inputs = ["--captions", str(said), "--videos", str(videos), "--output", str(output)]
    return ["build", "eq-video", *inputs, *PAPER, *more]


def build(said: Path, videos: object, output: Path, *more: str) -> Path:
    assert main(arguments(said, videos, output, "--frames-fps", "25", *more)) == 0
    assert verify.main([str(output)]) == 0
    return output


def refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command says that ends with status 2."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 2
    return capsys.readouterr().err


def without_source(row: dict[str, Any]) -> dict[str, Any]:
    """A sample without what tells its source apart, and without the ticks of its clock."""
    own = ("source_path", "source_sha256", "pts", "time_base")
    return {
        name: {field: value for field, value in content.items() if field not in own}
        if name.startswith("origin_")
        else content
        for name, content in row.items()
    }


@pytest.fixture
def video(tmp_path: Path) -> Path:
    """A folder with the clip a.mp4, of 48 frames at 25 frames a second."""
    (tmp_path / "videos").mkdir()
    clips.write_clip(tmp_path / "videos" / "a.mp4", SMALL)
    return tmp_path / "videos"


@pytest.fixture
def frames(video: Path, tmp_path: Path) -> Path:
    """A folder with the frames of the clip in a/, and nothing else."""
    dump(video / "a.mp4", tmp_path / "frames" / "a")
    return tmp_path / "frames"


def test_the_frames_of_a_video_give_what_the_video_gives(
    video: Path, frames: Path, tmp_path: Path
) -> None:
    """Times between frames, on their borders, and just after the end."""
    times = [0.0, 0.02, 0.04, 0.3, 0.61, 1.0, 1.88, 1.919, 1.95, 2.4, -0.5]
    said = captions(tmp_path / "said.jsonl", (("a.mp4", time_s) for time_s in times))

    of_video = build(said, video, tmp_path / "of-video", "--max-error-rate", "1")
    of_frames = build(said, frames, tmp_path / "of-frames", "--max-error-rate", "1")

    assert rows(of_frames, "images") == rows(of_video, "images")
    found = [without_source(row) for row in rows(of_frames, "samples")]
    assert found == [without_source(row) for row in rows(of_video, "samples")]
    assert len(found) > 20
    for stage in ("segments", "frames", "pairs"):
        assert reasons(of_frames, stage) == reasons(of_video, stage)
    assert reasons(of_frames, "frames") == {"after_last_frame": 1}
    for row in rows(of_frames, "samples"):
        for side in (0, 1):
            origin = row[f"origin_{side}"]
            picture = frames / origin["source_path"]
            assert picture.name == f"{origin['frame_index'] + 1:06d}.png"
            assert hashlib.sha256(picture.read_bytes()).hexdigest() == origin["source_sha256"]
            assert origin["pts"] * Fraction(origin["time_base"]) == Fraction(
                origin["frame_index"], RATE
            )


def test_neither_order_nor_names_change_the_rows(frames: Path, tmp_path: Path) -> None:
    """Pictures written in another order, as img_1.png and IMG_1.PNG's like, of mixed padding."""
    times = [0.1, 0.5, 0.9, 1.3]
    said = captions(tmp_path / "said.jsonl", (("a", time_s) for time_s in times))
    first = build(said, frames, tmp_path / "first")
    files = sorted((frames / "a").iterdir())
    random.Random(1).shuffle(files)
    for place in ("again", "other"):
        (tmp_path / place / "a").mkdir(parents=True)
        for file in files:
            name = file.name if place == "again" else f"img_{int(file.stem)}.PNG"
            shutil.copy(file, tmp_path / place / "a" / name)

    again = build(said, tmp_path / "again", tmp_path / "out-again")
    other = build(said, tmp_path / "other", tmp_path / "out-other")

    for name, content in dataset_bytes(first).items():
        if name.endswith(".parquet"):
            assert dataset_bytes(again)[name] == content, name
    assert rows(other, "images") == rows(first, "images")
    assert rows(other, "samples")[0]["origin_0"]["source_path"] == "a/img_3.PNG"


@pytest.mark.parametrize("layout", ["store", "shards"])
def test_from_a_store_and_from_shards_come_the_same_bytes(
    frames: Path, tmp_path: Path, layout: str
) -> None:
    said = captions(tmp_path / "said.jsonl", (("a", time_s) for time_s in (0.1, 0.9)))
    local = build(said, frames, tmp_path / "local")
    if layout == "shards":
        with tarfile.open(tmp_path / "0.tar", "w") as shard:
            shard.add(frames / "a", "a")
        videos = str(tmp_path / "0.tar")
    else:
        videos = "memory://frames"
        fsspec.filesystem("memory").put(str(frames), "/frames", recursive=True)

    output = build(said, videos, tmp_path / "out")

    found, expected = dataset_bytes(output), dataset_bytes(local)
    for name in expected.keys() - {"dataset.json", "README.md", "croissant.json", "SHA256SUMS"}:
        assert found[name] == expected[name], name


def test_a_web_server_is_refused_where_a_rate_says_that_frames_are_meant(
    frames: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = captions(tmp_path / "said.jsonl", (("a", time_s) for time_s in (0.1, 0.9)))
    with WebServer(frames).running() as server:
        argv = arguments(said, server.url, tmp_path / "out", "--frames-fps", "25")
        assert "eqforge cannot read folders on a web server" in refused(argv, capsys)
    assert not (tmp_path / "out").exists()


def test_a_rate_that_is_needed_and_missing_is_an_error_before_any_work(
    frames: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = captions(tmp_path / "said.jsonl", (("a", time_s) for time_s in (0.1, 0.9)))

    error = refused(arguments(said, frames, tmp_path / "out"), capsys)

    assert f"--videos {frames}: a is a folder of frames" in error
    assert "pass the frame rate with --frames-fps" in error
    assert not (tmp_path / "out").exists()
    assert main(["plan", *arguments(said, frames, tmp_path / "out")[1:], "--pilot", "0"]) == 0
    assert "WARNING: a build would fail: a is a folder" in capsys.readouterr().out
    for rate in ("0", "-1", "nan", "inf"):
        argv = arguments(said, frames, tmp_path / "out", f"--frames-fps={rate}")
        assert "--frames-fps" in refused(argv, capsys)


def test_a_rate_need_not_be_that_of_the_video(video: Path, tmp_path: Path) -> None:
    """Five pictures a second: 0.99 s shows the fifth, from 0.8 s on, and 1.0 s the sixth."""
    whole = dump(video / "a.mp4", tmp_path / "whole")
    few = tmp_path / "frames" / "a"
    few.mkdir(parents=True)
    for number in range(1, 11):
        shutil.copy(whole / f"{5 * number - 4:06d}.png", few / f"frame_{number:05d}.png")
    said = captions(tmp_path / "said.jsonl", (("a", time_s) for time_s in (0.99, 1.0, 2.2)))
    argv = arguments(said, few.parent, tmp_path / "out", "--frames-fps", "5")

    assert main([*argv, "--max-error-rate", "1"]) == 0

    (row,) = rows(tmp_path / "out", "samples")
    shown = [row[f"origin_{side}"] for side in (0, 1)]
    assert [origin["source_path"] for origin in shown] == ["a/frame_00005.png", "a/frame_00006.png"]
    assert [origin["timestamp_s"] for origin in shown] == [0.8, 1.0]
    assert [origin["time_base"] for origin in shown] == ["1/5", "1/5"]
    assert reasons(tmp_path / "out", "frames") == {"after_last_frame": 1}


def test_a_file_comes_before_a_folder_of_its_name(video: Path, tmp_path: Path) -> None:
    dump(video / "a.mp4", video / "a")
    said = captions(tmp_path / "said.jsonl", (("a", time_s) for time_s in (0.1, 0.9)))

    (row,) = rows(build(said, video, tmp_path / "out"), "samples")

    assert row["origin_0"]["source_path"] == "a.mp4"


def odd(frames: Path, name: str) -> Path:
    """A copy of the folder of frames, to be made odd."""
    return shutil.copytree(frames / "a", frames / name)


def test_odd_folders_are_taken_or_refused_each_for_its_reason(frames: Path, tmp_path: Path) -> None:
    """Asked for pictures 3 and 23; where nothing is wrong, one pair comes of them."""
    for name in ("Thumbs.db", ".DS_Store", "._000003.png", "notes.txt", "cover.png", "000099.txt"):
        (odd(frames, f"stray-{name}") / name).write_bytes(b"\0")
    (odd(frames, "folder inside") / "000100.png").mkdir()
    (odd(frames, "gap elsewhere") / "000010.png").unlink()
    (odd(frames, "gap") / "000023.png").unlink()
    (odd(frames, "two of one number") / "3.png").write_bytes(b"\0")
    (odd(frames, "two endings") / "000023.jpg").write_bytes(b"\0")
    (odd(frames, "named otherwise") / "flow_000001.png").write_bytes(b"\0")
    (odd(frames, "from 0") / "000000.png").write_bytes(b"\0")
    (frames / "empty").mkdir()
    (frames / "only strays").mkdir()
    (frames / "only strays" / "Thumbs.db").write_bytes(b"\0")
    whole = (frames / "a" / "000023.png").read_bytes()
    (odd(frames, "broken") / "000023.png").write_bytes(whole[: len(whole) // 2])
    (odd(frames, "no bytes") / "000023.png").write_bytes(b"")
    (odd(frames, "no picture") / "000023.png").write_text("<html>")
    linked = odd(frames, "link inside") / "000023.png"
    linked.unlink()
    linked.symlink_to("000022.png")
    outside = odd(frames, "link outside") / "000023.png"
    outside.rename(tmp_path / "outside.png")
    outside.symlink_to(tmp_path / "outside.png")
    dangling = odd(frames, "link to nothing") / "000023.png"
    dangling.unlink()
    dangling.symlink_to("nothing.png")
    (frames / "folder linked").symlink_to("a")
    shutil.copytree(frames / "a", tmp_path / "elsewhere")
    (frames / "folder linked outside").symlink_to(tmp_path / "elsewhere")
    names = sorted(path.name for path in frames.iterdir())
    said = captions(tmp_path / "said.jsonl", ((name, t) for name in names for t in (0.08, 0.9)))

    output = build(said, frames, tmp_path / "out")

    found: dict[str, set[str]] = {}
    for row in rows(output, "rejects"):
        if row["stage"] == "frames":
            assert row["reason"] in FRAME_REASONS
            found.setdefault(row["source_id"], set()).add(row["reason"])
    assert found == {
        "gap": {"frame_missing"},
        "two of one number": {"frames_unclear"},
        "two endings": {"frames_unclear"},
        "named otherwise": {"frames_unclear"},
        "from 0": {"frames_unclear"},
        "empty": {"video_empty"},
        "only strays": {"video_empty"},
        "broken": {"undecodable"},
        "no bytes": {"undecodable"},
        "no picture": {"undecodable"},
        "link outside": {"outside_root"},
        "link to nothing": {"frame_missing"},
        "folder linked outside": {"outside_root"},
    }
    assert {row["source_id"] for row in rows(output, "samples")} == set(names) - found.keys()
    (broken,) = (
        row
        for row in rows(output, "rejects")
        if row["stage"] == "frames" and row["source_id"] == "broken"
    )
    assert broken["source_path"] == "broken/000023.png"
    assert broken["source_sha256"] == hashlib.sha256(whole[: len(whole) // 2]).hexdigest()
    followed = build(said, frames, tmp_path / "followed", "--follow-links")
    assert {"link outside", "folder linked outside"} <= {
        row["source_id"] for row in rows(followed, "samples")
    }


def test_pictures_of_every_kind_become_upright_colours(tmp_path: Path) -> None:
    folder = tmp_path / "frames" / "a"
    folder.mkdir(parents=True)
    ramp = np.tile(np.arange(64, dtype=np.uint8) * 4, (48, 1))
    colours = np.stack([ramp, ramp[:, ::-1], ramp // 2], axis=-1)
    grey16 = Image.fromarray(ramp.astype(np.uint16) * 257)
    grey16.save(folder / "1.png")
    Image.fromarray(ramp).save(folder / "2.png")
    Image.fromarray(colours).quantize(16).save(folder / "3.png")
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.fromarray(np.rot90(colours)).save(folder / "4.png", exif=turned)
    Image.fromarray(colours[:24, :32]).save(folder / "5.png")
    said = captions(tmp_path / "said.jsonl", (("a", number - 0.5) for number in range(1, 6)))

    argv = arguments(said, folder.parent, tmp_path / "out", "--frames-fps", "1")
    assert main(argv) == 0

    pixels, origins = {}, {}
    for row in rows(tmp_path / "out", "samples"):
        for side in (0, 1):
            origins[row[f"origin_{side}"]["source_path"]] = row[f"origin_{side}"]
            pixels[row[f"origin_{side}"]["source_path"]] = row[f"image_{side}_id"]
    stored = {row["image_id"]: row["image"]["bytes"] for row in rows(tmp_path / "out", "images")}
    shown = {name: _decoded(stored[image_id]) for name, image_id in pixels.items()}
    assert (shown["a/1.png"] == ramp[..., None]).all()
    assert (shown["a/2.png"] == ramp[..., None]).all()
    assert shown["a/3.png"].shape == (48, 64, 3)
    assert (shown["a/4.png"] == colours).all()
    assert {name: origin["rotation_deg"] for name, origin in origins.items()} == {
        f"a/{number}.png": 90 * (number == 4) for number in range(1, 6)
    }
    assert shown["a/5.png"].shape == (24, 32, 3)


def _decoded(data: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(data)))


def test_too_large_a_picture_is_refused_undecoded(frames: Path, tmp_path: Path) -> None:
    Image.new("RGB", (80, 80)).save(frames / "a" / "000023.png")
    said = captions(tmp_path / "said.jsonl", (("a", time_s) for time_s in (0.08, 0.9)))

    output = build(said, frames, tmp_path / "out", "--max-pixels", "2000")

    assert reasons(output, "frames") == {"too_many_pixels": 1}


def test_a_second_run_reads_what_changed_and_no_other_picture(frames: Path, tmp_path: Path) -> None:
    """The dataset is known again while its pictures are the same, and made anew where not."""
    shutil.copytree(frames / "a", frames / "b")
    said = captions(tmp_path / "said.jsonl", ((v, t) for v in ("a", "b") for t in (0.08, 0.9)))
    output = build(said, frames, tmp_path / "out")
    before = finished_work(output, "extract")
    assert len(before) == 2
    (frames / "a" / "000001.png").unlink()  # which no moment means
    assert main(arguments(said, frames, output, "--frames-fps", "25")) == 0
    assert finished_work(output, "extract") == before
    shutil.copy(frames / "a" / "000005.png", frames / "a" / "000023.png")

    assert main(arguments(said, frames, output, "--frames-fps", "25", "--overwrite")) == 0

    after = finished_work(output, "extract")
    assert before.items() <= after.items()
    assert len(after) == 3
    digest = hashlib.sha256((frames / "a" / "000023.png").read_bytes()).hexdigest()
    assert rows(output, "samples")[0]["origin_1"]["source_sha256"] == digest


def graph(workspace: Workspace, frames: Path, output: Path, *more: str) -> Path:
    inputs = ["--objects", str(workspace.object_boxes), "--videos", str(frames)]
    argv = ["build", "eq-ag", *inputs, "--output", str(output), *PAPER, *more]
    assert main(argv) == 0
    assert verify.main([str(output)]) == 0
    return output


def test_action_genome_s_dump_needs_no_rate(demo_workspace: Workspace, tmp_path: Path) -> None:
    """The annotated frames alone, in folders named after the videos; one of them is missing."""
    of_videos = graph(demo_workspace, demo_workspace.videos, tmp_path / "of-videos")
    wanted = {
        (row["source_id"], row[f"origin_{side}"]["frame_index"] + 1)
        for row in rows(of_videos, "samples")
        for side in (0, 1)
    }
    for name in {name for name, _ in wanted}:
        numbers = {number for video, number in wanted if video == name}
        dump(demo_workspace.videos / name, tmp_path / "frames" / name, only=numbers)

    output = graph(demo_workspace, tmp_path / "frames", tmp_path / "of-frames")

    assert rows(output, "images") == rows(of_videos, "images")
    assert ids(output) == ids(of_videos)
    for row in rows(output, "samples"):
        for side in (0, 1):
            origin = row[f"origin_{side}"]
            number = origin["frame_index"] + 1
            assert origin["source_path"] == f"{row['source_id']}/{number:06d}.png"
            assert origin["pts"] == number - 1
            assert (origin["timestamp_s"], origin["requested_timestamp_s"]) == (-1, -1)
            assert origin["time_base"] == ""
    timed = graph(demo_workspace, tmp_path / "frames", tmp_path / "timed", "--frames-fps", "29.97")
    origin = rows(timed, "samples")[0]["origin_1"]
    assert origin["time_base"] == "100/2997"
    assert origin["timestamp_s"] == pytest.approx(origin["frame_index"] / 29.97)

    lost, number = min(wanted)
    (tmp_path / "frames" / lost / f"{number:06d}.png").unlink()
    less = graph(demo_workspace, tmp_path / "frames", tmp_path / "less")
    (row,) = (row for row in rows(less, "rejects") if row["stage"] == "frames")
    assert (row["reason"], row["detail"]) == ("frame_missing", f"no picture {number} in {lost}")


def gebc(workspace: Workspace, videos: Path, output: Path, *more: str) -> list[str]:
    inputs = ["--annotations", str(workspace.gebplus), "--videos", str(videos)]
    return ["build", "eq-gebc", *inputs, "--output", str(output), *PAPER, *more]


def test_kinetics_clips_lie_in_folders_of_classes(
    demo_workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their times count from the start of the clip, so that no second is subtracted."""
    assert main(gebc(demo_workspace, demo_workspace.videos, tmp_path / "flat")) == 0
    names = sorted(json.loads(demo_workspace.gebplus.read_text()))
    videos = tmp_path / "videos"
    for number, name in enumerate(names):
        (file,) = demo_workspace.videos.glob(f"{name}.*")
        folder = videos / ("train/juggling balls" if number % 2 else "abseiling")
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder / f"{name}_{number:06d}_{number + 10:06d}{file.suffix}")

    assert main(gebc(demo_workspace, videos, tmp_path / "out")) == 0

    found = rows(tmp_path / "out", "samples")
    whole = rows(tmp_path / "flat", "samples")
    assert found
    assert rows(tmp_path / "out", "images") == rows(tmp_path / "flat", "images")
    for row, other in zip(found, whole, strict=True):
        path = row["origin_0"].pop("source_path")
        assert path == row["origin_1"].pop("source_path")
        assert path.rpartition("/")[0] in ("abseiling", "train/juggling balls")
        assert path.rpartition("/")[2].startswith(f"{row['source_id']}_0000")
        del other["origin_0"]["source_path"], other["origin_1"]["source_path"]
        assert row == other
    with tarfile.open(tmp_path / "0.tar", "w") as shard:
        shard.add(videos, ".")
    assert main(gebc(demo_workspace, tmp_path / "0.tar", tmp_path / "tar")) == 0
    of_tar = {name: file for name, file in dataset_bytes(tmp_path / "tar").items()}
    for name, content in dataset_bytes(tmp_path / "out").items():
        assert of_tar[name] == content or not name.endswith(".parquet")

    clip = min(path for path in videos.rglob(f"{names[0]}*"))
    shutil.copy(clip, clip.with_name(f"{names[0]}_000050_000060{clip.suffix}"))
    error = refused(gebc(demo_workspace, videos, tmp_path / "two"), capsys)
    assert f"the video {names[0]} has two clips" in error


def test_frames_of_kinetics_clips_lie_in_folders_of_classes(
    demo_workspace: Workspace, tmp_path: Path
) -> None:
    name = "demoGebCat2"  # of a constant rate
    (file,) = demo_workspace.videos.glob(f"{name}.*")
    folder = tmp_path / "frames" / "flying" / f"{name}_000018_000028"
    dump(file, folder, "img_{:05d}.png")
    with av.open(str(file)) as container:
        rate = container.streams.video[0].average_rate
    assert rate is not None
    argv = gebc(
        demo_workspace, tmp_path / "frames", tmp_path / "out", "--frames-fps", str(float(rate))
    )

    assert main(argv) == 0

    assert main(gebc(demo_workspace, demo_workspace.videos, tmp_path / "flat")) == 0
    expected = [row for row in rows(tmp_path / "flat", "samples") if row["source_id"] == name]
    found = rows(tmp_path / "out", "samples")
    assert [row["image_0_id"] for row in found] == [row["image_0_id"] for row in expected]
    assert [row["image_1_id"] for row in found] == [row["image_1_id"] for row in expected]
    assert all(row["origin_0"]["source_path"].startswith("flying/demoGebCat2_0") for row in found)
