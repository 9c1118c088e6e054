"""Folders of scans become assets, in the layouts of Google Scanned Objects."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eqforge.commands import assets as command
from eqforge.core.errors import InputError
from eqforge.generators.scenes.adopt import words_for
from eqforge.generators.scenes.assets import AssetLibrary
from eqforge.generators.scenes.contents import Vocabulary, coloured_pairs
from eqforge.generators.scenes.copies import findings_of
from eqforge.generators.scenes.look_child import Looks
from eqforge.generators.scenes.manifest import read_manifest
from eqforge.generators.scenes.propose import SceneProposer
from eqforge.generators.scenes.settings import SceneSettings
from eqforge.schemas.records.scenes import ScenePair
from eqforge.transforms.engines.exclusive_job import locked
from eqforge.transforms.generated.scene_renderer import ScanLooker
from tests.exported import files
from tests.renders import mask, needs_blender, open_renderer, pixels, scene
from tests.scans import (
    BLUE,
    CORNERS,
    FACES,
    PINK,
    PLACES,
    RED,
    WHITE,
    files_in,
    gazebo,
    mujoco,
    taken,
)

pytestmark = [needs_blender, pytest.mark.usefixtures("one_blender")]


@pytest.mark.parametrize("layout", [mujoco, gazebo])
def test_a_scan_is_an_asset_with_a_name_a_colour_and_a_box(layout: object, tmp_path: Path) -> None:
    folder = layout(tmp_path, "Cole_Hardware_Mug_Classic", RED)  # type: ignore[operator]
    made = taken(folder, licence="CC-BY-4.0")
    assert made.entry["words"] == {"noun": "mug", "size": 0.75, "colour": "red"}
    assert made.entry["kwargs"]["bounds"] == [[0, 0, 0], [1, 0.8, 1.2]]
    names = ["collision_geometry.obj", "model.mtl", "model.obj", "object.urdf", "texture.png"]
    assert list(files_in(made)) == names
    assert b"map_Kd texture.png" in files_in(made)["model.mtl"]
    assert bool(made.notes) == (layout is mujoco)
    assert taken(folder, licence="CC-BY-4.0") == made


def test_a_file_whose_name_ends_in_capitals_keeps_its_texture(tmp_path: Path) -> None:
    folder = mujoco(tmp_path, "Mug", RED)
    (folder / "model.obj").rename(folder / "model.OBJ")
    made = taken(folder)
    assert made.entry["words"]["colour"] == "red"
    assert {"model.OBJ", "model.mtl", "texture.png"} <= files_in(made).keys()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"{CORNERS}{PLACES}usemtl m\n{FACES}", "v 0 0 0\nv 1 0 1\nv 1 1 2\nf 1 2 3\n"),
        (CORNERS, CORNERS.replace("1.2", "nan")),
    ],
)
def test_a_scan_that_cannot_be_read_is_refused_and_the_others_are_kept(
    old: str, new: str, tmp_path: Path
) -> None:
    mujoco(tmp_path / "scans", "A_Mug", RED)
    bad = mujoco(tmp_path / "scans", "B_Mug", RED) / "model.obj"
    bad.write_text(bad.read_text().replace(old, new))
    output = tmp_path / "out"
    assert command.main(["adopt", str(tmp_path / "scans"), "--output", str(output)]) == 1
    assert list(read_manifest(str(output / "manifest.json")).assets) == ["A_Mug"]


def test_a_stopped_adoption_looks_at_nothing_twice_and_ends_with_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, colour in (("A_Mug", RED), ("B_Mug", BLUE), ("C_Mug", PINK)):
        mujoco(tmp_path / "scans", name, colour)
    real, looked = ScanLooker.look, list[Any]()

    def look(*arguments: Any) -> Looks:
        looked.append(arguments)
        return real(*arguments)

    def is_stopped(*arguments: Any) -> Looks:
        if len(looked) == 2:
            raise KeyboardInterrupt
        return look(*arguments)

    output = tmp_path / "out"
    arguments = ["adopt", str(tmp_path / "scans"), "--output"]
    monkeypatch.setattr(ScanLooker, "look", is_stopped)
    with pytest.raises(SystemExit) as left:
        command.main([*arguments, str(output)])
    assert left.value.code == 130
    assert [*read_manifest(str(output / "manifest.json")).assets] == ["A_Mug", "B_Mug"]
    monkeypatch.setattr(ScanLooker, "look", look)
    assert command.main([*arguments, str(output)]) == 0
    assert len(looked) == 3
    assert "replaces an asset" not in capsys.readouterr().err
    assert command.main([*arguments, str(tmp_path / "whole")]) == 0
    assert files(output) == files(tmp_path / "whole")


def test_two_commands_do_not_write_into_a_folder_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mujoco(tmp_path / "scans", "Mug", RED)
    output = str(tmp_path / "out")
    commands = (["adopt", str(tmp_path / "scans")], ["fetch", "--ids", "cube"])
    for arguments in commands:
        with locked(output), pytest.raises(SystemExit) as left:
            command.main([*arguments, "--output", output])
        assert left.value.code == 2
        assert "another run is writing there" in capsys.readouterr().err
    assert [command.main([*arguments, "--output", output]) for arguments in commands] == [0, 0]
    dataset = tmp_path / "dataset" / "_work"
    dataset.mkdir(parents=True)
    (dataset / "identity.json").touch()
    for arguments in commands:
        with pytest.raises(SystemExit) as left:
            command.main([*arguments, "--output", str(dataset.parent)])
        assert left.value.code == 2
        assert "contains a dataset" in capsys.readouterr().err
    assert [path.name for path in dataset.iterdir()] == ["identity.json"]
    assert {*read_manifest(f"{output}/manifest.json").assets} == {"Mug", "cube"}


def test_a_file_with_y_up_has_its_height_along_z(tmp_path: Path) -> None:
    folder = mujoco(tmp_path, "Mug", RED)
    made = taken(folder, "Y")
    assert made.entry["kwargs"]["bounds"] == [[0, -1.2, 0], [1, 0, 0.8]]
    assert made.entry["kwargs"]["render_import_kwargs"] == {"axis_forward": "-Z", "axis_up": "Y"}


@pytest.mark.parametrize("name", ["кружка.obj", "a&b.obj"])
def test_a_mesh_may_have_any_name(name: str, tmp_path: Path) -> None:
    (mujoco(tmp_path / "scans", "Mug", RED) / "model.obj").rename(tmp_path / "scans" / "Mug" / name)
    output = tmp_path / "out"
    assert command.main(["adopt", str(tmp_path / "scans"), "--output", str(output)]) == 0
    (asset,) = read_manifest(str(output / "manifest.json")).assets.values()
    assert [found.text for found in findings_of(asset)] == []


def test_a_thing_of_many_colours_has_none_and_is_not_recoloured(tmp_path: Path) -> None:
    folder = mujoco(tmp_path, "Toy_Robot", RED)
    halves = np.zeros((32, 32, 3), np.uint8)
    halves[:16], halves[16:] = RED, BLUE
    Image.fromarray(halves).save(folder / "texture.png")
    words = taken(folder).entry["words"]
    assert words == {"noun": "toy robot", "size": 0.95, "parts": []}


@pytest.mark.parametrize(
    ("name", "category", "noun"),
    [
        ("ACE_Coffee_Mug_Kristen_16_oz_cup", None, "coffee mug"),
        ("Mens_ASV_Billfish_Boat_Shoe_in_Dark_Brown_Leather_zdHVHXueI3w", None, "shoe"),
        ("Poppin_File_Sorter_Pink", None, "file sorter"),
        ("Two_Mugs", None, "mug"),
        ("3D_Dollhouse_TablePurple", None, "toy table"),
        ("3D_Dollhouse_Happy_Brother", None, None),
        ("xJb4BPsKdTD", "Shoe", "shoe"),
        ("xJb4BPsKdTD", "Consumer Goods", None),
        ("Schleich_Hereford_Bull", None, "bull"),
        ("Dog_Food_Can", None, None),
        ("Cat_Litter_Box", None, None),
        ("Hot_Dog_Squeaky", None, "hot dog"),
        ("Car_Key_and_Wallet", None, "wallet"),
        ("RubberDuckYellow2", None, "toy duck"),
        ("XYZShoe", None, "shoe"),
    ],
)
def test_a_name_says_what_a_scan_is(name: str, category: str | None, noun: str | None) -> None:
    words = words_for(name, category, {})
    assert (None if words is None else words["noun"]) == noun


def test_the_words_of_a_user_count_first() -> None:
    own = {"mug": {"noun": "beaker"}, "Shoe": {"noun": "trainer"}}
    assert words_for("Blue_Mug", None, own) == {"noun": "beaker"}
    assert words_for("xyz", "Shoe", own) == {"noun": "trainer"}
    assert words_for("Red_Bowl", None, own) == words_for("Red_Bowl", None, {})


def test_the_command_writes_a_manifest_that_builds_take(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "models", str(tmp_path / "out")
    names = ["Sorter_Blue", "Sorter_White", "Red_Mug"]
    nouns = tmp_path / "nouns.json"
    nouns.write_text(json.dumps({"sorter": {"noun": "file sorter"}}))
    for name, colour in reversed([*zip(names, (BLUE, WHITE, RED), strict=True)]):
        mujoco(source, name, colour, "material.mtl")
    (source / "Broken").mkdir()
    (source / "Broken" / "model.obj").write_text("nothing\n")
    assert command.main(["adopt", str(source), "--output", out, "--nouns", str(nouns)]) == 1
    said = capsys.readouterr()
    assert "Broken" in said.out
    assert "3 assets, 0 without caption words, 1 rejected" in said.out
    assert "Sorter_Blue: blue file sorter; no .mtl file refers to a texture" in said.err
    assets = read_manifest(f"{out}/manifest.json").assets
    assert list(assets) == sorted(names)
    assert all(not list(findings_of(asset)) for asset in assets.values())
    again = (tmp_path / "out" / "manifest.json").read_bytes()
    (source / "Broken" / "model.obj").unlink()
    assert command.main(["adopt", str(source / "Red_Mug"), "--output", out]) == 0
    assert (tmp_path / "out" / "manifest.json").read_bytes() == again


def test_a_library_as_windows_writes_it_and_a_mesh_without_surfaces(tmp_path: Path) -> None:
    folder = gazebo(tmp_path, "Mug", RED)
    library = folder / "meshes" / "model.mtl"
    library.write_text("newmtl only\nmap_Kd -s 1 1 1 ..\\materials\\textures\\texture.png\n")
    mesh = folder / "meshes" / "model.obj"
    mesh.write_text(mesh.read_text().replace("usemtl m\n", ""))
    made = taken(folder)
    assert b"usemtl only\nf " in files_in(made)["model.obj"]
    assert b"map_Kd -s 1 1 1 texture.png" in files_in(made)["model.mtl"]
    assert made.entry["words"]["colour"] == "red"


def test_a_flat_scan_is_refused(tmp_path: Path) -> None:
    folder = mujoco(tmp_path, "Mug", RED)
    mesh = folder / "model.obj"
    mesh.write_text(mesh.read_text().replace(" 1.2\n", " 0\n"))
    with pytest.raises(InputError, match="it is flat"):
        taken(folder)


def test_a_map_that_is_missing_is_an_error(tmp_path: Path) -> None:
    folder = gazebo(tmp_path, "Mug", RED)
    (folder / "materials" / "textures" / "texture.png").unlink()
    with pytest.raises(InputError, match=r"refers to '\.\./.*/texture\.png', which does not exist"):
        taken(folder)


@pytest.fixture
def manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Three scans of one noun that may not be recoloured, in two shapes, and eqforge's own."""
    out = str(tmp_path / "out")
    for name, colour in (("Sorter_Blue", BLUE), ("Sorter_White", WHITE), ("Sorter_Red", RED)):
        mujoco(tmp_path / "models", name, colour)
    tall = tmp_path / "models" / "Sorter_Red" / "model.obj"
    tall.write_text(tall.read_text().replace(" 1.2\n", " 3.6\n"))
    nouns = tmp_path / "nouns.json"
    nouns.write_text(json.dumps({"sorter": {"noun": "file sorter", "parts": []}}))
    argv = ["adopt", str(tmp_path / "models"), "--output", out, "--nouns", str(nouns)]
    assert command.main(argv) == 0
    assert command.main(["fetch", "--ids", "mug", "duck", "platform", "--output", out]) == 0
    capsys.readouterr()
    return f"{out}/manifest.json"


