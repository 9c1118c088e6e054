"""The luminance that quality and minimality share."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from eqforge.transforms.filters.image_filter import check_pixels, scale_to


@pytest.mark.parametrize(
    "pixels",
    [
        np.zeros((4, 4), np.uint8),
        np.zeros((4, 4, 4), np.uint8),
        np.zeros((4, 4, 3), np.float32),
        np.zeros((0, 4, 3), np.uint8),
        np.zeros((3, 4, 4, 3), np.uint8),
    ],
)
def test_anything_but_rgb_pixels_is_refused_with_what_was_found(pixels: np.ndarray) -> None:
    with pytest.raises(ValueError, match=str(pixels.dtype)):
        check_pixels(pixels)


@given(width=st.integers(1, 900), height=st.integers(1, 900), least=st.integers(1, 11))
def test_scaling_sets_the_long_side_and_bounds_the_short_one(
    width: int, height: int, least: int
) -> None:
    scaled = scale_to(Image.new("L", (width, height), 77), 64, min_side=least)
    assert max(scaled.size) == 64
    assert min(scaled.size) == max(least, round(64 * min(width, height) / max(width, height)))
    assert scaled.getextrema() == (77, 77)
