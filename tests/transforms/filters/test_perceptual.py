"""The perceptual distance of two pictures, on tiny models of random weights."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from eqforge.core.errors import InputError
from eqforge.transforms.filters.perceptual import (
    Perceptual,
    PerceptualSettings,
    prepare_perceptual,
    refuse_perceptual,
)
from tests.optional import optional
from tests.tiny_models import IMAGE_PX, save_blip, save_clip, save_dinov2

optional("transformers")

Pixels = NDArray[np.uint8]


@pytest.fixture(scope="module")
def dinov2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_dinov2(tmp_path_factory.mktemp("model") / "dinov2")


@pytest.fixture(scope="module")
def model(dinov2: Path) -> Perceptual:
    return prepare_perceptual(PerceptualSettings(perceptual=f"dinov2:{dinov2}"))


def noise(seed: int, height: int = 60, width: int = 90) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def distance(model: Perceptual, *pixels: Pixels) -> float:
    value = model.score(pixels).value
    assert value is not None
    return value


def by_hand(folder: Path, pixels: Pixels) -> NDArray[np.float64]:
    """The class token of the picture as a square, by transformers' own means."""
    import torch
    from transformers import Dinov2Model

    image = Image.fromarray(pixels).resize((IMAGE_PX, IMAGE_PX), Image.Resampling.BICUBIC)
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    values = ((np.asarray(image) / 255 - mean) / std).transpose(2, 0, 1)[None]
    with torch.no_grad():
        found = Dinov2Model.from_pretrained(folder)(torch.tensor(values, dtype=torch.float32))
    return found.last_hidden_state[0, 0].double().numpy()


def test_it_is_one_minus_the_cosine_of_the_class_tokens(model: Perceptual, dinov2: Path) -> None:
    first, second = noise(1), noise(2)
    tokens = [by_hand(dinov2, each) for each in (first, second)]
    lengths = [np.linalg.norm(each) for each in tokens]
    expected = 1 - tokens[0] @ tokens[1] / (lengths[0] * lengths[1])

    assert expected > 0.01
    assert distance(model, first, second) == pytest.approx(expected, abs=2e-5)


def test_equal_pictures_have_none_and_the_order_does_not_matter(model: Perceptual) -> None:
    first, second = noise(1), noise(2)
    assert distance(model, first, first) == 0
    assert distance(model, first, second) == distance(model, second, first)


def test_what_changes_at_the_edge_counts(model: Perceptual) -> None:
    """DINOv2's own preparation would crop it."""
    first = noise(1, 64, 128)
    second = first.copy()
    second[:, :12] = 255
    assert distance(model, first, second) > 1e-4


def test_the_score_names_its_model(model: Perceptual) -> None:
    score = model.score((noise(1), noise(2)))
    assert (score.name, score.scorer) == ("perceptual_distance", "dinov2")
    assert score.version.startswith("sha256:")
    assert json.loads(score.settings)["model"] == "dinov2"


def test_a_dual_encoder_compares_pictures_too(tmp_path: Path) -> None:
    clip = save_clip(tmp_path / "clip")
    model = prepare_perceptual(PerceptualSettings(perceptual=f"clip:{clip}"))
    assert distance(model, noise(1), noise(1)) == pytest.approx(0, abs=1e-6)
    assert distance(model, noise(1), noise(2)) > 0


def test_beyond_the_limit_a_pair_is_refused(model: Perceptual) -> None:
    score = model.score((noise(1), noise(2)))
    assert score.value is not None
    tight, wide = (
        replace(model.settings, max_perceptual=score.value + step) for step in (-1e-6, 0.0)
    )
    assert refuse_perceptual([score], model.settings) is None
    assert refuse_perceptual([score], wide) is None
    refused = refuse_perceptual([score], tight)
    assert refused is not None
    assert (refused.reason, refused.value) == ("looks_too_different", score.value)


def test_what_cannot_measure_is_said_before_any_work(tmp_path: Path) -> None:
    for settings, message in (
        ({"max_perceptual": 0.5}, r"--max-perceptual 0\.5: also pass a model"),
        ({"perceptual": "dinov2:x", "max_perceptual": 3.0}, r"--max-perceptual 3\.0: expected 0"),
        (
            {"perceptual": "dino:x"},
            "expected KIND:SOURCE, where KIND is one of dinov2, .*did you mean 'dinov2'",
        ),
        ({"perceptual": "blip-itm:x"}, "expected KIND:SOURCE, where KIND is one of dinov2"),
        ({"perceptual": "clip:x,centre=1"}, "unknown option 'centre'; clip has"),
    ):
        with pytest.raises(InputError, match=message):
            PerceptualSettings(**settings)
    for folder in (tmp_path, save_blip(tmp_path / "blip")):
        with pytest.raises(InputError, match=str(folder)):
            prepare_perceptual(PerceptualSettings(perceptual=f"dinov2:{folder}"))
