"""Compute where objects appear in an image, and camera distances, without a renderer.

A camera's axes are right, up and forward. Images are square. Positions are in image widths from the
top left corner: x to the right, y down, both in [0, 1] inside the image.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from eqforge.generators.scenes.settings import MAX_STEP_BACK, SceneSettings
from eqforge.schemas.records.scenes import SceneCamera, SceneObject, Vector

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Points: TypeAlias = "NDArray[np.float64]"
Bounds = tuple[Vector, Vector]
DECIMALS = 4  # number of decimals in a spec: the last bits of a sine differ between machines
MIN_DEPTH_M = 0.05  # anything nearer to the camera's plane, or behind it, is not in the picture


@functools.cache
def directions() -> Points:
    """Return the unit vectors along which extents of flat shapes are compared, [2, 32]."""
    angles = np.arange(32) * math.pi / 32
    return np.stack([np.cos(angles), np.sin(angles)])


@functools.lru_cache(maxsize=16)
def camera_axes(camera: SceneCamera) -> Points:
    """Return the unit vectors right, up and forward as the rows of a matrix, [3, 3].

    Raises:
      ValueError: the camera looks straight up or down, or at its own position.
    """
    x, y, z = np.subtract(camera.look_at, camera.position).tolist()
    flat, length = math.hypot(x, y), math.hypot(x, y, z)
    if flat < 1e-9:
        raise ValueError(f"the camera at {camera.position} must not look straight up or down")
    right = (y / flat, -x / flat, 0.0)
    up = (-x * z / flat / length, -y * z / flat / length, flat / length)
    axes = np.array([right, up, (x / length, y / length, z / length)])
    axes.setflags(write=False)
    return axes


def to_camera(camera: SceneCamera, points: ArrayLike) -> Points:
    """Convert points, [n, 3], to metres to the camera's right, above it and in front of it."""
    found: Points = np.subtract(points, camera.position) @ camera_axes(camera).T
    return found


def project(camera: SceneCamera, points: ArrayLike) -> Points:
    """Project points, [n, 3], to [n, 2] in image widths; NaN if nearer than `MIN_DEPTH_M`."""
    seen = to_camera(camera, points)
    depth = seen[:, 2:]
    if depth.min() <= MIN_DEPTH_M:
        depth = np.where(depth > MIN_DEPTH_M, depth, np.nan)
    zoom = camera.focal_length_mm / camera.sensor_width_mm
    found: Points = 0.5 + seen[:, :2] * (zoom, -zoom) / depth
    return found


def corners(item: SceneObject, bounds: Bounds) -> Points:
    """Return the corners of an object's box in the scene, [8, 3], the lower four first."""
    (x0, y0, z0), (x1, y1, z1) = bounds
    x, y = (x1 - x0) / 2, (y1 - y0) / 2
    lower = np.array([(-x, -y, 0.0), (x, -y, 0.0), (x, y, 0.0), (-x, y, 0.0)])
    box = np.concatenate([lower, lower + np.array((0.0, 0.0, z1 - z0))]) * item.scale
    cosine, sine = math.cos(math.radians(item.yaw_deg)), math.sin(math.radians(item.yaw_deg))
    turn = np.array([(cosine, -sine, 0.0), (sine, cosine, 0.0), (0.0, 0.0, 1.0)])
    return box @ turn.T + item.position


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Shape:
    """A convex flat shape, given by its extent along each of `directions()`, [32] each."""

    low: Points
    high: Points

    def gap(self, other: Shape) -> float:
        """Return a lower bound of the distance between two shapes; negative if they may overlap."""
        return float(np.maximum(other.low - self.high, self.low - other.high).max())

    def area(self) -> float:
        """Return the area in squared extent units; exact for a circle.

        The tangents at right angles to the directions bound a polygon (Minkowski).
        """
        reach = np.concatenate([self.high, -self.low, self.high[:1]])
        step = math.pi / len(self.high)
        sides = (reach[1:] - reach[:-1] * math.cos(step)) / math.sin(step)
        return float(reach[:-1] @ sides)

    def contains(self, points: Points) -> NDArray[np.bool_]:
        """Return which points, [n, 2], are in the shape; bool [n]."""
        along = points @ directions()
        return np.all((along >= self.low) & (along <= self.high), axis=1)

    def covered_by(self, others: list[Shape]) -> float:
        x, y = (np.linspace(self.low[k], self.high[k], GRID + 2)[1:-1] for k in (0, _UP))
        grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        points = grid[self.contains(grid)]
        hidden = np.zeros(len(points), dtype=bool)
        for other in others:
            hidden |= other.contains(points)
        return float(hidden.mean()) if len(points) else 0.0


GRID = 24  # points of a side at which it is looked what a shape covers
_UP = 16  # index of the second axis in `directions()`


def shape_of(points: Points) -> Shape:
    """Return the smallest `Shape` around points, [n, 2]."""
    along = points @ directions()
    return Shape(low=along.min(axis=0), high=along.max(axis=0))


def silhouette(camera: SceneCamera, box: Points) -> Shape:
    return shape_of(project(camera, box))


