"""What was refused is listed and drawn with its whole id and the whole reason."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from eqforge.commands import contact_sheet, inspection
from eqforge.generators.demo.workspace import Workspace
from eqforge.pipelines import eq_video
from eqforge.schemas.dataset.reader import open_dataset
from tests.made_datasets import write_dataset

VIDEO = "my holiday/people with caps (cam #2), 100%.mp4"
DARK_S, LATE_S = 3.0, 500.0


@pytest.fixture(scope="module")
def dataset(demo_workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of a video with a long name: one frame too dark, one after the end; a video lacks."""
    folder = tmp_path_factory.mktemp("rejects")
    (folder / "videos/my holiday").mkdir(parents=True)
    shutil.copy(demo_workspace.videos / "demoPeople3.mp4", folder / "videos" / VIDEO)
    moments = [
        {"id": f"at-{time_s:g}", "video": video, "timestamp_s": time_s, "caption": f"{time_s} s"}
        for video, times_s in ((VIDEO, (1.0, DARK_S, 5.0, 7.0, LATE_S)), ("gone.mp4", (8.0, 9.0)))
        for time_s in times_s
    ]
    (folder / "captions.jsonl").write_text("\n".join(map(json.dumps, moments)))
    paths = {"captions": "captions.jsonl", "videos": "videos", "output": "out"}
    options = [word for key, path in paths.items() for word in (f"--{key}", str(folder / path))]
    assert eq_video.main([*options, "--min-luminance", "90"]) == 0
    return folder / "out"


def inspected(dataset: Path, *options: str) -> None:
    assert inspection.main([str(dataset), *options]) == 0


def refused(capsys: pytest.CaptureFixture[str], dataset: Path, *options: str) -> str:
    with pytest.raises(SystemExit) as left:
        inspection.main([str(dataset), *options])
    assert left.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines that are written on the sheets of a test."""
    lines: list[str] = []

    def noting(texts: Sequence[str], width_px: int) -> str:
        lines.extend(texts)
        return wrapped(texts, width_px)

    wrapped = contact_sheet.wrapped
    monkeypatch.setattr(contact_sheet, "wrapped", noting)
    return lines


def in_one(lines: list[str]) -> str:
    return "".join(lines).replace(" ", "")


def test_a_sheet_has_the_whole_id_the_value_and_the_limit(
    dataset: Path, tmp_path: Path, written: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    inspected(dataset, "--rejects", "not_minimal")
    (line, *_) = capsys.readouterr().out.splitlines()

    inspected(dataset, "--rejects", "not_minimal", "--rows", "1", "--sheet", f"{tmp_path}/a.png")

    assert "limit 0.18" in line
    assert in_one([line]) in in_one(written)


def test_a_pair_that_fell_for_a_frame_says_why_the_frame_fell(
    dataset: Path, tmp_path: Path, written: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    inspected(dataset, "--rejects", "frame_rejected", "--rows", "99")
    lines = capsys.readouterr().out.splitlines()

    inspected(
        dataset, "--rejects", "frame_rejected", "--rows", "99", "--sheet", f"{tmp_path}/a.png"
    )

    assert len(lines) == 8  # 3 with the dark frame, 3 with the late one, 1 with both, 1 gone
    assert all(": black_image  luminance_mean" in line for line in lines if "at-3" in line)
    assert sum(": after_last_frame  the last frame ends at" in line for line in lines) == 3
    assert sum(": video_missing  no file of that name" in line for line in lines) == 1
    drawn = in_one(written)
    assert drawn.count("black_image") == drawn.count(",limit90") == 3


def test_a_part_that_one_id_has_names_it(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inspected(dataset, "--id", "at-5-at-7", "--sheet", f"{tmp_path}/one.png")

    assert f"eq-video/{VIDEO}/at-5-at-7" in capsys.readouterr().out
    assert (tmp_path / "one.png").exists()
    inspected(dataset, "--id", "at-1-at-7")
    assert "not_minimal" in capsys.readouterr().out


def test_a_part_of_many_ids_and_of_none_is_one_sentence(
    dataset: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = refused(capsys, dataset, "--id", "gone.mp4")

    assert "--id gone.mp4 matches 3 ids; pass a longer part or a whole id, such as " in many
    assert many.count("eq-video/gone.mp4/") == 3
    assert "has no such sample or reject" in refused(capsys, dataset, "--id", "nowhere")


def test_what_has_no_picture_says_why(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--rejects", "video_missing", "--sheet", str(tmp_path / "a.png")]
    said = refused(capsys, dataset, *asked)

    assert "stored no images for rejects with the reason video_missing" in said
    assert said.endswith("to list the rejects, omit --sheet")

    moved = tmp_path / "published"
    shutil.copytree(dataset, moved, ignore=shutil.ignore_patterns("_work"))
    said = refused(capsys, moved, *asked)
    assert (
        "the images of rejected candidates no longer exist, because the folder _work is missing"
        in said
    )
    assert "no rejects to draw" in refused(capsys, dataset, *asked, "--rows", "0")


def test_the_samples_shown_come_from_all_over_and_sizes_have_units(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = [{"sample_id": f"{number:04}", "text": "A cup."} for number in range(3_000)]
    tables = {"samples": samples, "images": []}
    folder = write_dataset(tmp_path / "d", "training-captions", tables, files=2)
    order = [row["sample_id"] for row in open_dataset(str(folder)).rows("samples")]

    inspected(folder, "--rows", "3")

    out = capsys.readouterr().out
    shown = [name for name in order if f'"sample_id": "{name}"' in out]
    assert shown == [order[0], order[1_000], order[2_000]]
    assert " kB" in out
    assert "0.0" not in out
    inspected(folder, "--rows", "0")
    assert "sample_id" not in capsys.readouterr().out
