"""Random fields that can be put edge to edge with themselves."""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates  # type: ignore[import-untyped]
from scipy.spatial import cKDTree  # type: ignore[import-untyped]

Field = NDArray[np.float64]


def cloud(
    rng: np.random.Generator,
    size: int,
    exponent: float,
    *,
    stretch: tuple[float, float] = (1.0, 1.0),
    low: float = 1.0,
    high: float = 1e9,
) -> Field:
    """Returns noise of mean 0 and standard deviation 1, float64 [size, size].

    Args:
      rng: what to draw with.
      size: side in pixels.
      exponent: the amplitude falls with the frequency to this power: 0 is white noise.
      stretch: how much longer its grains are down and across.
      low: least frequency, in waves a side.
      high: greatest frequency, in waves a side.
    """
    waves = np.fft.fftfreq(size, 1 / size)
    frequency = np.hypot(waves[:, None] * stretch[0], waves[None, :] * stretch[1])
    there = (frequency >= low) & (frequency <= high)
    weight = np.where(there, np.maximum(frequency, 1e-9) ** -exponent, 0.0)
    field = np.fft.ifft2(np.fft.fft2(rng.standard_normal((size, size))) * weight).real
    return (field - field.mean()) / field.std()


def cells(
    rng: np.random.Generator, size: int, across: int, jitter: float = 1.0
) -> tuple[Field, Field, NDArray[np.intp]]:
    """Divides the plane among points, one in each square of a grid.

    Args:
      rng: what to draw with.
      size: side in pixels.
      across: squares along a side.
      jitter: how far points leave the middle of their square: 0 is a grid.

    Returns:
      Of each pixel, all [size, size]: the distance to its point in squares, how much farther the
      second nearest is, and the number of its point, from 0 to across ** 2.
    """
    grid = np.stack(np.meshgrid(np.arange(across), np.arange(across), indexing="ij"), -1)
    points = grid + 0.5 + jitter * (rng.random((across, across, 2)) - 0.5)
    tree = cKDTree(np.mod(points.reshape(-1, 2), across), boxsize=across)
    at = (np.arange(size) + 0.5) * across / size
    places = np.stack(np.meshgrid(at, at, indexing="ij"), -1)
    distances, owners = tree.query(places, k=2)
    return distances[..., 0], distances[..., 1] - distances[..., 0], owners[..., 0]


def warped(field: Field, down: Field, across: Field) -> Field:
    """Returns a field read at places that are moved by so many pixels."""
    size = len(field)
    rows, columns = np.mgrid[:size, :size].astype(float)
    return map_coordinates(field, [rows + down, columns + across], order=1, mode="grid-wrap")


def ramp(values: Field, *colours: tuple[int, int, int]) -> Field:
    """Returns colours between the given ones, float64 [..., 3], for values in [0, 1]."""
    stops = np.linspace(0, 1, len(colours))
    parts = np.array(colours, float).T
    return np.stack([np.interp(values, stops, part) for part in parts], -1)


def smooth(low: float, high: float, values: Field) -> Field:
    """Returns 0 up to `low`, 1 from `high`, and a smooth step in between."""
    share = np.clip((values - low) / (high - low), 0, 1)
    return share * share * (3 - 2 * share)
