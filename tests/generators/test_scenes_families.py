"""Families of pairs: captions, claims and places, each checked by means of its own."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.generators.scenes.assets import AssetLibrary
from eqforge.generators.scenes.captions import Mode
from eqforge.generators.scenes.claims import difference, differs_as_declared, side_margin
from eqforge.generators.scenes.contents import Vocabulary
from eqforge.generators.scenes.families import CARRIERS, FAMILIES
from eqforge.generators.scenes.manifest import Trim
from eqforge.generators.scenes.palette import PALETTE, are_distinct
from eqforge.generators.scenes.propose import SceneProposer
from eqforge.generators.scenes.settings import SceneSettings
from eqforge.schemas.records.scenes import (
    Claim,
    Kind,
    SceneObject,
    ScenePair,
    SceneSpec,
)
from eqforge.schemas.records.stages import Reject

KINDS: tuple[Kind, ...] = tuple(kind for kind in FAMILIES if kind != "graded")
"""Ladders, whose pairs share a scene, have tests of their own."""
EACH = 12
CHANGED = {"facing": ".yaw_deg", "posture": ".posture", "trim": ".trims"}


def proposer(library: AssetLibrary, *kinds: Kind, mode: Mode = "corrected") -> SceneProposer:
    settings = SceneSettings(pairs=EACH * len(kinds), kinds=kinds)
    return SceneProposer(settings, library, mode, seed=12)


@pytest.fixture(scope="module")
def pairs(library: AssetLibrary) -> Mapping[Kind, list[ScenePair]]:
    found: dict[Kind, list[ScenePair]] = {kind: [] for kind in KINDS}
    for each in proposer(library, *KINDS):
        if not isinstance(each, Reject):
            found[each.kind].append(each)
    return found


def all_of(pairs: Mapping[Kind, list[ScenePair]], kind: Kind) -> Iterator[tuple[SceneSpec, str]]:
    for pair in pairs[kind]:
        yield from zip(pair.scenes, pair.captions, strict=True)


def to_the_right(scene: SceneSpec, item: SceneObject) -> float:
    """By hand: where its middle is across the picture."""
    eye, look = np.array(scene.camera.position), np.array(scene.camera.look_at)
    ahead = (look - eye) / np.linalg.norm(look - eye)
    right = np.cross(ahead, (0, 0, 1))
    offset = np.array(item.position) - eye
    return float(offset @ right / np.linalg.norm(right) / (offset @ ahead))


def said(library: AssetLibrary, scene: SceneSpec, phrase: str) -> SceneObject:
    """The object that a phrase names, by its noun."""
    words = {item.name: library.assets[item.asset].words for item in scene.objects}
    found = [
        item
        for item in scene.objects
        if (own := words[item.name]) is not None
        and re.search(rf"\b{own.noun}\b", phrase)
        and not item.name.startswith("distractor")
    ]
    return max(found, key=lambda item: len(words[item.name].noun))  # type: ignore[union-attr]


def test_most_of_every_kind_are_found(pairs: Mapping[Kind, list[ScenePair]]) -> None:
    assert {kind: len(found) >= EACH - 1 for kind, found in pairs.items()} == dict.fromkeys(
        KINDS, True
    )


@pytest.mark.parametrize("kind", KINDS)
def test_two_scenes_differ_in_places_alone(
    pairs: Mapping[Kind, list[ScenePair]], kind: Kind
) -> None:
    for pair in pairs[kind]:
        assert differs_as_declared(pair)
        changed = difference(*pair.scenes)
        assert len(changed) == (2 if kind == "row" else 1)
        assert all(name.endswith(CHANGED.get(kind, ".position")) for name in changed)
        assert pair.captions[0] != pair.captions[1]


def test_next_to_and_far_from_are_said_where_they_are_so(
    pairs: Mapping[Kind, list[ScenePair]], library: AssetLibrary
) -> None:
    apart: dict[str, list[float]] = {"next to": [], "far from": []}
    for scene, caption in all_of(pairs, "beside"):
        matched = re.fullmatch(r"The (.+) (?:is|are) (next to|far from) the (.+)\.", caption)
        assert matched is not None
        first, second = (said(library, scene, phrase) for phrase in matched.group(1, 3))
        apart[matched[2]].append(
            float(np.linalg.norm(np.subtract(first.position, second.position)))
        )
    assert max(apart["next to"]) < 1.6 < min(apart["far from"])


@pytest.mark.parametrize(("kind", "said_of"), [("inside", "in"), ("under", "under")])
def test_in_and_under_are_said_of_what_has_room(
    pairs: Mapping[Kind, list[ScenePair]], library: AssetLibrary, kind: Kind, said_of: str
) -> None:
    for scene, caption in all_of(pairs, kind):
        matched = re.fullmatch(rf"The (.+) (?:is|are) ({said_of}|next to) the (.+)\.", caption)
        assert matched is not None
        first, second = (said(library, scene, phrase) for phrase in matched.group(1, 3))
        sizes = [np.multiply(library.assets[each.asset].extent, each.scale)
                 for each in (first, second)]  # fmt: skip
        apart = np.abs(np.subtract(first.position, second.position))
        is_within = bool((apart[:2] + sizes[0][:2] / 2 < sizes[1][:2] / 2 + 1e-3).all())
        assert is_within == (matched[2] == said_of)
        if not is_within:
            assert first.position[2] == 0
            assert np.hypot(*apart[:2]) > 0.4 * (sizes[0][:2].max() + sizes[1][:2].max())
        elif kind == "under":
            assert first.position[2] == 0
            assert sizes[0][2] < 0.76 * sizes[1][2]  # a table top is a quarter
        else:
            top = first.position[2] + sizes[0][2]
            words = library.assets[second.asset].words
            assert words is not None
            assert words.holds is not None
            rim = words.holds.rim * second.scale
            assert rim < top
            assert top - rim > 0.39 * sizes[0][2]  # so much of it is above the rim


def test_a_thing_faces_where_its_caption_says(
    pairs: Mapping[Kind, list[ScenePair]], library: AssetLibrary
) -> None:
    """By hand: the direction of its front, to the camera's right and towards the camera."""
    seen = set()
    for scene, caption in all_of(pairs, "facing"):
        (item,) = [each for each in scene.objects if each.name == "target"]
        words = library.assets[item.asset].words
        assert words is not None
        assert words.front_deg is not None
        front = np.radians(item.yaw_deg + words.front_deg)
        eye = np.subtract(scene.camera.position, item.position)[:2]
        towards = eye / np.linalg.norm(eye)
        right = np.array((-towards[1], towards[0]))
        pointing = np.array((np.cos(front), np.sin(front)))
        place = {
            "facing the camera.": pointing @ towards,
            "facing away from the camera.": -pointing @ towards,
            "facing right.": pointing @ right,
            "facing left.": -pointing @ right,
        }
        (ending,) = [each for each in place if caption.endswith(each)]
        seen.add(ending)
        assert place[ending] > np.cos(np.radians(12))
        assert max(place, key=lambda each: place[each]) == ending
    assert len(seen) == 4