FILL = 0.5
"""Share of its box's silhouette that an object covers: the median over the renderings of 59 pairs,
from 0.26 for a candle to 0.95 for a cube."""

NEAREST_M = 0.4  # least distance between the camera and what it looks at
START_M = 4.0  # the distance that is tried first
STEPS = 4  # distances tried; the last is within 2% of the nearest that will do
RESERVE = 0.01  # what the objects keep from the edge beyond what they have to, in picture widths
FARTHER = (1.0, 1.12)  # factors on the least distance
STEP_BACK = 1.5  # how much farther the camera may be in the last try: objects hide less
SLACK = 0.9  # how much of what the picture has left beside the objects they may be shifted by


@dataclass(frozen=True, kw_only=True, slots=True)
class Standpoint:
    """The camera's direction from the pivot in the scene; the distance is open."""

    pivot: Vector
    azimuth_deg: float
    elevation_deg: float

    def position(self, distance_m: float) -> Vector:
        x, y, z = self.towards
        (px, py, pz), far = self.pivot, distance_m
        return (
            round(px + far * x, DECIMALS),
            round(py + far * y, DECIMALS),
            round(pz + far * z, DECIMALS),
        )

    @property
    def towards(self) -> Vector:
        azimuth, elevation = math.radians(self.azimuth_deg), math.radians(self.elevation_deg)
        flat = math.cos(elevation)
        return (flat * math.cos(azimuth), flat * math.sin(azimuth), math.sin(elevation))


@dataclass(frozen=True, kw_only=True, slots=True)
class Subjects:
    """Everything that an image has to show.

    Attributes:
      points: corners of everything that must be in view, [n, 3].
      boxes: corners of the boxes, [8, 3] each, whose mean silhouette decides the distance.
      is_centred: whether they are halfway between the image's left and right edges.
    """

    points: Points
    boxes: Sequence[Points]
    is_centred: bool = False


def frame(
    subjects: Subjects,
    standpoint: Standpoint,
    settings: SceneSettings,
    progress: float,
    rng: Random,
) -> SceneCamera:
    room = max(1 - 2 * (settings.image_margin + RESERVE), RESERVE)
    area = rng.uniform(*settings.target_area) / FILL
    farther = rng.uniform(*FARTHER) + rng.uniform(0.0, STEP_BACK) * progress
    across, down = rng.uniform(-1, 1), rng.uniform(-0.3, 1)
    if subjects.is_centred:
        across = 0.0
    if settings.distance_m is None:
        distance = _nearest(subjects, standpoint, room, area) * farther
    else:
        distance = rng.uniform(*settings.distance_m) * (1 + MAX_STEP_BACK * progress)
    eye = standpoint.position(distance)
    camera, low, high = _aimed(eye, subjects.points, _middle_of(subjects.points), (0.5, 0.5))
    left_x, left_y = (SLACK * max(room - side, 0.0) / 2 for side in (high - low).tolist())
    at = (0.5 + across * left_x, 0.5 + down * left_y)
    return _aimed(eye, subjects.points, camera.look_at, at)[0]


def _nearest(subjects: Subjects, standpoint: Standpoint, room: float, area: float) -> float:
    """Estimate the minimum distance at which all is in view and no subject is too large."""
    ahead = (subjects.points - np.array(standpoint.pivot)) @ np.array(standpoint.towards)
    nearest, middle = float(ahead.max()) + NEAREST_M, float(ahead.mean())
    distance, look = max(START_M, nearest), _middle_of(subjects.points)
    for _ in range(STEPS):
        camera, low, high = _aimed(standpoint.position(distance), subjects.points, look, (0.5, 0.5))
        look = camera.look_at
        sizes = [math.sqrt(silhouette(camera, box).area()) for box in subjects.boxes]
        mean = sum(sizes) / len(sizes)
        excess = max(float((high - low).max()) / room, mean / math.sqrt(area))
        distance = max(middle + (distance - middle) * excess, nearest)
    return distance


def _aimed(
    eye: Vector, points: Points, look_at: Vector, at: tuple[float, float]
) -> tuple[SceneCamera, NDArray[np.float64], NDArray[np.float64]]:
    """Turn a camera until the middle of the points is at a given place in the image.

    Returns:
      The camera, and the ends of the points' extent in its image, [2] each.
    """
    for _ in range(2):
        camera = SceneCamera(position=eye, look_at=look_at)
        right, up, forward = camera_axes(camera)
        seen = project(camera, points)
        off = (seen.min(axis=0) + seen.max(axis=0)) / 2 - at
        zoom = camera.focal_length_mm / camera.sensor_width_mm
        line = forward + (right * off[0] - up * off[1]) / zoom
        x, y, z = (np.array(eye) + line * math.dist(eye, look_at)).round(DECIMALS).tolist()
        look_at = (x, y, z)
    camera = SceneCamera(position=eye, look_at=look_at)
    seen = project(camera, points)
    return camera, seen.min(axis=0), seen.max(axis=0)


def _middle_of(points: Points) -> Vector:
    x, y, z = points.mean(axis=0).round(DECIMALS).tolist()
    return (x, y, z)
