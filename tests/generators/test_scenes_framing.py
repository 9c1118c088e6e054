"""Photographic scenes: the camera near, bystanders around, and nothing that the gates refuse."""

import math
from random import Random
from statistics import median

import numpy as np
import pytest

from eqforge.generators.scenes.assets import AssetLibrary
from eqforge.generators.scenes.propose import SceneProposer
from eqforge.generators.scenes.settings import SceneSettings
from eqforge.generators.scenes.view import (
    FILL,
    Standpoint,
    Subjects,
    corners,
    frame,
    project,
    shape_of,
    silhouette,
    to_camera,
)
from eqforge.schemas.records.scenes import SceneObject, ScenePair, SceneSpec
from eqforge.schemas.records.stages import Reject
from eqforge.transforms.generated.scene_gates import SceneGates

PHOTO = SceneSettings(pairs=120)
BOX = ((-0.5, -0.5, 0.0), (0.5, 0.5, 1.0))
GATES = SceneGates()


@pytest.fixture(scope="module")
def pairs(library: AssetLibrary) -> list[ScenePair]:
    found = list(SceneProposer(PHOTO, library, "corrected", seed=5))
    assert all(isinstance(pair, ScenePair) for pair in found)
    return [pair for pair in found if isinstance(pair, ScenePair)]


def share(library: AssetLibrary, scene: SceneSpec, item: SceneObject) -> float:
    box = corners(item, library.asset(item.asset).bounds)
    return FILL * silhouette(scene.camera, box).area()


def named(scene: SceneSpec, start: str) -> list[SceneObject]:
    return [item for item in scene.objects if item.name.startswith(start)]


def test_the_area_of_a_shape_is_that_of_the_polygon_around_it() -> None:
    square = shape_of(np.array([(1.0, 2.0), (3.0, 2.0), (3.0, 4.0), (1.0, 4.0)]))
    angles = np.linspace(0, 2 * math.pi, 1000)
    circle = shape_of(5 + 2 * np.stack([np.cos(angles), np.sin(angles)], axis=1))

    assert square.area() == pytest.approx(4.0)
    assert circle.area() == pytest.approx(4 * math.pi, rel=2e-3)


@pytest.mark.parametrize("elevation_deg", [15.0, 32.0])
@pytest.mark.parametrize("area", [0.04, 0.1])
def test_the_camera_is_where_the_subject_is_as_large_as_drawn(
    elevation_deg: float, area: float
) -> None:
    box = corners(SceneObject(name="a", asset="a", position=(0.4, -0.3, 0.0), yaw_deg=20), BOX)
    standpoint = Standpoint(pivot=(0.0, 0.0, 0.3), azimuth_deg=70, elevation_deg=elevation_deg)
    settings = SceneSettings(target_area=(area, area))

    camera = frame(Subjects(points=box, boxes=[box]), standpoint, settings, 0.0, Random(1))

    assert area / 1.3 < FILL * silhouette(camera, box).area() < area * 1.05


def test_what_does_not_fit_at_that_size_is_seen_from_farther_away() -> None:
    boxes = [
        corners(SceneObject(name="a", asset="a", position=(x, x / 2, 0.0)), BOX) for x in (-2, 0, 2)
    ]
    points = np.concatenate(boxes)
    standpoint = Standpoint(pivot=(0.0, 0.0, 0.3), azimuth_deg=250, elevation_deg=20)
    settings = SceneSettings(target_area=(0.2, 0.2))

    for seed in range(20):
        subjects = Subjects(points=points, boxes=boxes[:1])
        seen = project(frame(subjects, standpoint, settings, 0.0, Random(seed)), points)
        assert seen.min() >= 0.03
        assert seen.max() <= 0.97
        assert np.ptp(seen, axis=0).max() > 0.75


@pytest.mark.parametrize("margin", [0.49, 0.499])
def test_margins_that_leave_no_room_refuse_pairs(library: AssetLibrary, margin: float) -> None:
    settings = SceneSettings(pairs=2, image_margin=margin, tries=2)
    found = list(SceneProposer(settings, library, "corrected", seed=5))
    assert [each.reason for each in found if isinstance(each, Reject)] == ["no_arrangement"] * 2


