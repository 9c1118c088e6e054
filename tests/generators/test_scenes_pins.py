"""The specs of plain scenes and of paper mode stay, byte for byte, what they were."""

from hashlib import sha256
from typing import get_args

import msgspec
import pytest

from eqforge.generators.scenes.assets import BUILTIN, AssetLibrary
from eqforge.generators.scenes.captions import Mode
from eqforge.generators.scenes.propose import SceneProposer
from eqforge.generators.scenes.settings import SceneSettings, scene_settings
from eqforge.schemas.records.scenes import Attribute, ScenePair, lean_spec

KINDS = SceneSettings().kinds
PLAIN = SceneSettings(stage="plain", attributes=get_args(Attribute))

DIGESTS = {
    "corrected": (
        "1ad05e99f003b5a9", "4632b558a7073bf8", "139ac0e150a0a281", "5c3fcbafd59825a2",
        "9e075504df741e40", "a0404d69aa73823d", "6a52c14922080903", "73547c8dfacc5dfb",
        "7fb37288b05d3bd7", "2301ff11356ec1f0", "7ef48d491d4d1a5b", "1778c37f0ea14047",
        "befe2f7ec74c408d", "598a8981de8e8b29", "4ac9c65561647006", "239bbd032e9f5b27",
        "bbbb72eb7c53afd2", "c6fb64b040507065", "58b20e8588fa88f0", "35421dd017ca62be",
        "d11c12af5403558b", "48810206670fa5b7", "67ce6c5c874e0176", "3cad3f0f0b24eb23",
        "0d2a357f924f67e0", "af3f48dcb26a78fb", "0f949c815a575e8c", "4ce0042a10b9d038",
        "6afdfde19b456a2d", "6c783ce5ebc04f85",
    ),
    "paper": (
        "1ad05e99f003b5a9", "22b04fb73c55e08e", "e0c2afecd78fdf86", "4730d5d2afe0c446",
        "63a50ddfaf865ebe", "20da335f88d996f5", "befe2f7ec74c408d", "598a8981de8e8b29",
        "2d027bdbb555cded", "9320e0eab83b798b", "175b3f829566a11b", "3cad3f0f0b24eb23",
    ),
}  # fmt: skip
"""Of the first pairs of each kind, in the order of the kinds; seed 0."""


@pytest.mark.parametrize(
    ("mode", "settings"), [("corrected", PLAIN), ("paper", scene_settings("paper"))]
)
def test_plain_scenes_are_the_same_bytes_as_ever(mode: Mode, settings: SceneSettings) -> None:
    proposer = SceneProposer(settings, AssetLibrary(BUILTIN, "/nowhere"), mode, 0)
    number = len(DIGESTS[mode]) // len(KINDS)
    found = [proposer.pair(kind, place) for kind in KINDS for place in range(number)]

    assert tuple(map(digest, found)) == DIGESTS[mode]


def digest(pair: object) -> str:
    assert isinstance(pair, ScenePair)
    text = msgspec.json.encode([lean_spec(scene) for scene in pair.scenes])
    return sha256(text).hexdigest()[:16]
