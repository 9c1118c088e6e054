"""Videos that are corrupt or missing are rejects with reasons; the others do not suffer."""

import shutil
from dataclasses import replace
from pathlib import Path

from tests.builds import books, dataset_bytes, finished_work, reasons, rows
from tests.faults import runs

VIDEOS = 20
CORRUPT, MISSING = range(0, 1), range(1, 2)


def test_five_percent_corrupt_and_five_percent_missing(tmp_path: Path) -> None:
    found = runs.make_inputs(tmp_path / "in", VIDEOS)
    inputs = runs.Inputs(captions=found.captions, videos=found.videos, rows=50)
    clean, output = tmp_path / "clean", tmp_path / "out"
    assert runs.build(inputs, clean)[0] == 0
    shutil.copytree(inputs.videos, tmp_path / "kept")
    for number in CORRUPT:
        video = inputs.videos / f"{number:02}.mp4"
        video.write_bytes(video.read_bytes()[::-1])
    for number in MISSING:
        (inputs.videos / f"{number:02}.mp4").unlink()

    status, said = runs.build(inputs, output)

    assert status == 0, said
    lost = [f"{number:02}.mp4" for number in (*CORRUPT, *MISSING)]
    assert reasons(output, "frames") == {"video_unreadable": 3, "video_missing": 3}
    assert books(output)["frames"] == (60, 54, 6)
    assert books(output)["pairs"] == (60, 54, 6)
    assert rows(output, "samples") == [
        row for row in rows(clean, "samples") if row["source_id"] not in lost
    ]

    before = finished_work(output, "extract")
    for name in lost:
        shutil.copy2(tmp_path / "kept" / name, inputs.videos / name)
    status, said = runs.build(inputs, output)
    assert status == 2, said
    assert "1 of 20 videos is new: '01.mp4'" in said
    assert "1 of 20 videos has changed or may have changed: '00.mp4'" in said

    status, said = runs.build(replace(inputs, more=("--overwrite",)), output)

    assert status == 0, said
    assert dataset_bytes(output) == dataset_bytes(clean)
    after = finished_work(output, "extract")
    assert before.items() <= after.items()
    assert len(after) - len(before) == len(lost)
