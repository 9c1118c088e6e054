import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from eqforge.generators.scenes.assets import BUILTIN, BUILTIN_MANIFEST, AssetLibrary, packed
from eqforge.generators.scenes.palette import PALETTE
from tools.meshes.build import model_files
from tools.meshes.catalogue import CATALOGUE, words_entry
from tools.meshes.shapes import (
    AROUND,
    Solid,
    block,
    corner_normals,
    disc,
    ellipsoid,
    hoop,
    lathe,
    tube,
    wrapped,
)
from tools.meshes.textures import TEXTURES, pixels
from tools.meshes.wavefront import normalised


def volume(solid: Solid) -> float:
    """By the divergence theorem, over the triangles of each face."""
    fans = [(face[0], b, c) for face in solid.faces for b, c in pairwise(face[1:])]
    corners = solid.vertices[np.array(fans)]
    return float(np.linalg.det(corners).sum() / 6)


def is_closed(solid: Solid) -> bool:
    """Whether every edge is walked once in each direction: no hole, no face turned over."""
    edges = [edge for face in solid.faces for edge in zip(face, face[1:] + face[:1], strict=True)]
    return len(set(edges)) == len(edges) and {(b, a) for a, b in edges} == set(edges)


def read_obj(text: str) -> tuple[np.ndarray, list[list[int]], set[str]]:
    lines = [line.split() for line in text.splitlines()]
    vertices = np.array([line[1:] for line in lines if line[0] == "v"], dtype=float)
    faces = [[int(c.split("/")[0]) - 1 for c in line[1:]] for line in lines if line[0] == "f"]
    return vertices, faces, {line[1] for line in lines if line[0] == "usemtl"}


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_part_of_a_model_is_a_closed_solid_seen_from_outside(name: str) -> None:
    solids = CATALOGUE[name].model()
    assert all(map(is_closed, solids))
    assert min(map(volume, solids)) > 0
    assert {*CATALOGUE[name].words.trims} <= {solid.material for solid in solids} - {"paint"}


@pytest.mark.parametrize("name", [name for name, each in CATALOGUE.items() if each.words.lies])
def test_what_is_said_to_lie_rests_on_its_side(name: str) -> None:
    """On points of the floor on both sides of its middle, and along a third of its length."""
    corners = np.concatenate([solid.vertices for solid in normalised(CATALOGUE[name].model())])
    along, height = corners[:, 2], -corners[:, 0]
    low = along[height < height.min() + 0.015 * np.ptp(along)]
    assert low.min() < (along.min() + along.max()) / 2 + 1e-6 < low.max() + 1e-2
    assert np.ptp(low) > np.ptp(along) / 3


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> AssetLibrary:
    return AssetLibrary(BUILTIN, str(tmp_path_factory.mktemp("cache")))


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_project_holds_what_the_models_make(name: str, library: AssetLibrary) -> None:
    entry, files, asset = CATALOGUE[name], library.unpack(name), library.asset(name)
    solids = normalised(entry.model())
    vertices, faces, materials = read_obj(files.render.read_text())
    assert np.allclose(vertices, np.concatenate([s.vertices for s in solids]), atol=2e-4)
    starts = np.cumsum([0, *(len(solid.vertices) for solid in solids)])
    made = [
        [int(start) + corner for corner in face]
        for start, solid in zip(starts, solids, strict=False)
        for face in solid.faces
    ]
    assert faces == made
    assert materials == {solid.material for solid in solids}
    assert (asset.words, asset.category) == (entry.words, entry.category)

    # It stands on the middle of its footprint.
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    assert np.allclose((low, high), asset.bounds)
    assert np.allclose(low[:2], -high[:2], atol=2e-4)
    assert low[2] == 0
    assert (high - low).max() == pytest.approx(1, abs=2e-4)


def test_the_colour_in_words_is_the_one_in_the_file(library: AssetLibrary) -> None:
    for name, asset in library.assets.items():
        text = (library.unpack(name).folder / "visual_geometry.mtl").read_text()
        if asset.words is not None and not asset.words.is_recolourable:
            continue
        paint = text.split("newmtl paint\nKd ")[1].split("\n")[0]
        assert asset.words is not None
        assert asset.words.colour is not None
        assert asset.words.colour in PALETTE
        assert [float(value) for value in paint.split()] == list(PALETTE[asset.words.colour])


def test_all_archives_together_stay_small() -> None:
    sizes = [path.stat().st_size for path in Path(BUILTIN_MANIFEST).parent.rglob("*.tar.gz")]
    assert len(sizes) == len(CATALOGUE)
    assert sum(sizes) < 2_200_000


@pytest.mark.parametrize("name", TEXTURES)
def test_the_project_holds_the_textures_that_are_made(name: str, library: AssetLibrary) -> None:
    folders = [library.unpack(asset).folder for asset in CATALOGUE]
    (file,) = [path for each in folders if (path := each / f"{name}.jpg").is_file()]
    with Image.open(file) as picture:
        stored = np.asarray(picture, np.float64)
    # Another version of the JPEG library may round otherwise.
    assert np.abs(stored - pixels(name)).mean() < 6
    assert np.abs(stored.mean(axis=(0, 1)) - pixels(name).mean(axis=(0, 1))).max() < 1


