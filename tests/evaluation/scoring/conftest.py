"""Models and a dataset that several tests score."""

from pathlib import Path

import pytest

from tests.made_datasets import pair_tables, write_pairs
from tests.tiny_models import save_blip, save_clip


@pytest.fixture(scope="session")
def clip_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers")
    return save_clip(tmp_path_factory.mktemp("scoring") / "clip")


@pytest.fixture(scope="session")
def blip_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers")
    return save_blip(tmp_path_factory.mktemp("scoring") / "blip", spread=0.3)


@pytest.fixture(scope="session")
def pairs_dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """9 videos of 4 frames: 54 samples, 36 images."""
    return write_pairs(tmp_path_factory.mktemp("scoring") / "pairs", pair_tables(9))