def test_what_lies_is_wider_than_tall_on_the_floor_and_across_the_view(
    pairs: Mapping[Kind, list[ScenePair]], library: AssetLibrary
) -> None:
    """By hand: the axis that was up is level, and at a right angle to the line of sight."""
    for pair in pairs["posture"]:
        for scene, caption in zip(pair.scenes, pair.captions, strict=True):
            matched = re.fullmatch(r"The (.+) is (standing upright|lying on its side)\.", caption)
            assert matched is not None
            item = said(library, scene, matched[1])
            assert item.posture == {"s": "upright", "l": "lying"}[matched[2][0]]
            words = library.assets[item.asset].words
            assert words is not None
            assert words.lies
            axis = np.radians(item.yaw_deg)
            eye = np.subtract(scene.camera.position, item.position)[:2]
            towards = eye / np.linalg.norm(eye)
            assert abs(np.array((np.cos(axis), np.sin(axis))) @ towards) < np.sin(np.radians(12))
            assert item.position[2] == 0
        assert pair.captions[0][:-1] not in pair.captions[1]


def test_a_part_has_the_colour_that_its_caption_says(
    pairs: Mapping[Kind, list[ScenePair]], library: AssetLibrary
) -> None:
    """The thing itself is called by a colour that neither is mistaken for."""
    nouns = set()
    for pair in pairs["trim"]:
        colours = []
        for scene, caption in zip(pair.scenes, pair.captions, strict=True):
            matched = re.fullmatch(r"The (.+) (?:has (?:an? )?|have )(\w+) (\w+)\.", caption)
            assert matched is not None
            item = said(library, scene, matched[1])
            words = library.assets[item.asset].words
            assert words is not None
            ((part, colour),) = item.trims
            assert words.trims[part].noun == matched[3]
            assert part not in (words.parts or ())
            assert PALETTE[matched[2]] == colour
            assert (" a" in caption) == (not words.trims[part].is_plural)
            body = words.colour if item.colour is None else matched[1].split()[0]
            colours.append(matched[2])
            assert body is not None
            assert are_distinct(body, matched[2])
            nouns.add(matched[3])
        assert are_distinct(*colours)
    assert len(nouns) > 4


def test_two_assets_whose_roofs_are_other_materials_say_nothing_twice(
    library: AssetLibrary,
) -> None:
    house = library.assets["toy_house"]
    assert house.words is not None
    words = replace(house.words, trims={"brick": Trim(noun="roof"), "roof": Trim(noun="roof")})
    bricks = replace(house, asset_id="a_house", words=words)
    assets = {**library.assets, "a_house": bricks}
    vocabulary = Vocabulary(assets.values(), 5)
    assert FAMILIES["trim"].size(vocabulary) == FAMILIES["trim"].size(
        Vocabulary(library.assets.values(), 5)
    )


