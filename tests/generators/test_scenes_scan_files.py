"""What a scan names is found, packed under a plain name and shown; what cannot be is refused."""

import base64
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eqforge.commands import assets as command
from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node
from eqforge.generators.scenes.adopt import Adopted
from eqforge.generators.scenes.copies import findings_of
from eqforge.generators.scenes.manifest import read_asset, read_manifest
from eqforge.generators.scenes.mesh_files import pictures_named, with_pictures
from eqforge.generators.scenes.scan_files import scans_in
from tests.renders import needs_blender
from tests.scans import (
    BLUE,
    CORNERS,
    FACES,
    PLACES,
    RED,
    WHITE,
    files_in,
    gazebo,
    glb,
    mujoco,
    taken,
    texture,
)

pytestmark = [needs_blender, pytest.mark.usefixtures("one_blender")]


def write_library(folder: Path, text: str, line: str = "mtllib model.mtl") -> Path:
    (folder / "model.mtl").write_text(text)
    mesh = folder / "model.obj"
    mesh.write_text(f"{line}\n{mesh.read_text()}")
    return folder


def library_of(made: Adopted) -> str:
    return files_in(made)["model.mtl"].decode()


@pytest.mark.parametrize(
    ("line", "options", "name"),
    [
        ("map_Kd a.png", "map_Kd", "a.png"),
        ("map_Kd -s 2 2 1 -o 0.5 -.5 a b.png", "map_Kd -s 2 2 1 -o 0.5 -.5", "a b.png"),
        ("\tmap_kd -clamp on -mm 0 1 2.png", "\tmap_Kd -clamp on -mm 0 1", "2.png"),
        ("map_Bump -bm 0.3 ..\\maps\\n.png  ", "map_Bump -bm 0.3", "../maps/n.png"),
        ('bump "x y.png"', "bump", "x y.png"),
        ("norm -imfchan l 1 2 3.png", "norm -imfchan l", "1 2 3.png"),
        ("map_Kd -t 1 2 3 4.png", "map_Kd -t 1 2 3", "4.png"),
        ("map_Kd -s " + 50_000 * "1" + ".png", "map_Kd", "-s " + 50_000 * "1" + ".png"),
        ("map_Kd a" + 50_000 * " " + "b.png", "map_Kd", "a" + 50_000 * " " + "b.png"),
    ],
    ids=range(9),
)
def test_a_line_names_a_picture_behind_its_options(line: str, options: str, name: str) -> None:
    assert pictures_named(f"newmtl m\nmap_Ka \n{line}\nd 1\n") == [name]
    made = with_pictures(f"map_Ka\n{line}\n", lambda said: f"{said}!")
    assert made == f"map_Ka\n{options} {name}!\n"


def test_the_colour_is_that_of_the_part_of_a_texture_which_options_show(tmp_path: Path) -> None:
    folder = mujoco(tmp_path, "Mug", RED)
    halves = np.zeros((32, 32, 3), np.uint8)
    halves[:, :16], halves[:, 16:] = RED, BLUE
    Image.fromarray(halves).save(folder / "texture.png")
    write_library(folder, "newmtl m\nmap_Kd -o 0.5 -s 0.5 1 texture.png\n")
    assert taken(folder).entry["words"]["colour"] == "blue"


def test_a_picture_may_lie_deeper_and_have_any_name_and_two_the_same(tmp_path: Path) -> None:
    folder = write_library(
        mujoco(tmp_path, "Mug", RED),
        "newmtl m\nmap_Kd maps/my texture.PNG\nnewmtl n\nmap_Kd a/t.png\nmap_Ks b/T.png\n"
        f"bump {'x' * 120}.png\n",
    )
    for at, name in enumerate(("maps/my texture.PNG", "a/t.png", "b/T.png", f"{'x' * 120}.png")):
        texture(folder / name, (200, 10 * at, 20))
    made = taken(folder)
    names = pictures_named(library_of(made))
    assert len({name.lower() for name in names}) == 4
    assert all(re.fullmatch(r"[\w.]{1,90}", name) for name in names)
    assert names[1] == "t.png"
    sources = ("maps/my texture.PNG", "a/t.png", "b/T.png", f"{'x' * 120}.png")
    for name, source in zip(names, sources, strict=True):
        assert files_in(made)[name] == (folder / source).read_bytes()
    assert made.entry["words"]["colour"] == "red"


def test_a_library_outside_the_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "other.mtl").write_text("newmtl secret\nKd 0 1 0\n")
    folder = write_library(mujoco(tmp_path, "Mug", RED), "", "mtllib ../other.mtl")
    assert "secret" not in library_of(taken(folder))


