"""Objects that a texture makes what they are: fruit, balls, boxes. Each function models one."""

import numpy as np

from tools.meshes.household import Model
from tools.meshes.shapes import (
    AROUND,
    Points,
    Solid,
    block,
    disc,
    ellipsoid,
    hoop,
    lathe,
    loft,
    tube,
    wrapped,
)


def watermelon() -> Model:
    """Models a watermelon that lies on its side."""
    rind = wrapped(ellipsoid("rind", 0.38, 0.38, 0.5, rings=24), "ball")
    return (rind.turned("x", 80).turned("z", 25),)


def soccer_ball() -> Model:
    """Models a ball of white leather with black pentagons."""
    return (wrapped(ellipsoid("paint", 0.5, 0.5, 0.5, rings=28), "ball").turned("x", 24),)


def basketball() -> Model:
    """Models an orange ball with black lines."""
    ball = wrapped(ellipsoid("paint", 0.5, 0.5, 0.5, rings=28), "ball")
    return (ball.turned("y", 25).turned("x", 20),)


def yarn() -> Model:
    """Models a ball of wool with a loose end."""
    ball = wrapped(ellipsoid("paint", 0.45, 0.45, 0.42, rings=24), "ball").turned("x", 35)
    angles = np.radians(np.linspace(-95, 30, 30))
    reach = np.linspace(0.3, 0.72, 30)
    path = np.stack([reach * np.cos(angles), reach * np.sin(angles), np.full(30, -0.4)], axis=1)
    return ball, wrapped(tube("paint", path, 0.018, around=8), "around")


def easter_egg() -> Model:
    """Models a painted egg that stands on its end."""
    angles = np.radians(np.linspace(-90, 90, 29))
    profile = [(0.37 * np.cos(a) * (1 - 0.16 * np.sin(a)), 0.5 * np.sin(a)) for a in angles]
    return (wrapped(lathe("paint", profile), "around"),)


def globe() -> Model:
    """Models a globe on a stand, its axis aslant."""
    ball = wrapped(ellipsoid("map", 0.4, 0.4, 0.4, rings=28), "ball").turned("y", 23)
    angles = np.radians(np.linspace(-113, 67, 26))
    path = np.stack([0.45 * np.cos(angles), np.zeros(26), 0.45 * np.sin(angles)], axis=1)
    arm = tube("metal", path, 0.018, around=10)
    foot = lathe(
        "wood",
        [(0.0, 0.0), (0.28, 0.0), (0.28, 0.04), (0.06, 0.09), (0.035, 0.2), (0.0, 0.2)],
    )
    return ball.moved(z=0.62), arm.moved(z=0.62), foot


def pumpkin() -> Model:
    """Models a pumpkin with ribs and a stem."""
    angles = 2 * np.pi * np.arange(80) / 80
    rings = []
    for height in np.radians(np.linspace(-84, 84, 23)):
        ribs = 1 - 0.09 * np.cos(height) * (1 - np.abs(np.sin(5 * angles))) ** 1.5
        dent = 0.33 * np.sin(height) - 0.16 * np.exp(-(((np.pi / 2 - abs(height)) / 0.3) ** 2)) * (
            np.sign(height)
        )
        flat = np.stack([np.cos(angles), np.sin(angles)], axis=1) * 0.5
        outline: Points = flat * (np.cos(height) * ribs)[:, None]
        rings.append(np.column_stack([outline, np.full(80, dent)]))
    skin = wrapped(loft("skin", rings), "around")
    stem = tube("stem", [(0, 0, 0.12), (0.01, 0, 0.3), (0.05, 0, 0.42)], [0.07, 0.045, 0.055])
    return skin, stem


