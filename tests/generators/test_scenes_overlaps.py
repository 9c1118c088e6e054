"""Objects that reach into one another are found, and how deep: held against closed forms."""

import itertools
import math
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import ConvexHull  # type: ignore[import-untyped]

from eqforge.generators.scenes.assets import AssetFiles, AssetLibrary
from eqforge.generators.scenes.overlaps import overlaps
from eqforge.generators.scenes.stage import Placed, place
from eqforge.schemas.records.scenes import Overlap, SceneObject, Vector
from tests.optional import optional

optional("trimesh")

MARGIN_M = 1e-6


def found(library: AssetLibrary, *objects: SceneObject) -> tuple[Overlap, ...]:
    return overlaps([place(each, library) for each in objects])


def thing(
    name: str, asset: str, position: Vector, *, yaw_deg: float = 0.0, scale: float = 1.0
) -> SceneObject:
    return SceneObject(name=name, asset=asset, position=position, yaw_deg=yaw_deg, scale=scale)


def test_the_depth_of_two_spheres_is_what_their_radii_miss(library: AssetLibrary) -> None:
    first = thing("first", "kubric:sphere", (0.0, 0.0, 0.0))
    second = thing("second", "kubric:sphere", (1.2, 0.0, 0.5), scale=0.5)
    (overlap,) = found(library, first, second)
    assert (overlap.first, overlap.second) == ("first", "second")
    assert overlap.depth_m == pytest.approx(0.3, abs=MARGIN_M)


def test_the_collision_mesh_of_an_asset_stands_where_the_asset_does(library: AssetLibrary) -> None:
    """The library's cube is one metre wide and scaled to two."""
    cube = thing("cube", "cube", (5.0, 5.0, 0.0), scale=2.0)
    touched = thing("touched", "kubric:cube", (5.0 + 1.9, 5.0, 0.0))
    beyond = thing("beyond", "kubric:cube", (5.0, 5.0 - 2.1, 0.0))
    above = thing("above", "kubric:cube", (5.0, 5.0, 2.1))
    (overlap,) = found(library, cube, touched, beyond, above)
    assert (overlap.first, overlap.second) == ("cube", "touched")
    assert overlap.depth_m == pytest.approx(0.1, abs=MARGIN_M)


@pytest.mark.parametrize(("gap_m", "depth_m"), [(-0.05, 0.05), (0.0, None), (0.001, None)])
def test_what_stands_on_another_only_touches_it(
    library: AssetLibrary, gap_m: float, depth_m: float | None
) -> None:
    lower = thing("lower", "cube", (0.0, 0.0, 0.0), scale=0.8)
    upper = thing("upper", "cube", (0.1, 0.0, 0.8 + gap_m), yaw_deg=30.0)
    depths = [overlap.depth_m for overlap in found(library, lower, upper)]
    assert depths == ([] if depth_m is None else [pytest.approx(depth_m, abs=MARGIN_M)])


def test_pairs_come_in_the_order_of_the_scene(library: AssetLibrary) -> None:
    spheres = [thing(name, "kubric:sphere", (0.0, 0.0, 0.0)) for name in "cab"]
    pairs = [(overlap.first, overlap.second) for overlap in found(library, *spheres)]
    assert pairs == [("c", "a"), ("c", "b"), ("a", "b")]


@pytest.mark.parametrize("yaw_deg", [0.0, 30.0, 45.0])
@pytest.mark.parametrize(
    ("away", "depth_m"),
    [
        ((0.0, 0.0, 0.0), 1.5),  # its centre inside, at the middle
        ((0.0, 0.9, 0.0), 0.6),  # inside, near a side
        ((1.25, 0.0, 0.0), 0.25),  # outside of a side
        ((1.0, 1.3, -1.4), 0.0),  # at an edge, exactly: 0.3, 0.4 and 0.5
        ((1.1, 1.2, 0.1), 0.5 - math.hypot(0.1, 0.2)),  # outside of an edge
        ((1.1, -1.1, 1.1), 0.5 - math.sqrt(0.03)),  # outside of a corner
    ],
)
def test_a_ball_and_a_box(
    library: AssetLibrary, away: Vector, depth_m: float, yaw_deg: float
) -> None:
    yaw = math.radians(yaw_deg)
    x, y = (
        away[0] * math.cos(yaw) - away[1] * math.sin(yaw),
        away[0] * math.sin(yaw) + away[1] * math.cos(yaw),
    )
    box = thing("box", "kubric:cube", (1.0, 2.0, 3.0), yaw_deg=yaw_deg)
    # The position is that of the lowest point, below the centre.
    ball = thing("ball", "kubric:sphere", (1.0 + x, 2.0 + y, 3.5 + away[2]), scale=0.5)
    for pair in ((box, ball), (ball, box)):
        depths = [overlap.depth_m for overlap in found(library, *pair)]
        assert depths == ([pytest.approx(depth_m, abs=MARGIN_M)] if depth_m else [])


