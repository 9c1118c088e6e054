"""Fixtures shared by the tests."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data; tests that need it are skipped where none is named."""
    folder = os.environ.get("EQFORGE_TEST_DATA")
    if not folder:
        pytest.skip("EQFORGE_TEST_DATA does not name a folder of real data")
    return Path(folder)