def basket() -> Model:
    """Models an open basket of willow rods with a handle."""
    wall = [(0.0, 0.0), (0.33, 0.0), (0.44, 0.42), (0.4, 0.42), (0.3, 0.05), (0.0, 0.05)]
    body = wrapped(lathe("paint", wall), "around")
    rim = hoop("paint", [(0.47, 0.38), (0.47, 0.46), (0.38, 0.46), (0.38, 0.38)])
    angles = np.radians(np.linspace(0, 180, 24))
    path = np.stack([0.43 * np.cos(angles), np.zeros(24), 0.42 + 0.42 * np.sin(angles)], axis=1)
    handle = tube("paint", path, 0.03, around=10)
    return body, wrapped(rim, "around"), wrapped(handle, "around")


def crate() -> Model:
    """Models a box of boards."""
    return (wrapped(block("paint", (0.9, 0.9, 0.8), 0.012), "sides"),)


def cardboard_box() -> Model:
    """Models a closed box of cardboard with tape on top."""
    body = wrapped(block("card", (1.0, 0.76, 0.62), 0.006), "sides")
    lid = wrapped(block("top", (1.0, 0.76, 0.01), 0.003), "sides")
    return body, lid.moved(z=0.616)


def cushion() -> Model:
    """Models a square cushion that lies flat."""
    size, rows = 40, 13
    turn = 2 * np.pi * np.arange(size) / size
    outline = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    square = outline / (np.abs(outline) ** 5).sum(axis=1, keepdims=True) ** (1 / 5)
    rings = []
    for height in np.radians(np.linspace(-88, 88, rows)):
        side = np.cos(height) ** 0.45
        rings.append(np.column_stack([0.5 * side * square, np.full(size, 0.17 * np.sin(height))]))
    return (wrapped(loft("paint", rings), "sides"),)


def tin_can() -> Model:
    """Models a can with a paper label between two rims."""
    can = lathe(
        "metal",
        [(0.0, 0.0), (0.33, 0.0), (0.345, 0.02), (0.33, 0.04), (0.33, 0.9), (0.345, 0.92),
         (0.33, 0.945), (0.3, 0.945), (0.3, 0.925), (0.0, 0.925)],
    )  # fmt: skip
    paper = hoop("paint", [(0.337, 0.06), (0.337, 0.885), (0.325, 0.885), (0.325, 0.06)])
    return can, wrapped(paper, "around")


def tree_stump() -> Model:
    """Models the stump of a tree with its roots."""
    angles = 2 * np.pi * np.arange(AROUND * 2) / (AROUND * 2)
    flat = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    rings = []
    for height in np.linspace(0, 0.55, 12):
        flare = 1 + 0.5 * np.exp(-height / 0.1) * (0.45 + 0.55 * np.cos(5 * angles + 0.6))
        bumps = 1 + 0.025 * np.sin(9 * angles + 4 * height) + 0.02 * np.sin(17 * angles)
        rings.append(np.column_stack([0.4 * flat * (flare * bumps)[:, None],
                                      np.full(len(angles), height)]))  # fmt: skip
    trunk = wrapped(loft("bark", rings), "around")
    top = wrapped(disc("rings", 0.395, 0.012, 0.004), "sides").moved(z=0.545)
    return trunk, top


def rock() -> Model:
    """Models a rounded boulder."""
    ball = ellipsoid("stone", 1.0, 1.0, 1.0, rings=26)
    out = ball.vertices / np.linalg.norm(ball.vertices, axis=1, keepdims=True)
    rng = np.random.default_rng(7)
    bumps = np.ones(len(out))
    for strength, wide in ((0.14, 1.3), (0.08, 2.6), (0.035, 5.5)):
        for _ in range(5):
            axis = rng.normal(size=3)
            bumps += strength / 2.2 * np.sin(wide * (out @ axis) + rng.uniform(0, 6.3))
    shaped = Solid(
        material="stone",
        vertices=out * bumps[:, None] * np.array((0.5, 0.4, 0.33)),
        faces=ball.faces,
    )
    return (wrapped(shaped, "ball"),)
