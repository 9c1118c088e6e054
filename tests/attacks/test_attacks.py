"""A few of the attacks in every run of the tests; `python -m tests.attacks` makes thousands."""

import json
import random
import shutil
from pathlib import Path

import pytest

from tests.attacks import attacks
from tests.attacks.harness import attempt

OLD = Path(__file__).parents[1] / "old" / "0.1.0"


@pytest.mark.parametrize("name", ["vlue", "eq-gebc"])
def test_no_manifest_that_lies_is_sound(tmp_path: Path, name: str) -> None:
    good = json.loads((OLD / name / "dataset.json").read_text())
    for number in range(8):
        folder = Path(shutil.copytree(OLD / name, tmp_path / str(number)))
        lie, _ = attacks.lying(
            json.loads(json.dumps(good)), folder, random.Random(f"{name} {number}")
        )
        (folder / "dataset.json").write_bytes(lie)

        result = attempt(["verify", str(folder)])

        assert result.status != 0, result.printed
        assert not result.findings


@pytest.mark.parametrize("command", ["verify", "lint", "audit", "plot drops", "pareto"])
def test_what_is_no_file_is_refused_in_one_sentence(tmp_path: Path, command: str) -> None:
    more = ["--output", str(tmp_path / "p.svg")] if command.startswith("plot") else []
    for kind, path in attacks.no_files(tmp_path / "k", OLD / "vlue" / "dataset.json"):
        result = attempt([*command.split(), str(path), *more])

        assert (result.status, result.findings) == (2, []), (kind, result.said)


def test_lines_of_json_that_nest_deep_are_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text('{"a":' * 5_000 + "\n{}\n")
    for name in ("own-foils", "valse"):
        result = attempt(["plan", name, str(tmp_path), "--output", str(tmp_path / "out")])

        assert (result.status, result.findings) == (2, []), result.said
