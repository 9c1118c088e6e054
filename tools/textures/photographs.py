"""Textures made of two grey photographs of scikit-image, which are CC0."""

import numpy as np
from skimage import data

from tools.textures.noise import Field, cloud, ramp
from tools.textures.seamless import seamless

OVERLAP = 96


def gravel(rng: np.random.Generator) -> Field:
    """Chippings, from warm to cool grey: Gravel04 of CC0Textures."""
    photograph = data.gravel()  # type: ignore[no-untyped-call]
    grey = _stretched(seamless(photograph.astype(float), OVERLAP))
    warm = cloud(rng, len(grey), 1.2, low=3)
    colours = ramp(grey, (34, 31, 29), (124, 117, 108), (200, 194, 184))
    return colours * (1 + 0.03 * warm[..., None] * np.array([1.0, 0.1, -1.0]))


def grass(rng: np.random.Generator) -> Field:
    """A meadow: Grass-01 by linolafett."""
    photograph = data.grass()  # type: ignore[no-untyped-call]
    grey = _stretched(seamless(photograph.astype(float), OVERLAP))
    dry = cloud(rng, len(grey), 1.0, low=4)
    colours = ramp(grey, (22, 30, 10), (84, 100, 40), (168, 172, 104))
    return colours * (1 + 0.05 * dry[..., None] * np.array([1.0, 0.2, -0.6]))


def _stretched(grey: Field) -> Field:
    low, high = np.percentile(grey, (0.5, 99.7))
    return np.clip((grey - low) / (high - low), 0, 1)
