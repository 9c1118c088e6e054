"""Define colours that look different, and pairs that lighting may make look the same.

The names are the eleven basic colour terms of English (Berlin and Kay, Basic Color Terms, 1969).
Each name has one value, so no colour is near the border between two names. But lighting changes how
it looks: a white object in deep shade is as dark as a grey one in the sun. Pairs of scenes
therefore never exchange two colours of TOO_CLOSE.

Textures are classified and recoloured by the same names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from eqforge.schemas.records.scenes import Vector

if TYPE_CHECKING:
    from numpy.typing import NDArray

PALETTE: Mapping[str, Vector] = {
    "red": (0.527, 0.005, 0.013),
    "orange": (0.956, 0.205, 0.003),
    "yellow": (0.888, 0.644, 0.011),
    "green": (0.013, 0.262, 0.026),
    "blue": (0.007, 0.080, 0.644),
    "purple": (0.270, 0.013, 0.305),
    "pink": (0.913, 0.279, 0.456),
    "brown": (0.156, 0.045, 0.006),
    "white": (0.847, 0.847, 0.847),
    "grey": (0.216, 0.216, 0.216),
    "black": (0.007, 0.007, 0.007),
}
"""Linear red, green and blue in [0, 1]."""

LEAST_DIFFERENCE = 24.5
"""CIEDE2000 difference below which two colours, each at 0.5 to 1.3 of full light, are too close."""

SHADES = (0.3, 0.4, 0.5, 0.65, 0.8, 1.0, 1.25)
"""Shares of full light on a surface; below the lowest, every colour is nearly black."""

TOO_CLOSE = frozenset(
    {
        *(("red", "orange"), ("red", "pink"), ("red", "brown")),
        *(("orange", "yellow"), ("orange", "brown")),
        *(("blue", "purple"), ("purple", "pink")),
        *(("pink", "white"), ("pink", "grey")),
        *(("brown", "grey"), ("brown", "black")),
        *(("white", "grey"), ("grey", "black")),
    }
)
"""Pairs of names, in palette order, below LEAST_DIFFERENCE; a test recomputes them."""


def are_distinct(first: str, second: str) -> bool:
    return first != second and not {(first, second), (second, first)} & TOO_CLOSE


def distinct_pairs() -> Iterator[tuple[str, str]]:
    return (pair for pair in combinations(PALETTE, 2) if are_distinct(*pair))


Floats: TypeAlias = "NDArray[np.floating[Any]]"

SAMPLES_PER_TRIANGLE = 16  # points of a triangle at which its texture is looked at, at most
SAMPLES = 60_000  # points of a surface that are enough to tell its colours
MAIN_SHARE = 0.6  # share of a surface in a colour from which on the thing is called so
_LIGHTNESS = 0.6  # weight of a step of L* beside one of a* or b*: light and shade change L*
_ALIKE, _ANOTHER = 20.0, 45.0
"""Distances in a* and b*, at equal lightness: up to the first a texel has the main colour, and from
the second on it has a different one."""

_LIGHTER = (25.0, 45.0)  # how much lighter a texel may be: a white stripe on black stays white
_DARKER = (50.0, 65.0)  # how much darker: black print on white stays black, a shadow changes
_RATIOS = (0.5, 1.25)  # least and greatest cube root of a texel's share of the mean luminance
_BLACK = 0.02  # added to luminances before they are compared: no black is half of another
LUMINANCE = (0.2126, 0.7152, 0.0722)  # of linear red, green and blue, by Rec. 709


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Shown:
    """The colours of a surface: shares of its area by palette colour, largest first.

    `colour` is the mean linear colour of the texels with the first of them, float64 [3].
    """

    shares: Mapping[str, float]
    colour: NDArray[np.float64]

    @property
    def name(self) -> str:
        return next(iter(self.shares))


def shown_colours(texels: Floats, areas: Floats) -> Shown:
    """Measure which colours a surface shows, and how much of each.

    Args:
      texels: [points, 3], sRGB in [0, 1], at points of the surface.
      areas: [points], the area that each point stands for.
    """
    linear = decoded(texels)
    names = list(PALETTE)
    nearest = _nearest(lab_of(linear))
    totals = np.bincount(nearest, weights=areas, minlength=len(names)) / areas.sum()
    order = np.argsort(-totals, kind="stable")
    main = nearest == order[0]
    return Shown(
        shares={names[place]: round(float(totals[place]), 6) for place in order if totals[place]},
        colour=np.average(linear[main], axis=0, weights=areas[main]).astype(np.float64),
    )


def recoloured(texels: Floats, shown: Shown, colour: Vector) -> NDArray[np.float32]:
    """Return a texture, [..., 3], sRGB in [0, 1], with a different main colour, in float32.

    The result is the target colour times a factor: the clamped cube root of each texel's luminance
    over the main colour's mean, cubed. Other colours stay, unless the main one covers less than
    MAIN_SHARE of the surface: then everything gets the colour.
    """
    linear = decoded(texels)
    mean = float(shown.colour @ LUMINANCE)
    luminances = linear @ np.array(LUMINANCE)
    ratios = (luminances + _BLACK) / (mean + _BLACK)
    shade = np.clip(np.cbrt(ratios), *_RATIOS)[..., None] ** 3
    painted = encoded(np.clip(np.array(colour) * shade, 0.0, 1.0))
    if shown.shares[shown.name] < MAIN_SHARE:
        return painted.astype(np.float32)
    share = _main_share(linear, luminances / max(mean, 1e-4), shown.colour)[..., None]
    return (share * painted + (1 - share) * texels).astype(np.float32)


def recoloured_pixels(
    pixels: NDArray[np.uint8], shown: Shown, colour: Vector
) -> NDArray[np.float32]:
    packed = pixels.astype(np.uint32) @ np.array((1 << 16, 1 << 8, 1), np.uint32)
    known, place = np.unique(packed, return_inverse=True)
    colours = np.stack((known >> 16, known >> 8 & 255, known & 255), axis=-1) / 255
    found = recoloured(colours, shown, colour)
    return found[place.reshape(packed.shape)]


Wrap: TypeAlias = Literal["REPEAT", "EXTEND", "MIRROR", "CLIP"]


def sampled(
    corners: Floats, areas: Floats, texture: Floats, wrap: Wrap = "REPEAT"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sample a texture at points of a surface, with the area that each point stands for.

    Args:
      corners: texture coordinates of shape [triangles, 3, 2]; (0, 0) is bottom left.
      areas: of the triangles, [triangles].
      texture: [height, width, channels], the top row first.
      wrap: how the texture continues beyond [0, 1], in Blender's terms.

    Returns:
      Texels of shape [points, channels], and areas of shape [points].
    """
    each = min(SAMPLES_PER_TRIANGLE, max(1, SAMPLES // max(len(corners), 1)))
    rows = int(np.sqrt(each))
    steps = (np.arange(rows) + 0.5) / rows
    u, v = (each.ravel() for each in np.meshgrid(steps, steps))
    root = np.sqrt(u)
    weights = np.stack((1 - root, root * (1 - v), root * v), axis=-1)
    points = np.einsum("pc,tcx->tpx", weights, corners)
    outside = ((points < 0) | (points > 1)).any(axis=-1)
    if wrap == "REPEAT":
        points %= 1.0
    elif wrap == "MIRROR":
        points = 1 - np.abs(points % 2.0 - 1)
    points = points.clip(0.0, 1.0)
    height, width = texture.shape[:2]
    columns = np.minimum((points[..., 0] * width).astype(int), width - 1)
    lines = np.minimum(((1 - points[..., 1]) * height).astype(int), height - 1)
    stands_for = np.repeat(areas / len(weights), len(weights)).astype(np.float64)
    found = texture[lines, columns]
    if wrap == "CLIP":
        found = np.where(outside[..., None], 0, found)
    found = found.reshape(-1, texture.shape[2])
    return found.astype(np.float64), stands_for


def decoded(texels: Floats) -> NDArray[np.float64]:
    value = np.clip(texels, 0.0, 1.0).astype(np.float64)
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def encoded(linear: Floats) -> NDArray[np.float64]:
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def _main_share(linear: Floats, ratios: Floats, colour: Floats) -> NDArray[np.float64]:
    level = np.where(ratios > 1e-3, 1 / np.maximum(ratios, 1e-3), 1.0)[..., None]
    main = lab_of(colour[None])[0]
    seen = lab_of(linear * level)
    aside = np.linalg.norm(seen[..., 1:] - main[1:], axis=-1)
    lighter = lab_of(linear)[..., 0] - main[0]
    another = _smooth(aside, _ALIKE, _ANOTHER), _smooth(lighter, *_LIGHTER)
    return np.prod([1 - each for each in (*another, _smooth(-lighter, *_DARKER))], axis=0)


def _smooth(value: Floats, low: float, high: float) -> NDArray[np.float64]:
    share = np.clip((value - low) / (high - low), 0.0, 1.0)
    return share * share * (3 - 2 * share)


def _nearest(lab: NDArray[np.float64]) -> NDArray[np.intp]:
    weights = np.array((_LIGHTNESS, 1.0, 1.0))
    best = np.full(len(lab), np.inf)
    found = np.zeros(len(lab), np.intp)
    for place, colour in enumerate(PALETTE.values()):
        for shade in SHADES:
            known = lab_of(np.clip(np.array(colour) * shade, 0, 1)[None])[0]
            distance = (((lab - known) * weights) ** 2).sum(axis=-1)
            nearer = distance < best
            best[nearer], found[nearer] = distance[nearer], place
    return found


def lab_of(linear: Floats) -> NDArray[np.float64]:
    """Convert linear sRGB to CIE L*a*b* at D65 (CIE 15:2004, section 8.2.1)."""
    from skimage.color import xyz2lab
    from skimage.color.colorconv import xyz_from_rgb

    xyz = linear @ xyz_from_rgb.T
    lab: NDArray[np.float64] = xyz2lab(xyz.reshape(-1, 1, 3)).reshape(xyz.shape)
    return lab


def lightness_of(colour: Vector) -> float:
    return float(lab_of(np.array(colour)[None])[0, 0])


def paled(colour: Vector, lightness: float, chroma: float) -> Vector:
    a, b = lab_of(np.array(colour)[None])[0, 1:] * chroma
    return _surface(np.array((lightness, a, b)))


def shifted(colour: Vector, steps: float) -> Vector:
    return _surface(lab_of(np.array(colour)[None])[0] + (steps, 0.0, 0.0))


def _surface(lab: NDArray[np.float64]) -> Vector:
    from skimage.color import lab2xyz
    from skimage.color.colorconv import rgb_from_xyz

    red, green, blue = (rgb_from_xyz @ lab2xyz(lab[None, None])[0, 0]).round(6).tolist()
    if not all(0 <= each <= 1 for each in (red, green, blue)):
        raise ValueError(f"the L*a*b* colour {lab.round(2).tolist()} is outside the sRGB range")
    return (red, green, blue)
