"""The gate of colours, on pixels that are made by hand."""

from itertools import product

import numpy as np
import pytest
import skimage.color
from numpy.typing import NDArray

from eqforge.generators.scenes.palette import PALETTE, are_distinct
from eqforge.transforms.generated.scene_colours import colour_share

ALL = np.ones((20, 20), bool)
Picture = NDArray[np.uint8]


def lit(colour: str, shade: float = 1.0) -> Picture:
    """A surface of a colour of the palette in some light, by the definition of sRGB."""
    linear = np.clip(np.array(PALETTE[colour]) * shade, 0, 1)
    srgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.full((20, 20, 3), np.rint(255 * srgb), np.uint8)


def share(picture: Picture, colour: str, mask: NDArray[np.bool_] = ALL) -> float:
    found = colour_share(picture, mask, PALETTE[colour])
    assert found is not None
    return found


@pytest.mark.parametrize(("colour", "shade"), list(product(PALETTE, (0.35, 0.6, 1.0, 1.2))))
def test_a_colour_in_light_and_shade_is_itself(colour: str, shade: float) -> None:
    assert share(lit(colour, shade), colour) == 1


@pytest.mark.parametrize("colour", PALETTE)
def test_a_colour_is_no_distinct_one(colour: str) -> None:
    for other in PALETTE:
        if are_distinct(colour, other):
            assert share(lit(colour, 0.9), other) == 0


def test_colours_of_equal_lightness_are_told_apart() -> None:
    """A turn by half a circle in the plane of a* and b*."""
    for colour in ("red", "green", "blue", "purple"):
        plane = skimage.color.rgb2lab(lit(colour))
        plane[..., 1:] *= -1
        turned = np.rint(255 * np.clip(skimage.color.lab2rgb(plane), 0, 1)).astype(np.uint8)
        assert share(turned, colour) == 0


def test_half_a_thing_is_half_and_what_is_outside_does_not_count() -> None:
    picture, mask = lit("red"), np.zeros((20, 20), bool)
    picture[:, 10:] = lit("blue")[:, 10:]
    mask[2:18, 2:18] = True
    assert share(picture, "blue", mask) == pytest.approx(0.5)
    picture[~mask] = lit("green")[~mask]
    assert share(picture, "blue", mask) == pytest.approx(0.5)


def test_what_is_not_seen_or_no_colour_of_the_palette_is_not_judged() -> None:
    assert colour_share(lit("red"), ~ALL, PALETTE["red"]) is None
    assert colour_share(lit("red"), ALL, (0.5, 0.2, 0.1)) is None
