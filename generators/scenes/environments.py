"""Measure how much light environment images give, and fit scenes to them.

The brightest pixels of an environment image are tens of thousands of times brighter than the rest
and cover almost no area. Few light paths hit them, and each hit leaves a white speck. They are
clamped, and a soft sun restores the light that was lost.
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.visible import counted
from eqforge.generators.scenes.assets import AssetLibrary, Place, stage_assets
from eqforge.generators.scenes.palette import LUMINANCE
from eqforge.generators.scenes.settings import SceneSettings
from eqforge.schemas.records.scenes import Environment, SceneCamera, Sun, Vector

if TYPE_CHECKING:
    from numpy.typing import NDArray


WHITE_CARDS = 8.0  # least clamp, in radiances of a white card that lies on the floor
KEPT = 0.998  # share of the upper hemisphere that no clamp reaches: a wide bright sky is no speck
NEXT_TO_NOTHING = 0.01  # share of the light on the floor below which what was clamped is no sun
INFINITE = 65504.0  # stands for infinite pixels: the greatest number of their format
HEIGHT_DEG = (24.0, 38.0)  # of the sun: shadows are 1.3 to 2.2 times as long as things are tall
ASIDE_DEG = (40.0, 105.0)  # of the sun from the camera, seen from above
WIDTH_DEG = (2.0, 6.0)  # diameter of the sun
FACING = (0.8, 1.0)  # the sun's irradiance on what faces it, as a share of all light on the floor
TINT = (0.55, 1.5)  # range of red, green and blue of the sun, which balances the sky
DIGITS = 5  # significant digits of what is measured: the last bits of a sum differ between machines


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """The light of an environment image as it is: not rotated, exposure 1.

    Attributes:
      clamp: maximum value that its pixels keep.
      irradiance: light of the clamped image on the floor, red, green and blue.
      sun: the light that the clamp removed; None if negligible.
      bright_deg: direction of its brightest side, counter-clockwise from the x axis.
    """

    clamp: float
    irradiance: Vector
    sun: Sun | None
    bright_deg: float

    @property
    def exposure(self) -> float:
        """Factor at which an 18% grey card on the floor has L* 50 in sRGB."""
        sun = 0.0 if self.sun is None else luminance(self.sun.strength) * self.sun.direction[2]
        return math.pi / (luminance(self.irradiance) + sun)


def luminance(colour: Vector) -> float:
    return sum(part * value for part, value in zip(LUMINANCE, colour, strict=True))


def measure_environment(picture: NDArray[np.float32], name: str = "picture") -> Measured:
    """Measure an environment image, float32 [height, 2 * height, 3], equirectangular.

    The top row comes first. The middle column points along the x axis; left is counter-clockwise.
    """
    upper = _upper_half(picture, name)
    angles, card, directions = _sphere(upper.shape[0], picture.shape[0])
    light = upper @ np.array(LUMINANCE, np.float32)
    total = float((light * card[:, None]).sum(dtype=np.float64))
    if total <= 0:
        raise InputError(
            f"{name}: the upper half of the environment image is black, so it gives no light"
        )
    order = np.argsort(light, axis=None)
    reached = np.cumsum(np.repeat(angles, light.shape[1])[order])
    dark = order[np.searchsorted(reached, KEPT * reached[-1])]
    clamp = _rounded(max(WHITE_CARDS * total / math.pi, float(light.reshape(-1)[dark])))
    kept = np.minimum(upper, np.float32(clamp))
    power = (light * angles[:, None])[..., None]
    x, y, _ = (float(each) for each in (power * directions).sum(axis=(0, 1), dtype=np.float64))
    is_even = math.hypot(x, y) < NEXT_TO_NOTHING * float(power.sum(dtype=np.float64))
    return Measured(
        clamp=clamp,
        irradiance=_vector((kept * card[:, None, None]).sum(axis=(0, 1), dtype=np.float64)),
        sun=_clamped_away(upper - kept, angles, directions, NEXT_TO_NOTHING * total),
        bright_deg=0.0 if is_even else round(math.degrees(math.atan2(y, x)), 1),
    )


def _upper_half(picture: NDArray[np.float32], name: str) -> NDArray[np.float32]:
    height, width = picture.shape[:2]
    if width != 2 * height:
        raise InputError(
            f"{name}: expected an equirectangular environment image, twice as wide as high; found "
            f"{width} x {height} pixels"
        )
    if unclear := int(np.isnan(picture).any(axis=-1).sum()):
        raise InputError(f"{name}: the environment image has {counted(unclear, 'pixels')} with NaN")
    return np.clip(picture[: (height + 1) // 2], 0, np.float32(INFINITE))


def _sphere(
    rows: int, height: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float32]]:
    """Return, for each row, a pixel's solid angle, its share of the floor, and directions."""
    edges = np.minimum(np.arange(rows + 1) * math.pi / height, math.pi / 2)
    step = math.pi / height
    angles = step * -np.diff(np.cos(edges))
    card = step * np.diff(np.sin(edges) ** 2) / 2
    down = (edges[:-1] + edges[1:]) / 2
    around = (0.5 - (np.arange(2 * height) + 0.5) / (2 * height)) * 2 * math.pi
    directions = np.empty((rows, 2 * height, 3), np.float32)
    directions[..., 0] = np.sin(down)[:, None] * np.cos(around)
    directions[..., 1] = np.sin(down)[:, None] * np.sin(around)
    directions[..., 2] = np.cos(down)[:, None]
    return angles, card, directions


