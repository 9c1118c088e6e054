"""Textures of eqforge's own objects, made by rules: 512 pixels wide, the first row on top.

A texture around an object goes once about it from left to right, from its foot to its top; that of
a ball from its south pole to its north pole; that of a box covers each of its sides.
"""

import io
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import scipy.ndimage  # type: ignore[import-untyped]
from PIL import Image

from eqforge.generators.scenes.palette import PALETTE, encoded

Picture = npt.NDArray[np.float64]
SIDE = 512
QUALITY = 80


def jpeg(name: str) -> bytes:
    """Returns a texture as JPEG."""
    stream = io.BytesIO()
    Image.fromarray(pixels(name)).save(stream, "jpeg", quality=QUALITY, subsampling=0)
    return stream.getvalue()


def pixels(name: str) -> npt.NDArray[np.uint8]:
    """Returns a texture, uint8 of shape (512, 512, 3), sRGB."""
    linear = np.clip(TEXTURES[name](), 0.0, 1.0)
    return np.rint(255 * encoded(linear)).astype(np.uint8)


def _noise(seed: int, width: float, height: float | None = None) -> Picture:
    """Returns noise of mean 0 and deviation 1 that fits itself on all sides, as wide as pixels."""
    rng = np.random.default_rng(seed)
    sizes = (width if height is None else height, width)
    rough = scipy.ndimage.gaussian_filter(rng.normal(size=(SIDE, SIDE)), sizes, mode="wrap")
    smooth: Picture = rough / rough.std()
    return smooth


def _grid() -> tuple[Picture, Picture]:
    """Returns how far from the left, and from the bottom, each pixel is, in [0, 1]."""
    steps = (np.arange(SIDE) + 0.5) / SIDE
    across, up = np.meshgrid(steps, steps[::-1])
    return across, up


def _directions() -> Picture:
    """Returns the direction of each pixel of a ball's texture, of shape (512, 512, 3)."""
    across, up = _grid()
    around, high = 2 * np.pi * across, np.pi * (up - 0.5)
    level = np.cos(high)
    return np.stack((level * np.cos(around), level * np.sin(around), np.sin(high)), axis=-1)


def _paint(shade: Picture, colour: tuple[float, float, float] | str) -> Picture:
    """Returns a colour in the shades of an array, 1 for itself."""
    linear = np.array(PALETTE[colour] if isinstance(colour, str) else colour)
    return np.asarray(shade)[..., None] * linear


def _mix(share: npt.NDArray[np.floating], first: Picture, second: Picture) -> Picture:
    """Returns the first picture, and the second where a share is 1."""
    part = np.clip(share, 0.0, 1.0)[..., None]
    return (1 - part) * first + part * second


def _step(value: Picture, edge: float, width: float) -> Picture:
    """Returns 0 below an edge and 1 above it."""
    share = np.clip((value - edge) / width + 0.5, 0.0, 1.0)
    return share * share * (3 - 2 * share)


def watermelon() -> Picture:
    """Light and dark green stripes with ragged edges."""
    across, up = _grid()
    ragged = 0.30 * _noise(1, 5) + 0.35 * _noise(2, 14, 30)
    stripe = np.sin(2 * np.pi * 11 * across + ragged * np.sin(np.pi * up)) + 0.3 * _noise(3, 3)
    light, dark = (0.24, 0.42, 0.09), (0.012, 0.075, 0.016)
    grain = 1 + 0.12 * _noise(4, 2)
    return _mix(_step(stripe, 0.1, 0.5), _paint(grain, light), _paint(grain, dark))


def soccer_ball() -> Picture:
    """White leather with black pentagons and seams, a truncated icosahedron."""
    seen = _directions()
    pentagons, hexagons = _icosahedron()
    near_five = np.sort(seen @ pentagons.T, axis=-1)
    near_six = np.sort(seen @ hexagons.T, axis=-1)
    # A pentagon reaches a third of the way along the edges of the icosahedron.
    margin = np.arccos(np.clip(near_five[..., -1], -1, 1)) - 0.872 * np.arccos(
        np.clip(near_six[..., -1], -1, 1)
    )
    is_black = _step(-margin, 0.0, 0.02)
    seam = np.minimum(np.abs(margin), 0.7 * (near_six[..., -1] - near_six[..., -2]))
    leather = 1 + 0.03 * _noise(5, 1.5)
    white = _paint(leather * (0.35 + 0.65 * _step(seam, 0.012, 0.02)), "white")
    return _mix(is_black, white, _paint(leather, (0.012, 0.012, 0.012)))


