"""Environment pictures made for tests, and libraries that hold one."""

import json
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eqforge.core.identity import sha256_hex
from eqforge.generators.scenes.assets import AssetLibrary
from eqforge.schemas.records.scenes import Vector

EVEN = np.ones((64, 128, 3), np.float32)
Picture = NDArray[np.float32]


def towards(azimuth_deg: float, height_deg: float) -> Vector:
    azimuth, height = math.radians(azimuth_deg), math.radians(height_deg)
    flat = math.cos(height)
    return (flat * math.cos(azimuth), flat * math.sin(azimuth), math.sin(height))


def sky_with_sun(
    azimuth_deg: float, height_deg: float, light: float = 20000.0, rows: int = 256
) -> Picture:
    """A sky of 0.5 with a reddish sun of 4 degrees; below the horizon it is black."""
    picture = np.full((rows, 2 * rows, 3), 0.5, np.float32)
    picture[rows // 2 :] = 0
    at = np.array(towards(azimuth_deg, height_deg))
    picture[directions(rows) @ at > math.cos(math.radians(2))] = (light, 0.8 * light, 0.5 * light)
    return picture


def directions(rows: int) -> NDArray[np.float64]:
    """Where pixels are seen by Blender: its `direction_to_equirectangular`, the other way."""
    u, v = (np.arange(2 * rows) + 0.5) / (2 * rows), 1 - (np.arange(rows) + 0.5) / rows
    around, up = math.pi - 2 * math.pi * u, math.pi * (v - 0.5)
    flat = np.cos(up)[:, None]
    z = np.sin(up)[:, None] * np.ones_like(around)
    return np.stack([flat * np.cos(around), flat * np.sin(around), z], -1)


def own_library(folder: Path, name: str, data: bytes) -> AssetLibrary:
    entry = {
        "asset_type": "Texture",
        "kwargs": {"filename": name},
        "path": None,
        "sha256": sha256_hex(data),
    }
    (folder / name).write_bytes(data)
    (folder / "mine.json").write_text(json.dumps({"assets": {"sky": entry}}))
    return AssetLibrary(str(folder / "mine.json"), str(folder / "cache"))


def radiance(picture: Picture, is_packed: bool) -> bytes:
    """A Radiance file: red, green and blue share an exponent; runs of one byte where packed."""
    power = np.frexp(picture.max(axis=-1))[1]
    parts = np.ldexp(picture, 8 - power[..., None]).astype(np.uint8)
    shared = np.concatenate([parts, (power + 128).astype(np.uint8)[..., None]], -1)
    high, wide = shared.shape[:2]
    head = f"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y {high} +X {wide}\n".encode()
    if not is_packed:
        return head + shared.tobytes()
    lines = []
    for row in shared:
        lines.append(bytes((2, 2, wide >> 8, wide & 255)))
        for channel in row.T:
            assert wide % 64 == 0
            for run in channel.reshape(-1, 64):
                same = (run == run[0]).all()
                lines.append(bytes((192, run[0])) if same else b"\x40" + run.tobytes())
    return head + b"".join(lines)
