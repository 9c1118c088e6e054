"""Pairs that share a scene: ladders, cubes and twins, each checked by means of its own."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, get_args

import msgspec
import numpy as np
import pytest
from skimage.color import rgb2lab

from eqforge.core.errors import InputError
from eqforge.generators.scenes.assets import BUILTIN, AssetLibrary
from eqforge.generators.scenes.claims import difference, differs_as_declared
from eqforge.generators.scenes.families.cube import EDGES
from eqforge.generators.scenes.palette import PALETTE
from eqforge.generators.scenes.propose import SceneProposer
from eqforge.generators.scenes.settings import SceneSettings
from eqforge.generators.scenes.steps import JUST_NOTICEABLE, STEPS, step_size
from eqforge.schemas.records.scenes import Grade, Nuisance, SceneObject, ScenePair, SceneSpec
from tests.scene_reading import misread

NUISANCES: tuple[Nuisance, ...] = get_args(Nuisance)
SIDES = ("left", "right")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> AssetLibrary:
    return AssetLibrary(BUILTIN, str(tmp_path_factory.mktemp("cache")))


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


@pytest.fixture(scope="module")
def cubes(library: AssetLibrary) -> list[list[ScenePair]]:
    pairs = proposed(library, pairs=96, kinds=("cube",))
    assert len(pairs) == 96
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


def test_captions_of_ladders_and_cubes_are_read_as_they_were_meant(
    library: AssetLibrary, ladders: list[list[ScenePair]], cubes: list[list[ScenePair]]
) -> None:
    words = {name: each.words for name, each in library.assets.items() if each.words is not None}
    for pair in (pair for group in (*ladders, *cubes) for pair in group):
        assert [*misread(pair, words)] == []
        first, second = pair.captions
        wrong = [*misread(replace(pair, captions=(second, first)), words)]
        # An object that keeps its own colour says none in its scene.
        assert wrong or pair.change == "colour"


def test_the_edges_of_a_cube_join_eight_scenes(cubes: list[list[ScenePair]]) -> None:
    for cube in cubes:
        assert len(cube) == len(EDGES) == 12
        scenes = {msgspec.json.encode(scene) for pair in cube for scene in pair.scenes}
        captions = {caption for pair in cube for caption in pair.captions}
        assert len(scenes) == len(captions) == 8
        said = {
            msgspec.json.encode(scene): caption
            for pair in cube
            for scene, caption in zip(pair.scenes, pair.captions, strict=True)
        }
        assert len(said) == 8  # a scene has one caption, whichever pair it is in
        changes = [pair.change for pair in cube]
        assert {each: changes.count(each) for each in changes} == {
            "colour": 4,
            "position": 4,
            "count": 4,
        }


def test_an_edge_of_a_cube_changes_one_thing_and_says_so(cubes: list[list[ScenePair]]) -> None:
    numbers = {"One": 1, "Two": 2, "Three": 3}
    for pair in (pair for cube in cubes for pair in cube):
        assert differs_as_declared(pair)
        for scene, caption in zip(pair.scenes, pair.captions, strict=True):
            items = named(scene)
            copies = [item for name, item in items.items() if name.startswith("copy")]
            number, colour, *_ = caption.split()
            assert len(copies) == numbers[number]
            assert all(item.colour in (None, PALETTE[colour]) for item in copies)
            reference = bearing_deg(scene, items["reference"])
            places = [bearing_deg(scene, item) for item in copies]
            is_left = max(places) < reference
            assert is_left != (min(places) > reference)
            assert ("to the left of" in caption) == is_left
        words = [set(caption.split()) for caption in pair.captions]
        assert len(words[0] - words[1]) <= 3


def test_a_twin_says_the_same_of_things_in_their_places(library: AssetLibrary) -> None:
    kinds = ("attribute", "location", "support")
    pairs = proposed(library, pairs=96, kinds=kinds, twins=NUISANCES)
    groups = by_source(pairs)
    assert all(len(group) == 4 for group in groups)
    for original, *twins in groups:
        assert original.twin is None
        assert [twin.twin for twin in twins] == [*NUISANCES]
        for twin in twins:
            assert twin.captions == original.captions
            assert twin.claims == original.claims
            assert differs_as_declared(twin)
            changed = [difference(original.scenes[n], twin.scenes[n]) for n in (0, 1)]
            field = "camera" if twin.twin == "camera" else "backdrop"
            assert changed == [(field,), (field,)]
        light, floor = (twin.scenes[0].backdrop for twin in twins[1:])
        first = original.scenes[0].backdrop
        assert light.floor == first.floor
        assert light.environment != first.environment
        assert floor.environment == first.environment
        assert floor.floor is not None
        assert first.floor is not None
        assert floor.floor.asset != first.floor.asset


def test_without_twins_the_pairs_are_those_that_the_originals_are(library: AssetLibrary) -> None:
    alone = proposed(library, pairs=12, kinds=("location",))
    with_twins = proposed(library, pairs=24, kinds=("location",), twins=("floor",))
    originals = [pair for pair in with_twins if pair.twin is None]
    assert [pair.scenes for pair in originals] == [pair.scenes for pair in alone]
    assert {pair.source_id for pair in alone} == {None}


def test_a_pair_of_a_group_does_not_depend_on_the_others(
    library: AssetLibrary, ladders: list[list[ScenePair]], cubes: list[list[ScenePair]]
) -> None:
    for kind, groups in (("graded", ladders), ("cube", cubes)):
        settings = SceneSettings(pairs=400, kinds=(kind,))  # type: ignore[arg-type]
        some = SceneProposer(settings, library, "corrected", 5)
        last = groups[-1][-2]
        assert some.pair(last.kind, int(last.sample_id[-6:])) == last


def test_twins_need_the_photographic_stage_and_groups_are_not_the_paper_s(
    library: AssetLibrary,
) -> None:
    with pytest.raises(InputError, match=r"--twins .*none, but on --stage photo"):
        SceneSettings(stage="plain", twins=("light",))
    with pytest.raises(InputError, match="none twice"):
        SceneSettings(twins=("light", "light"))
    with pytest.raises(InputError, match="not in the paper"):
        SceneProposer(SceneSettings(kinds=("graded",)), library, "paper", 1)


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