def _clamped_away(
    removed: NDArray[np.float32],
    angles: NDArray[np.float64],
    directions: NDArray[np.float32],
    least: float,
) -> Sun | None:
    rows, columns = np.nonzero(removed.any(axis=-1))
    flux = removed[rows, columns].astype(np.float64) * angles[rows, None]
    towards = directions[rows, columns].astype(np.float64)
    power = flux @ np.array(LUMINANCE)
    middle = power @ towards
    if middle[2] < least:
        return None
    direction = middle / np.linalg.norm(middle)
    facing = np.maximum(towards @ direction, 0)
    away = np.arccos(np.minimum(facing, 1))
    spread = math.sqrt(float(power @ away**2) / float(power.sum()))
    # A disc of radius r spreads by r / sqrt(2).
    angle = min(math.degrees(2 * math.sqrt(2) * spread), 180.0)
    return Sun(
        direction=_vector(direction),
        strength=_vector(facing @ flux),
        angle_deg=round(max(angle, 0.5), 2),
    )


def environment_ids() -> tuple[str, ...]:
    return tuple(key for key, each in stage_assets().items() if each.category == "environment")


def place_of(asset_id: str) -> Place | None:
    asset = stage_assets().get(asset_id)
    return None if asset is None else msgspec.convert(asset.entry["place"], Place)


def check_environments(settings: SceneSettings, library: AssetLibrary) -> None:
    for asset_id in settings.hdri:
        if asset_id not in library:
            hdri_ids = (key for key, each in library.assets.items() if each.kind == "hdri")
            known = ", ".join(dict.fromkeys([*hdri_ids, *environment_ids()]))
            raise InputError(
                f"--hdri {asset_id}: unknown environment image; expected one of {known}"
            )
        asset = library.asset(asset_id)
        if asset.kind != "hdri" or asset.category == "floor":
            kind = "a mesh" if asset.kind == "object" else "a floor"
            raise InputError(f"--hdri {asset_id}: expected an environment image, found {kind}")
        if settings.stage == "photo":
            measured_of(library, asset_id)


def measured_of(library: AssetLibrary, asset_id: str) -> Measured:
    asset = library.asset(asset_id)
    if (known := asset.entry.get("measured")) and asset is stage_assets().get(asset_id):
        return msgspec.convert(known, Measured)
    return _measured_file(library.unpack(asset_id).render, asset_id)


@functools.cache
def _measured_file(path: Path, asset_id: str) -> Measured:
    # An unpacked asset's folder is named after its digest.
    return measure_environment(read_high_range(path), f"--hdri {asset_id}")


