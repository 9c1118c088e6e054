"""Captions of scenes, read again by other means than they were written by."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eqforge.generators.scenes.assets import BUILTIN, BUILTIN_MANIFEST, AssetLibrary
from eqforge.generators.scenes.captions import Mode
from eqforge.generators.scenes.families import FAMILIES
from eqforge.generators.scenes.manifest import AssetWords, read_manifest
from eqforge.generators.scenes.propose import SceneProposer
from eqforge.generators.scenes.settings import SceneSettings, scene_settings
from eqforge.schemas.records.scenes import Kind, ScenePair
from eqforge.schemas.records.stages import Reject
from tests.scene_reading import misread

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
