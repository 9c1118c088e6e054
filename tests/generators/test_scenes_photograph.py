"""Photographic scenes: their light, their shadows and the picture around them."""

import dataclasses
import math
from pathlib import Path
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray
from skimage.color import rgb2lab

from eqforge.generators.scenes.assets import BUILTIN, AssetLibrary
from eqforge.generators.scenes.environments import draw_environment, read_high_range
from eqforge.generators.scenes.settings import SceneSettings
from eqforge.generators.scenes.surroundings import draw_floor
from eqforge.generators.scenes.view import project
from eqforge.schemas.records.scenes import (
    Backdrop,
    Environment,
    SceneCamera,
    SceneObject,
    SceneSpec,
)
from eqforge.transforms.generated.scene_renderer import SceneRenderer
from tests.renders import (
    BALL,
    BALL_HITS,
    BRICK,
    BRICK_HITS,
    CAMERA,
    agree,
    mask,
    needs_blender,
    pixels,
    rays,
    scene,
)

pytestmark = needs_blender

LOW = SceneCamera(position=(0.5, -6.0, 3.5), look_at=(0.0, 0.0, 0.0))


def backdrop(picture: str, folder: Path, camera: SceneCamera = CAMERA) -> Backdrop:
    library = AssetLibrary(BUILTIN, str(folder / "cache"))
    settings = dataclasses.replace(SceneSettings(), hdri=(picture,))
    rng = Random(3)
    environment = draw_environment(rng, library, settings, camera)
    return Backdrop(environment=environment, floor=draw_floor(rng, ()))


def environment(of: Backdrop) -> Environment:
    assert of.environment is not None
    return of.environment


def light(shown: NDArray[np.float64]) -> NDArray[np.float64]:
    """Linear values of a picture's."""
    part = shown / 255
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def test_a_grey_card_is_as_bright_in_every_environment(
    renderer: SceneRenderer, folder: Path
) -> None:
    card = SceneObject(
        name="card",
        asset="kubric:cube",
        position=(0.0, 0.0, -1.98),
        colour=(0.18, 0.18, 0.18),
        material="rubber",
    )
    cards = [
        scene(card, camera=LOW, backdrop=backdrop(each, folder, LOW))
        for each in ("stage_sunset", "stage_interior")
    ]
    for render in renderer.render(cards):
        shown = pixels(render)[mask(render) == 1].mean(axis=0) / 255
        assert rgb2lab(shown)[0] == pytest.approx(50, abs=4)


def test_masks_are_those_that_rays_find(renderer: SceneRenderer, folder: Path) -> None:
    (render,) = renderer.render([scene(BALL, BRICK, backdrop=backdrop("stage_city", folder))])
    start, directions = rays(CAMERA)
    assert agree(mask(render) == 1, BALL_HITS(start, directions))
    assert agree(mask(render) == 2, BRICK_HITS(start, directions))


def test_shadows_fall_away_from_the_sun(renderer: SceneRenderer, folder: Path) -> None:
    around = backdrop("stage_sunrise", folder, LOW)
    sun = environment(around).sun
    assert sun is not None
    pole = SceneObject(
        name="pole", asset="kubric:cube", position=(0.0, 0.0, 0.0), scale=0.3, colour=(0.2,) * 3
    )
    (render,) = renderer.render([scene(pole, camera=LOW, backdrop=around)])
    flat = math.hypot(*sun.direction[:2])
    away = np.array(sun.direction[:2]) / flat * (0.3 + 0.15 * flat / sun.direction[2])
    spots = project(LOW, [(-away[0], -away[1], 0.0), (away[0], away[1], 0.0)])
    shown = light(pixels(render))
    dark, bright = (
        shown[int(y * 64) - 1 : int(y * 64) + 2, int(x * 64) - 1 : int(x * 64) + 2].mean()
        for x, y in spots
    )
    assert dark < 0.75 * bright


@pytest.mark.parametrize("turn_deg", [0.0, 70.0])
def test_the_picture_stands_around_the_scene_as_it_is_turned(
    renderer: SceneRenderer, folder: Path, turn_deg: float
) -> None:
    """Seen from where it was taken: a ray's colour is that of the picture in its direction."""
    around = backdrop("stage_sunset", folder)
    turned = dataclasses.replace(environment(around), turn_deg=turn_deg)
    camera = SceneCamera(position=(0.0, 0.0, 1.6), look_at=(0.5, 0.8, 1.95))
    spec = scene(camera=camera, backdrop=dataclasses.replace(around, environment=turned))
    (render,) = renderer.render([spec])
    expected = seen(spec, folder)
    shown = light(pixels(render))
    assert np.corrcoef(shown.ravel(), expected.ravel())[0, 1] > 0.95
    assert abs(shown - expected).mean() < 0.03


def seen(spec: SceneSpec, folder: Path) -> NDArray[np.float64]:
    """What rays find in the environment picture."""
    around = environment(spec.backdrop)
    library = AssetLibrary(BUILTIN, str(folder / "cache"))
    picture = read_high_range(library.unpack(around.asset).render)
    _, directions = rays(spec.camera)
    x, y, z = np.moveaxis(directions, -1, 0)
    height, width = picture.shape[:2]
    across = 0.5 - (np.arctan2(y, x) - math.radians(around.turn_deg)) / (2 * math.pi)
    down = 0.5 - np.arctan2(z, np.hypot(x, y)) / math.pi
    rows = np.minimum((down * height).astype(int), height - 1)
    found = picture[rows, (across * width).astype(int) % width].astype(np.float64)
    return np.clip(np.minimum(found, around.clamp) * around.exposure, 0, 1)