def draw_environment(
    rng: Random, library: AssetLibrary, settings: SceneSettings, camera: SceneCamera
) -> Environment:
    """Draw an environment image, and choose its rotation and exposure.

    Its bright side goes to the camera's left or right, with a sun at its own height, clipped to
    HEIGHT_DEG. A grey card on the floor gets the same light in all images.
    """
    asset_id = rng.choice(settings.hdri or environment_ids())
    measured = measured_of(library, asset_id)
    height, angle = rng.uniform(*HEIGHT_DEG), rng.uniform(*WIDTH_DEG)
    aside = rng.choice((-1, 1)) * rng.uniform(*ASIDE_DEG)
    facing = rng.uniform(*FACING)
    bright = measured.bright_deg
    if (sun := measured.sun) is not None:
        height = _within(math.degrees(math.asin(min(sun.direction[2], 1.0))), HEIGHT_DEG)
        bright = math.degrees(math.atan2(sun.direction[1], sun.direction[0]))
        angle = _within(sun.angle_deg, WIDTH_DEG)
    azimuth = aside + math.degrees(
        math.atan2(camera.position[1] - camera.look_at[1], camera.position[0] - camera.look_at[0])
    )
    share = facing * math.sin(math.radians(height))
    sky = luminance(measured.irradiance)
    # The sun's colour, of luminance 1, makes the light on the floor neutral.
    red, green, blue = (
        _within((1 - (1 - share) * (value / sky)) / share, TINT) for value in measured.irradiance
    )
    colour = np.array((red, green, blue)) / luminance((red, green, blue))
    flat, up = math.cos(math.radians(height)), math.sin(math.radians(height))
    east, north = math.cos(math.radians(azimuth)), math.sin(math.radians(azimuth))
    return Environment(
        asset=asset_id,
        turn_deg=round((azimuth - bright) % 360, 2),
        exposure=_rounded(math.pi * (1 - share) / sky),
        clamp=measured.clamp,
        sun=Sun(
            direction=_vector(np.array([flat * east, flat * north, up])),
            strength=_vector(math.pi * facing * colour),
            angle_deg=round(angle, 2),
        ),
    )


def _within(value: float, ends: tuple[float, float]) -> float:
    return min(max(value, ends[0]), ends[1])


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _vector(values: NDArray[np.float64]) -> Vector:
    x, y, z = (_rounded(value) for value in values.tolist())
    return (x, y, z)


SUFFIXES = (".exr", ".hdr")

_SIZE = re.compile(rb"\n\n-Y (\d{1,5}) \+X (\d{1,5})\n")
_MOST_IN_TWO_BYTES = 127  # the longest run of a channel that two bytes stand for


def read_high_range(path: Path) -> NDArray[np.float32]:
    """Read OpenEXR (R, G, B) or Radiance to linear float32 [height, width, 3], top row first."""
    try:
        if path.suffix.lower() == ".exr":
            return _read_exr(path)
        if path.suffix.lower() == ".hdr":
            return read_radiance(path.read_bytes())
    except (OSError, RuntimeError, ValueError, KeyError, IndexError) as error:
        raise InputError(f"{path.name}: the environment image cannot be read: {error}") from error
    raise InputError(
        f"{path.name}: expected an environment image in {' or '.join(SUFFIXES)} format"
    )


def _read_exr(path: Path) -> NDArray[np.float32]:
    import OpenEXR

    with OpenEXR.File(str(path)) as file:
        channels = file.channels()
        name = next((each for each in ("RGB", "RGBA") if each in channels), None)
        if name is None:
            raise ValueError(f"expected the channels R, G and B; found {', '.join(channels)}")
        return np.array(channels[name].pixels[..., :3], np.float32)


def read_radiance(data: bytes) -> NDArray[np.float32]:
    """Decode a Radiance image, float32 [height, width, 3]; raise ValueError if it is damaged."""
    import cv2

    head = _SIZE.search(data)
    if not data.startswith(b"#?") or head is None:
        raise ValueError("expected a Radiance image with rows from top to bottom")
    if b"32-bit_rle_xyze" in data[: head.start()]:
        raise ValueError("expected RGB colours, found XYZ colours")
    height, width = int(head[1]), int(head[2])
    if len(data) < height * (width // _MOST_IN_TWO_BYTES):
        raise ValueError(f"{len(data):,} bytes are too few for {width} x {height} pixels")
    # OpenCV would print why it cannot read an image.
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
    try:
        found = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error as error:
        raise ValueError(f"the image is too large: {width} x {height} pixels") from error
    if found is None:
        raise ValueError("a scan line is damaged or missing, or the header states no format")
    return np.ascontiguousarray(found[..., ::-1], np.float32)
