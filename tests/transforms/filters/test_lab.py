"""CIE L*a*b* by tables of integers."""

import hashlib

import numpy as np
import pytest
from skimage.color import rgb2lab

from eqforge.transforms.filters.lab import colours, lightness


def cube(step: int) -> np.ndarray:
    """Every `step`-th value of each channel with every one of the others, [n, n, n, 3]."""
    values = np.arange(0, 256, step, dtype=np.uint8)
    return np.stack(np.meshgrid(values, values, values, indexing="ij"), axis=-1)


def test_lab_is_scikit_images_but_for_rounding() -> None:
    pixels = cube(15)
    expected = rgb2lab(pixels)
    # Half a step, and what 16 bits of linear light leave open in the deepest shade.
    np.testing.assert_allclose(lightness(pixels) * (100 / 255), expected[..., 0], atol=0.23)
    for found, axis in zip(colours(pixels), (1, 2), strict=True):
        np.testing.assert_allclose(found.astype(float) - 128, expected[..., axis], atol=0.7)


def test_grey_has_no_colour_and_reaches_both_ends() -> None:
    grey = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
    assert {int(value) for plane in colours(grey) for value in plane} == {128}
    found = lightness(grey).astype(int)
    assert (found[0], found[-1]) == (0, 255)
    assert (np.diff(found) >= 0).all()


@pytest.mark.parametrize(
    ("plane", "digest"),
    [
        (0, "febca48fd598f5844e38e01149e28aa49ac096c14320482840225497a09d725d"),
        (1, "9992d603a630bc1f8e2dfedd119c41f8f5d1e900e029ef7feb49d59fc6859ca9"),
        (2, "af21d681c1eeaa1336943dfd3b939515b474cefd7f4b9959b8cbc64e25f1d06f"),
    ],
)
def test_the_bytes_are_the_same_on_every_processor(plane: int, digest: str) -> None:
    planes = (lightness(cube(5)), *colours(cube(5)))
    assert hashlib.sha256(planes[plane].tobytes()).hexdigest() == digest
