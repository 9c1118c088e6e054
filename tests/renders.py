"""Scenes to render, what rays that NumPy shoots find in them, and how the two are compared."""

import importlib.util
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from eqforge.generators.scenes.kubric_import import PACKAGES
from eqforge.schemas.records.scenes import (
    Backdrop,
    RenderSettings,
    SceneCamera,
    SceneLight,
    SceneObject,
    SceneSpec,
)
from eqforge.transforms.generated.scene_renderer import Render, SceneRenderer

needs_blender = pytest.mark.skipif(
    any(importlib.util.find_spec(package) is None for package in PACKAGES),
    reason="the extra `render` is not installed",
)

SIZE = 64
SETTINGS = RenderSettings(resolution=SIZE, samples=4)
CAMERA = SceneCamera(position=(1.0, -9.0, 4.0), look_at=(0.0, 0.0, 0.8))
RED, BLUE, YELLOW = (0.8, 0.03, 0.03), (0.05, 0.1, 0.8), (0.8, 0.6, 0.02)

BALL = SceneObject(name="ball", asset="kubric:sphere", position=(-1.5, 0.0, 0.0), colour=RED)
BRICK = SceneObject(
    name="brick", asset="kubric:cube", position=(1.5, 0.3, 0.0), yaw_deg=25.0, scale=0.8
)

Hits = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.bool_]]


def scene(
    *objects: SceneObject,
    camera: SceneCamera = CAMERA,
    seed: int = 7,
    backdrop: Backdrop | None = None,
) -> SceneSpec:
    return SceneSpec(
        objects=objects,
        camera=camera,
        light=SceneLight(sun_position=(2.0, -3.0, 5.0)),
        backdrop=backdrop or Backdrop(),
        seed=seed,
    )


def open_renderer(folder: Path, assets: str = "builtin", **kwargs: Any) -> SceneRenderer:
    return SceneRenderer(SETTINGS, assets=assets, cache=str(folder / "cache"), **kwargs)


def pixels(render: Render) -> NDArray[np.float64]:
    return np.asarray(Image.open(io.BytesIO(render.image_png)), np.float64)


def mask(render: Render) -> NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(render.mask_png)))


def rays(camera: SceneCamera, border: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where the rays through the middles of the pixels start, and where they go."""
    forward = np.subtract(camera.look_at, camera.position)
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, (0, 0, 1))
    right /= np.linalg.norm(right)
    steps = (np.arange(-border, SIZE + border) + 0.5) / SIZE - 0.5
    x, y = np.meshgrid(steps, -steps)
    width = camera.sensor_width_mm / camera.focal_length_mm
    up = np.cross(right, forward)
    directions = forward + width * (x[..., None] * right + y[..., None] * up)
    return np.array(camera.position), directions


def sphere(middle: tuple[float, float, float], radius: float) -> Hits:
    def hits(start: NDArray[np.float64], directions: NDArray[np.float64]) -> NDArray[np.bool_]:
        away = start - middle
        a, b = (directions**2).sum(-1), (directions * away).sum(-1)
        return b**2 > a * ((away**2).sum() - radius**2)

    return hits


def box(
    middle: tuple[float, float, float], size: tuple[float, float, float], yaw_deg: float
) -> Hits:
    yaw = np.radians(yaw_deg)
    turn = np.array(
        [(np.cos(yaw), np.sin(yaw), 0.0), (-np.sin(yaw), np.cos(yaw), 0.0), (0.0, 0.0, 1.0)]
    )

    def hits(start: NDArray[np.float64], directions: NDArray[np.float64]) -> NDArray[np.bool_]:
        at, along = turn @ (start - middle), directions @ turn.T
        half = np.array(size) / 2
        walls = np.stack(((-half - at) / along, (half - at) / along))
        return walls.min(0).max(-1) < walls.max(0).min(-1)

    return hits


BALL_HITS = sphere((-1.5, 0.0, 1.0), 1.0)
BRICK_HITS = box((1.5, 0.3, 0.8), (1.6, 1.6, 1.6), 25.0)


def agree(found: NDArray[np.bool_], expected: NDArray[np.bool_]) -> bool:
    """Tells whether two masks differ by a few pixels at their edges only."""
    inner = np.pad(expected, 1)
    around = [inner[y : y + SIZE, x : x + SIZE] for y in range(3) for x in range(3)]
    edge = np.any(around, axis=0) & ~np.all(around, axis=0)
    differs = found ^ expected
    return bool(expected.any() and not differs[~edge].any() and differs.sum() < 0.2 * edge.sum())
