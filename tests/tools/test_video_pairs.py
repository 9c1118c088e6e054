"""The table and sheets of pairs of clips, which people look at to choose limits."""

import csv
from pathlib import Path

import pytest
from PIL import Image

from tests import clips
from tools import video_pairs


def table(output: Path) -> list[dict[str, str]]:
    with open(output / "pairs.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_all_pairs_of_all_clips_are_measured_and_drawn(tmp_path: Path) -> None:
    (tmp_path / "clips").mkdir()
    for name in ("a.mp4", "b.mp4", "c.mp4"):
        clips.write_clip(tmp_path / "clips" / name, clips.Clip(size=(96, 64)))
    (tmp_path / "clips/broken.mp4").write_bytes(b"none")
    outputs = list[Path]()
    for order in ("1", "1", "2"):
        outputs.append(tmp_path / f"out{len(outputs)}")
        arguments = [str(tmp_path / "clips"), str(outputs[-1]), "--frames", "4", "--order", order]
        assert video_pairs.main(arguments) == 0
    first, again, shuffled = (table(output) for output in outputs)

    assert first == again == shuffled
    assert [row["number"] for row in first] == [str(n) for n in range(1, 19)]
    assert {row["clip"] for row in first} == {"a.mp4", "b.mp4", "c.mp4"}
    assert {row["half"] for row in first} <= {"choose", "judge"}
    assert all(float(row["first_s"]) < float(row["second_s"]) < 2 for row in first)
    assert all(0 <= float(row["changed_area_fraction"]) <= 1 for row in first)
    assert all(row["registration"] in ("0.0", "1.0", "2.0") for row in first)
    drawn = [Image.open(output / "sheet-000.png").tobytes() for output in outputs]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_folder_without_clips_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert video_pairs.main([str(tmp_path), str(tmp_path / "out")]) == 1
    assert "no clip with two frames" in capsys.readouterr().err


def test_near_frames_are_paired_and_a_table_is_measured_again(tmp_path: Path) -> None:
    (tmp_path / "clips").mkdir()
    clips.write_clip(tmp_path / "clips/a.mp4", clips.Clip(size=(96, 64)))
    arguments = [str(tmp_path / "clips"), str(tmp_path / "near"), "--frames", "1"]
    assert video_pairs.main([*arguments, "--gaps", "0.5", "60"]) == 0
    near = table(tmp_path / "near")
    assert 0 < len(near) <= 2
    for row in near:
        assert float(row["second_s"]) - float(row["first_s"]) == pytest.approx(0.5, abs=0.1)

    listed = ["--pairs", str(tmp_path / "near/pairs.csv")]
    assert video_pairs.main([str(tmp_path / "clips"), str(tmp_path / "again"), *listed]) == 0
    assert table(tmp_path / "again") == near
