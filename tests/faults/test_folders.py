"""Kills leave nothing behind in output folders, and no file of others is deleted."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from eqforge.cli import main
from eqforge.core.files import storage
from eqforge.core.files.owned import LISTING, remove_half_written
from eqforge.core.identity import sha256_hex
from eqforge.transforms.export.note import NOTE
from tests.builds import environment
from tests.exported import files, small

# Kills itself before it renames the n-th temporary file.
KILLED = """
import os, signal, sys
from eqforge import cli
rename, left = os.replace, int(sys.argv.pop(1))
def replace(*names):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(*names)
os.replace = replace
cli.main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small(tmp_path_factory.mktemp("folders") / "d", 7, ("test", "val"))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small(tmp_path_factory.mktemp("other") / "d", 3)


def export(dataset: Path, output: Path) -> list[str]:
    return ["export", str(dataset), "--format", "imagefolder", "--output", str(output)]


def report(dataset: Path, output: Path) -> list[str]:
    return ["report", str(dataset), "--output", str(output)]


def difference(dataset: Path, output: Path) -> list[str]:
    return ["diff", str(dataset), str(dataset), "--report", str(output)]


def tasks(dataset: Path, output: Path) -> list[str]:
    asked = ["--protocol", "true-and-false", "--reviewers", "ada"]
    return ["review", "plan", str(dataset), *asked, "--output", str(output)]


COMMANDS = (export, report, difference, tasks)
Command = Callable[[Path, Path], list[str]]


def run(*arguments: str) -> int:
    try:
        return main(list(arguments))
    except SystemExit as left:
        return int(left.code or 0)


@pytest.mark.parametrize(("command", "nth"), [(export, 1), (export, 7), (report, 2), (report, 12)])
def test_a_killed_writer_leaves_nothing_that_its_rerun_keeps(
    command: Command, nth: int, dataset: Path, tmp_path: Path
) -> None:
    assert run(*command(dataset, tmp_path / "whole")) == 0
    line = [sys.executable, "-c", KILLED, str(nth), *command(dataset, tmp_path / "out")]
    killed = subprocess.run(line, env=environment(), capture_output=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len([*(tmp_path / "out").rglob(".tmp-*")]) >= 1

    assert run(*command(dataset, tmp_path / "out")) == 0

    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_a_killed_report_is_replaced_by_another(dataset: Path, other: Path, tmp_path: Path) -> None:
    assert run(*report(other, tmp_path / "whole")) == 0
    line = [sys.executable, "-c", KILLED, "12", *report(dataset, tmp_path / "out")]
    subprocess.run(line, env=environment(), capture_output=True, timeout=120)

    assert run(*report(other, tmp_path / "out"), "--overwrite") == 0

    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_names_that_look_similar_and_files_being_written_stay(tmp_path: Path) -> None:
    similar = (".tmp-1", ".tmp-" + "g" * 32, "x.tmp-" + "0" * 32, ".tmp-" + "0" * 33)
    left = (".tmp-" + "0" * 32, "a/.tmp-" + "a" * 32 + ".png")
    (tmp_path / "a").mkdir()
    for name in (*similar, *left):
        (tmp_path / name).write_text("x")
    with storage.open_atomic(str(tmp_path / "a" / "b")) as stream:
        remove_half_written(str(tmp_path))
        stream.write(b"whole")
    assert sorted(files(tmp_path)) == sorted((*similar, "a/b"))


@pytest.mark.parametrize("command", COMMANDS)
def test_overwriting_stops_at_files_of_others_before_any_work(
    command: Command,
    dataset: Path,
    other: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "out"
    assert run(*command(dataset, output)) == 0
    mine = ("notes.html", "data/mine.txt", "masks/mine.txt")
    for name in mine:
        (output / name).parent.mkdir(exist_ok=True)
        (output / name).write_text("mine")
    changed = sorted(path for path in files(output) if not path.startswith("eqforge"))[0]
    (output / changed).write_text("changed")
    before = files(output)

    assert run(*command(other, output), "--overwrite") == 2

    said = capsys.readouterr().err
    assert all(name in said for name in (*mine, changed))
    assert files(output) == before
    for name in (*mine, changed):
        (output / name).unlink()
    assert run(*command(other, output), "--overwrite") == 0
    assert run(*command(other, tmp_path / "whole")) == 0
    assert files(output) == files(tmp_path / "whole")


@pytest.mark.parametrize("command", COMMANDS)
def test_links_and_planted_notes_cost_no_file(
    command: Command, dataset: Path, other: Path, tmp_path: Path
) -> None:
    output, outside = tmp_path / "out", tmp_path / "precious"
    assert run(*command(dataset, output)) == 0
    outside.mkdir()
    (outside / "mine.txt").write_text("mine")
    (output / "link").symlink_to(outside)
    if (output / NOTE).exists():
        note = json.loads((output / NOTE).read_text())
        sha256 = sha256_hex(b"mine")
        note["files"].append({"path": "link/mine.txt", "rows": 0, "num_bytes": 4, "sha256": sha256})
        (output / NOTE).write_text(json.dumps(note))
    with (output / LISTING).open("a") as stream:
        stream.write(json.dumps(["../precious/mine.txt", sha256_hex(b"mine")]) + "\n")
    before = files(output)

    assert run(*command(dataset, output)) == 2
    assert run(*command(other, output), "--overwrite") == 2

    assert files(output) == before
    assert (outside / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["README.md", "croissant.json"])
def test_a_card_replaces_only_cards(
    name: str, dataset: Path, other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text("mine")
    assert run("card", str(dataset), "--output", str(tmp_path)) == 2
    assert f"1 unknown or changed file: {name}" in capsys.readouterr().err
    assert files(tmp_path) == {name: b"mine"}
    (tmp_path / name).unlink()
    for each in (dataset, other, other):
        assert run("card", str(each), "--output", str(tmp_path)) == 0


INSIDE = ("data", "data/x", "_work/x", "_next", "dataset.json", "link/x")


@pytest.mark.parametrize(
    ("command", "inside"),
    [
        *((export, inside) for inside in INSIDE),
        *((command, "data/x") for command in COMMANDS[1:]),
        (lambda d, o: ["card", str(d), "--output", str(o)], "data"),
        (lambda d, o: ["metrics", str(d), str(d), "--output", str(o)], "_work/x"),
        (lambda d, o: ["inspect", str(d), "--sheet", str(o)], "data/x"),
        (lambda d, o: ["overlap", str(d), "--datasets", str(d), "--output", str(o)], "link/x"),
        (lambda d, o: ["lint", str(d), "--errata", str(o)], "dataset.json"),
        (lambda d, o: ["review", "import", str(d), "v", "--output", str(d.parent / "o"),
                       "--answers", str(o)], "dataset.json"),
        (lambda d, o: ["combine", str(d), "--output", str(o)], "_next"),
        (lambda d, o: ["plot", "pareto", str(d), "--output", str(o)], "data/x"),
        (lambda d, o: ["score", str(d), "--model", "clip:m", "--output", str(o)], "data"),
    ],
)  # fmt: skip
def test_no_command_writes_into_what_a_dataset_consists_of(
    command: Command, inside: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = small(tmp_path / "d")
    (tmp_path / "d" / "link").symlink_to(tmp_path / "d" / "data")
    before = files(dataset)
    assert run(*command(dataset, dataset / inside)) == 2
    assert "is inside the dataset or the scores in" in capsys.readouterr().err
    assert files(dataset) == before