def test_random_pairs_are_as_deep_as_the_hull_of_all_differences(library: AssetLibrary) -> None:
    drawn = random.Random(3)
    names = ["mug", "table", "chair", "toy_car", "kubric:cube", "traffic_cone"]
    deep = 0
    for _ in range(40):
        first, second = (
            thing(
                name,
                drawn.choice(names),
                (drawn.uniform(-0.6, 0.6), drawn.uniform(-0.6, 0.6), drawn.choice([0.0, 0.3])),
                yaw_deg=drawn.uniform(0, 360),
                scale=drawn.uniform(0.4, 1.2),
            )
            for name in "ab"
        )
        depths = [overlap.depth_m for overlap in found(library, first, second)]
        differences = corners(place(first, library))[:, None] - corners(place(second, library))
        depth_m = -ConvexHull(differences.reshape(-1, 3)).equations[:, 3].max()
        deep += depth_m > 1e-4
        assert depths == ([pytest.approx(depth_m, abs=1e-6, rel=1e-3)] if depth_m > 1e-4 else [])
    assert 15 <= deep <= 35


def test_bodies_with_many_corners_in_a_plane(tmp_path: Path) -> None:
    """Qhull gives up on some of them by default, such as the first pair."""
    pairs = [(
        [(-2, -1, 2), (2, -2, 1), (-2, 2, 0), (1, -2, -1), (1, -1, 2), (2, -2, 0)],
        [(0, 3, -1), (-2, 3, 1), (1, 3, -1), (2, -1, 0), (2, -1, 1), (2, 2, 1), (-1, -1, -1)],
    )]  # fmt: skip
    rng = np.random.default_rng(0)
    pairs += [tuple(rng.integers(-2, 3, (2, 12, 3)).tolist()) for _ in range(40)]
    for number, (first, second) in enumerate(pairs):
        bodies = [
            solid(tmp_path, f"{number}{name}", p) for name, p in (("a", first), ("b", second))
        ]
        differences = np.array(first)[:, None] - np.array(second)
        depth_m = -ConvexHull(differences.reshape(-1, 3)).equations[:, 3].max()
        depths = [overlap.depth_m for overlap in overlaps(bodies)]
        assert depths == ([pytest.approx(depth_m, abs=1e-6, rel=1e-3)] if depth_m > 1e-4 else [])


def solid(folder: Path, name: str, points: Sequence[Vector]) -> Placed:
    """A body that stands where its corners say."""
    lines = [f"v {x} {y} {z}" for x, y, z in points]
    lines += ["f {} {} {}".format(*(face + 1)) for face in ConvexHull(points).simplices]
    (folder / f"{name}.obj").write_text("\n".join(lines))
    mesh = f'<mesh filename="{name}.obj"/>'
    collision = f"<collision><geometry>{mesh}</geometry></collision>"
    (folder / f"{name}.urdf").write_text(f"<robot><link>{collision}</link></robot>")
    files = AssetFiles(
        folder=folder,
        render=folder / f"{name}.obj",
        simulation=folder / f"{name}.urdf",
        import_kwargs={},
        bounds=((-1, -1, 0), (1, 1, 1)),
        parts=None,
    )
    return Placed(spec=thing(name, name, (0.0, 0.0, 0.0)), files=files, bounds=files.bounds)


def corners(placed: Placed) -> np.ndarray:
    """An object's collision mesh in the scene, read and turned without the code under test."""
    if placed.files is None:
        points = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    else:
        lines = (placed.files.folder / "collision_geometry.obj").read_text().splitlines()
        points = np.array([line.split()[1:] for line in lines if line.startswith("v ")], float)
    yaw = math.radians(placed.spec.yaw_deg)
    turned = points[:, :2] @ [[math.cos(yaw), math.sin(yaw)], [-math.sin(yaw), math.cos(yaw)]]
    points = np.column_stack([turned, points[:, 2]]) * placed.spec.scale + placed.origin
    return points[ConvexHull(points).vertices]
