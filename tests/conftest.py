"""Fixtures shared by the tests."""

import os
from pathlib import Path

import pytest

from eqforge.generators.demo.workspace import Workspace, make_workspace


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data; tests that need it are skipped where none is named."""
    folder = os.environ.get("EQFORGE_TEST_DATA")
    if not folder:
        pytest.skip("EQFORGE_TEST_DATA does not name a folder of real data")
    return Path(folder)


@pytest.fixture(scope="session")
def demo_output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `eqforge demo` leaves, made once; tests must not change it.

    EQFORGE_DEMO names a folder where it lies already.
    """
    from eqforge.commands import demo

    if made := os.environ.get("EQFORGE_DEMO"):
        return Path(made)
    folder = tmp_path_factory.mktemp("demo") / "demo"
    assert demo.main(["--output", str(folder)]) == 0
    return folder


@pytest.fixture(scope="session")
def demo_workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The demo's clips and annotations, made once; tests must not change them."""
    return make_workspace(tmp_path_factory.mktemp("demo"))