@pytest.mark.parametrize("how", ["around", "ball", "sides"])
def test_a_texture_lies_on_a_solid_without_a_jump(how: str) -> None:
    solid = block("a", (1, 2, 3), 0.0) if how == "sides" else ellipsoid("a", 1, 1, 1)
    places = wrapped(solid, how).places
    assert len(places) == len(solid.faces)
    for face, corners in zip(solid.faces, places, strict=True):
        assert corners.shape == (len(face), 2)
        if how != "sides":
            assert np.ptp(corners[:, 0]) <= 0.5  # none goes back around the whole of it
            around = np.arctan2(solid.vertices[list(face), 1], solid.vertices[list(face), 0])
            is_pole = np.hypot(*solid.vertices[list(face), :2].T) < 1e-6
            turns = (corners[:, 0] - around / (2 * np.pi))[~is_pole]
            assert np.allclose(turns, np.round(turns))
        else:
            assert set(np.unique(corners)) <= {0.0, 1.0}
            (a, b), (c, d) = corners[1] - corners[0], corners[2] - corners[0]
            signed = a * d - b * c
            normal = np.cross(*np.diff(solid.vertices[list(face)], axis=0)[:2])
            if abs(normal[2]) < 1e-9:
                assert signed > 0  # letters on a side are not mirrored


def test_packing_gives_the_same_bytes_in_any_order() -> None:
    files = model_files("cube", CATALOGUE["cube"])
    assert packed(files) == packed(dict(reversed(files.items())))
    assert set(files) == {
        "visual_geometry.obj",
        "visual_geometry.mtl",
        "collision_geometry.obj",
        "object.urdf",
        "data.json",
    }


def test_the_manifest_says_of_words_only_what_is_not_usual() -> None:
    entry = json.loads(Path(BUILTIN_MANIFEST).read_text())["assets"]["mug"]
    assert entry["words"] == json.loads(json.dumps(words_entry(CATALOGUE["mug"].words)))
    said = {"noun", "plural", "colour", "parts", "size", "front_deg", "materials"}
    assert set(entry["words"]) == said


def test_the_collision_mesh_is_the_convex_hull(library: AssetLibrary) -> None:
    for name in ("chair", "cube", "ladder"):
        folder = library.unpack(name).folder
        corners, faces, _ = read_obj((folder / "collision_geometry.obj").read_text())
        points, _, _ = read_obj((folder / "visual_geometry.obj").read_text())
        hull = Solid(material="", vertices=corners, faces=tuple(map(tuple, faces)))
        assert is_closed(hull)
        for a, b, c in (corners[face] for face in faces):
            outward = np.cross(b - a, c - a)
            assert ((points - a) @ outward <= 1e-4 * np.linalg.norm(outward)).all()


def test_solids_have_the_volumes_of_geometry() -> None:
    polygon = AROUND / 2 * np.sin(2 * np.pi / AROUND)  # its area; the circle's is pi
    assert volume(block("", (2, 3, 4), bevel=0)) == pytest.approx(24)
    assert volume(disc("", 0.5, 2, bevel=0)) == pytest.approx(polygon / 2, rel=1e-5)
    assert volume(lathe("", [(0, 0), (1, 0), (0, 3)])) == pytest.approx(polygon, rel=1e-5)
    square = [(2.0, 0.0), (3.0, 0.0), (3.0, 1.0), (2.0, 1.0)]
    assert volume(hoop("", square)) == pytest.approx(5 * polygon, rel=1e-5)
    assert volume(tube("", [(0, 0, 0), (0, 3, 4)], 0.5, AROUND)) == pytest.approx(
        5 / 4 * polygon, rel=1e-5
    )
    assert volume(ellipsoid("", 1, 2, 3)) == pytest.approx(8 * np.pi, rel=0.02)
    angles = np.linspace(0, 2 * np.pi, AROUND, endpoint=False)
    circle = np.stack([2 * np.cos(angles), 2 * np.sin(angles), 0 * angles], axis=1)
    ring = tube("", circle, 0.5, AROUND, is_open=False)
    assert volume(ring) == pytest.approx(np.pi**2, rel=0.02)


def test_turning_is_counter_clockwise_about_each_axis() -> None:
    east = Solid(material="", vertices=np.eye(3), faces=())
    assert np.allclose(east.turned("z", 90).vertices[0], (0, 1, 0))
    assert np.allclose(east.turned("x", 90).vertices[1], (0, 0, 1))
    assert np.allclose(east.turned("y", 90).vertices[2], (1, 0, 0))


def test_a_round_side_is_shaded_smooth_and_an_edge_sharp() -> None:
    cylinder = disc("", 1.0, 2.0, bevel=0)
    for face, normals in zip(cylinder.faces, corner_normals(cylinder), strict=True):
        corners = cylinder.vertices[list(face)]
        if np.ptp(corners[:, 2]) > 0:
            assert np.allclose(normals, corners * (1, 1, 0), atol=1e-6)
        else:
            assert np.allclose(np.abs(normals), (0, 0, 1))
