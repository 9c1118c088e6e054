"""Floor textures: that they fit themselves, and that objects stand out on them."""

from itertools import combinations
from pathlib import Path
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from eqforge.core.files.pictures import read_pixels
from eqforge.core.identity import sha256_hex
from eqforge.generators.scenes.assets import AssetLibrary, stage_assets
from eqforge.generators.scenes.environments import environment_ids, luminance, place_of
from eqforge.generators.scenes.palette import PALETTE
from eqforge.generators.scenes.surroundings import (
    BRIGHTNESS,
    FAR_ENOUGH,
    HUE,
    distance,
    draw_floor,
    floor_facts,
)
from tools.textures.build import TEXTURES, encoded, mean_colour, texture_pixels


def pixels_of(name: str) -> NDArray[np.uint8]:
    return read_pixels(Path(stage_assets()[f"stage_{name}"].archive).read_bytes())


def test_the_manifest_pins_the_textures() -> None:
    assert [f"stage_{name}" for name in TEXTURES] == list(floor_facts())
    total = 0
    for name, texture in TEXTURES.items():
        asset = stage_assets()[f"stage_{name}"]
        data = Path(asset.archive).read_bytes()
        assert (asset.sha256, asset.num_bytes) == (sha256_hex(data), len(data))
        assert (asset.kind, asset.licence) == ("hdri", "CC0-1.0")
        facts = floor_facts()[asset.asset_id]
        assert (facts.tile_m, facts.places) == (texture.tile_m, texture.places)
        total += len(data)
    assert total < 2e6


@pytest.mark.parametrize("name", TEXTURES)
def test_the_project_holds_what_the_tool_makes(name: str) -> None:
    # Compared as pictures: the bytes of a JPEG file are those of one version of its library.
    made, there = read_pixels(encoded(texture_pixels(name))), pixels_of(name)
    assert made.shape == there.shape
    assert np.mean(np.abs(made.astype(int) - there) <= 2) > 0.999


@pytest.mark.parametrize("name", TEXTURES)
def test_a_texture_can_be_put_edge_to_edge(name: str) -> None:
    light = pixels_of(name).astype(float).mean(axis=-1)
    for each in (light, light.T):
        steps = np.abs(each - np.roll(each, 1, axis=0)).mean(axis=1)
        # Among the steps from row to row, the one over the edge is nothing special.
        assert steps[0] <= 1.1 * np.quantile(steps, 0.99)


@pytest.mark.parametrize("name", TEXTURES)
def test_a_texture_is_as_bright_as_such_a_floor(name: str) -> None:
    colour = floor_facts()[f"stage_{name}"].colour
    assert mean_colour(pixels_of(name)) == pytest.approx(colour, abs=0.01)
    assert 0.12 <= luminance(colour) <= 0.45


def test_objects_stand_out_on_their_floor() -> None:
    for chosen in combinations(PALETTE, 3):
        colours = [PALETTE[name] for name in chosen]
        floor = draw_floor(Random("-".join(chosen)), colours).asset
        far = [name for name in floor_facts() if distance(name, colours) >= FAR_ENOUGH]
        best = max(floor_facts(), key=lambda name: distance(name, colours))
        assert floor in (far or [best])


def test_a_room_has_the_floor_of_a_room() -> None:
    places = {each: place_of(each) for each in environment_ids()}
    assert {each for each, place in places.items() if place == "indoors"} == {"stage_interior"}
    floors = {
        place: {draw_floor(Random(seed), [PALETTE["green"]], place).asset for seed in range(80)}
        for place in (*places.values(), None)
    }
    assert not floors["indoors"] & {"stage_grass", "stage_gravel", "stage_sand", "stage_cobbles"}
    assert len(floors["indoors"]) == 4
    assert "stage_cloth" not in floors["outdoors"]
    assert floors["indoors"] < floors[None]


def test_a_floor_is_drawn_of_all_and_the_same_for_a_seed() -> None:
    floors = [draw_floor(Random(seed), []) for seed in range(120)]
    assert floors == [draw_floor(Random(seed), []) for seed in range(120)]
    assert {floor.asset for floor in floors} == set(floor_facts())
    for floor in floors:
        low, high = floor_facts()[floor.asset].tile_m
        assert low <= floor.tile_m <= high
        assert 0 <= floor.turn_deg <= 360
        assert max(floor.tint) <= BRIGHTNESS[1] * (1 + HUE / 2) + 1e-3
        assert max(floor.tint) / min(floor.tint) <= (1 + HUE / 2) / (1 - HUE / 2) + 1e-2


def test_the_stage_is_there_beside_a_manifest_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text('{"assets": {}}')
    library = AssetLibrary(str(tmp_path / "mine.json"), str(tmp_path / "cache"))
    picture = library.unpack("stage_gravel").render
    assert picture.name == "gravel.jpg"
    assert read_pixels(picture.read_bytes()).shape == (416, 416, 3)
    assert "stage_gravel" in library
    assert "gravel" not in library
    assert not library.assets
