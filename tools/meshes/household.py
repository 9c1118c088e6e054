"""Objects of a household: furniture, vessels, lamps. Each function models one, in rough metres."""

import numpy as np

from tools.meshes.shapes import (
    Solid,
    arc,
    bar,
    block,
    disc,
    ellipsoid,
    hoop,
    lathe,
    tube,
)

Model = tuple[Solid, ...]
LEGS = ((-1, -1), (1, -1), (1, 1), (-1, 1))


def mug() -> Model:
    """Models a mug with a handle, empty."""
    wall = lathe("paint", _vessel([(0.36, 0.0), (0.4, 0.03), (0.4, 0.9)], 0.05))
    handle = tube("paint", arc((0.38, 0.47), (0.28, 0.27), (-90, 90)), 0.055)
    return wall, handle.stretched(y=1.3)


def bowl() -> Model:
    """Models a round bowl on a low foot."""
    angles = np.radians(np.linspace(12, 88, 14))
    outside = [(0.24, 0.0), (0.24, 0.05)]
    outside += [(0.7 * np.sin(a), 0.05 + 0.55 * (1 - np.cos(a))) for a in angles]
    return (lathe("paint", _vessel(outside, 0.04)),)


def bottle() -> Model:
    """Models a bottle with a cap and a label."""
    shoulder = [
        (0.155 + 0.085 * np.cos(a), 0.62 + 0.22 * np.sin(a))
        for a in np.radians(np.linspace(0, 80, 8))
    ]
    glass = [(0.2, 0.0), (0.24, 0.03), *shoulder, (0.1, 0.95), (0.1, 1.08)]
    cap = disc("white", 0.115, 0.13, 0.015).moved(z=1.05)
    label = hoop("white", [(0.235, 0.2), (0.246, 0.2), (0.246, 0.48), (0.235, 0.48)])
    return lathe("paint", [*glass, (0.0, 1.08)]), cap, label


def vase() -> Model:
    """Models a vase with a belly and a narrow neck."""
    heights = np.linspace(0, 1, 24)
    radii = 0.2 + 0.2 * np.sin(np.pi * heights**0.75) ** 2 - 0.09 * heights
    radii += 0.16 * np.clip(heights - 0.8, 0, None) ** 1.5 * 10 / 2
    return (lathe("paint", _vessel(list(zip(radii, heights, strict=True)), 0.03)),)


def teapot() -> Model:
    """Models a round teapot: body, spout, handle, lid with a knob."""
    angles = np.radians(np.linspace(-62, 58, 18))
    body = [(0.0, 0.0), *((0.5 * np.cos(a), 0.37 + 0.42 * np.sin(a)) for a in angles), (0.0, 0.73)]
    lid = lathe("paint", [(0.29, 0.71), (0.29, 0.75), (0.2, 0.81), (0.06, 0.84), (0.0, 0.84)])
    spout_path = [
        (0.38, 0, 0.28),
        (0.56, 0, 0.34),
        (0.66, 0, 0.48),
        (0.72, 0, 0.62),
        (0.82, 0, 0.7),
    ]
    spout = tube("paint", spout_path, [0.13, 0.1, 0.075, 0.06, 0.055])
    handle = tube("paint", arc((-0.42, 0.4), (0.33, 0.27), (100, 260)), 0.05)
    return (
        lathe("paint", body),
        lid,
        spout,
        handle,
        ellipsoid("paint", 0.06, 0.06, 0.06).moved(z=0.88),
    )


def bucket() -> Model:
    """Models a bucket with an upright wire handle."""
    wall = lathe("paint", _vessel([(0.3, 0.0), (0.4, 0.7), (0.44, 0.71), (0.44, 0.75)], 0.03))
    handle = tube("metal", arc((0.0, 0.7), (0.43, 0.42), (0, 180), 24), 0.018)
    grip = tube("wood", arc((0.0, 0.7), (0.43, 0.42), (68, 112), 8), 0.04)
    return wall, handle, grip


def lamp() -> Model:
    """Models a table lamp with a wide shade."""
    foot = lathe("metal", [(0.24, 0.0), (0.24, 0.03), (0.08, 0.07), (0.03, 0.1), (0.03, 0.12)])
    pole = bar("metal", (0, 0, 0.08), (0, 0, 0.85), 0.028)
    shade = [(0.38, 0.62), (0.2, 1.08), (0.18, 1.08), (0.35, 0.63)]
    bulb = ellipsoid("white", 0.09, 0.09, 0.11).moved(z=0.8)
    rim = hoop("paint", [(0.39, 0.6), (0.39, 0.63), (0.36, 0.63), (0.36, 0.6)])
    return foot, pole, hoop("paint", shade), rim, bulb


