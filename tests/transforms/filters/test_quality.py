"""Luminance, contrast and sharpness, and the images they speak against."""

from pathlib import Path

import av
import numpy as np
import pytest
import skimage.data
from PIL import Image, ImageFilter

from eqforge.transforms.filters.quality import (
    CONTRAST,
    LUMINANCE,
    QUALITY,
    SHARPNESS,
    QualitySettings,
    decide_quality,
    score_quality,
)
from tests.recoloured import COLOURS

PHOTOGRAPHS = ("astronaut", "chelsea", "coffee", "rocket")


def values(pixels: np.ndarray) -> dict[str, float | None]:
    return {score.name: score.value for score in score_quality(pixels)}


def reason(pixels: np.ndarray, settings: QualitySettings | None = None) -> str | None:
    rejection = decide_quality(score_quality(pixels), settings or QualitySettings())
    assert rejection is None or rejection.reason in QUALITY.reasons
    return rejection.reason if rejection else None


def photograph(name: str) -> np.ndarray:
    return getattr(skimage.data, name)()


def test_scores_of_a_small_image_equal_the_definitions() -> None:
    grey = np.random.default_rng(3).integers(0, 256, (30, 40)).astype(np.uint8)
    padded = np.pad(grey.astype(float), 1, mode="symmetric")
    laplacian = (
        padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:] - 4.0 * grey
    )
    found = values(np.stack([grey] * 3, axis=-1))
    assert found[LUMINANCE] == pytest.approx(grey.mean())
    assert found[CONTRAST] == pytest.approx(grey.std())
    assert found[SHARPNESS] == pytest.approx(laplacian.var())


def test_colours_of_equal_brightness_have_contrast_and_edges() -> None:
    """In luma, red and blue stripes are one grey."""
    stripes = np.full((90, 120, 3), COLOURS["red"], np.uint8)
    stripes[:, ::2] = COLOURS["blue"]
    assert reason(stripes) is None
    assert values(stripes)[CONTRAST] == pytest.approx((245 - 18) / 2)


@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_photographs_pass(name: str) -> None:
    assert reason(photograph(name)) is None


@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_a_photograph_scores_the_same_at_three_times_its_size(name: str) -> None:
    image = Image.fromarray(photograph(name))
    large = image.resize((3 * image.width, 3 * image.height), Image.Resampling.LANCZOS)
    once, thrice = values(np.asarray(image)), values(np.asarray(large))
    assert thrice[LUMINANCE] == pytest.approx(once[LUMINANCE], rel=0.01)
    assert thrice[CONTRAST] == pytest.approx(once[CONTRAST], rel=0.02)
    assert thrice[SHARPNESS] == pytest.approx(once[SHARPNESS], rel=0.15)


@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_a_photograph_is_refused_once_it_is_blurred(name: str) -> None:
    image = Image.fromarray(photograph(name))
    blurred = image.filter(ImageFilter.GaussianBlur(max(image.size) / 64))
    assert reason(np.asarray(blurred)) == "blurred_image"


@pytest.mark.parametrize(
    ("grey", "expected"),
    [(0, "black_image"), (5, "black_image"), (7, "constant_image"), (255, "constant_image")],
)
def test_one_grey_is_black_or_constant(grey: int, expected: str) -> None:
    assert reason(np.full((90, 120, 3), grey, np.uint8)) == expected


def test_an_image_of_one_pixel_is_scored() -> None:
    found = values(np.full((1, 1, 3), 200, np.uint8))
    assert found == {LUMINANCE: 200.0, CONTRAST: 0.0, SHARPNESS: 0.0}


def test_each_check_can_be_switched_off() -> None:
    black = np.zeros((90, 120, 3), np.uint8)
    assert reason(black, QualitySettings(min_luminance=None)) == "constant_image"
    no_contrast = QualitySettings(min_luminance=None, min_contrast=None)
    assert reason(black, no_contrast) == "blurred_image"
    off = QualitySettings(min_luminance=None, min_contrast=None, min_sharpness=None)
    assert reason(black, off) is None


def test_a_threshold_of_zero_is_a_threshold_that_every_image_reaches() -> None:
    zero = QualitySettings(min_luminance=0.0, min_contrast=0.0, min_sharpness=0.0)
    assert reason(np.zeros((90, 120, 3), np.uint8), zero) is None


def test_a_rejection_names_the_score_and_both_numbers() -> None:
    rejection = decide_quality(score_quality(np.full((9, 9, 3), 2, np.uint8)), QualitySettings())
    assert rejection is not None
    assert (rejection.value, rejection.threshold, rejection.detail) == (2.0, 6.0, LUMINANCE)


def test_every_real_photograph_passes(data_folder: Path) -> None:
    files = sorted((data_folder / "photos").rglob("*.jpg"))
    assert len(files) > 80
    for file in files:
        with Image.open(file) as image:
            assert reason(np.asarray(image.convert("RGB"))) is None, file.name


def test_the_black_frames_of_a_real_clip_are_refused_and_a_night_scene_is_not(
    data_folder: Path,
) -> None:
    assert set(reasons(data_folder / "videos/moviepy/no_duration.webm")) == {"black_image"}
    assert set(reasons(data_folder / "videos/torchcodec/nasa_13013.mp4")) == {None}


def reasons(file: Path) -> list[str | None]:
    with av.open(str(file)) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    return [reason(frame) for frame in frames[::30]]
