"""Blender renders what the scene says: held against rays that NumPy shoots."""

import dataclasses

import numpy as np
import pytest

from eqforge.schemas.records.scenes import SceneObject
from eqforge.transforms.generated.scene_renderer import SceneRenderer
from tests.renders import (
    BALL,
    BALL_HITS,
    BLUE,
    BRICK,
    BRICK_HITS,
    CAMERA,
    RED,
    SIZE,
    YELLOW,
    agree,
    box,
    mask,
    needs_blender,
    pixels,
    rays,
    scene,
)

pytestmark = needs_blender


def test_what_lies_is_where_rays_find_it_tipped(renderer: SceneRenderer) -> None:
    """A thin plate, which stands on its edge then."""
    plate = SceneObject(
        name="plate", asset="platform", position=(0.4, 0.2, 0.0), yaw_deg=50.0, posture="lying"
    )
    extent = 4.0 / 25  # its height beside its width
    plate = dataclasses.replace(plate, scale=2.0)
    (render,) = renderer.render([scene(plate)])
    hits = box((0.4, 0.2, 1.0), (2.0 * extent / 4, 2.0, 2.0), 50.0)
    assert agree(mask(render) == 1, hits(*rays(CAMERA)))
    assert render.objects[0].depth_m == pytest.approx(
        np.dot(
            np.subtract((0.4, 0.2, 1.0), CAMERA.position),
            np.subtract(CAMERA.look_at, CAMERA.position)
            / np.linalg.norm(np.subtract(CAMERA.look_at, CAMERA.position)),
        ),
        abs=1e-3,
    )


def test_masks_boxes_and_depths_are_those_that_rays_find(renderer: SceneRenderer) -> None:
    (render,) = renderer.render([scene(BALL, BRICK)])
    numbers = mask(render)
    assert numbers.dtype == np.uint8
    assert set(np.unique(numbers)) == {0, 1, 2}
    start, directions = rays(CAMERA)
    ball, brick = BALL_HITS(start, directions), BRICK_HITS(start, directions)
    assert agree(numbers == 1, ball)
    assert agree(numbers == 2, brick)
    view = np.subtract(CAMERA.look_at, CAMERA.position)
    for found, hit, middle in zip(
        render.objects, (ball, brick), ((-1.5, 0, 1), (1.5, 0.3, 0.8)), strict=True
    ):
        rows, columns = np.nonzero(hit)
        assert found.box is not None
        assert abs(found.box.x - columns.min()) <= 1
        assert abs(found.box.y - rows.min()) <= 1
        assert abs(found.box.width - np.ptp(columns) - 1) <= 2
        assert abs(found.box.height - np.ptp(rows) - 1) <= 2
        assert found.full_px == pytest.approx(hit.sum(), abs=4)
        assert found.visible_fraction > 0.98
        away = np.subtract(middle, CAMERA.position)
        assert found.depth_m == pytest.approx(away @ view / np.linalg.norm(view))
    assert [found.name for found in render.objects] == ["ball", "brick"]
    assert [found.asset for found in render.objects] == ["kubric:sphere", "kubric:cube"]
    assert render.overlaps == ()


def test_the_visible_share_of_a_half_hidden_object_is_that_of_its_rays(
    renderer: SceneRenderer,
) -> None:
    before = dataclasses.replace(BRICK, position=(-0.8, -2.5, 0.0))
    (render,) = renderer.render([scene(BALL, before)])
    start, directions = rays(CAMERA)
    full = BALL_HITS(start, directions)
    hidden = full & box((-0.8, -2.5, 0.8), (1.6, 1.6, 1.6), 25.0)(start, directions)
    ball = render.objects[0]
    assert 0.3 < hidden.sum() / full.sum() < 0.7
    assert ball.full_px == pytest.approx(full.sum(), abs=4)
    assert ball.visible_px == np.count_nonzero(mask(render) == 1)
    assert ball.visible_fraction == pytest.approx(1 - hidden.sum() / full.sum(), abs=0.03)


def test_what_is_beyond_the_edge_of_the_picture_is_not_visible(renderer: SceneRenderer) -> None:
    camera = dataclasses.replace(CAMERA, look_at=(2.6, 0.0, 0.8))
    (render,) = renderer.render([scene(BALL, camera=camera)])
    ball = render.objects[0]
    inside = BALL_HITS(*rays(camera)).sum()
    everywhere = BALL_HITS(*rays(camera, border=SIZE)).sum()
    assert 0.2 < inside / everywhere < 0.8
    assert ball.full_px == pytest.approx(everywhere, abs=4)
    assert ball.visible_fraction == pytest.approx(inside / everywhere, abs=0.03)
    assert ball.box is not None
    assert ball.box.x == 0


