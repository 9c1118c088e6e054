"""CIE L*a*b* in 8 bits: equal distances look about equally different to people.

Integer tables and sums give the same bytes on every processor; roots and powers of floats do not.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


_STEPS: Final = 2**16 - 1
"""Steps of a linear tristimulus value; near black, a step is 0.014 of L*."""

_ROOT_STEPS: Final = 10_000
"""Steps of the cube root."""

_TO_XYZ: Final = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
"""From linear sRGB to X, Y and Z, white at D65 (IEC 61966-2-1)."""


def lightness(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return L* of sRGB pixels, uint8 [height, width], in steps of 100 / 255.

    Args:
      pixels: RGB, uint8 [height, width, 3].

    Source: CIE 15:2004, section 8.2.1.
    """
    luminance = 116 * _root(pixels, 1) - 16 * _ROOT_STEPS
    steps = 100 * _ROOT_STEPS
    return ((luminance * 255 + steps // 2) // steps).astype(np.uint8)


def colours(pixels: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return a* (from green to red) and b* (from blue to yellow) of sRGB pixels, each plus 128.

    Args:
      pixels: RGB, uint8 [height, width, 3].

    Returns:
      Two arrays, uint8 [height, width]; 128 for grey. sRGB reaches neither 0 nor 255.
    """
    x, y, z = (_root(pixels, axis) for axis in range(3))
    return _offset(500 * (x - y)), _offset(200 * (y - z))


def _offset(values: NDArray[np.int32]) -> NDArray[np.uint8]:
    return ((values + 128 * _ROOT_STEPS + _ROOT_STEPS // 2) // _ROOT_STEPS).astype(np.uint8)


def _root(pixels: NDArray[np.uint8], axis: int) -> NDArray[np.int32]:
    """Return f(X), f(Y) or f(Z) of CIE 15:2004: a cube root, linear near 0."""
    red, green, blue = (_shares()[axis, channel][pixels[..., channel]] for channel in range(3))
    return _roots()[red + green + blue]


@functools.cache
def _shares() -> NDArray[np.int32]:
    """Return each channel byte's contribution to X, Y and Z, as a share of white's."""
    value = np.arange(256) / 255
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array(_TO_XYZ)
    of_white = to_xyz / to_xyz.sum(axis=1, keepdims=True)
    return np.rint(of_white[:, :, None] * linear * _STEPS).astype(np.int32)


@functools.cache
def _roots() -> NDArray[np.int32]:
    # The rounded shares of a pixel may add up to one step beyond white.
    value = np.arange(_STEPS + 2) / _STEPS
    foot = value / (3 * (6 / 29) ** 2) + 4 / 29
    return np.rint(np.where(value > (6 / 29) ** 3, np.cbrt(value), foot) * _ROOT_STEPS).astype(
        np.int32
    )
