"""Where the environments of these tests lie."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A folder for an environment, deleted after the test: all of them together fill a disk."""
    folder = tmp_path / "venv"
    yield folder
    shutil.rmtree(folder)