def test_an_object_that_cannot_be_seen_has_no_box(renderer: SceneRenderer) -> None:
    wall = dataclasses.replace(BRICK, position=(-1.0, -5.0, 0.0), scale=1.5)
    behind = dataclasses.replace(BALL, name="behind", position=(3.0, -20.0, 0.0))
    (render,) = renderer.render([scene(BALL, wall, behind)])
    hidden, _, behind_the_camera = render.objects
    assert (hidden.box, hidden.visible_px, hidden.visible_fraction) == (None, 0, 0.0)
    assert hidden.full_px > 50
    assert (behind_the_camera.full_px, behind_the_camera.visible_fraction) == (0, 0.0)
    assert behind_the_camera.depth_m < 0


def test_another_seed_changes_the_noise_only(renderer: SceneRenderer) -> None:
    first, second = renderer.render([scene(BALL, seed=1), scene(BALL, seed=2)])
    assert first.image_png != second.image_png
    assert agree(mask(first) == 1, mask(second) == 1)
    assert abs(pixels(first) - pixels(second)).mean() < 6


def test_another_colour_changes_the_object_and_little_else(renderer: SceneRenderer) -> None:
    blue = dataclasses.replace(BALL, colour=BLUE)
    first, second = renderer.render([scene(BALL, BRICK), scene(blue, BRICK)])
    assert first.mask_png == second.mask_png
    assert first.objects == second.objects
    inside = mask(first) == 1
    red, green, blue_light = pixels(first)[inside].mean(axis=0)
    assert red > 2 * max(green, blue_light)
    red, green, blue_light = pixels(second)[inside].mean(axis=0)
    assert blue_light > 2 * max(red, green)
    changed = (pixels(first) != pixels(second)).any(axis=-1)
    assert changed[inside].mean() > 0.95
    assert changed[~inside].mean() < 0.2  # the noise is the same, but for light from the ball


def test_materials_differ_in_the_picture(renderer: SceneRenderer) -> None:
    balls = [
        dataclasses.replace(BALL, colour=YELLOW, material=material)
        for material in ("rubber", "metal", "glass")
    ]
    renders = renderer.render([scene(ball, BRICK) for ball in balls])
    inside = mask(renders[0]) == 1
    shown = [pixels(render)[inside] for render in renders]
    assert len({render.mask_png for render in renders}) == 1
    assert all(abs(shown[a] - shown[b]).mean() > 5 for a, b in ((0, 1), (0, 2), (1, 2)))
    assert shown[1].max() > shown[0].max()  # the sun is mirrored in metal


def test_only_the_parts_that_the_asset_names_are_recoloured(renderer: SceneRenderer) -> None:
    """The library's traffic cone has white bands, which stay white."""
    cone = SceneObject(name="cone", asset="traffic_cone", position=(0.0, 0.0, 0.0), scale=2.5)
    painted = dataclasses.replace(cone, colour=BLUE)
    own, blue = renderer.render([scene(cone), scene(painted)])
    assert own.mask_png == blue.mask_png
    inside = mask(own) == 1

    red, green, _ = pixels(own)[inside].T
    was_white, was_orange = green > 0.85 * red, green < 0.5 * red
    red, _, blue_light = pixels(blue)[inside].T
    is_blue = blue_light > 2 * red
    assert min(was_white.sum(), was_orange.sum()) > 30
    assert is_blue[was_orange].mean() > 0.9
    assert is_blue[was_white].mean() < 0.1


def test_copies_of_an_asset_have_colours_of_their_own(renderer: SceneRenderer) -> None:
    mugs = [
        SceneObject(name="own", asset="mug", position=(-2.0, 0.0, 0.0), scale=1.5),
        SceneObject(name="red", asset="mug", position=(0.0, 0.0, 0.0), scale=1.5, colour=RED),
        SceneObject(name="yellow", asset="mug", position=(2.0, 0.0, 0.0), scale=1.5, colour=YELLOW),
    ]
    (render,) = renderer.render([scene(*mugs)])
    shown, numbers = pixels(render), mask(render)
    blue, red, yellow = (shown[numbers == number].mean(axis=0) for number in (1, 2, 3))
    assert blue[2] > 1.5 * max(blue[:2])
    assert red[0] > 1.5 * max(red[1:])
    assert min(yellow[:2]) > 1.5 * yellow[2]


def test_objects_that_reach_into_one_another_are_told(renderer: SceneRenderer) -> None:
    inside = dataclasses.replace(BALL, name="inside", position=(-0.5, 0.0, 0.0))
    apart, together = renderer.render([scene(BALL, BRICK), scene(BALL, BRICK, inside)])
    assert apart.overlaps == ()
    (overlap,) = together.overlaps
    assert (overlap.first, overlap.second) == ("ball", "inside")
    assert overlap.depth_m == pytest.approx(1.0, abs=0.01)
