"""Measures each object in a rendered picture: its box, its pixels, and how much of it is hidden.

Pixels are square and counted from the top left; (0, 0) is the upper left corner of the first. In
camera coordinates x is to the right, y up and z towards the viewer.
"""

import math

import numpy as np
from numpy.typing import NDArray

from eqforge.schemas.records.scenes import SceneCamera, Vector
from eqforge.schemas.records.values import PixelBox

NEAREST_M = 0.1
"""Near clipping distance: anything nearer is not in the picture; kubric's default."""

BORDER = 1.0
"""How far beyond the picture's edges an object's pixels are counted, in picture widths: the
projection of an object that extends behind the camera is unbounded."""


def box_of(mask: NDArray[np.bool_]) -> PixelBox | None:
    """Returns the box around the pixels of a mask, bool [height, width]; None if there are none."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return None
    x, y = int(columns[0]), int(rows[0])
    return PixelBox(x=x, y=y, width=int(columns[-1]) - x + 1, height=int(rows[-1]) - y + 1)


def to_camera(points: NDArray[np.float64], camera: SceneCamera) -> NDArray[np.float64]:
    """Returns points of the scene, [..., 3] in metres, in camera coordinates."""
    back = np.subtract(camera.position, camera.look_at)
    back = back / np.linalg.norm(back)
    right = np.cross((0.0, 0.0, 1.0), back)
    length = np.linalg.norm(right)
    right = right / length if length > 1e-8 else np.array((1.0, 0.0, 0.0))
    up = np.cross(back, right)
    seen: NDArray[np.float64] = (points - np.array(camera.position)) @ np.stack(
        (right, up, back), axis=1
    )
    return seen


def depth_of(point: Vector, camera: SceneCamera) -> float:
    """Returns the depth of a point, its distance from the camera along the view, in metres."""
    return -float(to_camera(np.array(point), camera)[2])


def full_px(triangles: NDArray[np.float64], camera: SceneCamera, resolution: int) -> int:
    """Counts the pixels that a surface covers if nothing hides it, up to `BORDER` beyond the edges.

    A pixel is covered if its centre is. Rasterising the triangles takes a few milliseconds;
    rendering the object alone would take Cycles at least 50, and end at the picture's edges.

    Args:
      triangles: float64 [triangles, 3 corners, 3], scene coordinates in metres.
      camera: the camera.
      resolution: width and height of the picture in pixels.
    """
    seen = _before_the_camera(to_camera(triangles, camera))
    focal_px = camera.focal_length_mm / camera.sensor_width_mm * resolution
    flat = seen[..., :2] / -seen[..., 2:] * (focal_px, -focal_px) + resolution / 2
    border = math.ceil(BORDER * resolution)
    low = np.maximum(np.floor(flat.min(axis=(0, 1), initial=np.inf)), -border)
    high = np.minimum(np.ceil(flat.max(axis=(0, 1), initial=-np.inf)), resolution + border)
    if (low >= high).any():
        return 0
    width, height = (high - low).astype(int)
    return covered_px(flat - low, width, height)


def _before_the_camera(triangles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clips triangles, [n, 3 corners, 3], to what lies beyond the plane z = -NEAREST_M."""
    inside = triangles[..., 2] <= -NEAREST_M
    count = inside.sum(axis=1)
    pieces = [triangles[count == 3]]
    for wanted in (1, 2):  # corners inside: a triangle or a quadrilateral is left
        which = count == wanted
        lone = np.argmax(inside[which] == (wanted == 1), axis=1)
        order = (lone[:, None] + np.arange(3)) % 3
        tip, left, right = np.moveaxis(
            np.take_along_axis(triangles[which], order[..., None], axis=1), 1, 0
        )
        cut_left, cut_right = _cut(tip, left), _cut(tip, right)
        if wanted == 1:
            pieces.append(np.stack((tip, cut_left, cut_right), axis=1))
        else:
            pieces.append(np.stack((left, right, cut_left), axis=1))
            pieces.append(np.stack((right, cut_right, cut_left), axis=1))
    return np.concatenate(pieces)


def _cut(start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns where lines between points, each [n, 3], cross the plane z = -NEAREST_M."""
    share = (-NEAREST_M - start[:, 2]) / (end[:, 2] - start[:, 2])
    return start + share[:, None] * (end - start)


def covered_px(triangles: NDArray[np.float64], width: int, height: int) -> int:
    """Counts the pixels of a picture whose centres lie in at least one triangle.

    Every triangle covers one run of pixels in a row; the cumulative sum of +1 where a run begins
    and -1 after its end is the number of triangles over a pixel.

    Args:
      triangles: float64 [triangles, 3 corners, 2], x and y in pixels.
      width: of the picture, in pixels.
      height: of the picture, in pixels.
    """
    y = triangles[..., 1]
    first = np.clip(np.ceil(y.min(axis=1) - 0.5), 0, height).astype(np.intp)
    last = np.clip(np.ceil(y.max(axis=1) - 0.5), 0, height).astype(np.intp)
    rows_of = np.maximum(last - first, 0)
    owner = np.repeat(np.arange(len(triangles)), rows_of)
    row = np.arange(len(owner)) - np.repeat(np.cumsum(rows_of) - rows_of, rows_of) + first[owner]
    begin, end = _runs(triangles[owner], row + 0.5, width)
    steps = np.zeros((height, width + 1), np.int32)
    np.add.at(steps, (row, begin), 1)
    np.add.at(steps, (row, end), -1)
    return int(np.count_nonzero(np.cumsum(steps, axis=1)))


def _runs(
    triangles: NDArray[np.float64], y: NDArray[np.float64], width: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Returns the first pixel of each triangle in its row, and the one after the last.

    Edges are evaluated from the end with the smaller y, whatever the triangle's winding, so that
    two triangles that share an edge leave no gap.
    """
    ends = np.stack((triangles, np.roll(triangles, -1, axis=1)))
    low = np.where(ends[0, ..., 1:] <= ends[1, ..., 1:], ends[0], ends[1])
    high = np.where(ends[0, ..., 1:] <= ends[1, ..., 1:], ends[1], ends[0])
    crosses = (low[..., 1] <= y[:, None]) & (y[:, None] < high[..., 1])
    rise = np.where(crosses, high[..., 1] - low[..., 1], 1.0)
    share = (y[:, None] - low[..., 1]) / rise
    x = low[..., 0] + share * (high[..., 0] - low[..., 0])
    left = np.where(crosses, x, np.inf).min(axis=1, initial=np.inf)
    right = np.where(crosses, x, -np.inf).max(axis=1, initial=-np.inf)
    begin, after = (
        np.clip(np.ceil(edge - 0.5), 0, width).astype(np.intp) for edge in (left, right)
    )
    return begin, np.maximum(begin, after)
