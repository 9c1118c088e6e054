"""The table of faults names tests that are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "about" / "reliability.md").read_text()


def test_every_row_names_a_test() -> None:
    named = re.findall(r"`(tests/\S+)::(\S+)`", TABLE)
    missing = [each for each in named if f"def {each[1]}(" not in (ROOT / each[0]).read_text()]
    assert named
    assert missing == []


def test_every_test_of_a_fault_has_a_row() -> None:
    files = set(Path(__file__).parent.glob("test_*.py")) - {Path(__file__)}
    for file in files:
        for function in re.findall(r"^def (test_\w+)\(", file.read_text(), re.MULTILINE):
            assert f"`tests/faults/{file.name}::{function}`" in TABLE
