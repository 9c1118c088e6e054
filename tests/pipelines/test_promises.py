"""What every dataset promises: the same bytes however it was made, and nothing lost.

The dataset is Eq-Video's of two clips with eight moments, the smallest that has every part; it is
written as many small files, so that a run can be killed while it writes.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from eqforge.generators.demo.workspace import Workspace
from eqforge.pipelines import eq_video
from eqforge.transforms.filters import quality
from eqforge.transforms.video.frames.extract import FrameExtractor
from tests.builds import (
    books,
    dataset_bytes,
    environment,
    finished_work,
    ids,
    processes,
    rejected,
    rows,
    start,
    wait_for,
)

SETTINGS = ["--mode", "paper", "--face-policy", "off"]
SMALL_FILES = ["--samples-per-file", "1", "--images-per-file", "1"]


def inputs(workspace: Workspace) -> list[str]:
    return ["--captions", str(workspace.captions), "--videos", str(workspace.videos), *SETTINGS]


def build(workspace: Workspace, output: Path, *arguments: str) -> Path:
    command = [*inputs(workspace), *SMALL_FILES, "--output", str(output), *arguments]
    assert eq_video.main(command) == 0
    return output


def leave(workspace: Workspace, output: Path, *arguments: str) -> object:
    with pytest.raises(SystemExit) as left:
        build(workspace, output, *arguments)
    return left.value.code


@pytest.fixture(scope="module")
def reference(demo_workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(demo_workspace, tmp_path_factory.mktemp("promises") / "reference")


@pytest.fixture(scope="module")
def expected(reference: Path) -> dict[str, bytes]:
    found = dataset_bytes(reference)
    # A file a pair and a frame, the rejects; the manifest, two descriptions and their digests.
    assert len(found) == 19 + 12 + 1 + 4
    return found


# --- the same bytes


def test_any_number_of_workers_gives_the_same_bytes(
    demo_workspace: Workspace, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    assert dataset_bytes(build(demo_workspace, tmp_path, "--workers", "2")) == expected


def test_another_hash_seed_folder_and_copy_of_the_inputs_give_the_same_bytes(
    demo_workspace: Workspace, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    """Run as a module, from another working directory, with the inputs named relative to it."""
    shutil.copytree(demo_workspace.folder, tmp_path / "elsewhere")
    os.utime(tmp_path / "elsewhere" / "videos" / "own" / "tour.mkv", (1, 1))
    named = ["--captions", "elsewhere/captions.jsonl", "--videos", "./elsewhere/videos/"]
    command = [*named, *SETTINGS, *SMALL_FILES, "--output", "out/deep/er"]

    subprocess.run(
        [sys.executable, "-m", "eqforge", "build", "eq-video", *command],
        cwd=tmp_path, env=environment(PYTHONHASHSEED="4711"), check=True, capture_output=True,
    )  # fmt: skip

    assert dataset_bytes(tmp_path / "out" / "deep" / "er") == expected


def test_a_second_run_opens_no_video_and_measures_nothing_again(
    demo_workspace: Workspace,
    reference: Path,
    expected: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("finished work is repeated")

    monkeypatch.setattr(FrameExtractor, "extract", refuse)
    monkeypatch.setattr(quality, "score_quality", refuse)
    monkeypatch.setattr("eqforge.transforms.filters.minimality.measure_pair", refuse)
    written = {path: path.stat().st_mtime_ns for path in (reference / "data").iterdir()}

    build(demo_workspace, reference)

    assert dataset_bytes(reference) == expected
    assert {path: path.stat().st_mtime_ns for path in (reference / "data").iterdir()} == written


# --- one record again, and parts


def test_one_sample_alone_is_the_same_as_in_the_whole(
    demo_workspace: Workspace, reference: Path, tmp_path: Path
) -> None:
    name = "eq-video/own/tour.mkv/own-001-own-003"
    whole = {row["sample_id"]: row for row in rows(reference, "samples")}
    images = {row["image_id"]: row for row in rows(reference, "images")}

    build(demo_workspace, tmp_path / "out", "--only", name)

    (row,) = rows(tmp_path / "out", "samples")
    assert row == whole[name]
    found = {image["image_id"]: image for image in rows(tmp_path / "out", "images")}
    assert set(found) == {row["image_0_id"], row["image_1_id"]}
    assert all(images[image_id] == image for image_id, image in found.items())


def test_a_limit_and_a_share_of_the_videos_give_subsets(
    demo_workspace: Workspace, reference: Path, tmp_path: Path
) -> None:
    """Four pairs of the first video; the hashes of the two lie at 54% and 71%."""
    whole = {row["sample_id"]: row for row in rows(reference, "samples")}
    for selection, number in ((["--limit", "4"], 4), (["--sample", "60%"], 3)):
        output = build(demo_workspace, tmp_path / selection[0][2:], *selection)
        found = rows(output, "samples")
        assert len(found) == number
        assert all(whole[row["sample_id"]] == row for row in found)
        assert len(rows(output, "images")) == {4: 5, 3: 3}[number]


# --- killed and started again


def test_no_process_outlives_a_killed_parent(demo_workspace: Workspace, tmp_path: Path) -> None:
    """As when the system kills the run for its memory: workers and decoders end by themselves."""
    arguments = [*inputs(demo_workspace), "--output", tmp_path / "out", "--workers", "2"]
    with start("build", "eq-video", *arguments) as run:
        wait_for(lambda: bool(finished_work(tmp_path / "out", "extract")))
        run.kill()
    wait_for(lambda: not list(processes(run.pid)))


# --- failures of single records


def test_a_step_that_fails_on_one_record_gives_one_reject(
    demo_workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_on_the_first_image(monkeypatch)

    output = build(demo_workspace, tmp_path, "--max-error-rate", "0.2")

    (name,) = rejected(output, "error:ZeroDivisionError")
    (reject,) = [row for row in rows(output, "rejects") if row["candidate_id"] == name]
    assert (reject["stage"], reject["detail"]) == ("frames", "no score at 0x")
    assert books(output)["frames"] == (12, 11, 1)
    assert not any(name in (row["origin_0"]["frame_id"], row["origin_1"]["frame_id"])
                   for row in rows(output, "samples"))  # fmt: skip
    assert set(rejected(output, "frame_rejected")) == set(all_pairs()) - set(ids(output))


def test_too_many_failures_end_the_run_and_are_tried_again_in_the_next(
    demo_workspace: Workspace,
    tmp_path: Path,
    expected: dict[str, bytes],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        fail_on_the_first_image(monkeypatch)
        assert leave(demo_workspace, tmp_path) == 1
    err = capsys.readouterr().err
    assert "'frames' failed for 1 of 12 candidates" in err
    assert "--max-error-rate 0.01" in err
    assert "Traceback" not in err
    assert not (tmp_path / "dataset.json").exists()
    assert len(rejected(tmp_path, "error:ZeroDivisionError")) == 1  # the message points to them

    assert dataset_bytes(build(demo_workspace, tmp_path)) == expected


def fail_on_the_first_image(monkeypatch: pytest.MonkeyPatch) -> None:
    score, failures = quality.score_quality, iter([ZeroDivisionError(f"no score at {id(1):#x}")])

    def fail_once(pixels: Any) -> Any:
        for error in failures:
            raise error
        return score(pixels)

    monkeypatch.setattr(quality, "score_quality", fail_once)


def all_pairs() -> list[str]:
    moments = {
        "own/tour.mkv": range(5),
        "demoCoffee1.mp4": range(5, 8),
        "own/desk.mp4": range(8, 12),
    }
    return [
        f"eq-video/{video}/own-{i:03d}-own-{j:03d}"
        for video, numbers in moments.items()
        for i in numbers
        for j in numbers
        if i < j
    ]


def test_an_image_damaged_in_the_store_is_not_written_into_a_dataset(
    demo_workspace: Workspace, reference: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(reference, tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / "data")
    stored = next((tmp_path / "out" / "_work" / "media").rglob("*.jpg"))
    stored.write_bytes(stored.read_bytes()[:-1] + b"\0")

    assert leave(demo_workspace, tmp_path / "out") == 1

    assert f"{stored.name}: the file has changed since it was stored" in capsys.readouterr().err


# --- how it runs


@pytest.mark.parametrize("name", ["direct", "FnApiRunner"])
def test_the_direct_runner_is_the_local_engine_and_downloads_nothing(
    demo_workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from apache_beam.runners.portability import prism_runner

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("another engine is started")

    monkeypatch.setattr(prism_runner.PrismRunner, "run_pipeline", refuse)
    monkeypatch.setattr(prism_runner.PrismJobServer, "path_to_binary", refuse)
    monkeypatch.setattr("socket.socket.connect", refuse)

    output = build(demo_workspace, tmp_path, "--limit", "1", "--", "--runner", name)

    assert len(ids(output)) == 1


def test_the_build_leaves_no_thread_and_no_scratch_folder(
    demo_workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    before = set(threading.enumerate())

    build(demo_workspace, tmp_path / "out", "--limit", "1")

    assert list((tmp_path / "tmp").iterdir()) == []
    assert not [t for t in set(threading.enumerate()) - before if t.name.startswith("eqforge")]
    assert json.loads((tmp_path / "out" / "dataset.json").read_text())["dataset"] == "eq-video"