def chair() -> Model:
    """Models a kitchen chair with a back of slats."""
    legs = [
        bar("paint", (x * 0.21, y * 0.2, 0.0), (x * 0.19, y * 0.18, 0.46), 0.025, 0.03)
        for x, y in LEGS
    ]
    posts = [bar("paint", (x * 0.19, 0.19, 0.45), (x * 0.19, 0.25, 1.0), 0.026) for x in (-1, 1)]
    seat = block("paint", (0.48, 0.46, 0.05), 0.015).moved(z=0.45)
    rails = [
        block("paint", (0.38, 0.03, 0.1), 0.01).moved(y=0.2 + 0.02 * row, z=0.58 + 0.155 * row)
        for row in range(3)
    ]
    return (*legs, *posts, seat, *rails)


def table() -> Model:
    """Models a square table."""
    legs = [block("paint", (0.09, 0.09, 0.68), 0.01).moved(x * 0.47, y * 0.47) for x, y in LEGS]
    aprons = [
        block("paint", (0.92, 0.04, 0.1), 0.005).moved(y=0.47 * side, z=0.57).turned("z", turn)
        for side in (-1, 1)
        for turn in (0, 90)
    ]
    return (*legs, *aprons, block("paint", (1.12, 1.12, 0.06), 0.015).moved(z=0.66))


def stool() -> Model:
    """Models a round stool on three legs with a ring."""
    seat = disc("paint", 0.25, 0.07, 0.02).moved(z=0.58)
    legs = [
        bar("paint", (0.26, 0, 0.0), (0.15, 0, 0.59), 0.028).turned("z", 90 + 120 * k)
        for k in range(3)
    ]
    angles = np.radians(np.arange(0, 360, 12))
    ring = np.stack([0.225 * np.cos(angles), 0.225 * np.sin(angles), np.full(30, 0.2)], axis=1)
    return seat, *legs, tube("paint", ring, 0.016, around=10, is_open=False)


def ladder() -> Model:
    """Models a folding ladder that stands open."""
    rails = [
        bar("paint", (x * 0.3, 0.34 * side, 0.0), (x * 0.19, 0.05 * side, 1.2), 0.032)
        for x in (-1, 1)
        for side in (-1, 1)
    ]
    steps = []
    for row in range(1, 5):
        height = 0.24 * row
        share = height / 1.2
        width, y = 2 * (0.3 - 0.11 * share), -(0.34 - 0.29 * share)
        steps.append(block("paint", (width, 0.12, 0.035), 0.008).moved(y=y, z=height))
    brace = bar("paint", (-0.27, 0.25, 0.36), (0.27, 0.25, 0.36), 0.018)
    return *rails, *steps, brace, block("paint", (0.44, 0.2, 0.05), 0.01).moved(z=1.19)


def candle() -> Model:
    """Models a burning candle on a saucer with a finger ring."""
    saucer = lathe("metal", _vessel([(0.26, 0.0), (0.36, 0.06), (0.38, 0.1)], 0.02))
    ring = tube("metal", arc((0.44, 0.07), (0.09, 0.06), (0, 350), 20), 0.018)
    wax = [(0.13, 0.02), (0.13, 0.8), (0.11, 0.82), (0.0, 0.79)]
    wick = bar("black", (0, 0, 0.78), (0, 0, 0.87), 0.012)
    flame = lathe("flame", [(0, 0), (0.035, 0.04), (0.045, 0.09), (0.03, 0.16), (0, 0.24)])
    return saucer, ring, lathe("paint", [(0.0, 0.02), *wax]), wick, flame.moved(z=0.84)


def _vessel(outside: list[tuple[float, float]], thickness: float) -> list[tuple[float, float]]:
    """Returns the profile of a vessel with a round rim, from the outline of its outside."""
    (top_radius, top), floor = outside[-1], outside[0][1] + thickness
    rim = [(top_radius - thickness / 2, top + thickness / 2)]
    inside = [(radius - thickness, max(height, floor)) for radius, height in reversed(outside)]
    return [(0.0, outside[0][1]), *outside, *rim, *inside, (0.0, floor)]