def _icosahedron() -> tuple[Picture, Picture]:
    """Returns the directions of the corners, and of the middles of the faces."""
    golden = (1 + 5**0.5) / 2
    corners = np.array(
        [
            np.roll((0.0, a, b * golden), turn)
            for turn in range(3)
            for a in (-1.0, 1.0)
            for b in (-1.0, 1.0)
        ]
    )
    corners /= np.linalg.norm(corners, axis=1, keepdims=True)
    near = corners @ corners.T > 0.4
    faces = [
        corners[i] + corners[j] + corners[k]
        for i in range(12)
        for j in range(i + 1, 12)
        for k in range(j + 1, 12)
        if near[i, j] and near[j, k] and near[i, k]
    ]
    middles = np.array(faces)
    return corners, middles / np.linalg.norm(middles, axis=1, keepdims=True)


def basketball() -> Picture:
    """Orange, pebbled, with black lines."""
    seen = _directions()
    x, y, z = np.moveaxis(seen, -1, 0)
    lines = [x, z, np.abs(y) - 0.62 + 0.1 * x * x]
    nearest = np.min([np.abs(line) for line in lines], axis=0)
    pebbles = 1 + 0.16 * _noise(6, 1.6)
    orange = _paint(pebbles, "orange") * 0.85
    return _mix(1 - _step(nearest, 0.022, 0.016), orange, _paint(pebbles, (0.01, 0.008, 0.007)))


def pumpkin() -> Picture:
    """Orange skin, darker in the grooves, with pale spots."""
    across, up = _grid()
    groove = np.abs(np.sin(np.pi * 10 * across))
    shade = (0.55 + 0.45 * np.sqrt(groove)) * (1 + 0.07 * _noise(7, 4) + 0.05 * _noise(8, 2, 20))
    skin = _paint(shade, (0.84, 0.19, 0.012))
    spots = _step(_noise(9, 2.5), 2.0, 0.4)
    brown = _mix(_step(np.abs(up - 0.5), 0.47, 0.04), skin, _paint(shade, (0.25, 0.12, 0.02)))
    return _mix(0.5 * spots, brown, _paint(np.ones((SIDE, SIDE)), (0.9, 0.45, 0.1)))


def yarn() -> Picture:
    """Wound wool: strands in many directions, each over others."""
    seen = _directions()
    rng = np.random.default_rng(10)
    shade = np.zeros((SIDE, SIDE))
    for _ in range(26):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        height = seen @ axis + rng.uniform(-0.55, 0.55)
        strands = 0.5 + 0.5 * np.cos(2 * np.pi * height / 0.055)
        is_over = np.abs(height) < rng.uniform(0.1, 0.22)
        edge = 1 - 0.5 * np.exp(-((np.abs(np.abs(height) - 0.16) / 0.02) ** 2))
        shade = np.where(is_over | (shade == 0), (0.35 + 0.65 * strands) * edge, shade)
    return _paint(shade * (1 + 0.15 * _noise(11, 1)), "red")


def easter_egg() -> Picture:
    """Painted with bands, zigzags and dots in white."""
    across, up = _grid()
    zigzag = np.abs(((across * 12) % 1) - 0.5) * 0.14
    lines = [np.abs(up - 0.36 - zigzag), np.abs(up - 0.43 - zigzag)]
    bands = [np.abs(up - place) for place in (0.30, 0.56)]
    near = np.min([*lines, *[band * 0.8 for band in bands]], axis=0)
    x, y = ((across * 14) % 1) - 0.5, (up - 0.65) * 14 * 0.5
    dots = 0.26 - np.hypot(x, y)
    white = np.maximum(1 - _step(near, 0.014, 0.006), _step(dots, 0.0, 0.06))
    shell = 1 + 0.03 * _noise(12, 1.5)
    return _mix(white, _paint(shell, "purple"), _paint(shell, "white"))


