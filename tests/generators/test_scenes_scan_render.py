"""Adopted scans are rendered upright, with their own textures, and recoloured where they may be."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from eqforge.commands import assets as command
from eqforge.generators.scenes.assets import AssetLibrary
from eqforge.schemas.records.scenes import SceneObject
from eqforge.transforms.generated.scene_renderer import SceneRenderer
from tests.renders import BLUE as BLUE_PAINT
from tests.renders import YELLOW, mask, needs_blender, open_renderer, pixels, scene
from tests.scans import BLUE, CORNERS, FACES, PLACES, RED, WHITE, glb, mujoco

pytestmark = needs_blender


def halves(path: Path, left: tuple[int, int, int], right: tuple[int, int, int]) -> None:
    both = np.zeros((32, 32, 3), np.uint8)
    both[:, :16], both[:, 16:] = left, right
    Image.fromarray(both).save(path)


def with_library(folder: Path, library: str, faces: str = FACES) -> Path:
    mesh = f"mtllib model.mtl\n{CORNERS}{PLACES}usemtl m\n{faces}"
    (folder / "model.obj").write_text(mesh)
    (folder / "model.mtl").write_text(library)
    return folder


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("scans")
    for suffix in (".glb", ".gltf"):
        glb(root / f"Mug_{suffix[1:]}", suffix=suffix)
    shifted = with_library(
        mujoco(root, "Mug_Shifted", RED), "newmtl m\nmap_Kd -s .5 1 1 -o .5 0 0 texture.png\n"
    )
    halves(shifted / "texture.png", RED, BLUE)
    sides = FACES.splitlines(keepends=True)
    black = "newmtl m\nmap_Kd texture.png\nnewmtl front\nKd 0.01 0.01 0.01\n"
    in_two = "".join(["usemtl front\n", sides[0], "usemtl m\n", *sides[1:]])
    with_library(mujoco(root, "Mug_Black_Front", WHITE), black, in_two)
    deep = mujoco(root, "Mug_Deep", RED)
    grain = np.random.default_rng(0).uniform(0.8, 1.0, (32, 32))
    Image.fromarray((grain * 0x7FFF).astype(np.uint16)).save(deep / "texture.png")
    lying = mujoco(tmp_path_factory.mktemp("lying"), "Mug_Lying", RED)
    swapped = [each.split() for each in CORNERS.splitlines()]
    corners = "".join(f"v {x} {z} {-float(y)}\n" for _, x, y, z in swapped)
    (lying / "model.obj").write_text(f"{corners}{PLACES}usemtl m\n{FACES}")
    out = str(tmp_path_factory.mktemp("out"))
    assert command.main(["adopt", str(root), "--output", out]) == 0
    assert command.main(["adopt", str(lying), "--axis-up", "Y", "--output", out]) == 0
    return f"{out}/manifest.json"


@pytest.fixture(scope="module")
def renderer(manifest: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SceneRenderer]:
    opened = open_renderer(tmp_path_factory.mktemp("cache"), manifest)
    yield opened
    opened.close()


def seen(renderer: SceneRenderer, **scans: object) -> dict[str, NDArray[np.float64]]:
    """Renders scans, each alone, with another colour if it has one; returns their pixels."""
    things = [thing(name, colour) for name, colour in scans.items()]
    renders = renderer.render([scene(each) for each in things])
    return {name: pixels(each)[mask(each) == 1] for name, each in zip(scans, renders, strict=True)}


def thing(name: str, colour: object) -> SceneObject:
    made = SceneObject(name="target", asset=name, position=(0, 0, 0), scale=2.0)
    return replace(made, colour=colour)  # type: ignore[arg-type]


def test_files_with_y_up_stand_as_their_boxes_say(renderer: SceneRenderer) -> None:
    names = ("Mug_Deep", "Mug_gltf", "Mug_glb", "Mug_Lying")
    renders = renderer.render([scene(thing(name, None)) for name in names])
    box, second, *others = (mask(each) == 1 for each in renders)
    assert box.sum() > 200
    for each in (second, *others):
        assert (each ^ box).sum() < 0.03 * box.sum()
    red, _, blue = pixels(renders[1])[second].mean(axis=0)
    assert red > 2 * blue
    painted = seen(renderer, Mug_glb=BLUE_PAINT, Mug_gltf=BLUE_PAINT)
    for each in painted.values():
        red, _, blue = each.mean(axis=0)
        assert blue > 2 * red


def test_options_of_a_texture_count_for_what_is_seen_and_for_what_is_recoloured(
    renderer: SceneRenderer, manifest: str
) -> None:
    words = AssetLibrary(manifest, "/nowhere").asset("Mug_Shifted").words
    assert words is not None
    assert words.colour == "blue"
    plain = seen(renderer, Mug_Shifted=None)["Mug_Shifted"].mean(axis=0)
    assert plain[2] > 2 * plain[0]
    yellow = seen(renderer, Mug_Shifted=YELLOW)["Mug_Shifted"].mean(axis=0)
    assert yellow[0] > 3 * yellow[2]


def test_a_surface_of_another_colour_is_not_recoloured(
    renderer: SceneRenderer, manifest: str
) -> None:
    words = AssetLibrary(manifest, "/nowhere").asset("Mug_Black_Front").words
    assert words is not None
    assert (words.colour, words.parts) == ("white", ("m",))
    plain, painted = (
        seen(renderer, Mug_Black_Front=colour)["Mug_Black_Front"] for colour in (None, YELLOW)
    )
    dark = plain.max(axis=-1) < 70
    assert 0.2 < dark.mean() < 0.9
    assert np.abs(plain[dark] - painted[dark]).mean() < 12
    assert np.median(painted[~dark, 0] / painted[~dark, 2]) > 2


def test_a_texture_of_16_bits_gets_the_colour_that_is_asked_for(renderer: SceneRenderer) -> None:
    made = seen(renderer, Mug_Deep=YELLOW, Mug_Shifted=YELLOW)
    deep, plain = (np.median(made[name], axis=0) for name in ("Mug_Deep", "Mug_Shifted"))
    assert np.abs(deep - plain).max() < 40
