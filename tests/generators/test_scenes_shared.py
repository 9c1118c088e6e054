"""Ladders, whose pairs share a scene, checked by means of their own."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest
from skimage.color import rgb2lab

from eqforge.generators.scenes.assets import AssetLibrary
from eqforge.generators.scenes.claims import (
    JUST_NOTICEABLE,
    STEPS,
    difference,
    differs_as_declared,
    step_size,
)
from eqforge.generators.scenes.propose import SceneProposer
from eqforge.generators.scenes.settings import SceneSettings
from eqforge.schemas.records.scenes import Grade, SceneObject, ScenePair, SceneSpec
from tests.scene_reading import misread

SIDES = ("left", "right")


def proposed(library: AssetLibrary, seed: int = 5, **settings: Any) -> list[ScenePair]:
    proposer = SceneProposer(SceneSettings(**settings), library, "corrected", seed)
    return [pair for pair in proposer if isinstance(pair, ScenePair)]


def by_source(pairs: Sequence[ScenePair]) -> list[list[ScenePair]]:
    found: dict[str, list[ScenePair]] = defaultdict(list)
    for pair in pairs:
        assert pair.source_id is not None
        found[pair.source_id].append(pair)
    return list(found.values())


@pytest.fixture(scope="module")
def ladders(library: AssetLibrary) -> list[list[ScenePair]]:
    pairs = proposed(library, pairs=128, kinds=("graded",))
    assert len(pairs) == 128
    return by_source(pairs)


def named(scene: SceneSpec) -> Mapping[str, SceneObject]:
    return {item.name: item for item in scene.objects}


def bearing_deg(scene: SceneSpec, item: SceneObject) -> float:
    """By hand: how far to the right of the line of sight it stands, in the picture's plane."""
    eye, look = np.array(scene.camera.position), np.array(scene.camera.look_at)
    ahead = (look - eye) / np.linalg.norm(look - eye)
    right = np.cross(ahead, (0, 0, 1))
    offset = np.array(item.position) - eye
    return math.degrees(math.atan2(offset @ right / np.linalg.norm(right), offset @ ahead))


def lightness(item: SceneObject) -> float:
    linear = np.array(item.colour)
    srgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return float(rgb2lab(srgb)[0])


def measured(pair: ScenePair, number: int) -> float:
    """By hand, from the caption: by how much the side that it names first has more."""
    scene, caption = pair.scenes[number], pair.captions[number]
    items = named(scene)
    first = "left" if caption.index("left") < caption.index("right") else "right"
    second = SIDES[1 - SIDES.index(first)]
    if pair.change == "count":
        counts = {side: sum(name.startswith(side) for name in items) for side in SIDES}
        return counts[first] - counts[second]
    assert bearing_deg(scene, items["left"]) < bearing_deg(scene, items["right"])
    if pair.change == "size":
        return 100 * (items[first].scale / items[second].scale - 1)
    if pair.change == "lightness":
        return lightness(items[first]) - lightness(items[second])
    here, near, far = (bearing_deg(scene, items[name]) for name in ("target", first, second))
    return abs(far - here) - abs(near - here)


def test_each_ladder_has_one_two_four_and_eight_steps(ladders: list[list[ScenePair]]) -> None:
    assert len(ladders) == 32
    changes: list[str] = []
    for ladder in ladders:
        assert len(ladder) == len(STEPS)
        (change,) = {pair.change for pair in ladder}
        changes.append(change)
        unit = JUST_NOTICEABLE[next(each for each in get_args(Grade) if each == change)]
        for step, pair in zip(STEPS, ladder, strict=True):
            for number in (0, 1):
                assert measured(pair, number) == pytest.approx(step * unit, rel=0.02)
                size = step_size(pair.scenes[number], pair.claims[number])
                assert size == pytest.approx(step * unit, rel=0.001)
    assert {change: changes.count(change) for change in changes} == dict.fromkeys(
        get_args(Grade), 8
    )


def test_steps_of_a_ladder_differ_in_what_is_compared_alone(ladders: list[list[ScenePair]]) -> None:
    fields = {"size": ".scale", "lightness": ".colour", "place": "target.position"}
    for ladder in ladders:
        for pair in ladder:
            assert differs_as_declared(pair)
        for one, two in pairwise(ladder):
            assert one.captions == two.captions
            for number in (0, 1):
                changed = difference(one.scenes[number], two.scenes[number])
                if one.change == "count":
                    assert all(name.startswith(("+left", "+right")) for name in changed)
                else:
                    assert all(name.endswith(fields[one.change]) for name in changed)


def test_captions_of_ladders_are_read_as_they_were_meant(
    library: AssetLibrary, ladders: list[list[ScenePair]]
) -> None:
    words = {name: each.words for name, each in library.assets.items() if each.words is not None}
    for pair in (pair for group in ladders for pair in group):
        assert [*misread(pair, words)] == []
        first, second = pair.captions
        assert [*misread(replace(pair, captions=(second, first)), words)]


def test_a_ladder_s_copies_are_turned_alike_to_the_camera(ladders: list[list[ScenePair]]) -> None:
    for pair in (pair for ladder in ladders for pair in ladder if pair.change == "size"):
        scene = pair.scenes[0]
        eye = np.array(scene.camera.position[:2])
        seen = []
        for side in SIDES:
            item = named(scene)[side]
            towards = math.degrees(math.atan2(*(eye - item.position[:2])[::-1]))
            seen.append((item.yaw_deg - towards) % 360)
        assert abs((seen[0] - seen[1] + 180) % 360 - 180) < 12
        middles = [bearing_deg(scene, named(scene)[side]) for side in SIDES]
        assert abs(sum(middles)) < 2
