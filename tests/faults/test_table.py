"""The table of faults names tests that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "about" / "reliability.md").read_text()


@pytest.mark.parametrize("named", re.findall(r"`(tests/\S+::\S+)`", TABLE))
def test_every_row_names_a_test(named: str) -> None:
    file, _, function = named.partition("::")
    assert f"def {function}(" in (ROOT / file).read_text()


def test_every_test_of_a_fault_has_a_row() -> None:
    files = set(Path(__file__).parent.glob("test_*.py")) - {Path(__file__)}
    for file in files:
        for function in re.findall(r"^def (test_\w+)\(", file.read_text(), re.MULTILINE):
            assert f"`tests/faults/{file.name}::{function}`" in TABLE
