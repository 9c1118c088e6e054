"""Models that several tests ask."""

from pathlib import Path

import pytest

from tests.evaluation.conversations.made import save_llava
from tests.made_datasets import pair_tables, write_pairs


@pytest.fixture(scope="session")
def biased_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that says "1;2" to whatever it is asked."""
    return save_llava(tmp_path_factory.mktemp("chat") / "biased", says="1;2")


@pytest.fixture(scope="session")
def asked_dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2 videos of 3 frames: 6 pairs."""
    return write_pairs(tmp_path_factory.mktemp("chat") / "pairs", pair_tables(2, 3))
