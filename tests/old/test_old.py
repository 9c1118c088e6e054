"""Datasets of earlier versions are read by this one, or refused by one clear sentence.

`python -m tests.old.make` makes those of a release; they are never changed afterwards.
"""

import importlib
import json
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest

from eqforge.cli import module_of
from eqforge.schemas.dataset.manifest import REMOVED
from eqforge.schemas.tables.datasets import DATASETS

FOLDER = Path(__file__).parent
ALL = sorted(path.parent for path in FOLDER.glob("*/*/dataset.json"))
OLD = [path for path in ALL if path.name not in REMOVED]


def run(command: str, *arguments: object) -> int:
    try:
        status: int = importlib.import_module(f"eqforge.{module_of(command)}").main(
            [*map(str, arguments)]
        )
    except SystemExit as left:
        return int(left.code or 0)
    return status


def test_there_is_one_of_every_dataset() -> None:
    assert {path.name for path in OLD if path.parent.name == "0.1.0"} <= DATASETS.keys()
    newest = max({path.parent.name for path in OLD}, key=lambda name: [*map(int, name.split("."))])
    assert newest != version("eqforge") or {
        path.name for path in OLD if path.parent.name == newest
    } == set(DATASETS)
    files = (path for old in ALL for path in old.rglob("*") if path.is_file())
    assert sum(path.stat().st_size for path in files) < 1_100_000


@pytest.mark.parametrize("old", OLD, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_it_is_verified_and_shown(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("verify", old) in (0, 3), capsys.readouterr().out  # 3: without an extra
    assert run("inspect", old) == 0
    assert run("inspect", old, "--sheet", tmp_path / "sheet.png") in (0, 2)
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err


@pytest.mark.parametrize("name", sorted(REMOVED))
@pytest.mark.parametrize("command", ["inspect", "verify"])
def test_a_removed_dataset_is_refused_by_one_sentence(
    command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command, FOLDER / "0.1.0" / name) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"eqforge no longer supports the dataset {name}" in line


def test_it_is_linted_and_exported(tmp_path: Path) -> None:
    for old in FOLDER.glob("*/hard-positives"):
        output = tmp_path / old.parent.name
        assert run("lint", old) in (0, 1)
        assert run("export", old, "--format", "vl-checklist", "--output", output) == 0
        assert any(path.is_file() for path in output.rglob("*"))


def test_a_manifest_of_an_unknown_form_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = shutil.copytree(FOLDER / "0.1.0" / "vlue", tmp_path / "vlue")
    manifest = json.loads((old / "dataset.json").read_text())
    for change in ({"tables": None}, {"dataset": 3}):
        (old / "dataset.json").write_text(json.dumps(manifest | change))
        assert run("inspect", old) == 2
        said = capsys.readouterr().err
        assert said.startswith("eqforge: ")
        assert len(said.splitlines()) == 1
