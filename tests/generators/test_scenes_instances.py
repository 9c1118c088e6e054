"""Boxes, depths and covered pixels are those that simple geometry gives."""

import io
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from eqforge.generators.scenes.render_child import (
    box_of,
    covered_px,
    depth_of,
    encode_png,
    full_px,
    to_camera,
)
from eqforge.schemas.records.scenes import SceneCamera
from eqforge.schemas.records.values import PixelBox

CAMERA = SceneCamera(position=(0.0, -10.0, 0.0), look_at=(0.0, 0.0, 0.0))


def square(half: float, y: float = 0.0, x: float = 0.0) -> NDArray[np.float64]:
    """Two triangles that face the camera."""
    corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * half
    points = np.stack((corners[:, 0] + x, np.full(4, y), corners[:, 1]), axis=1)
    return points[[[0, 1, 2], [0, 2, 3]]]


def middles_inside(triangles: NDArray[np.float64], width: int, height: int) -> int:
    """Asks of every pixel's middle on which side of the edges it is."""
    x, y = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    covered = np.zeros((height, width), bool)
    for corners in triangles:
        sides = [
            (bx - ax) * (y - ay) - (by - ay) * (x - ax)
            for (ax, ay), (bx, by) in zip(corners, np.roll(corners, -1, axis=0), strict=True)
        ]
        covered |= np.all(np.array(sides) > 0, axis=0) | np.all(np.array(sides) < 0, axis=0)
    return int(covered.sum())


@pytest.mark.parametrize("seed", range(5))
def test_pixels_under_triangles_are_counted_once(seed: int) -> None:
    triangles = np.random.default_rng(seed).uniform(-20, 60, (12, 3, 2))
    assert covered_px(triangles, 40, 30) == middles_inside(triangles, 40, 30)


def test_a_square_covers_the_square_of_its_projected_side() -> None:
    side_px = 2 * 1.5 / 10 * 35 / 32 * 64  # size / distance * focal length / sensor * resolution
    assert full_px(square(1.5), CAMERA, 64) == pytest.approx(side_px**2, abs=2 * side_px)
    assert full_px(square(1.5), CAMERA, 640) == pytest.approx(100 * side_px**2, rel=0.01)


def test_what_lies_beyond_the_edge_counts_too() -> None:
    inside, outside = square(1.0), square(1.0, x=-10 * 16 / 35)  # its middle on the left edge
    assert full_px(outside, CAMERA, 512) == pytest.approx(full_px(inside, CAMERA, 512), rel=0.01)


def test_farther_than_a_width_beyond_the_edge_nothing_counts() -> None:
    assert full_px(square(1.0, x=-30.0), CAMERA, 64) == 0
    assert full_px(square(1e3), CAMERA, 64) == (3 * 64) ** 2


def test_what_is_behind_the_camera_is_cut_off() -> None:
    """A floor through the camera's feet ends at the horizon, in the middle of the picture."""
    camera = SceneCamera(position=(0.0, 0.0, 1.0), look_at=(0.0, 1.0, 1.0))
    corners = np.array([(-1e4, -1e4, 0), (1e4, -1e4, 0), (1e4, 1e4, 0), (-1e4, 1e4, 0.0)])
    for order in (corners, np.roll(corners, 1, axis=0), corners[::-1]):
        floor = order[[[0, 1, 2], [0, 2, 3]]]
        below_the_horizon = 3 * 64 * (64 // 2 + 64)
        assert full_px(floor, camera, 64) == pytest.approx(below_the_horizon, rel=0.01)
    assert full_px(square(1.0, y=-20.0), CAMERA, 64) == 0


def test_camera_coordinates_are_right_up_and_towards_the_viewer() -> None:
    camera = SceneCamera(position=(3.0, 4.0, 5.0), look_at=(3.0, 1.0, 1.0))
    view = np.array((0.0, -3.0, -4.0)) / 5
    points = np.array(camera.position) + np.array((2 * view, 2 * view + (-1, 0, 0)))
    assert to_camera(points, camera) == pytest.approx(np.array([(0, 0, -2), (1, 0, -2)]))
    assert depth_of((3.0, 1.0, 1.0), camera) == pytest.approx(5.0)
    assert depth_of((9.0, 1.0, 1.0), camera) == pytest.approx(5.0)


def test_a_camera_may_look_straight_down() -> None:
    camera = SceneCamera(position=(0.0, 0.0, 4.0), look_at=(0.0, 0.0, 0.0))
    assert depth_of((2.0, 3.0, 1.0), camera) == pytest.approx(3.0)
    assert math.isclose(float(np.linalg.norm(to_camera(np.ones(3), camera))), math.sqrt(11))


def test_a_box_holds_all_pixels_and_no_empty_edge() -> None:
    mask = np.zeros((6, 8), bool)
    assert box_of(mask) is None
    mask[2, 5] = mask[4, 3] = True
    assert box_of(mask) == PixelBox(x=3, y=2, width=3, height=3)


@pytest.mark.parametrize(("dtype", "highest"), [(np.uint8, 255), (np.uint16, 300)])
def test_a_mask_keeps_its_numbers(dtype: type[np.unsignedinteger], highest: int) -> None:
    numbers = np.arange(highest - 5, highest + 1, dtype=dtype).reshape(2, 3)
    read = np.asarray(Image.open(io.BytesIO(encode_png(numbers))))
    assert read.dtype == dtype
    assert read.tolist() == numbers.tolist()
