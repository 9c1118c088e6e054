"""Makes a photograph of a texture fit itself, by the cut along which nobody sees it.

Source: Efros and Freeman, Image Quilting for Texture Synthesis and Transfer, SIGGRAPH 2001.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter  # type: ignore[import-untyped]
from skimage.graph import route_through_array

FEATHER = 1.2
"""How wide the cut is blurred, in pixels."""


def seamless(picture: NDArray[np.float64], overlap: int) -> NDArray[np.float64]:
    """Returns a picture, smaller by the overlap on both sides, that can be put edge to edge.

    Args:
      picture: grey, float64 [size, size].
      overlap: how far its sides are laid over each other, in pixels.
    """
    across = _closed(_even(picture), overlap)
    return _closed(across.T, overlap, is_round=True).T


def _even(picture: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns a picture without its large bright and dark areas, which would show as a grid."""
    return picture - gaussian_filter(picture, len(picture) / 8, mode="reflect") + picture.mean()


def _closed(
    picture: NDArray[np.float64], overlap: int, is_round: bool = False
) -> NDArray[np.float64]:
    """Lays the right side over the left; `is_round` if the top already fits the bottom."""
    left, right = picture[:, :overlap], picture[:, -overlap:]
    cost = gaussian_filter((left - right) ** 2, 1.0, mode="wrap" if is_round else "reflect")
    cut = _cut(cost + 1e-6 * cost.max(), is_round)
    columns = np.arange(overlap)[None, :]
    is_left = (columns >= cut[:, None]).astype(float)
    share = gaussian_filter(is_left, FEATHER, mode=("wrap" if is_round else "nearest", "nearest"))
    laid = share * left + (1 - share) * right
    return np.concatenate([laid, picture[:, overlap:-overlap]], axis=1)


def _cut(cost: NDArray[np.float64], is_round: bool) -> NDArray[np.intp]:
    """Returns the column of the cheapest way from the top to the bottom, of each row."""
    last = len(cost) - 1
    inside = range(4, cost.shape[1] - 4)
    starts = [(at, at) for at in inside[::4]] if is_round else [(inside[len(inside) // 2],) * 2]
    ways = [
        route_through_array(cost, (0, first), (last, end))  # type: ignore[no-untyped-call]
        for first, end in starts
    ]
    path = np.array(min(ways, key=lambda way: way[1])[0])
    return np.array([path[path[:, 0] == row, 1].max() for row in range(last + 1)])
