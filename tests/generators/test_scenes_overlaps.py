"""PyBullet finds objects that reach into one another, and how deep."""

import math
from pathlib import Path

import pytest

from eqforge.generators.scenes.assets import AssetLibrary
from eqforge.generators.scenes.overlaps import overlaps
from eqforge.generators.scenes.stage import place
from eqforge.schemas.records.scenes import Overlap, SceneObject, Vector

pytest.importorskip("pybullet")

MARGIN_M = 0.001


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> AssetLibrary:
    return AssetLibrary("builtin", str(tmp_path_factory.mktemp("cache")))


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


@pytest.mark.parametrize(("gap_m", "depth_m"), [(-0.25, 0.25), (0.01, None), (3.0, None)])
def test_boxes_side_by_side(library: AssetLibrary, gap_m: float, depth_m: float | None) -> None:
    first = thing("first", "kubric:cube", (0.0, 0.0, 0.0))
    second = thing("second", "kubric:cube", (2.0 + gap_m, 0.3, 0.0))
    depths = [overlap.depth_m for overlap in found(library, first, second)]
    assert depths == ([] if depth_m is None else [pytest.approx(depth_m, abs=MARGIN_M)])


def test_a_rotated_box_reaches_farther(library: AssetLibrary) -> None:
    apart = (1.0 + math.sqrt(2) - 0.1, 0.0, 0.0)
    straight = thing("straight", "kubric:cube", (0.0, 0.0, 0.0))
    assert not found(library, straight, thing("other", "kubric:cube", apart))
    (overlap,) = found(library, straight, thing("other", "kubric:cube", apart, yaw_deg=45.0))
    assert overlap.depth_m == pytest.approx(0.1, abs=MARGIN_M)


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


def test_one_object_overlaps_nothing(library: AssetLibrary) -> None:
    assert found(library, thing("one", "mug", (0.0, 0.0, 0.0))) == ()


def test_the_cache_may_be_anywhere(library: AssetLibrary, tmp_path: Path) -> None:
    folder = tmp_path / "a folder with spaces"
    other = AssetLibrary("builtin", str(folder))
    objects = [thing(name, "mug", (0.0, 0.0, 0.0)) for name in "ab"]
    assert found(other, *objects) == found(library, *objects) != ()
