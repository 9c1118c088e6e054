"""Annotations that are hostile, huge or lead elsewhere: one clear error, or rejects."""

import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from eqforge.core.errors import InputError
from eqforge.core.files.checked import load_json
from eqforge.sources.caption_sources import read_captions
from eqforge.sources.captioned_videos import read_youcook2

MEGABYTES = 8
TIMES_ITS_SIZE = 12


def youcook2(segment: str) -> str:
    """A file of one video with one segment, given as JSON."""
    video = '{"subset": "training", "duration": 9, "recipe_type": "1", "annotations": [%s]}'
    return '{"database": {"abc": %s}}' % (video % segment)


def segment(**fields: str) -> str:
    """A segment; each field is given as JSON."""
    known = {"id": "0", "segment": "[1, 2]", "sentence": '"cut the onion"'} | fields
    members = ", ".join(f'"{name}": {value}' for name, value in known.items())
    return f"{{{members}}}"


@pytest.mark.timeout(
    120
)  # time that grows with the square of the keys would be a quarter of an hour
def test_a_key_that_stands_twice_is_found_among_many(tmp_path: Path) -> None:
    keys = [*(f'"{number}": 0' for number in range(300_000)), '"299999": 0']
    (tmp_path / "a.json").write_text(f"{{{', '.join(keys)}}}")

    with pytest.raises(InputError, match="the key '299999' appears twice"):
        load_json(tmp_path / "a.json")


def write_large_youcook2(path: Path, megabytes: float) -> int:
    """Writes a file of that size in pieces; returns how many videos it has."""
    videos = 0
    steps = ", ".join(segment(id=str(number)) for number in range(8))
    with open(path, "w", encoding="utf-8") as stream:
        stream.write('{"database": {')
        while stream.tell() < megabytes * 2**20:
            for _ in range(100):
                stream.write(", " if videos else "")
                stream.write(f'"v{videos:09d}": {{"subset": "training", "duration": 9.5, ')
                stream.write(f'"recipe_type": "1", "annotations": [{steps}]}}')
                videos += 1
        stream.write("}}")
    return videos


def write_large_lines(path: Path, megabytes: float) -> int:
    """Writes captions as JSON lines; returns how many."""
    lines = 0
    with open(path, "w", encoding="utf-8") as stream:
        while stream.tell() < megabytes * 2**20:
            for _ in range(1_000):
                stream.write(json.dumps({"image": f"{lines}.jpg", "caption": "two dogs"}) + "\n")
                lines += 1
    return lines


LARGE: dict[str, tuple[Callable[[Path, float], int], Callable[[Path], Iterable[object]]]] = {
    "youcook2.json": (write_large_youcook2, read_youcook2),
    "captions.jsonl": (write_large_lines, read_captions),
}

_READ = """
import resource, sys, time
from pathlib import Path
from tests.faults.test_hostile_annotations import LARGE
path = Path(sys.argv[1])
before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
print(sum(1 for _ in LARGE[path.name][1](path)))
print(time.process_time() - started)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def measure(path: Path) -> tuple[int, float, float]:
    """Reads a file in a process of its own; returns records, seconds of CPU and megabytes."""
    found = subprocess.run(
        [sys.executable, "-c", _READ, str(path)], capture_output=True, text=True, check=True
    )
    records, seconds, megabytes = found.stdout.split()
    return int(records), float(seconds), float(megabytes)


@pytest.mark.parametrize("name", LARGE)
def test_a_large_file_takes_a_known_multiple_of_its_size(tmp_path: Path, name: str) -> None:
    """The page on reliability has the time and the memory of 500 MB."""
    records = LARGE[name][0](tmp_path / name, MEGABYTES)

    found, _, megabytes = measure(tmp_path / name)

    assert found == records
    assert megabytes < TIMES_ITS_SIZE * MEGABYTES


def calls_per_record(path: Path, megabytes: float) -> float:
    """Writes and reads a file; returns how many calls of functions a record takes."""
    write, read = LARGE[path.name]
    records, calls = write(path, megabytes), itertools.count()
    sys.setprofile(lambda *_: next(calls))
    try:
        assert sum(1 for _ in read(path)) == records
    finally:
        sys.setprofile(None)
    return next(calls) / records


@pytest.mark.parametrize("name", LARGE)
def test_a_record_of_a_larger_file_is_not_more_work(tmp_path: Path, name: str) -> None:
    small, large = (calls_per_record(tmp_path / name, megabytes) for megabytes in (0.1, 0.4))
    assert large < 1.1 * small


def measure_half_a_gigabyte(folder: Path) -> None:
    """Prints what 500 MB take; `python -m tests.faults.test_hostile_annotations FOLDER`."""
    for name, (write, _) in LARGE.items():
        write(folder / name, 500)
        records, seconds, megabytes = measure(folder / name)
        print(f"{name}: {records:,} records, {seconds:.0f} s of CPU, {megabytes:,.0f} MB")
        (folder / name).unlink()


if __name__ == "__main__":
    measure_half_a_gigabyte(Path(sys.argv[1]))
