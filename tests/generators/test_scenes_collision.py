"""The collision shape of an asset is read from its URDF file and the meshes that it names."""

from pathlib import Path

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.generators.scenes.overlaps import collision_parts
from tests.optional import optional

optional("trimesh")

BOX = "v 0 0 0\nv 0 0 1\nv 0 1 0\nv 0 1 1\nv 1 0 0\nv 1 0 1\nv 1 1 0\nv 1 1 1\n"
FACES = "f 1 2 3\nf 4 5 6\nf 6 7 8\n"
MESH = '<mesh filename="a.obj"/>'


def urdf(shape: str, origin: str = "") -> str:
    return (
        '<?xml version="1.0"?><robot name="x"><link name="base"><visual/><collision>'
        f"{origin}<geometry>{shape}</geometry></collision></link></robot>"
    )


def written(folder: Path, text: str, mesh: str | bytes = BOX + FACES) -> Path:
    (folder / "a.obj").write_bytes(mesh.encode() if isinstance(mesh, str) else mesh)
    path = folder / "object.urdf"
    path.write_text(text)
    return path


def boxes(path: Path) -> list[list[list[float]]]:
    """The smallest and the largest coordinates of each part, in order."""
    found = (
        np.round([part.corners.min(0), part.corners.max(0)], 9) for part in collision_parts(path)
    )
    return sorted((box + 0.0).tolist() for box in found)


@pytest.mark.parametrize("letter", "og")
def test_every_object_and_group_of_a_mesh_is_a_part(tmp_path: Path, letter: str) -> None:
    beyond = BOX.replace("v 0", "v 3").replace("v 1", "v 4") + "f 9 10 11\nf 12 13 14\nf 14 15 16\n"
    mesh = f"mtllib missing.mtl\n{letter} one\n{BOX}{FACES}{letter} two\n{beyond}"
    assert boxes(written(tmp_path, urdf(MESH), mesh)) == [
        [[0, 0, 0], [1, 1, 1]],
        [[3, 0, 0], [4, 1, 1]],
    ]


def test_a_mesh_has_its_own_scale_then_turn_then_origin(tmp_path: Path) -> None:
    origin = '<origin xyz="10 0 0" rpy="0 0 1.5707963267948966"/>'
    shape = '<mesh filename="package://somewhere/a.obj" scale="1 2 3"/>'
    assert boxes(written(tmp_path, urdf(shape, origin))) == [[[8, 0, 0], [10, 1, 3]]]


def test_a_turn_is_about_x_then_y_then_z(tmp_path: Path) -> None:
    origin = '<origin rpy="1.5707963267948966 0 1.5707963267948966"/>'  # y to z, x to y, z to x
    assert boxes(written(tmp_path, urdf('<box size="2 4 6"/>', origin))) == [
        [[-3, -1, -2], [3, 1, 2]]
    ]


def test_a_cylinder_stands_upright_and_a_ball_has_its_centre(tmp_path: Path) -> None:
    assert boxes(written(tmp_path, urdf('<cylinder radius="2" length="3"/>'))) == [
        [[-2, -2, -1.5], [2, 2, 1.5]]
    ]
    folder = tmp_path / "ball"
    folder.mkdir()
    (ball,) = collision_parts(
        written(folder, urdf('<sphere radius="2"/>', '<origin xyz="1 2 3"/>'))
    )
    assert (ball.corners.tolist(), ball.radius) == ([[1.0, 2.0, 3.0]], 2.0)


def test_a_link_without_collision_has_no_parts(tmp_path: Path) -> None:
    assert collision_parts(written(tmp_path, "<robot><link/></robot>")) == ()


DOCTYPE = '<!DOCTYPE x [<!ENTITY y SYSTEM "a.obj">]><robot>&y;</robot>'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<robot", "unclosed token"),
        (DOCTYPE, "the document type 'x' is not allowed"),
        ("<robot/>", "expected one 'link' element, found 0"),
        ("<robot><link/><link/></robot>", "expected one 'link' element, found 2"),
        (urdf("<capsule/>"), "expected a mesh, box, cylinder or sphere as the geometry"),
        (urdf('<box size="1 2"/>'), "expected 3 numbers, found '1 2'"),
        (urdf('<sphere radius="inf"/>'), "expected 1 number, found 'inf'"),
        (urdf("<mesh/>"), "expected a mesh file (.obj, .stl), found no"),
        (urdf('<mesh filename="../../etc/passwd"/>'), "(.obj, .stl), found 'passwd'"),
        (urdf('<mesh filename="b.obj"/>'), "the collision mesh b.obj does not exist"),
        (urdf('<mesh filename="a.obj" scale="0 1 1"/>'), "has no volume"),
    ],
)
def test_what_is_no_collision_shape_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError) as refused:
        collision_parts(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "mesh",
    [
        b"",
        b"\xff" * 900,
        b"call /etc/passwd\ncsh id\n",
        b"v nan inf 1e999\n" * 50,
        b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n",
        b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 nan\nf 1 2 3\nf 1 2 4\n",
        b"mtllib /etc/passwd\nf 1 2 99999999999\n",
        BOX.encode() + b"f 1 2 99\n",
    ],
)
def test_a_damaged_mesh_is_refused(tmp_path: Path, mesh: bytes) -> None:
    path = written(tmp_path, urdf(MESH), mesh)
    with pytest.raises(InputError):
        collision_parts(path)
