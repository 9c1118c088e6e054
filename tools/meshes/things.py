"""Objects other than furniture: toys, boxes, clothes. Each function models one."""

import numpy as np

from tools.meshes.household import Model
from tools.meshes.shapes import (
    bar,
    block,
    disc,
    ellipsoid,
    hoop,
    lathe,
    loft,
    prism,
    rectangle,
    tube,
)


def gift_box() -> Model:
    """Models a box with a lid, tied up with straps and a bow."""
    box = block("paint", (0.9, 0.9, 0.62), 0.01)
    lid = block("paint", (0.98, 0.98, 0.2), 0.015).moved(z=0.58)
    straps = [
        block("red", size, 0.004).moved(z=z)
        for size, z in (
            ((0.16, 0.92, 0.6), 0.0), ((0.92, 0.16, 0.6), 0.0),
            ((0.16, 1.0, 0.215), 0.575), ((1.0, 0.16, 0.215), 0.575),
        )
    ]  # fmt: skip
    loops = []
    for turn in (20, 110, 200, 290):
        angles = np.radians(np.linspace(0, 360, 22, endpoint=False))
        x, z = 0.17 - 0.17 * np.cos(angles), 0.11 * np.sin(angles) * (1 - 0.35 * np.cos(angles))
        path = np.stack([x, np.zeros(22), z + 0.09], axis=1)
        loop = tube("red", path, 0.03, around=8, is_open=False)
        loops.append(loop.stretched(y=2.2).turned("y", -18).turned("z", turn).moved(z=0.8))
    return box, lid, *straps, *loops, ellipsoid("red", 0.09, 0.09, 0.07).moved(z=0.86)


def ball() -> Model:
    """Models a beach ball: coloured and white sectors."""
    sectors = []
    for number in range(6):
        angles = np.radians(60 * number + np.linspace(0, 60, 9))
        outline = np.concatenate([np.stack([np.cos(angles), np.sin(angles)], axis=1), [[0.0, 0.0]]])
        heights = np.radians(np.linspace(-90, 90, 29))
        rings = [np.column_stack([outline * np.cos(h), np.full(10, np.sin(h))]) for h in heights]
        sectors.append(loft("white" if number % 2 else "paint", rings))
    return tuple(sector.turned("x", 30) for sector in sectors)


def book() -> Model:
    """Models a closed book that lies flat."""
    pages = block("page", (0.68, 0.94, 0.16), 0.004).moved(x=0.01, z=0.025)
    covers = [block("paint", (0.74, 1.0, 0.03), 0.005).moved(z=z) for z in (0.0, 0.18)]
    spine = block("paint", (0.04, 1.0, 0.21), 0.012).moved(x=-0.36)
    title = block("gold", (0.4, 0.07, 0.006), 0.001).moved(y=0.25, z=0.207)
    return pages, *covers, spine, title


def plant_pot() -> Model:
    """Models a flower pot with a leafy plant in it."""
    pot = [(0.0, 0.0), (0.27, 0.0), (0.36, 0.42), (0.42, 0.42), (0.42, 0.54), (0.37, 0.54)]
    earth = disc("earth", 0.36, 0.03, 0.005).moved(z=0.47)
    leaves = []
    for ring, (count, lean, length) in enumerate(((9, 62, 0.5), (7, 36, 0.56), (4, 12, 0.58))):
        for number in range(count):
            leaf = ellipsoid("green", 0.1, 0.022, length / 2, rings=6).moved(z=length / 2)
            turn = 360 * number / count + 25 * ring
            leaves.append(leaf.turned("x", -lean).turned("z", turn).moved(z=0.5))
    return lathe("paint", [*pot, (0.34, 0.45), (0.0, 0.45)]), earth, *leaves


def traffic_cone() -> Model:
    """Models a traffic cone with two white bands on a square foot."""
    bands = [(0.05, 0.34, "paint"), (0.34, 0.5, "white"), (0.5, 0.64, "paint"),
             (0.64, 0.78, "white"), (0.78, 1.0, "paint")]  # fmt: skip

    def radius(height: float) -> float:
        return 0.31 - 0.26 * height

    rings = [
        lathe(material, [(0.0, low), (radius(low), low), (radius(high), high), (0.0, high)])
        for low, high, material in bands
    ]
    return block("paint", (0.78, 0.78, 0.06), 0.015), *rings


def hat() -> Model:
    """Models a top hat with a band."""
    brim = [(0.0, 0.0), (0.4, 0.0), (0.52, 0.02), (0.6, 0.08), (0.6, 0.1), (0.5, 0.05), (0.4, 0.04)]
    crown = [(0.37, 0.1), (0.36, 0.3), (0.39, 0.64), (0.38, 0.67), (0.35, 0.68), (0.0, 0.68)]
    band = hoop("red", [(0.36, 0.05), (0.382, 0.05), (0.376, 0.18), (0.35, 0.18)])
    oval = lathe("paint", [*brim, *crown])
    return oval.stretched(y=1.15), band.stretched(y=1.15)