def test_between_and_beyond_are_said_where_they_are_so(
    pairs: Mapping[Kind, list[ScenePair]], library: AssetLibrary
) -> None:
    seen = set()
    for scene, caption in all_of(pairs, "between"):
        matched = re.fullmatch(
            r"The (.+) (?:is|are) (between|to the left of|to the right of) the (.+) and the (.+)\.",
            caption,
        )
        assert matched is not None
        target, *two = (
            to_the_right(scene, said(library, scene, phrase)) for phrase in matched.group(1, 3, 4)
        )
        seen.add(matched[2])
        assert {
            "between": min(two) < target < max(two),
            "to the left of": target < min(two),
            "to the right of": target > max(two),
        }[matched[2]]
    assert len(seen) == 3


def test_a_row_is_said_as_it_stands(
    pairs: Mapping[Kind, list[ScenePair]], library: AssetLibrary
) -> None:
    for scene, caption in all_of(pairs, "row"):
        matched = re.fullmatch(
            r"The (.+), the (.+) and the (.+) are lined up from left to right\.", caption
        )
        assert matched is not None
        places = [to_the_right(scene, said(library, scene, each)) for each in matched.groups()]
        assert places == sorted(places)


def test_what_is_on_a_thing_stands_on_its_top_and_does_not_jut_out(
    pairs: Mapping[Kind, list[ScenePair]], library: AssetLibrary
) -> None:
    for scene, caption in all_of(pairs, "support"):
        matched = re.fullmatch(r"The (.+) (?:is|are) (on|next to) the (.+)\.", caption)
        assert matched is not None
        target, stand = (said(library, scene, phrase) for phrase in matched.group(1, 3))
        top = library.assets[stand.asset].extent[2] * stand.scale
        if matched[2] == "next to":
            assert target.position[2] == stand.position[2] == 0
            continue
        assert target.position == pytest.approx((*stand.position[:2], top), abs=1e-3)
        sides = np.array(library.assets[target.asset].extent[:2]) * target.scale
        room = np.array(library.assets[stand.asset].extent[:2]) * stand.scale
        assert np.linalg.norm(sides) <= min(room)


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_contents_are_the_same(library: AssetLibrary, kind: Kind) -> None:
    """Nor do they depend on the order of the manifest."""
    vocabulary = Vocabulary(library.assets.values(), 5)
    turned = Vocabulary(list(library.assets.values())[::-1], 5)
    size = FAMILIES[kind].size(vocabulary)
    assert size == FAMILIES[kind].size(turned) > 50
    some, looked_at = proposer(library, kind), min(size, 60)
    captions = [frozenset(some.captions(kind, number)) for number in range(looked_at)]
    assert len(set(captions)) == looked_at


def test_paper_mode_has_the_papers_kinds_alone(library: AssetLibrary) -> None:
    with pytest.raises(InputError, match="--kinds row beside: --mode paper supports only"):
        proposer(library, "counting", "row", "beside", mode="paper")


def test_the_least_step_of_an_order_is_its_margin() -> None:
    middles = {"a": 0.2, "b": 0.5, "c": 0.9}
    row = Claim(target="a", copies=("a",), relation="row", reference="b", others=("c",))
    between = replace(row, target="b", relation="between", reference="a", others=("c",))
    assert side_margin(row, middles) == pytest.approx(0.3)
    assert side_margin(replace(row, reference="c", others=("b",)), middles) == pytest.approx(-0.4)
    assert side_margin(between, middles) == pytest.approx(0.3)
    assert side_margin(between, {**middles, "b": 0.95}) == pytest.approx(-0.05)
    assert side_margin(replace(between, relation="right"), middles) == pytest.approx(-0.4)
    assert [b - a for a, b in pairwise(middles.values())] == pytest.approx([0.3, 0.4])
    with pytest.raises(ValueError, match="the relation 'near' is not an order"):
        side_margin(replace(row, relation="near"), middles)


def test_things_stand_only_on_assets_that_say_so(library: AssetLibrary) -> None:
    """Of two tables one has a round top, and the words of neither speak for the other."""
    table = library.assets["table"]
    assert table.words is not None
    plain = replace(table, asset_id="a_table", words=replace(table.words, roles=("object",)))
    assets = [*library.assets.values(), plain]
    vocabulary = Vocabulary(assets, 5)
    (noun,) = (each for each in vocabulary.of_those(CARRIERS["on"]) if each.words.noun == "table")
    assert {asset.asset_id for some in noun.colours.values() for asset in some} == {"table"}
    without = [asset for asset in assets if asset.asset_id != "table"]
    stands = Vocabulary(without, 5).of_those(CARRIERS["on"])
    assert "table" not in {each.words.noun for each in stands}