def test_two_scans_of_a_noun_are_exchanged_where_their_shapes_are_alike(manifest: str) -> None:
    vocabulary = Vocabulary(read_manifest(manifest).assets.values(), 5, by_noun=True)
    (noun,) = [each for each in vocabulary.nouns if each.words.noun == "file sorter"]
    found = coloured_pairs(noun, ("blue", "white"))
    assert [[asset.asset_id for asset in pair] for pair in found] == [
        ["Sorter_Blue", "Sorter_White"]
    ]
    assert coloured_pairs(noun, ("red", "blue")) == []


def exchanged(manifest: str) -> list[ScenePair]:
    """The pairs that exchange a scan, of all that the manifest allows."""
    library = AssetLibrary(manifest, "/nowhere")
    settings = SceneSettings(pairs=1, kinds=("attribute",), attributes=("colour",))
    proposer = SceneProposer(settings, library, "corrected", 2)
    numbers = [
        number
        for number in range(proposer.supply["attribute"])
        if all("file sorter is" in caption for caption in proposer.captions("attribute", number))
    ]
    pairs = [proposer.pair("attribute", number) for number in numbers]
    return [pair for pair in pairs if isinstance(pair, ScenePair)]


def test_captions_of_an_exchange_name_the_colours_of_the_scans(manifest: str) -> None:
    pairs = exchanged(manifest)
    assert len(pairs) > 5
    for pair in pairs:
        for scene_of, caption in zip(pair.scenes, pair.captions, strict=True):
            (target,) = [item for item in scene_of.objects if item.name == "target"]
            assert target.colour is None
            assert caption.startswith(f"The {target.asset.removeprefix('Sorter_').lower()} file")
            assert target.scale == pytest.approx(1 / 1.2, abs=1e-3)


