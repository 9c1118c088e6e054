"""Reads environment pictures, whose pixels have no greatest value: OpenEXR and Radiance files.

Source: Ward, Real Pixels, Graphics Gems II, 1991; Radiance's `ray/src/common/color.c`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from eqforge.core.errors import InputError
from eqforge.core.late import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SUFFIXES = (".exr", ".hdr")

_SIZE = re.compile(rb"\n\n-Y (\d{1,5}) \+X (\d{1,5})\n")
_LONG_LINES = range(8, 0x8000)
"""Widths whose scan lines may be packed channel by channel."""

_MOST_IN_TWO_BYTES = 127
"""The longest run of a channel that two bytes stand for."""


def read_high_range(path: Path) -> NDArray[np.float32]:
    """Reads an environment picture.

    Args:
      path: an OpenEXR file with the channels R, G and B, or a Radiance file, by its suffix.

    Returns:
      Linear red, green and blue, float32 [height, width, 3], the highest row first.

    Raises:
      InputError: it has another suffix, or cannot be read.
    """
    try:
        if path.suffix.lower() == ".exr":
            return _read_exr(path)
        if path.suffix.lower() == ".hdr":
            return read_radiance(path.read_bytes())
    except (OSError, RuntimeError, ValueError, KeyError, IndexError) as error:
        raise InputError(f"{path.name}: no readable environment picture: {error}") from error
    raise InputError(f"{path.name}: an environment picture ends in {' or '.join(SUFFIXES)}")


def _read_exr(path: Path) -> NDArray[np.float32]:
    import OpenEXR

    with OpenEXR.File(str(path)) as file:
        channels = file.channels()
        name = next((each for each in ("RGB", "RGBA") if each in channels), None)
        if name is None:
            raise ValueError(f"it has the channels {', '.join(channels)}, not R, G and B")
        return np.array(channels[name].pixels[..., :3], np.float32)


def read_radiance(data: bytes) -> NDArray[np.float32]:
    """Decodes a Radiance picture, float32 [height, width, 3].

    Raises:
      ValueError: it is cut off, its rows do not go from the top left to the bottom right, or its
        colours are not red, green and blue.
    """
    head = _SIZE.search(data)
    if not data.startswith(b"#?") or head is None:
        raise ValueError("its header is not that of a Radiance picture from the top left")
    if b"32-bit_rle_xyze" in data[: head.start()]:
        raise ValueError("its colours are XYZ, not red, green and blue")
    height, width = int(head[1]), int(head[2])
    if len(data) < height * (width // _MOST_IN_TWO_BYTES):
        raise ValueError(f"it is cut off: {len(data):,} bytes of {width} x {height} pixels")
    shared = np.empty((height, width, 4), np.uint8)
    at = head.end()
    for row in range(height):
        at = _read_line(data, at, shared[row])
    power = shared[..., 3:].astype(np.int32) - (128 + 8)
    light: NDArray[np.float32] = np.ldexp(shared[..., :3].astype(np.float32), power)
    return np.where(shared[..., 3:] == 0, np.float32(0), light)


def _read_line(data: bytes, at: int, line: NDArray[np.uint8]) -> int:
    """Fills a scan line, uint8 [width, 4], from an offset; returns the offset of the next."""
    width = len(line)
    mark = bytes((2, 2, width >> 8 & 255, width & 255))
    if width not in _LONG_LINES or data[at : at + 4] != mark:
        line[:] = np.frombuffer(data, np.uint8, width * 4, at).reshape(width, 4)
        return at + 4 * width
    at += 4
    for channel in range(4):
        x = 0
        while x < width:
            count = data[at]
            repeats = count > 128
            count -= 128 if repeats else 0
            if count == 0 or x + count > width:
                raise ValueError("a scan line is damaged")
            taken = 1 if repeats else count
            line[x : x + count, channel] = np.frombuffer(data, np.uint8, taken, at + 1)
            at, x = at + 1 + taken, x + count
    return at