def test_a_picture_outside_the_folder_is_not_packed(tmp_path: Path) -> None:
    texture(tmp_path / "secret.png", BLUE)
    folder = write_library(mujoco(tmp_path, "Mug", RED), "newmtl m\nmap_Kd ../secret.png\n")
    with pytest.raises(InputError, match=r"refers to '\.\./secret\.png', which does not exist"):
        taken(folder)


@pytest.mark.parametrize(
    "line", ["mtllib model.mtl other.mtl", "mtllib .\\model.mtl\nmtllib other.mtl"]
)
def test_two_libraries_are_one(line: str, tmp_path: Path) -> None:
    folder = write_library(mujoco(tmp_path, "Mug", RED), "newmtl m\nmap_Kd texture.png", line)
    (folder / "other.mtl").write_text("newmtl n\nKd 1 0 0")
    assert library_of(taken(folder)).splitlines() == [
        "newmtl m",
        "map_Kd texture.png",
        "newmtl n",
        "Kd 1 0 0",
    ]


def test_a_library_of_plain_colours_keeps_them(tmp_path: Path) -> None:
    folder = write_library(mujoco(tmp_path, "Mug", WHITE), "newmtl m\nKd 0.5 0.01 0.01\n")
    (folder / "texture.png").rename(folder / "thumbnail.png")
    made = taken(folder)
    assert "thumbnail.png" not in files_in(made)
    assert made.entry["words"] == {"noun": "mug", "size": 0.75, "colour": "red"}
    (note,) = made.notes
    assert "contains thumbnail.png, so its surfaces have the colours of their .mtl file" in note


def test_a_texture_is_shown_beside_a_bump_map(tmp_path: Path) -> None:
    folder = write_library(mujoco(tmp_path, "Mug", RED), "newmtl m\nKd 1 1 1\nmap_Bump bumps.png\n")
    texture(folder / "bumps.png", WHITE)
    made = taken(folder)
    assert pictures_named(library_of(made)) == ["texture.png", "bumps.png"]
    assert made.entry["words"]["colour"] == "red"
    assert made.notes == ("no .mtl file refers to a texture, so its surfaces show texture.png",)


@pytest.mark.parametrize("data", [b"no picture", b"%!PS-Adobe"])
def test_a_texture_that_is_no_picture_is_refused(data: bytes, tmp_path: Path) -> None:
    folder = mujoco(tmp_path, "Mug", RED)
    (folder / "texture.png").write_bytes(data)
    with pytest.raises(InputError, match=r"texture texture\.png: "):
        taken(folder)


def test_a_grey_texture_of_16_bits_is_not_white(tmp_path: Path) -> None:
    folder = mujoco(tmp_path, "Mug", RED)
    Image.fromarray(np.full((8, 8), 0x6000, np.uint16)).save(folder / "texture.png")
    assert taken(folder).entry["words"]["colour"] == "grey"


def test_a_library_in_another_encoding_and_keywords_in_lower_case(tmp_path: Path) -> None:
    folder = write_library(mujoco(tmp_path, "Mug", RED), "")
    (folder / "texture.png").rename(folder / "Größe.png")
    (folder / "model.mtl").write_bytes("newmtl m\r\nmap_kd Größe.png\r\n".encode("latin-1"))
    made = taken(folder)
    assert re.fullmatch(r"newmtl m\nmap_Kd \w+\.png\n", library_of(made))
    assert made.entry["words"]["colour"] == "red"


@pytest.mark.parametrize(
    ("name", "other", "part"),
    [("body", "rim.001", "body"), ("m.001", "m", "m_001"), (80 * "b" + "1", 80 * "b", 50 * "b")],
)
def test_of_several_materials_those_of_the_main_colour_are_recoloured(
    name: str, other: str, part: str, tmp_path: Path
) -> None:
    folder = mujoco(tmp_path, "Mug", RED)
    sides = FACES.splitlines(keepends=True)
    mesh = f"mtllib model.mtl\n{CORNERS}{PLACES}usemtl {name}\n{''.join(sides[:5])}usemtl {other}\n"
    (folder / "model.obj").write_text(mesh + sides[5])
    library = f"newmtl {name}\nmap_Kd texture.png\nnewmtl {other}\nKd 0 0 0\n"
    (folder / "model.mtl").write_text(library)
    words = taken(folder).entry["words"]
    assert (words["colour"], words["parts"], words["clashes"]) == ("red", [part], ["black"])


