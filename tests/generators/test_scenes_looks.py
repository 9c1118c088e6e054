"""Materials on the photographic stage look like themselves, and stay in the instance mask."""

import dataclasses
from pathlib import Path
from random import Random
from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray
from skimage.color import rgb2lab

from eqforge.generators.scenes.assets import BUILTIN, AssetLibrary
from eqforge.generators.scenes.environments import draw_environment
from eqforge.generators.scenes.settings import SceneSettings
from eqforge.generators.scenes.surroundings import draw_floor
from eqforge.schemas.records.scenes import Backdrop, SceneObject, SceneSpec, SurfaceMaterial
from eqforge.transforms.generated.scene_renderer import SceneRenderer
from tests.renders import BALL, BALL_HITS, CAMERA, agree, mask, needs_blender, pixels, rays, scene

pytestmark = needs_blender

Views = dict[SurfaceMaterial, NDArray[np.float64]]
BALL_OF_ITS_OWN = dataclasses.replace(BALL, colour=None)
POST = SceneObject(
    name="post", asset="kubric:cube", position=(-1.8, 2.5, 0.0), scale=0.5, colour=(0.8, 0.1, 0.1)
)
"""Stands behind the ball."""


def on_stage(folder: Path, *objects: SceneObject) -> SceneSpec:
    library = AssetLibrary(BUILTIN, str(folder / "cache"))
    rng = Random(3)
    settings = dataclasses.replace(SceneSettings(), hdri=("stage_sunrise",))
    environment = draw_environment(rng, library, settings, CAMERA)
    return scene(*objects, backdrop=Backdrop(environment=environment, floor=draw_floor(rng, ())))


@pytest.fixture(scope="module")
def balls(renderer: SceneRenderer, folder: Path) -> Views:
    """The picture of a ball of each material."""
    kinds = get_args(SurfaceMaterial)
    made = [dataclasses.replace(BALL_OF_ITS_OWN, material=kind) for kind in kinds]
    renders = renderer.render([on_stage(folder, POST, ball) for ball in made])
    for render in renders:
        assert agree(mask(render) == 2, BALL_HITS(*rays(CAMERA)))
    return {kind: pixels(render) for kind, render in zip(kinds, renders, strict=True)}


@pytest.fixture(scope="module")
def without(renderer: SceneRenderer, folder: Path) -> NDArray[np.float64]:
    """The picture of what stands behind the ball."""
    return pixels(renderer.render([on_stage(folder, POST)])[0])


def inner() -> NDArray[np.bool_]:
    """The middle of the ball, without its rim."""
    hits = np.pad(BALL_HITS(*rays(CAMERA)), 2)
    size = hits.shape[0] - 4
    around = [hits[y : y + size, x : x + size] for y in range(5) for x in range(5)]
    found: NDArray[np.bool_] = np.all(around, axis=0)
    return found


def test_what_is_behind_shows_through_glass_alone(
    balls: Views, without: NDArray[np.float64]
) -> None:
    likeness = {
        kind: np.corrcoef(shown[inner()].ravel(), without[inner()].ravel())[0, 1]
        for kind, shown in balls.items()
    }
    assert likeness.pop("glass") > 0.8
    assert max(likeness.values()) < 0.5


def test_materials_look_like_themselves(balls: Views) -> None:
    looks = {kind: rgb2lab(shown / 255)[inner()] for kind, shown in balls.items()}
    lightness = {kind: look[:, 0] for kind, look in looks.items()}
    assert np.median(lightness["rubber"]) < 25
    assert lightness["rubber"].std() < 0.6 * lightness["metal"].std()
    assert np.median(looks["wooden"][:, 1]) > 5  # brown: reddish
    assert np.median(looks["wooden"][:, 2]) > 15  # and yellowish
    assert abs(np.median(looks["metal"], axis=0)[1:]).max() < 10  # grey, as what it mirrors


def test_glass_throws_a_light_shadow(balls: Views, without: NDArray[np.float64]) -> None:
    def darkest(kind: SurfaceMaterial) -> float:
        """The least light on the floor, compared with that without a ball."""
        ground = ~BALL_HITS(*rays(CAMERA))
        ground[:20] = False
        share = (balls[kind].sum(axis=-1) + 1) / (without.sum(axis=-1) + 1)
        return float(np.percentile(share[ground], 1))

    assert darkest("glass") > darkest("rubber") + 0.1


def test_a_colour_tints_metal(renderer: SceneRenderer, folder: Path) -> None:
    golden = dataclasses.replace(BALL, colour=(0.8, 0.45, 0.1), material="metal")
    (render,) = renderer.render([on_stage(folder, golden)])
    red, _, blue = pixels(render)[inner()].mean(axis=0)
    assert red > 1.5 * blue