def globe() -> Picture:
    """Blue seas, green and yellow land, white poles, and a grid of lines."""
    across, up = _grid()
    land = 0.9 * _noise(13, 38) + 0.35 * _noise(14, 12) + 0.12 * _noise(15, 4)
    is_land = _step(land, 0.42, 0.1)
    dry = _step(_noise(16, 26) - 2.2 * np.abs(up - 0.5), 0.0, 0.8)
    flat = np.ones((SIDE, SIDE))
    ground = _mix(dry, _paint(flat, (0.06, 0.23, 0.05)), _paint(flat, (0.5, 0.36, 0.12)))
    seas = _paint(1 + 0.08 * _noise(17, 20), (0.01, 0.1, 0.55))
    ice = _step(np.abs(up - 0.5) + 0.012 * _noise(18, 10), 0.42, 0.03)
    whole = _mix(ice, _mix(is_land, seas, ground), _paint(flat, "white"))
    lines = np.minimum(np.abs(((across * 12) % 1) - 0.5), np.abs(((up * 8) % 1) - 0.5) * 1.5)
    return _mix(0.35 * (1 - _step(lines, 0.03, 0.02)), whole, _paint(flat, "white"))


def wicker() -> Picture:
    """Willow rods woven around upright stakes."""
    across, up = _grid()
    column, row = np.floor(across * 28), np.floor(up * 22)
    over = np.where((column + row) % 2 == 0, 1.0, -1.0)
    rod = np.sin(np.pi * ((up * 22) % 1)) ** 0.6
    bulge = 0.75 + 0.25 * over * np.sin(np.pi * ((across * 28) % 1))
    grain = 1 + 0.13 * _noise(19, 10, 1) + 0.08 * _noise(20, 2)
    stake = 1 - 0.5 * (over < 0) * (np.abs(((across * 28) % 1) - 0.5) < 0.18)
    return _paint((0.12 + 0.88 * rod) * bulge * grain * stake, (0.42, 0.2, 0.06))


def _wood(seed: int, along: int) -> Picture:
    """Returns the shades of planed wood with its grain along an axis."""
    sizes = ((2.0, 46.0), (1.0, 14.0))
    wide = _noise(seed, *(sizes[0] if along == 0 else sizes[0][::-1]))
    fine = _noise(seed + 1, *(sizes[1] if along == 0 else sizes[1][::-1]))
    return 1 + 0.2 * wide + 0.1 * fine


def crate() -> Picture:
    """Boards of wood in a frame of boards, with nails."""
    across, up = _grid()
    board = np.floor(across * 5)
    tone = np.array((1.0, 0.82, 1.12, 0.9, 1.05))[board.astype(int)]
    gap = np.abs(((across * 5) % 1) - 0.5)
    inner = tone * _wood(21, 0) * (0.25 + 0.75 * _step(0.5 - gap, 0.02, 0.02)) * 0.8
    edge = np.minimum.reduce([across, 1 - across, up, 1 - up])
    upright = np.minimum(across, 1 - across) < np.minimum(up, 1 - up)
    frame = np.where(upright, _wood(23, 0), _wood(25, 1)) * 1.1
    is_frame = edge < 0.13
    shade = np.where(is_frame, frame, inner)
    shade = shade * (0.45 + 0.55 * _step(np.abs(edge - 0.13), 0.004, 0.008))
    for x, y in ((a, b) for a in (0.065, 0.935) for b in (0.065, 0.25, 0.5, 0.75, 0.935)):
        shade = shade * (0.25 + 0.75 * _step(np.hypot(across - x, up - y), 0.012, 0.006))
    return _paint(shade, (0.33, 0.165, 0.06))


def cardboard() -> Picture:
    """Brown cardboard with two printed arrows and a line below them."""
    across, up = _grid()
    card = _card()
    ink = np.zeros((SIDE, SIDE))
    for middle in (0.68, 0.82):
        head = (up > 0.72) & (np.abs(across - middle) < 0.85 * (0.84 - up)) & (up < 0.84)
        shaft = (np.abs(across - middle) < 0.022) & (up > 0.58) & (up <= 0.72)
        ink = np.maximum(ink, (head | shaft).astype(float))
    ink = np.maximum(ink, ((np.abs(up - 0.54) < 0.01) & (np.abs(across - 0.75) < 0.15)) * 1.0)
    return _mix(0.85 * ink, card, _paint(np.ones((SIDE, SIDE)), (0.02, 0.015, 0.012)))


