"""Textures of floors that people lay: cobbles, planks, tiles, cloth."""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, sobel  # type: ignore[import-untyped]

from tools.textures.noise import Field, cells, cloud, ramp, smooth, warped

SIZE = 768
WARM = np.array([1.0, 0.15, -1.0])


def cobbles(rng: np.random.Generator) -> Field:
    """Rounded stones in rows, with dirt between them."""
    across = 11
    bent = [6 * cloud(rng, SIZE, 1.7, low=3) for _ in range(2)]
    _, gap, owner = cells(rng, SIZE, across, 0.55)
    gap = warped(gap, *bent)
    owner = _moved(owner, *bent)
    rough = cloud(rng, SIZE, 1.0, low=10)
    body = smooth(0.06, 0.2, gap + 0.02 * rough)
    dome = smooth(0.0, 0.75, gap)
    tone = rng.normal(0.0, 0.075, across**2)[owner]
    stone = 0.42 + tone + 0.16 * dome + 0.045 * rough + 0.03 * cloud(rng, SIZE, 0.4, low=50)
    stone += 0.03 * _light_from_above(0.8 * dome + 0.06 * rough)
    dirt = 0.2 + 0.05 * cloud(rng, SIZE, 0.6, low=20)
    surface = dirt + body * (stone - dirt)
    colours = ramp(np.clip(surface, 0, 1), (20, 18, 16), (112, 107, 102), (206, 200, 192))
    hue = rng.normal(0.015, 0.028, across**2)[owner] * body + 0.03 * (1 - body)
    return colours * (1 + hue[..., None] * WARM)


def planks(rng: np.random.Generator) -> Field:
    """Oak boards with staggered joints, grain along them."""
    boards, parts = 8, 2
    wide, long = SIZE // boards, SIZE // parts
    rows, columns = np.mgrid[:SIZE, :SIZE]
    board = columns // wide
    shift = rng.permutation(boards) * long // boards
    along = (rows + shift[board]) % SIZE
    number = board * parts + along // long
    offsets = rng.integers(0, SIZE, (boards * parts, 2))
    down = (rows + offsets[number, 0]) % SIZE
    side = (columns + offsets[number, 1]) % SIZE
    bend = cloud(rng, SIZE, 1.7, stretch=(4.5, 1.0), low=3)
    rings = 0.5 + 0.5 * np.sin(2 * np.pi * 14 * np.arange(SIZE)[None, :] / SIZE + 7 * bend)
    fibre = cloud(rng, SIZE, 0.35, stretch=(36.0, 1.0), low=40)
    pores = smooth(1.3, 2.4, cloud(rng, SIZE, 0.2, stretch=(22.0, 1.0), low=60))
    wood = 0.6 - 0.13 * rings**2 + 0.05 * fibre - 0.14 * pores
    wood += 0.03 * cloud(rng, SIZE, 1.6, stretch=(3.0, 1.0))
    wood = wood[down, side] + rng.normal(0.0, 0.045, boards * parts)[number]
    edge = np.minimum(columns % wide, wide - 1 - columns % wide)
    end = np.minimum(along % long, long - 1 - along % long)
    joint = np.minimum(edge, end)
    wood = np.where(joint < 1, 0.08, wood) - 0.1 * np.exp(-joint / 2.0)
    hue = rng.normal(0.0, 0.02, boards * parts)[number]
    colours = ramp(np.clip(wood, 0, 1), (30, 19, 12), (146, 110, 76), (206, 174, 134))
    return colours * (1 + hue[..., None] * WARM)


def tiles(rng: np.random.Generator) -> Field:
    """Square stone tiles with grout, each of its own tone."""
    across = 4
    wide = SIZE // across
    rows, columns = np.mgrid[:SIZE, :SIZE]
    number = (rows // wide) * across + columns // wide
    offsets = rng.integers(0, SIZE, (across**2, 2))
    down, side = ((rows, columns)[k] + offsets[number, k] for k in (0, 1))
    bend = [30 * cloud(rng, SIZE, 2.0, low=2) for _ in range(2)]
    vein = warped(cloud(rng, SIZE, 1.3, stretch=(1.0, 2.2), low=2), *bend)
    stone = 0.03 * vein - 0.05 * smooth(0.82, 1.0, np.exp(-np.abs(vein) * 2.5))
    stone = 0.66 + stone + 0.016 * cloud(rng, SIZE, 0.4, low=50)
    stone = stone[down % SIZE, side % SIZE] + rng.normal(0.0, 0.026, across**2)[number]
    edges = [each % wide for each in (rows, columns)]
    border = np.minimum.reduce([np.minimum(each, wide - 1 - each) for each in edges]).astype(float)
    border += 0.5 * cloud(rng, SIZE, 1.0, low=20)
    body = smooth(1.6, 3.4, border)
    stone = stone + 0.03 * np.exp(-((border - 4.5) ** 2) / 3) - 0.05 * np.exp(-border / 10)
    grout = 0.4 + 0.05 * cloud(rng, SIZE, 0.5, low=30)
    surface = grout + body * (stone - grout) + 0.012 * cloud(rng, SIZE, 1.7, low=2)
    hue = (rng.normal(0.0, 0.012, across**2)[number] + 0.01 * vein) * body
    colours = ramp(np.clip(surface, 0, 1), (54, 50, 46), (146, 139, 130), (228, 222, 212))
    return colours * (1 + hue[..., None] * WARM)


def cloth(rng: np.random.Generator) -> Field:
    """Coarse linen: threads over and under each other, of uneven thickness and tone."""
    threads = 96
    wide = SIZE // threads
    rows, columns = np.mgrid[:SIZE, :SIZE].astype(float)
    rows = rows + 1.1 * cloud(rng, SIZE, 1.2, stretch=(1.0, 4.0), low=4)
    columns = columns + 1.1 * cloud(rng, SIZE, 1.2, stretch=(4.0, 1.0), low=4)
    down, side = (np.floor(each / wide).astype(int) % threads for each in (rows, columns))
    is_weft = (down + side) % 2 == 0
    bulge = [np.sin(np.pi * (each / wide % 1)) for each in (rows, columns)]
    body = np.where(
        is_weft, bulge[0] * (0.55 + 0.45 * bulge[1]), bulge[1] * (0.55 + 0.45 * bulge[0])
    )
    tone = np.where(is_weft, rng.normal(0, 0.05, threads)[down], rng.normal(0, 0.05, threads)[side])
    slubs = [
        cloud(rng, SIZE, 0.8, stretch=stretch, low=6) for stretch in ((1.0, 14.0), (14.0, 1.0))
    ]
    surface = 0.3 + 0.3 * body + tone + 0.04 * np.where(is_weft, *slubs)
    surface += 0.03 * cloud(rng, SIZE, 0.3, low=80) + 0.012 * cloud(rng, SIZE, 1.6, low=2)
    return ramp(np.clip(surface, 0, 1), (44, 42, 44), (134, 129, 126), (220, 214, 206))


def _light_from_above(height: Field) -> Field:
    """Returns how much of a height's slope looks up in the picture, limited to -3 to 3."""
    slope = sobel(gaussian_filter(height, 1.0, mode="wrap"), axis=0, mode="wrap")
    return np.clip(slope / slope.std(), -3, 3)


def _moved(owner: NDArray[np.intp], down: Field, across: Field) -> NDArray[np.intp]:
    rows, columns = np.mgrid[:SIZE, :SIZE]
    places = [np.rint(each).astype(int) % SIZE for each in (rows + down, columns + across)]
    return owner[places[0], places[1]]