def test_the_hull_of_a_scan_stands_where_it_is_seen(tmp_path: Path) -> None:
    made = taken(mujoco(tmp_path, "Mug", RED), "Y")
    text = files_in(made)["collision_geometry.obj"].decode()
    lines = [line.split()[1:] for line in text.splitlines() if line.startswith("v ")]
    corners = np.array(lines, float)
    assert [corners.min(axis=0).tolist(), corners.max(axis=0).tolist()] == made.entry["kwargs"][
        "bounds"
    ]


def test_an_exchanged_scan_is_rendered_with_its_texture_and_a_recoloured_one_in_its_grain(
    manifest: str, tmp_path: Path
) -> None:
    pair = exchanged(manifest)[0]
    (target,) = [item for item in pair.scenes[0].objects if item.name == "target"]
    (other,) = [item for item in pair.scenes[1].objects if item.name == "target"]
    renderer = open_renderer(tmp_path, manifest)
    try:
        seen = renderer.render([scene(target), scene(other)])
    finally:
        renderer.close()
    colours = [pixels(each)[mask(each) == 1].mean(axis=0) for each in seen]
    spreads = [pixels(each)[mask(each) == 1].std(axis=0).max() for each in seen]
    blue = 0 if target.asset == "Sorter_Blue" else 1
    assert colours[blue][2] > 2 * colours[blue][0]
    assert np.ptp(colours[1 - blue]) < 25
    assert min(spreads) > 5
