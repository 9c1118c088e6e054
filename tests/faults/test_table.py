"""The tables of faults name tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "about" / "reliability.md").read_text()


def test_every_named_test_exists() -> None:
    named = set(re.findall(r"`(tests/\S+\.py)`", PAGE))
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