def stairs() -> Model:
    """Models a block of four steps."""
    steps = [
        block("paint", (0.8, 0.25 * (4 - row), 0.2), 0.008).moved(y=0.125 * row, z=0.2 * row)
        for row in range(4)
    ]
    return tuple(steps)


def boots() -> Model:
    """Models a pair of rubber boots."""
    return tuple(part.moved(x=x) for x in (-0.2, 0.2) for part in _boot())


def _boot() -> Model:
    sole = prism("black", rectangle(0.26, 0.66, 0.12, 7), 0.06, 0.01).moved(y=-0.1)
    foot = ellipsoid("paint", 0.13, 0.32, 0.2).moved(y=-0.1, z=0.12)
    levels = ((0.06, 0.12, 0.15), (0.2, 0.125, 0.14), (0.4, 0.125, 0.13), (0.8, 0.15, 0.17))
    outline = rectangle(2.0, 2.0, 1.0, 9)
    rings = [
        np.column_stack([outline * (x, y) + (0.0, 0.1), np.full(len(outline), z)])
        for z, x, y in levels
    ]
    inside = [ring * (0.85, 0.85, 1.0) + (0.0, 0.015, 0.0) for ring in (rings[-1], rings[-2])]
    return sole, foot, loft("paint", [*rings, *inside])


def duck() -> Model:
    """Models a bath duck."""
    body = ellipsoid("paint", 0.42, 0.56, 0.34).moved(z=0.32)
    tail = ellipsoid("paint", 0.16, 0.26, 0.14, 12).turned("x", -40).moved(y=0.5, z=0.5)
    head = ellipsoid("paint", 0.27, 0.28, 0.27).moved(y=-0.32, z=0.8)
    beak = ellipsoid("orange", 0.14, 0.18, 0.055, 10).moved(y=-0.62, z=0.76)
    wings = [
        ellipsoid("paint", 0.09, 0.3, 0.2, 12).moved(x=x, y=0.08, z=0.4) for x in (-0.39, 0.39)
    ]
    eyes = [
        ellipsoid("black", 0.045, 0.045, 0.055, 8).moved(x=x, y=-0.53, z=0.88)
        for x in (-0.13, 0.13)
    ]
    return body, tail, head, beak, *wings, *eyes


def toy_car() -> Model:
    """Models a small car."""
    body = block("paint", (0.5, 1.1, 0.22), 0.05).moved(z=0.12)
    cabin = prism("paint", rectangle(0.44, 0.6, 0.05), 0.22, 0.02, 0.78).moved(y=0.05, z=0.32)
    side = prism("window", rectangle(0.445, 0.44, 0.02), 0.17, 0.005, 0.8).moved(y=0.05, z=0.335)
    front = prism("window", rectangle(0.35, 0.605, 0.02), 0.17, 0.005, 0.8).moved(y=0.05, z=0.335)
    wheels = [
        part.turned("y", 90).moved(x=x, y=y, z=0.14)
        for x in (-0.26, 0.26)
        for y in (-0.34, 0.34)
        for part in (
            disc("black", 0.14, 0.1).moved(z=-0.05),
            disc("metal", 0.07, 0.12).moved(z=-0.06),
        )
    ]
    lights = [
        ellipsoid("white", 0.06, 0.03, 0.05, 8).moved(x=x, y=-0.55, z=0.25) for x in (-0.17, 0.17)
    ]
    return body, cabin, side, front, *wheels, *lights


def toy_house() -> Model:
    """Models a small house with a pitched roof, a door, windows and a chimney."""
    walls = block("paint", (0.8, 0.9, 0.55), 0.005)
    gable = np.array([(-0.5, 0.53), (0.5, 0.53), (0.0, 0.98)])
    rings = [np.column_stack([gable[:, 0], np.full(3, y), gable[:, 1]]) for y in (0.52, -0.52)]
    door = block("wood", (0.2, 0.02, 0.36), 0.003).moved(y=-0.455)
    panes = [
        block("window", (0.16, 0.02, 0.17), 0.003).moved(x=x, y=-0.455, z=0.25)
        for x in (-0.26, 0.26)
    ]
    sides = [
        block("window", (0.02, 0.2, 0.17), 0.003).moved(x=x, y=y, z=0.25)
        for x in (-0.405, 0.405)
        for y in (-0.2, 0.2)
    ]
    chimney = block("brick", (0.12, 0.12, 0.4), 0.004).moved(x=0.24, y=0.2, z=0.65)
    return walls, loft("roof", rings), door, *panes, *sides, chimney


