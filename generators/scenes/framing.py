"""Frames photographic scenes: how near the camera stands, and where it looks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from eqforge.generators.scenes.settings import MAX_STEP_BACK, SceneSettings
from eqforge.generators.scenes.view import DECIMALS, Points, camera_axes, project, silhouette
from eqforge.schemas.records.scenes import SceneCamera, Vector

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILL = 0.5
"""Share of the silhouette of its box that an object covers: the median over the renderings of 59
pairs, in which it is 0.26 for a candle and 0.95 for a cube."""

NEAREST_M = 0.4
"""Least distance between the camera and what it looks at, along the line to the pivot."""

START_M = 4.0  # the distance that is tried first
STEPS = 4  # distances tried; the last is within 2 % of the nearest that will do
RESERVE = 0.01  # what the objects keep from the edge beyond what they have to, in picture widths
FARTHER = (1.0, 1.12)  # factors on the least distance

STEP_BACK = 1.5
"""How much farther the camera may be in the last try: from there, objects hide less of others."""

SLACK = 0.9  # how much of what the picture has left beside the objects they may be shifted by


@dataclass(frozen=True, kw_only=True, slots=True)
class Standpoint:
    """Where the camera is but for its distance.

    Attributes:
      pivot: a point in the scene, in metres.
      azimuth_deg, elevation_deg: where the camera is, seen from there.
    """

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
        """The unit vector from the pivot towards the camera."""
        azimuth, elevation = math.radians(self.azimuth_deg), math.radians(self.elevation_deg)
        flat = math.cos(elevation)
        return (flat * math.cos(azimuth), flat * math.sin(azimuth), math.sin(elevation))


@dataclass(frozen=True, kw_only=True, slots=True)
class Subjects:
    """What a picture has to hold.

    Attributes:
      points: corners of all that has to be in it, [n, 3].
      boxes: corners of the boxes, [8, 3] each, whose mean silhouette decides the distance.
      is_centred: whether they are in the middle between the picture's sides.
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
    """Return a camera so near that the subjects are as large as drawn, or as there is room for."""
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
    """Return about the least distance at which all is in view and the subjects are no larger.

    Sizes in the picture fall with the distance from the objects' middle: each step goes where they
    would be as large as they may.
    """
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
    """Turn a camera until the middle of the points is at a place in the picture.

    Returns:
      The camera, and the ends of the points' extent in its picture, [2] each.
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