def test_a_distance_that_was_asked_for_is_kept(library: AssetLibrary) -> None:
    settings = SceneSettings(pairs=30, kinds=("attribute",), distance_m=(7.0, 7.0))
    for pair in SceneProposer(settings, library, "corrected", seed=5):
        assert isinstance(pair, ScenePair)
        x, y, z = pair.scenes[0].camera.position
        middle = next(item for item in pair.scenes[0].objects if item.name == "reference")
        far = math.dist((x, y, z), (*middle.position[:2], 0.35))
        assert 7.0 - 1e-3 <= far < 7.0 * 1.5


def test_named_objects_are_large_and_bystanders_smaller(
    library: AssetLibrary, pairs: list[ScenePair]
) -> None:
    large: list[float] = []
    small: list[float] = []
    copies: list[float] = []
    for pair in pairs:
        shares = {
            start: [
                share(library, scene, item) for scene in pair.scenes for item in named(scene, start)
            ]
            for start in ("target", "reference", "copy", "distractor")
        }
        spoken = [*shares["target"], *shares["reference"]]
        large += spoken
        copies += shares["copy"]
        small += shares["distractor"]
        most = max(*spoken, *shares["copy"], 0.012)
        assert all(0.006 <= other <= most for other in shares["distractor"])

    assert 0.03 < median(large) < 0.25
    assert np.mean(np.array(large) >= 0.02) > 0.8
    assert max(large) <= 0.27
    assert median(copies) > 0.01
    assert median(small) < median(large) / 2


def test_two_to_four_bystanders_stand_around_in_most_scenes(pairs: list[ScenePair]) -> None:
    numbers = [len(named(pair.scenes[0], "distractor")) for pair in pairs]

    assert max(numbers) == 4
    assert sum(number >= 2 for number in numbers) >= 0.7 * len(numbers)
    assert sum(number == 0 for number in numbers) <= 0.03 * len(numbers)


def test_no_bystander_is_before_what_a_caption_names(
    library: AssetLibrary, pairs: list[ScenePair]
) -> None:
    for scene in (scene for pair in pairs for scene in pair.scenes):
        boxes = {i.name: corners(i, library.asset(i.asset).bounds) for i in scene.objects}
        shapes = {name: silhouette(scene.camera, box) for name, box in boxes.items()}
        far = {n: math.dist(box.mean(axis=0), scene.camera.position) for n, box in boxes.items()}
        for other in named(scene, "distractor"):
            for item in scene.objects:
                if item.name.startswith(("target", "reference", "copy")):
                    is_behind = far[other.name] > far[item.name]
                    assert is_behind or shapes[other.name].gap(shapes[item.name]) >= 0


def test_relations_are_as_plain_as_the_gates_ask_for(
    library: AssetLibrary, pairs: list[ScenePair]
) -> None:
    limits = (GATES.min_side_margin, GATES.min_depth_margin_m)
    crossed = (GATES.max_crossed_side_margin, GATES.max_crossed_depth_margin_m)
    for pair in pairs:
        for scene, claim, other in zip(pair.scenes, pair.claims, pair.claims[::-1], strict=True):
            if claim.relation is None:
                continue
            right, behind = margins(library, scene)
            along = {"right": right, "left": -right, "behind": behind, "front": -behind}
            for margin, relation in enumerate(("right", "left", "behind", "front")):
                least, most = limits[margin // 2], crossed[margin // 2]
                assert least is not None
                assert most is not None
                if relation == claim.relation:
                    assert along[relation] >= least + 0.02
                elif relation == other.relation:
                    assert along[relation] <= most - 0.02


def margins(library: AssetLibrary, scene: SceneSpec) -> tuple[float, float]:
    boxes = [
        corners(item, library.asset(item.asset).bounds)
        for item in (*named(scene, "target"), *named(scene, "reference"))
    ]
    ends = [project(scene.camera, box)[:, 0] for box in boxes]
    sides = [(seen.min() + seen.max()) / 2 for seen in ends]
    depths = to_camera(scene.camera, [box.mean(axis=0) for box in boxes])[:, 2]
    return float(sides[0] - sides[1]), float(depths[0] - depths[1])