@pytest.mark.parametrize(
    ("up", "axis", "suffix"), [("Y", None, ".glb"), ("Y", "Y", ".gltf"), ("Z", "Z", ".glb")]
)
def test_a_gltf_file_stands_and_has_its_colour(
    up: str, axis: str | None, suffix: str, tmp_path: Path
) -> None:
    made = taken(glb(tmp_path / "Red_Mug", up, suffix), axis)  # type: ignore[arg-type]
    low, high = np.array(made.entry["kwargs"]["bounds"])
    assert np.allclose(high - low, (1, 0.8, 1.2))
    assert made.entry["words"] == {"noun": "mug", "size": 0.75, "colour": "red"}
    asset = read_asset("Red_Mug", Node("Red_Mug", "", made.entry), "")
    assert asset.render == f"model{suffix}"
    assert asset.import_kwargs == {"axis_forward": "Y", "axis_up": "Z"}


def test_a_texture_that_is_mixed_with_a_factor_has_no_colour(tmp_path: Path) -> None:
    picture = Image.new("RGB", (8, 8), (255, 255, 255))
    made = taken(
        glb(tmp_path / "Mug", baseColorTexture=picture, baseColorFactor=(0.01, 0.02, 0.8, 1.0))
    )
    assert "colour" not in made.entry["words"]
    assert made.entry["words"]["parts"] == []


def changed_gltf(folder: Path, change: Callable[[Any], object], **material: Any) -> Path:
    """A box of a glTF file, of which the JSON is changed."""
    path = glb(folder, suffix=".gltf", **material) / "chair.gltf"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    return folder


def halves(left: tuple[int, int, int], right: tuple[int, int, int]) -> Image.Image:
    both = np.zeros((32, 32, 3), np.uint8)
    both[:, :16], both[:, 16:] = left, right
    return Image.fromarray(both)


def moved(document: Any) -> None:
    """The right half of the texture is shown."""
    texture = document["materials"][0]["pbrMetallicRoughness"]["baseColorTexture"]
    texture["extensions"] = {"KHR_texture_transform": {"offset": [0.5, 0], "scale": [0.5, 1]}}
    document["extensionsUsed"] = ["KHR_texture_transform"]


def test_the_part_of_a_texture_that_a_gltf_file_shows_decides_the_colour(tmp_path: Path) -> None:
    folder = changed_gltf(tmp_path / "Mug", moved, baseColorTexture=halves(RED, BLUE))
    assert taken(folder).entry["words"]["colour"] == "blue"


def wrapped(how: int, shift: float) -> Callable[[Any], None]:
    """What lies beyond the texture's rim is shown."""

    def change(document: Any) -> None:
        moved(document)
        texture = document["materials"][0]["pbrMetallicRoughness"]["baseColorTexture"]
        texture["extensions"]["KHR_texture_transform"] = {"offset": [shift, 0], "scale": [0.4, 1]}
        document["samplers"] = [{"wrapS": how, "wrapT": how}]
        document["textures"][0]["sampler"] = 0

    return change


@pytest.mark.parametrize(
    ("how", "shift", "colour"),
    [(10497, -0.45, "blue"), (33071, -0.45, "red"), (33648, -0.45, "red"), (33648, 1.05, "blue")],
)
def test_beyond_its_rim_a_texture_is_what_its_sampler_says(
    how: int, shift: float, colour: str, tmp_path: Path
) -> None:
    folder = changed_gltf(tmp_path / "Mug", wrapped(how, shift), baseColorTexture=halves(RED, BLUE))
    assert taken(folder).entry["words"]["colour"] == colour


def chrome(document: Any) -> None:
    document["materials"][0]["pbrMetallicRoughness"] |= {"metallicFactor": 1, "roughnessFactor": 0}


def clear(document: Any) -> None:
    texture = {"transmissionFactor": 1, "transmissionTexture": {"index": 0}}
    document["materials"][0]["extensions"] = {"KHR_materials_transmission": texture}
    document["extensionsUsed"] = ["KHR_materials_transmission"]


def coloured_corners(document: Any) -> None:
    attributes = document["meshes"][0]["primitives"][0]["attributes"]
    attributes["COLOR_0"] = attributes["POSITION"]


def lit(document: Any) -> None:
    document["materials"][0]["emissiveFactor"] = [0, 1, 0]


def unseen(document: Any) -> None:
    document["materials"][0] |= {"alphaMode": "BLEND"}
    document["materials"][0]["pbrMetallicRoughness"]["baseColorFactor"] = [1, 1, 1, 0]


def unlit(document: Any) -> None:
    document["materials"][0]["extensions"] = {"KHR_materials_unlit": {}}
    document["extensionsUsed"] = ["KHR_materials_unlit"]


