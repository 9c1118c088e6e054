"""Textures of stone: asphalt, concrete, sand."""

import numpy as np
from scipy.ndimage import gaussian_filter  # type: ignore[import-untyped]

from tools.textures.noise import Field, cells, cloud, ramp, smooth, warped

SIZE = 768


def asphalt(rng: np.random.Generator) -> Field:
    """Stones of three sizes in bitumen, worn at the top."""
    bitumen = 0.25 + 0.04 * cloud(rng, SIZE, 0.4) + 0.02 * cloud(rng, SIZE, 1.2, low=6)
    surface = bitumen
    for across, share, bright in ((120, 0.75, 0.06), (76, 0.55, 0.09), (48, 0.35, 0.11)):
        near, gap, owner = cells(rng, SIZE, across)
        tone = rng.normal(0.44, bright, across**2)[owner]
        is_stone = rng.random(across**2)[owner] < share
        radius = rng.uniform(0.28, 0.46, across**2)[owner]
        rough = 0.1 * cloud(rng, SIZE, 0.7, low=20)
        body = smooth(0.0, 0.12, radius - near + 0.5 * rough * radius) * smooth(0.02, 0.1, gap)
        stone = tone - 0.25 * near + 0.12 * rough
        surface = np.where(is_stone, surface + body * (stone - surface), surface)
    tint = 0.012 * cloud(rng, SIZE, 0.6)[..., None] * np.array([1.0, 0.2, -1.0])
    return ramp(np.clip(surface, 0, 1), (18, 18, 20), (126, 124, 121), (226, 222, 215)) * (1 + tint)


def concrete(rng: np.random.Generator) -> Field:
    """A trowelled floor: blotches, fine pores, scratches."""
    blotches = cloud(rng, SIZE, 1.4, low=3)
    trowel = cloud(rng, SIZE, 0.8, stretch=(1.0, 4.0), low=8)
    trowel = warped(trowel, 14 * cloud(rng, SIZE, 2.2), 14 * cloud(rng, SIZE, 2.2))
    grain = cloud(rng, SIZE, 0.5, low=60)
    surface = 0.62 + 0.026 * blotches + 0.022 * trowel + 0.026 * grain
    for across, share, deep in ((140, 0.10, 0.16), (70, 0.08, 0.25)):
        near, _, owner = cells(rng, SIZE, across)
        radius = rng.uniform(0.06, 0.2, across**2)[owner]
        is_pore = rng.random(across**2)[owner] < share
        surface -= np.where(is_pore, deep * smooth(0.0, 0.08, radius - near), 0.0)
    stains = smooth(0.8, 2.4, cloud(rng, SIZE, 1.9, low=2))
    surface -= 0.07 * stains
    warm = 0.006 * cloud(rng, SIZE, 1.2, low=3)[..., None] * np.array([1.0, 0.2, -1.0])
    colours = ramp(np.clip(surface, 0, 1), (52, 50, 48), (134, 131, 126), (218, 215, 208))
    return colours * (1 + warm)


def sand(rng: np.random.Generator) -> Field:
    """Sand with ripples, grains and some shells."""
    rows = np.arange(SIZE)[:, None] * np.ones((1, SIZE))
    bend = 0.7 * cloud(rng, SIZE, 1.9, stretch=(1.0, 1.6), low=2)
    phase = 2 * np.pi * 13 * rows / SIZE + 2.4 * bend
    strength = 0.6 + 0.4 * np.tanh(cloud(rng, SIZE, 1.6, low=2))
    ripple = np.sin(phase) + 0.35 * np.sin(2 * phase + 1.0)
    slope = gaussian_filter(ripple * strength, 2.0, mode="wrap")
    grain = cloud(rng, SIZE, 0.15, low=40)
    lumps = cloud(rng, SIZE, 0.9, low=24)
    surface = (
        0.55 + 0.055 * slope + 0.05 * grain + 0.03 * lumps + 0.012 * cloud(rng, SIZE, 1.4, low=3)
    )
    near, _, owner = cells(rng, SIZE, 110)
    tone = rng.choice([-0.28, -0.2, 0.22], 110**2)[owner]
    is_speck = rng.random(110**2)[owner] < 0.07
    surface += np.where(is_speck, tone * smooth(0.0, 0.15, 0.26 - near), 0.0)
    return ramp(np.clip(surface, 0, 1), (74, 60, 44), (172, 150, 120), (236, 220, 194))