def cardboard_top() -> Picture:
    """The closed flaps of a cardboard box under a strip of tape."""
    across, _ = _grid()
    slit = 1 - 0.6 * (1 - _step(np.abs(across - 0.5), 0.006, 0.006))[..., None]
    tape = _paint(1 + 0.04 * _noise(28, 30), (0.55, 0.42, 0.22))
    return _mix(0.8 * (np.abs(across - 0.5) < 0.09), _card() * slit, tape)


def _card() -> Picture:
    _, up = _grid()
    flutes = 1 + 0.03 * np.sin(2 * np.pi * 60 * up)
    return _paint(flutes * (1 + 0.05 * _noise(26, 1.5) + 0.05 * _noise(27, 40)), (0.4, 0.235, 0.11))


def cushion() -> Picture:
    """Coarse cloth with a pattern of diamonds in a darker shade."""
    across, up = _grid()
    warp = 0.5 + 0.5 * np.sin(2 * np.pi * 90 * across)
    weft = 0.5 + 0.5 * np.sin(2 * np.pi * 90 * up)
    checks = (np.floor(across * 90) + np.floor(up * 90)) % 2
    cloth = 0.72 + 0.28 * np.where(checks == 0, warp, weft)
    diamond = np.abs(((across * 5) % 1) - 0.5) + np.abs(((up * 5) % 1) - 0.5)
    pattern = 1 - 0.45 * (np.abs(diamond - 0.36) < 0.06)
    return _paint(cloth * pattern * (1 + 0.08 * _noise(29, 1.2)), "blue")


def label() -> Picture:
    """The label of a can: a white band with stripes around a coloured field."""
    across, up = _grid()
    flat = 1 + 0.02 * _noise(30, 2)
    white = (np.abs(up - 0.5) < 0.1) | (np.abs(up - 0.12) < 0.02) | (np.abs(up - 0.88) < 0.02)
    letters = (np.abs(up - 0.5) < 0.045) & (((across * 26) % 1) < 0.62) & ((across * 4) % 1 < 0.7)
    whole = _mix(white * 1.0, _paint(flat, "red"), _paint(flat, "white"))
    return _mix(letters * 0.9, whole, _paint(flat, (0.02, 0.02, 0.02)))


def bark() -> Picture:
    """Furrowed bark."""
    ridges = np.abs(_noise(31, 5, 34)) + 0.4 * np.abs(_noise(32, 2.5, 12))
    shade = np.clip(0.25 + 0.5 * ridges, 0.2, 1.5) * (1 + 0.12 * _noise(33, 1.5))
    return _paint(shade, (0.13, 0.075, 0.035))


def rings() -> Picture:
    """The sawn end of a trunk: rings, cracks and a rim of bark."""
    across, up = _grid()
    x, y = across - 0.49, up - 0.52
    out = np.hypot(x, y) * (1 + 0.03 * _noise(34, 60))
    tone = 0.78 + 0.22 * np.sin(2 * np.pi * 24 * out + 0.6 * _noise(35, 30))
    cracks = _step(np.abs(np.sin(3.5 * np.arctan2(y, x) + 0.3 * _noise(36, 40))), 0.03, 0.04)
    wood = _paint(tone * (0.55 + 0.45 * cracks) * (1 + 0.06 * _noise(37, 1.5)), (0.5, 0.3, 0.13))
    return _mix(_step(out, 0.475, 0.02), wood, _paint(np.ones((SIDE, SIDE)), (0.06, 0.035, 0.018)))


def granite() -> Picture:
    """Speckled grey stone with patches of lichen."""
    speckles = 1 + 0.3 * _noise(38, 1.2) + 0.18 * _noise(39, 5) + 0.12 * _noise(40, 40)
    stone = _paint(np.clip(speckles, 0.2, 1.9), (0.2, 0.195, 0.185))
    return _mix(0.4 * _step(_noise(41, 9), 1.5, 0.4), stone, _paint(speckles, (0.3, 0.3, 0.12)))


TEXTURES: Mapping[str, Callable[[], Picture]] = {
    made.__name__: made
    for made in (
        *(watermelon, soccer_ball, basketball, pumpkin, yarn, easter_egg, globe, wicker, crate),
        *(cardboard, cardboard_top, cushion, label, bark, rings, granite),
    )
}
"""Textures by name; each returns linear red, green and blue, of shape (512, 512, 3)."""