@pytest.mark.parametrize("change", [coloured_corners, lit, unseen, unlit, chrome, clear])
def test_a_surface_of_which_the_colour_cannot_be_told_has_none(
    change: Callable[[Any], object], tmp_path: Path
) -> None:
    words = taken(changed_gltf(tmp_path / "Mug", change)).entry["words"]
    assert words == {"noun": "mug", "size": 0.75, "parts": []}


def points_only(document: Any) -> None:
    document["meshes"][0]["primitives"][0]["mode"] = 0


def test_a_mesh_without_faces_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the mesh has no faces"):
        taken(changed_gltf(tmp_path / "Mug", points_only))
    folder = mujoco(tmp_path, "Cup", RED)
    (folder / "model.obj").write_text(CORNERS)
    with pytest.raises(InputError, match="the mesh has no faces"):
        taken(folder)


def two_scenes(document: Any) -> None:
    document["nodes"].append({"mesh": 0, "translation": [9, 0, 0]})
    document["scenes"] = [{"nodes": [0]}, {"nodes": [0, 1]}]
    document["scene"] = 0


def test_only_the_scene_of_a_gltf_file_is_taken(tmp_path: Path) -> None:
    made = taken(changed_gltf(tmp_path / "Mug", two_scenes))
    low, high = np.array(made.entry["kwargs"]["bounds"])
    assert np.allclose(high - low, (1, 0.8, 1.2))


def one_buffer(document: Any) -> None:
    """The picture lies in the first buffer, which is no part of the file itself."""
    stream = io.BytesIO()
    Image.new("RGB", (8, 8), BLUE).save(stream, "PNG")
    data = base64.b64encode(stream.getvalue()).decode()
    uri = f"data:application/octet-stream;base64,{data}"
    document["buffers"].insert(0, {"uri": uri, "byteLength": len(stream.getvalue())})
    for view in document["bufferViews"]:
        view["buffer"] += 1
    document["bufferViews"].append({"buffer": 0, "byteLength": len(stream.getvalue())})
    view = {"bufferView": len(document["bufferViews"]) - 1, "mimeType": "image/png"}
    document["images"] = [view]


def test_a_picture_in_the_buffer_of_a_gltf_file_is_shown(tmp_path: Path) -> None:
    assert taken(changed_gltf(tmp_path / "Mug", one_buffer)).entry["words"]["colour"] == "blue"