def mushroom() -> Model:
    """Models a mushroom with white dots on its cap."""
    stem = [(0.0, 0.0), (0.2, 0.0), (0.22, 0.05), (0.16, 0.25), (0.15, 0.5), (0.0, 0.5)]
    angles = np.radians(np.linspace(0, 90, 12))
    cap = [(0.0, 0.42), (0.44, 0.4), *((0.5 * np.cos(a), 0.43 + 0.4 * np.sin(a)) for a in angles)]
    dots = []
    for turn, rise in [
        (0, 22),
        (72, 28),
        (144, 20),
        (216, 30),
        (288, 24),
        (36, 56),
        (156, 58),
        (276, 54),
        (0, 88),
    ]:
        a = np.radians(rise)
        dot = ellipsoid("white", 0.075, 0.075, 0.02, rings=6).turned("y", 90 - rise)
        dots.append(dot.moved(x=0.5 * np.cos(a), z=0.43 + 0.4 * np.sin(a)).turned("z", turn))
    return lathe("white", stem), lathe("paint", cap), *dots


def suitcase() -> Model:
    """Models a suitcase that stands upright."""
    case = block("paint", (0.95, 0.32, 0.68), 0.04)
    belts = [block("leather", (0.07, 0.335, 0.7), 0.01).moved(x=x, z=-0.01) for x in (-0.28, 0.28)]
    path = [
        (-0.14, 0, 0.66),
        (-0.13, 0, 0.75),
        (-0.08, 0, 0.79),
        (0.08, 0, 0.79),
        (0.13, 0, 0.75),
        (0.14, 0, 0.66),
    ]
    locks = [
        block("metal", (0.09, 0.02, 0.07), 0.004).moved(x=x, y=-0.165, z=0.5) for x in (-0.14, 0.14)
    ]
    return case, *belts, tube("leather", path, 0.03), *locks


def barrel() -> Model:
    """Models a barrel with metal hoops."""
    heights = np.linspace(0, 1, 15)

    def radius(height: float) -> float:
        return 0.3 + 0.1 * np.sin(np.pi * height)

    wall = lathe(
        "paint",
        [(0.0, 0.02), *((radius(h), h) for h in heights), (0.26, 1.0), (0.26, 0.96), (0.0, 0.96)],
    )
    hoops = [
        hoop(
            "metal",
            [
                (radius(z) - 0.01, z),
                (radius(z) + 0.012, z),
                (radius(z + 0.07) + 0.012, z + 0.07),
                (radius(z + 0.07) - 0.01, z + 0.07),
            ],
        )
        for z in (0.04, 0.26, 0.67, 0.89)
    ]
    return wall, *hoops


def drum() -> Model:
    """Models a drum with white skins, metal rims and two sticks on it."""
    wall = disc("paint", 0.45, 0.5, 0.005).moved(z=0.05)
    skins = [disc("white", 0.44, 0.03, 0.005).moved(z=z) for z in (0.03, 0.54)]
    rims = [
        hoop("metal", [(0.44, z), (0.475, z), (0.475, z + 0.06), (0.44, z + 0.06)])
        for z in (0.02, 0.52)
    ]
    sticks = [
        part.turned("z", turn).moved(y=y, z=0.6)
        for turn, y in ((18, -0.1), (-24, 0.06))
        for part in (
            bar("wood", (-0.5, 0, 0), (0.36, 0, 0), 0.025),
            ellipsoid("wood", 0.055, 0.04, 0.04, 8).moved(x=0.38),
        )
    ]
    cords = [
        bar(
            "white",
            (0.456 * np.cos(a), 0.456 * np.sin(a), 0.08),
            (0.456 * np.cos(b), 0.456 * np.sin(b), 0.52),
            0.01,
        )
        for number in range(10)
        for a, b in (
            (np.radians(36 * number), np.radians(36 * number + 18)),
            (np.radians(36 * number + 36), np.radians(36 * number + 18)),
        )
    ]
    return wall, *skins, *rims, *sticks, *cords


def parasol() -> Model:
    """Models an open parasol with eight panels on a heavy foot."""
    angles = np.radians(np.linspace(8, 66, 10))
    outside = [(0.72 * np.sin(a), 0.74 + 0.5 * np.cos(a)) for a in angles]
    inside = [(radius * 0.98, height - 0.015) for radius, height in outside]
    section = [*reversed(outside), (0.0, 1.25), (0.0, 1.235), *inside]
    cloth = hoop("paint", section, around=8)
    pole = bar("white", (0, 0, 0.05), (0, 0, 1.33), 0.025)
    return cloth, pole, disc("metal", 0.22, 0.08)


def cube() -> Model:
    """Models a cube."""
    return (block("paint", (1.0, 1.0, 1.0), 0.03),)


def cylinder() -> Model:
    """Models a cylinder."""
    return (disc("paint", 0.4, 1.0, 0.02),)


def platform() -> Model:
    """Models a low square platform that other objects stand on."""
    return (block("paint", (4.0, 4.0, 0.16), 0.03),)
