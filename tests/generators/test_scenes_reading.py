"""Captions of scenes, read again by other means than they were written by."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eqforge.generators.scenes.assets import BUILTIN, BUILTIN_MANIFEST, AssetLibrary
from eqforge.generators.scenes.captions import Mode
from eqforge.generators.scenes.families import FAMILIES
from eqforge.generators.scenes.manifest import AssetWords, read_manifest
from eqforge.generators.scenes.palette import PALETTE
from eqforge.generators.scenes.propose import SceneProposer
from eqforge.generators.scenes.settings import SceneSettings, scene_settings
from eqforge.schemas.records.books import Reject
from eqforge.schemas.records.scenes import Claim, Kind, ScenePair
from tests.scene_reading import counted, misread, place_in

KINDS: tuple[Kind, ...] = (*SceneSettings().kinds, *FAMILIES)


def proposed(folder: Path, mode: Mode, **settings: Any) -> Iterator[ScenePair]:
    library = AssetLibrary(BUILTIN, str(folder))
    usual = replace(scene_settings(mode), **settings)
    for each in SceneProposer(usual, library, mode, seed=5):
        if not isinstance(each, Reject):
            yield each


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[ScenePair]:
    folder = tmp_path_factory.mktemp("cache")
    attributes = ("colour", "size", "material")
    return [
        *proposed(folder, "corrected", pairs=140, kinds=KINDS, attributes=attributes),
        *proposed(folder, "paper", pairs=60),
    ]


@pytest.fixture(scope="module")
def words() -> dict[str, AssetWords]:
    assets = read_manifest(BUILTIN_MANIFEST).assets
    return {name: asset.words for name, asset in assets.items() if asset.words is not None}


def test_what_was_written_is_read_as_it_was_meant(
    pairs: list[ScenePair], words: dict[str, AssetWords]
) -> None:
    assert len(pairs) > 180
    for pair in pairs:
        assert [*misread(pair, words)] == [], pair.captions


def test_a_noun_that_is_not_that_of_the_asset_is_noticed(
    pairs: list[ScenePair], words: dict[str, AssetWords]
) -> None:
    for pair in pairs:
        target = next(each for each in pair.scenes[0].objects if each.name == pair.claims[0].target)
        known = words[target.asset]
        text = pair.captions[0].replace(known.plural, "kettles").replace(known.noun, "kettle")
        found = [*misread(replace(pair, captions=(text, pair.captions[1])), words)]
        assert f"caption 0 does not name the {known.noun} where its claim does" in found


def test_subject_and_reference_that_changed_places_are_noticed(
    pairs: list[ScenePair], words: dict[str, AssetWords]
) -> None:
    count = 0
    for pair in pairs:
        matched = re.fullmatch(r"The (.*) is (behind|in front of) the (.*)\.", pair.captions[0])
        if matched is not None:
            text = f"The {matched[3]} is {matched[2]} the {matched[1]}."
            found = [*misread(replace(pair, captions=(text, pair.captions[1])), words)]
            assert any(line.startswith("caption 0 does not name the ") for line in found), text
            count += 1
    assert count > 10


@pytest.mark.parametrize(
    "said",
    [
        "The {thing} never has {rest}",
        "The {thing} is behind a cat and has {rest}",
        "Two {thing} has {rest}",
        "The {thing} has {rest} has pink wheels.",
        "The {thing} has an {rest}",
    ],
)
def test_more_or_less_than_the_colour_of_a_part_is_noticed(
    pairs: list[ScenePair], words: dict[str, AssetWords], said: str
) -> None:
    for pair in (pair for pair in pairs if pair.kind == "trim"):
        matched = re.fullmatch("The (.+?) ha(?:s|ve) (.+)", pair.captions[0])
        assert matched is not None
        rest = matched[2].removeprefix("an ") if " an {" in said else matched[2]
        text = said.format(thing=matched[1], rest=rest)
        if text != pair.captions[0]:
            assert [*misread(replace(pair, captions=(text, pair.captions[1])), words)], text


def test_another_colour_than_its_own_is_noticed_of_what_eqforge_brings(
    pairs: list[ScenePair], words: dict[str, AssetWords]
) -> None:
    found = 0
    for pair in pairs:
        target = next(each for each in pair.scenes[0].objects if each.name == pair.claims[0].target)
        own = words[target.asset].colour
        if target.colour is None and target.material is None and own is not None:
            text = pair.captions[0].replace(own, "pink" if own != "pink" else "red", 1)
            if text != pair.captions[0] and pair.kind not in ("row", "graded"):
                assert [*misread(replace(pair, captions=(text, pair.captions[1])), words)], text
                found += 1
    assert found > 3


def test_exchanged_captions_are_noticed_wherever_their_words_tell(pairs: list[ScenePair]) -> None:
    """All but rows of which an object that changed its place has its own colour."""
    silent = [pair for pair in pairs if not [*misread(replace(pair, captions=pair.captions[::-1]))]]
    assert {pair.kind for pair in silent} <= {"row", "attribute"}
    for pair in silent:
        named = {claim.target for claim in pair.claims}
        assert any(
            item.colour is None and item.name in {*named, "second", "third"}
            for scene in pair.scenes
            for item in scene.objects
        )
    assert len(silent) <= len(pairs) // 20


@pytest.mark.parametrize(
    ("caption", "number", "place"),
    [
        ("1 white gift box with red straps is on the platform.", 1, "on"),
        ("There are 4 white gift box with red straps on the platform.", 4, None),
        ("Seven red mugs are on the table.", 7, "on"),
        ("The blue gloves is on the left hand of the fabric basket.", None, "left"),
        ("The blue gloves is in front of the fabric basket.", None, "front"),
        ("The mug is between the bowl and the left boot.", None, "between"),
        ("The metal mug with a spoon behind it is next to the blue box.", None, "near"),
        ("The one-eyed bull is behind the mug.", None, "behind"),
    ],
)
def test_numbers_and_places_are_found(caption: str, number: int | None, place: str | None) -> None:
    assert (counted(caption), place_in(caption)) == (number, place)


def test_the_colour_of_a_detail_is_not_taken_for_a_thing_s(pairs: list[ScenePair]) -> None:
    """A thing in its own colour has no colour in the caption, and the next one's ribbon has."""
    row = next(pair for pair in pairs if pair.kind == "row")
    names = ("target", "second", "third")
    colours = (None, PALETTE["blue"], PALETTE["yellow"])
    scene = replace(
        row.scenes[0],
        objects=tuple(
            replace(row.scenes[0].objects[0], name=name, colour=colour)
            for name, colour in zip(names, colours, strict=True)
        ),
    )
    claim = Claim(
        target="target", copies=("target",), relation="row", reference="second", others=("third",)
    )
    said = "The toy lion, the blue gift box with a red ribbon and the yellow mug are lined up"
    other = "The toy lion, the yellow mug and the blue gift box with a red ribbon are lined up"
    for caption, expected in ((said, []), (other, ["caption 0 names 'yellow mug' where"])):
        full = f"{caption} from left to right."
        pair = replace(
            row,
            scenes=(scene, scene),
            claims=(claim, claim),
            captions=(full, f"{said} from left to right."),
        )
        found = [*misread(pair)]
        assert [line[: len(start)] for line, start in zip(found, expected, strict=True)] == expected
