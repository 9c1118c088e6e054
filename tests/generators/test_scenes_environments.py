"""Environment pictures: what light they give, and how scenes stand in them."""

import math
from pathlib import Path
from random import Random

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.identity import sha256_hex
from eqforge.generators.scenes.assets import AssetLibrary, stage_assets
from eqforge.generators.scenes.environments import (
    Measured,
    draw_environment,
    environment_ids,
    luminance,
    measure_environment,
    measured_of,
    read_high_range,
)
from eqforge.generators.scenes.palette import LUMINANCE
from eqforge.generators.scenes.propose import SceneProposer
from eqforge.generators.scenes.settings import SceneSettings
from eqforge.schemas.records.scenes import Environment, SceneCamera, SceneLight, ScenePair
from tests.skies import EVEN, Picture, directions, sky_with_sun, towards

CAMERA = SceneCamera(position=(0.0, -4.0, 1.5), look_at=(0.0, 0.0, 0.3))
PHOTO = SceneSettings(stage="photo")


def on_a_card(picture: Picture) -> NDArray[np.float64]:
    """Red, green and blue irradiance of a card on the floor, summed pixel by pixel."""
    rows = len(picture)
    seen = directions(rows)
    flat = np.sqrt(1 - seen[..., 2] ** 2)
    weights = np.maximum(seen[..., 2], 0) * flat * (math.pi / rows) ** 2
    return (picture.astype(float) * weights[..., None]).sum(axis=(0, 1))


def card_of(measured: Measured) -> NDArray[np.float64]:
    sun = measured.sun
    lit = np.zeros(3) if sun is None else np.array(sun.strength) * sun.direction[2]
    return np.array(measured.irradiance) + lit


def test_an_even_sky_lights_a_white_card_as_brightly_as_itself() -> None:
    found = measure_environment(EVEN)
    assert found == Measured(
        clamp=8.0, irradiance=(3.1416, 3.1416, 3.1416), sun=None, bright_deg=0.0
    )
    assert found.exposure == pytest.approx(1.0, abs=1e-4)
    assert measure_environment(3 * EVEN).exposure == pytest.approx(1 / 3, abs=1e-4)


@pytest.mark.parametrize(("azimuth_deg", "height_deg"), [(30, 40), (-100, 15), (170, 70)])
def test_the_sun_is_found_where_it_stands(azimuth_deg: float, height_deg: float) -> None:
    picture = sky_with_sun(azimuth_deg, height_deg)
    found = measure_environment(picture)
    assert found.sun is not None
    apart = float(np.dot(found.sun.direction, towards(azimuth_deg, height_deg)))
    assert math.degrees(math.acos(min(apart, 1))) < 0.4
    assert found.sun.angle_deg == pytest.approx(4.0, rel=0.1)
    red, green, blue = found.sun.strength
    assert (green / red, blue / red) == pytest.approx((0.8, 0.5), abs=0.01)
    assert card_of(found) == pytest.approx(on_a_card(picture), rel=0.01)
    assert np.minimum(picture, found.clamp).max() < 0.1 * picture.max()


def test_what_is_next_to_nothing_is_no_sun() -> None:
    assert measure_environment(sky_with_sun(0, 40, light=6.0)).sun is None


def test_infinite_pixels_are_a_sun() -> None:
    picture = sky_with_sun(30, 40, light=np.inf)
    found = measure_environment(picture)
    assert found == measure_environment(np.minimum(picture, np.float32(65504)))
    assert found.sun is not None


@pytest.mark.parametrize(
    ("picture", "message"),
    [
        (0 * EVEN, "sky: the upper half of the environment image is black, so it gives no light"),
        (
            EVEN[:, :100],
            "sky: expected an equirectangular environment image, twice as wide as high",
        ),
        (
            np.where(np.arange(128)[:, None] == 3, np.nan, EVEN),
            "sky: the environment image has 64 pixels with NaN",
        ),
    ],
)
def test_a_picture_that_lights_nothing_is_refused(picture: Picture, message: str) -> None:
    with pytest.raises(InputError, match=message):
        measure_environment(picture, "sky")


