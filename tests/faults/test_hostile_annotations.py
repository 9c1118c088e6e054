"""Annotations that are hostile, huge or lead elsewhere: one clear error, or rejects."""

import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from eqforge.cli import main
from eqforge.core.errors import InputError
from eqforge.core.files.checked import load_json
from eqforge.sources.caption_sources import read_captions
from eqforge.sources.captioned_videos import read_youcook2
from tests.builds import books, reasons, rows
from tests.faults import runs

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


DEFECTS = {
    "a key twice": (youcook2('{"id": 0, "id": 1}'), "the key 'id' appears twice"),
    "NaN": (youcook2(segment(segment="[NaN, 2]")), "NaN is not a JSON number"),
    "Infinity": (youcook2(segment(segment="[1, -Infinity]")), "-Infinity is not a JSON number"),
    "a number beyond all floats": (youcook2(segment(segment="[1, 1e999]")), "a finite number"),
    "a whole number beyond": (youcook2(segment(segment=f"[1, 1{'0' * 400}]")), "a finite number"),
    "ten thousand digits": (youcook2(segment(id="1" * 10_000)), "not valid JSON"),
    "text for a number": (
        youcook2(segment(segment='["1", 2]')),
        "expected a number, found a text '1'",
    ),
    "a flag for a number": (youcook2(segment(id="true")), "expected a whole number, found true"),
    "null for text": (youcook2(segment(sentence="null")), "expected a string, found null"),
    "a list for an object": ("[]", "the whole file: expected an object, found an array"),
    "half a surrogate pair": (youcook2(segment(sentence='"a \\ud800 b"')), "valid Unicode text"),
    "half a pair in a name": ('{"database": {"\\ud800": {}}}', "expected a printable string"),
    "an escape sequence": ('{"database": {"\\u001b[2J": {}}}', "expected a printable string"),
    "lists in lists": ("[" * 100_000 + "]" * 100_000, "not valid JSON"),
    "lists not so deep": (youcook2(segment(sentence="[" * 800 + "]" * 800)), "expected a string"),
    "no UTF-8": ("\udcff", "not UTF-8 text"),
    "nothing": ("", "is empty"),
}


@pytest.mark.parametrize(("text", "message"), DEFECTS.values(), ids=DEFECTS)
def test_a_defect_of_an_annotation_file_is_one_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    """Before any work: nothing is written, and the status is 2."""
    file = tmp_path / "youcookii.json"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    argv = ["plan", "eq-youcook2", "--annotations", str(file), "--videos", str(tmp_path)]

    with pytest.raises(SystemExit) as ended:
        main([*argv, "--output", str(tmp_path / "out")])

    said = capsys.readouterr().err.strip()
    assert ended.value.code == 2
    assert message in said
    assert "youcookii.json" in said
    assert said.isprintable()
    assert len(said) < 500
    assert not (tmp_path / "out").exists()


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


def outside(folder: Path) -> Iterator[tuple[str, str]]:
    """Yields names that lead out of the videos folder, and the reason of their reject."""
    secret = folder / "secret.mp4"
    videos = folder / "in" / "videos"
    secret.write_bytes((videos / "00.mp4").read_bytes())
    (videos / "link.mp4").symlink_to(secret)
    (videos / "folder").symlink_to(folder)
    (videos / "circle.mp4").symlink_to(videos / "circle.mp4")
    yield "../../secret.mp4", "outside_root"
    yield "x/../../../secret.mp4", "outside_root"
    yield str(secret), "outside_root"
    yield "link.mp4", "outside_root"
    yield "folder/secret.mp4", "outside_root"
    yield "circle.mp4", "outside_root"
    yield "/dev/zero", "outside_root"
    yield "..", "outside_root"
    yield "a" * 290, "video_missing"


def test_an_annotation_that_names_a_file_outside_the_root_reads_none(tmp_path: Path) -> None:
    inputs = runs.make_inputs(tmp_path / "in", videos=1)
    found = list(outside(tmp_path))
    lines = [
        {"video": name, "timestamp_s": time_s, "caption": f"It shows {time_s}."}
        for name, _ in found
        for time_s in (0.1, 0.5)
    ]
    with open(inputs.captions, "a", encoding="utf-8") as stream:
        stream.writelines(json.dumps(line) + "\n" for line in lines)
    named = runs.Inputs(captions=inputs.captions, videos=inputs.videos, rows=50)

    status, said = runs.build(named, tmp_path / "out")

    assert status == 0, said
    assert reasons(tmp_path / "out", "frames") == {"outside_root": 16, "video_missing": 2}
    assert books(tmp_path / "out")["frames"] == (21, 3, 18)
    assert {row["source_id"] for row in rows(tmp_path / "out", "samples")} == {"00.mp4"}
    refused = {
        (row["source_id"], row["reason"])
        for row in rows(tmp_path / "out", "rejects")
        if row["stage"] == "frames"
    }
    assert refused == set(found)


def measure_half_a_gigabyte(folder: Path) -> None:
    """Prints what 500 MB take; `python -m tests.faults.test_hostile_annotations FOLDER`."""
    for name, (write, _) in LARGE.items():
        write(folder / name, 500)
        records, seconds, megabytes = measure(folder / name)
        print(f"{name}: {records:,} records, {seconds:.0f} s of CPU, {megabytes:,.0f} MB")
        (folder / name).unlink()


if __name__ == "__main__":
    measure_half_a_gigabyte(Path(sys.argv[1]))