def test_files_beside_a_gltf_file_are_packed_and_a_missing_one_is_named(tmp_path: Path) -> None:
    folder = glb(tmp_path / "Red Mug", suffix=".gltf")
    document = json.loads((folder / "chair.gltf").read_text())
    texture(folder / "my textures" / "a b.png", BLUE)
    document["images"] = [{"uri": "my%20textures/a%20b.png"}]
    (folder / "chair.gltf").write_text(json.dumps(document))
    out = tmp_path / "out"
    assert command.main(["adopt", str(folder), "--output", str(out)]) == 0
    (asset,) = read_manifest(str(out / "manifest.json")).assets.values()
    assert [found.text for found in findings_of(asset)] == []
    assert asset.words is not None
    assert asset.words.colour == "blue"
    (folder / "my textures" / "a b.png").unlink()
    with pytest.raises(InputError, match=r"refers to 'my textures/a b\.png', which does not exist"):
        taken(folder)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b'"version": "2.0"', b'"version": "1.0"', "expected glTF version 2, found version 1.0"),
        (b'"asset":', b'"skins": [{}], "asset":', "the mesh has a skeleton"),
        (
            b'"asset":',
            b'"extensionsRequired": ["KHR_draco_mesh_compression"], "asset":',
            "cannot read compressed meshes .KHR_draco_mesh_compression.",
        ),
        (b'"asset":', b"", "not a glTF file"),
    ],
)
def test_a_gltf_file_that_is_not_read_says_why(
    old: bytes, new: bytes, said: str, tmp_path: Path
) -> None:
    path = glb(tmp_path / "Mug", suffix=".gltf") / "chair.gltf"
    document = json.dumps(json.loads(path.read_bytes())).encode()
    assert old in document
    path.write_bytes(document.replace(old, new))
    with pytest.raises(InputError, match=said):
        taken(tmp_path / "Mug")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"nodes": [{"mesh": 0, "children": [0]}]}, "its own ancestor"),
        ({"nodes": [{"children": [2]}, {"children": [2]}, {"mesh": 0}]}, "has two parents"),
        ({"nodes": [7]}, " is damaged (AttributeError"),
        ({"images": [{"bufferView": 99}]}, " is damaged (IndexError"),
        ({"images": [{"uri": "data:image/png;base64,xx"}]}, " is damaged (Error"),
        ({"images": [{"uri": "../../etc/passwd"}]}, "passwd', which does not exist"),
        ({"buffers": [{"uri": "none.bin", "byteLength": 4}]}, "refers to 'none.bin'"),
        ({"meshes": []}, "contains no mesh"),
    ],
)
def test_a_hostile_gltf_file_is_one_error_and_the_others_are_taken(
    change: dict[str, object], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mujoco(tmp_path / "scans", "Mug", RED)
    path = glb(tmp_path / "scans" / "Bad", suffix=".gltf") / "chair.gltf"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    out = str(tmp_path / "out")
    assert command.main(["adopt", str(tmp_path / "scans"), "--output", out]) == 1
    assert said in capsys.readouterr().out
    assert list(read_manifest(f"{out}/manifest.json").assets) == ["Mug"]


def test_a_damaged_picture_inside_a_glb_is_refused(tmp_path: Path) -> None:
    path = glb(tmp_path / "Mug") / "chair.glb"
    data = path.read_bytes()
    start = data.index(b"\x89PNG")
    path.write_bytes(data[:start] + bytes(60) + data[start + 60 :])
    with pytest.raises(InputError, match=r"texture 0 \(counted from 0\): "):
        taken(tmp_path / "Mug")


def test_folders_that_hold_no_scan_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    mujoco(root, "Mug", RED)
    gazebo(root / "Deep_Bowl", "inner", BLUE)
    for name, file in (("Cup", "cup.ply"), ("Notes", "a.txt"), (".git", "x.obj")):
        (root / name).mkdir()
        (root / name / file).write_text("x")
    mujoco(root, "New\nLine", RED)
    (mujoco(root, "Two", RED) / "other.glb").touch()
    (root / "Two" / "model.obj").rename(root / "Two" / "first.obj")
    out = str(tmp_path / "out")
    assert command.main(["adopt", str(root), "--output", out]) == 1
    said = capsys.readouterr()
    assert "its name contains a character that cannot be printed" in said.out
    assert "expected a single mesh or a mesh named 'model'; found first.obj, other.glb" in said.out
    assert "expected a .obj, .glb or .gltf mesh, found cup.ply" in said.out
    assert "Notes: left out, because the folder contains no mesh" in said.err
    assert list(read_manifest(f"{out}/manifest.json").assets) == ["Deep_Bowl", "Mug"]


def test_a_mesh_beside_folders_with_meshes_is_an_error(tmp_path: Path) -> None:
    mujoco(tmp_path, "Mug", RED)
    (tmp_path / "stray.obj").write_text("v 0 0 0\n")
    with pytest.raises(InputError, match=r"contains both stray\.obj and folders with meshes"):
        scans_in(tmp_path)


def test_a_manifest_keeps_its_name_and_one_with_archives_elsewhere_is_not_added_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mujoco(tmp_path / "scans", "Mug", RED)
    out = tmp_path / "out"
    out.mkdir()
    manifest = {"name": "mine", "version": "7", "assets": {}}
    (out / "manifest.json").write_text(json.dumps(manifest))
    argv = ["adopt", str(tmp_path / "scans"), "--output", str(out)]
    assert command.main(argv) == 0
    made = read_manifest(str(out / "manifest.json"))
    assert (made.name, made.version, list(made.assets)) == ("mine", "7", ["Mug"])
    (out / "manifest.json").write_text(json.dumps({**manifest, "data_dir": "gs://elsewhere"}))
    before = sorted(path.name for path in out.iterdir())
    for each in (argv, ["fetch", "--ids", "mug", "--output", str(out)]):
        with pytest.raises(SystemExit):
            command.main(each)
        assert "'data_dir' is gs://elsewhere, where eqforge cannot add" in capsys.readouterr().err
    assert sorted(path.name for path in out.iterdir()) == before


def test_the_colour_of_a_known_scan_is_that_of_its_texture_and_words_of_a_manifest_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, nouns = "Curver_Storage_Bin_Black_Small", tmp_path / "nouns.json"
    mujoco(tmp_path / "scans", name, RED)
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    assert command.main(["adopt", str(tmp_path / "scans"), "--output", one]) == 0
    assert f"{name}: red storage bin" in capsys.readouterr().err
    nouns.write_text(json.dumps({"storage bin": {"noun": "tub"}}))
    argv = ["adopt", str(tmp_path / "scans"), "--output", one, "--nouns", str(nouns)]
    assert command.main(argv) == 0
    assert command.main(["fetch", "--manifest", f"{one}/manifest.json", "--output", two]) == 0
    capsys.readouterr()
    assert command.main(["list", "--manifest", f"{two}/manifest.json"]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith(" pinned      red tub")
