from itertools import combinations

import numpy as np
import pytest
from skimage.color import deltaE_ciede2000, rgb2lab

from eqforge.generators.scenes.palette import LEAST_DIFFERENCE, PALETTE, TOO_CLOSE, distinct_pairs
from eqforge.generators.scenes.surroundings import MUTED

LIGHT = np.array([0.5, 0.7, 1.0, 1.3])


def lab(linear: tuple[float, float, float]) -> np.ndarray:
    """In all levels of light, [4, 3]."""
    lit = np.clip(np.array(linear) * LIGHT[:, None], 0, 1)
    return rgb2lab(np.where(lit <= 0.0031308, 12.92 * lit, 1.055 * lit ** (1 / 2.4) - 0.055))


def least_difference(first: str, second: str) -> float:
    one, other = lab(PALETTE[first]), lab(PALETTE[second])
    return float(deltaE_ciede2000(one[:, None], other[None]).min())


@pytest.mark.parametrize("pair", list(combinations(PALETTE, 2)))
def test_the_pairs_that_are_too_close_are_those_below_the_limit(pair: tuple[str, str]) -> None:
    assert (least_difference(*pair) < LEAST_DIFFERENCE) == (pair in TOO_CLOSE)


def test_every_colour_has_some_to_be_exchanged_with() -> None:
    for name in PALETTE:
        assert sum(name in pair for pair in distinct_pairs()) >= 4


def test_the_floors_name_the_colours_that_are_close_to_them() -> None:
    for colour, close in MUTED.values():
        floor = rgb2lab(np.array(colour) ** (1 / 2.2))
        for name, value in PALETTE.items():
            apart = float(deltaE_ciede2000(floor, rgb2lab(np.array(value) ** (1 / 2.2))))
            assert apart >= 20 or name in close, (colour, name, apart)
