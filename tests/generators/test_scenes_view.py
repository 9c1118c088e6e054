import math
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.scenes.view import camera_axes, corners, project, shape_of, to_camera
from eqforge.schemas.records.scenes import SceneCamera, SceneObject

CAMERA = SceneCamera(position=(0.0, -5.0, 0.0), look_at=(0.0, 0.0, 0.0))
UNIT = ((-0.5, -0.5, 0.0), (0.5, 0.5, 1.0))
lengths = st.floats(-3, 3)
points = st.tuples(lengths, lengths, lengths)

BLENDER = """
import bpy, mathutils, sys, json
from bpy_extras.object_utils import world_to_camera_view
position, look_at, points = json.loads(sys.argv[-1])
bpy.ops.wm.read_factory_settings(use_empty=True)
scene = bpy.context.scene
scene.render.resolution_x = scene.render.resolution_y = 256
data = bpy.data.cameras.new("c")
data.lens, data.sensor_width = 35.0, 32.0
camera = bpy.data.objects.new("c", data)
scene.collection.objects.link(camera)
camera.location = position
view = mathutils.Vector(look_at) - mathutils.Vector(position)
camera.rotation_euler = view.to_track_quat("-Z", "Y").to_euler()
bpy.context.view_layer.update()
seen = [world_to_camera_view(scene, camera, mathutils.Vector(p)) for p in points]
print("seen", json.dumps([[v.x, 1 - v.y, v.z] for v in seen]))
"""


def test_a_point_is_seen_where_similar_triangles_put_it() -> None:
    seen = project(CAMERA, [(0, 0, 0), (1, 0, 0), (0, 0, 1), (1, 5, 0)])
    zoom = 35 / 32
    expected = [(0.5, 0.5), (0.5 + zoom / 5, 0.5), (0.5, 0.5 - zoom / 5), (0.5 + zoom / 10, 0.5)]
    assert np.allclose(seen, expected)


def test_what_is_behind_the_camera_is_nowhere() -> None:
    assert np.isnan(project(CAMERA, [(0, -6, 0)])).all()


@given(points, st.floats(0, 360), points)
def test_turning_and_moving_everything_changes_no_picture(
    point: tuple[float, float, float], angle_deg: float, shift: tuple[float, float, float]
) -> None:
    camera = SceneCamera(position=(4.0, -7.0, 5.0), look_at=(0.3, 0.2, 0.1))
    cosine, sine = math.cos(math.radians(angle_deg)), math.sin(math.radians(angle_deg))
    turn = np.array([(cosine, -sine, 0), (sine, cosine, 0), (0, 0, 1)])

    def moved(place: tuple[float, float, float]) -> tuple[float, float, float]:
        x, y, z = turn @ place + shift
        return (float(x), float(y), float(z))

    other = SceneCamera(position=moved(camera.position), look_at=moved(camera.look_at))
    assert np.allclose(project(camera, [point]), project(other, [moved(point)]), atol=1e-9)


def test_a_camera_must_not_look_straight_down() -> None:
    with pytest.raises(ValueError, match="straight up or down"):
        camera_axes(SceneCamera(position=(1.0, 1.0, 5.0), look_at=(1.0, 1.0, 0.0)))


@pytest.mark.skipif(find_spec("bpy") is None, reason="needs the extra render")
def test_blender_sees_points_at_the_same_places() -> None:
    position, look_at = (3.1, -4.2, 2.3), (0.1, 0.2, 0.4)
    places = [(0.0, 0.0, 0.0), (1.0, 0.5, 0.2), (-1.2, 0.7, 1.5), (0.4, -1.9, 0.0)]
    import json

    done = subprocess.run(
        [sys.executable, "-c", BLENDER, json.dumps([position, look_at, places])],
        capture_output=True,
        text=True,
        check=True,
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("seen "))
    theirs = np.array(json.loads(line.removeprefix("seen ")))
    camera = SceneCamera(position=position, look_at=look_at)
    assert np.allclose(project(camera, places), theirs[:, :2], atol=1e-5)
    assert np.allclose(to_camera(camera, places)[:, 2], theirs[:, 2], atol=1e-5)


def test_the_corners_of_an_object_follow_its_scale_turn_and_place() -> None:
    item = SceneObject(name="a", asset="a", position=(10.0, 20.0, 3.0), yaw_deg=90.0, scale=2.0)
    bounds = ((1.0, 0.0, 5.0), (5.0, 2.0, 6.0))  # 4 x 2 x 1, wherever it was modelled
    box = corners(item, bounds)
    assert np.allclose(box.min(axis=0), (8.0, 16.0, 3.0))
    assert np.allclose(box.max(axis=0), (12.0, 24.0, 5.0))
    assert np.allclose(box[0], (12.0, 16.0, 3.0))  # the corner with the least x and y, turned


def at(x: float, y: float, yaw_deg: float = 0.0) -> SceneObject:
    return SceneObject(name="a", asset="a", position=(x, y, 0.0), yaw_deg=yaw_deg)


@given(st.floats(-2, 2), st.floats(-2, 2), st.floats(0, 360), st.floats(0, 360))
def test_the_gap_of_two_footprints_is_never_more_than_their_distance(
    x: float, y: float, first_deg: float, second_deg: float
) -> None:
    boxes = corners(at(0, 0, first_deg), UNIT), corners(at(x, y, second_deg), UNIT)
    edges = [
        np.concatenate([box[k, :2] + (box[(k + 1) % 4, :2] - box[k, :2]) * t for k in range(4)])
        for box in boxes
        for t in [np.linspace(0, 1, 21)[:, None]]
    ]
    nearest = np.linalg.norm(edges[0][:, None] - edges[1][None], axis=2).min()
    gap = shape_of(boxes[0][:4, :2]).gap(shape_of(boxes[1][:4, :2]))
    assert gap <= nearest + 1e-9
    assert gap >= 0.9 * nearest - 0.06 or gap < 0 or nearest < 0.06


def test_what_is_covered_is_the_share_of_the_area() -> None:
    square = shape_of(np.array([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]))
    half = shape_of(np.array([(0.5, -1.0), (2.0, -1.0), (2.0, 2.0), (0.5, 2.0)]))
    far = shape_of(np.array([(3.0, 3.0), (4.0, 3.0), (3.0, 4.0)]))
    assert square.covered_by([half]) == pytest.approx(0.5, abs=0.03)
    assert square.covered_by([half, half]) == pytest.approx(0.5, abs=0.03)
    assert square.covered_by([far]) == square.covered_by([]) == 0.0
    assert square.covered_by([square]) == 1.0
