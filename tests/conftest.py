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
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's workspace of clips and annotations, made once: it takes seconds."""
    from eqforge.generators.demo.workspace import make_workspace

    return make_workspace(tmp_path_factory.mktemp("demo") / "workspace").folder


@pytest.fixture(scope="session")
def demo_workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The demo's clips and annotations, made once; tests must not change them."""
    return make_workspace(tmp_path_factory.mktemp("demo"))
