"""What an older crash, a power cut or a wrong clock left is found and mended by the next run."""

import os
import shutil
import time
from pathlib import Path

from tests.builds import dataset_bytes, finished_work
from tests.faults import runs
from tests.faults.conftest import Whole

IN_TEN_YEARS_S = 10 * 365 * 86400


def written(output: Path) -> dict[str, int]:
    """When each file of the tables was written."""
    return {path.name: path.stat().st_mtime_ns for path in (output / "data").iterdir()}


def test_files_that_a_crash_left_damaged_are_written_again_and_no_others(
    whole: Whole, tmp_path: Path
) -> None:
    output = Path(shutil.copytree(whole.output, tmp_path / "out"))
    before = written(output)
    shards = [output / "data" / f"samples-{number:05d}-of-00009.parquet" for number in range(6)]
    os.truncate(shards[0], shards[0].stat().st_size // 2)
    os.truncate(shards[1], 0)
    shards[2].write_bytes(bytes(shards[2].stat().st_size))
    shards[3].write_bytes(flipped(shards[3].read_bytes()))
    shards[4].unlink()
    (output / "_work" / "shards" / "samples-00005.json").write_bytes(b'["data/sam')

    status, said = runs.build(whole.inputs, output)

    assert status == 0, said
    assert dataset_bytes(output) == whole.files
    after = written(output)
    assert {name for name in after if after[name] != before[name]} == {s.name for s in shards}


def flipped(data: bytes) -> bytes:
    """The bytes with one bit in their middle turned over."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def test_notes_that_a_power_cut_shortened_are_made_again(whole: Whole, tmp_path: Path) -> None:
    output = Path(shutil.copytree(whole.output, tmp_path / "out"))
    (output / "dataset.json").unlink()
    work = output / "_work"
    for step in ("extract", "measure"):
        os.truncate(min((work / "done" / step).rglob("*.json")), 10)
    os.truncate(min((work / "media").rglob("*.jpg")), 10)

    status, said = runs.build(whole.inputs, output)

    assert status == 0, said
    assert dataset_bytes(output) == whole.files


def test_a_clock_that_is_set_back_repeats_nothing_and_changes_nothing(
    whole: Whole, tmp_path: Path
) -> None:
    """Half the files are there, from ten years ahead, and the clock goes back during the run."""
    output = Path(shutil.copytree(whole.output, tmp_path / "out"))
    (output / "dataset.json").unlink()
    for number in range(5):
        next((output / "data").glob(f"images-0000{number}-*")).unlink()
    ahead_s = time.time() + IN_TEN_YEARS_S
    for path in output.rglob("*"):
        os.utime(path, (ahead_s, ahead_s))
    before, finished = written(output), finished_work(output, "extract")
    fault = runs.Fault(at="data/", nth=2, happen=runs.set_clock_back)

    status, said = runs.build_with(fault, whole.inputs, output)

    assert status == 0, said
    assert dataset_bytes(output) == whole.files
    assert before.items() <= written(output).items()
    assert finished_work(output, "extract") == finished