@pytest.mark.parametrize("name", environment_ids())
def test_a_picture_that_eqforge_brings_is_the_one_that_was_measured(
    name: str, library: AssetLibrary
) -> None:
    pytest.importorskip("OpenEXR")
    file = library.unpack(name).render
    picture = read_high_range(file)
    again, known = measure_environment(picture), measured_of(library, name)
    numbers = [np.array(list(flat(msgspec.to_builtins(each)))) for each in (again, known)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-3, abs=1e-3)
    light = on_a_card(np.maximum(picture, 0)) @ np.array(LUMINANCE)
    assert card_of(known) @ np.array(LUMINANCE) == pytest.approx(light, rel=0.01)


def flat(value: object) -> list[float]:
    if isinstance(value, dict):
        return [number for key in sorted(value) for number in flat(value[key])]
    if isinstance(value, list | tuple):
        return [number for each in value for number in flat(each)]
    return [] if value is None else [float(str(value))]


def test_the_pictures_are_those_of_the_tool() -> None:
    pytest.importorskip("bpy")
    from tools.environments.build import PINNED, blender_picture

    assert [f"stage_{name}" for name in PINNED] == list(environment_ids())
    for name in PINNED:
        asset = stage_assets()[f"stage_{name}"]
        data = Path(asset.archive).read_bytes()
        assert data == blender_picture(name)
        assert (asset.sha256, asset.num_bytes) == (sha256_hex(data), len(data))
        assert asset.licence == "CC0-1.0"


def drawn(library: AssetLibrary, settings: SceneSettings, seed: int) -> Environment:
    return draw_environment(Random(seed), library, settings, CAMERA)


@pytest.mark.parametrize("name", environment_ids())
def test_a_card_on_the_floor_is_as_bright_in_every_environment(
    name: str, library: AssetLibrary
) -> None:
    measured = measured_of(library, name)
    for seed in range(20):
        found = drawn(library, SceneSettings(hdri=(name,)), seed)
        assert found.sun is not None
        light = found.exposure * np.array(measured.irradiance)
        light += np.array(found.sun.strength) * found.sun.direction[2]
        assert luminance(tuple(light)) == pytest.approx(math.pi, rel=1e-3)
        assert np.ptp(light / math.pi) < 0.3, "the light on the floor is near grey"


def test_shadows_are_long_and_fall_to_the_side(library: AssetLibrary) -> None:
    for seed in range(200):
        sun = drawn(library, PHOTO, seed).sun
        assert sun is not None
        x, y, z = sun.direction
        assert math.hypot(x, y, z) == pytest.approx(1, abs=1e-4)
        assert 23.9 <= math.degrees(math.asin(z)) <= 38.1
        aside = math.degrees(math.atan2(abs(x), -y))  # the camera looks along y
        assert 39.9 <= aside <= 105.1
        assert 2 <= sun.angle_deg <= 6


def test_the_picture_is_turned_so_that_its_sun_stands_where_the_sun_is(
    library: AssetLibrary,
) -> None:
    for seed in range(50):
        found = drawn(library, PHOTO, seed)
        measured = measured_of(library, found.asset)
        x, y = (1.0, 0.0) if measured.sun is None else measured.sun.direction[:2]
        seen = measured.bright_deg if measured.sun is None else math.degrees(math.atan2(y, x))
        assert found.sun is not None
        stands = math.degrees(math.atan2(found.sun.direction[1], found.sun.direction[0]))
        assert (seen + found.turn_deg - stands + 180) % 360 - 180 == pytest.approx(0, abs=0.02)
        assert found.clamp == measured.clamp


def test_a_floor_is_no_environment(library: AssetLibrary) -> None:
    with pytest.raises(
        InputError,
        match=r"--hdri sunset: unknown environment image; expected one of .*stage_sunset",
    ):
        SceneProposer(SceneSettings(hdri=("sunset",)), library, "corrected", 0)
    with pytest.raises(InputError, match=r"--hdri stage_sand: .* image, found a floor"):
        SceneProposer(SceneSettings(hdri=("stage_sand",)), library, "corrected", 0)


def test_both_scenes_of_a_pair_stand_in_one_environment(library: AssetLibrary) -> None:
    proposer = SceneProposer(SceneSettings(pairs=6), library, "corrected", seed=3)
    pairs = [pair for pair in proposer if isinstance(pair, ScenePair)]
    assert pairs
    for first, second in (pair.scenes for pair in pairs):
        assert first.stage == "photo"
        assert (first.backdrop, first.light) == (second.backdrop, second.light)
        assert first.light == SceneLight(sun_position=(0, 0, 1), sun_intensity=0, ambient=0)
        assert first.backdrop.hdri is None
