"""Measures of pairs whose camera moved or whose light changed, on scenes that the tests draw."""

import functools
import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import skimage.data
from PIL import Image

from eqforge.generators.demo.workspace import Workspace
from eqforge.pipelines import eq_video, eq_youcook2
from eqforge.transforms.filters import minimality
from eqforge.transforms.filters.cuts import cut_view
from eqforge.transforms.filters.registration import (
    HOMOGRAPHY,
    MEASURES,
    NONE,
    REGISTRATION,
    SCORER,
    SIMILARITY,
    SOLID,
    score_registered,
    view,
)
from tests.builds import rows
from tests.recoloured import OBJECTS, painted, region

WIDTH, HEIGHT = 400, 300
SCENES = ("coffee", "chelsea", "astronaut", "rocket", "retina")


def measure(first: np.ndarray, second: np.ndarray) -> dict[str, Any]:
    scores = score_registered(view(first), view(second), cut_view(first), cut_view(second))
    assert {score.scorer for score in scores} == {SCORER}
    return {score.name: score.value for score in scores}


def plain(first: np.ndarray, second: np.ndarray) -> float:
    found = minimality.measure_pair(minimality.view(first), minimality.view(second))
    return found.changed_area_fraction


@functools.cache
def wide(name: str) -> np.ndarray:
    """Return a scene larger than a frame."""
    photograph = Image.fromarray(getattr(skimage.data, name)()[:, :, :3])
    return np.asarray(photograph.resize((640, 480), Image.Resampling.LANCZOS))


def shot(
    scene: np.ndarray,
    shift: tuple[float, float] = (0, 0),
    zoom: float = 1,
    turn_deg: float = 0,
    bend: float = 0,
) -> np.ndarray:
    """Return what a camera shows of a scene that looks `shift` pixels away from its middle."""
    height, width = scene.shape[:2]
    motion = cv2.getRotationMatrix2D((width / 2, height / 2), turn_deg, zoom)
    motion[:, 2] += np.array([WIDTH - width, HEIGHT - height]) / 2 - np.array(shift)
    matrix = np.vstack([motion, [0, 0, 1]])
    tilt = np.array([[1, 0, 0], [0, 1, 0], [bend / WIDTH, 0, 1]])
    return cv2.warpPerspective(scene, tilt @ matrix, (WIDTH, HEIGHT), flags=cv2.INTER_CUBIC)


def with_ball(scene: np.ndarray, at: tuple[int, int] = (320, 240)) -> np.ndarray:
    """Return a scene with an orange ball, 2% of a frame at a zoom of 1."""
    drawn = scene.copy()
    cv2.circle(drawn, at, 28, (250, 120, 10), -1, cv2.LINE_AA)
    return drawn


BALL = np.pi * 28**2 / (WIDTH * HEIGHT)


def test_a_frame_and_itself_are_one_view() -> None:
    frame = shot(wide("coffee"))
    found = measure(frame, frame)
    assert found == {
        REGISTRATION: SIMILARITY,
        "registered_overlap": 1,
        "camera_shift": 0,
        "camera_zoom": 1,
        "camera_rotation_deg": 0,
        "light_gain": 1,
        "light_tint": 1,
        "registered_changed_area": 0,
        "registered_ssim": 1,
        "registered_background_ssim": 1,
        "registered_lightness_ssim": 1,
        SOLID: 0,
    }


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize(
    ("shift", "zoom", "turn_deg"),
    [((40, 0), 1, 0), ((-30, 25), 1, 0), ((0, 0), 1.15, 0), ((0, 0), 1, 6), ((25, 10), 1.08, -4)],
)
def test_pan_zoom_and_rotation_are_measured_and_leave_what_changed(
    name: str, shift: tuple[float, float], zoom: float, turn_deg: float
) -> None:
    scene = wide(name)
    found = measure(shot(scene), shot(with_ball(scene), shift, zoom, turn_deg))
    assert found[REGISTRATION] == SIMILARITY
    assert found["camera_shift"] == pytest.approx(np.hypot(*shift) / WIDTH, abs=0.01)
    assert found["camera_zoom"] == pytest.approx(zoom, abs=0.01)
    assert found["camera_rotation_deg"] == pytest.approx(-turn_deg, abs=0.5)
    assert 0.5 < found["registered_overlap"] <= 1
    assert 0.5 * BALL < found["registered_changed_area"] < 3 * BALL
    assert found["registered_background_ssim"] > 0.9
    assert found["light_gain"] == pytest.approx(1, abs=0.03)


def test_the_overlap_is_what_both_frames_show() -> None:
    found = measure(shot(wide("astronaut")), shot(wide("astronaut"), (100, 0)))
    assert found["registered_overlap"] == pytest.approx(0.75, abs=0.02)
    assert found["camera_shift"] == pytest.approx(0.25, abs=0.005)
    assert found["registered_changed_area"] < 0.01


@pytest.mark.parametrize("name", ["coffee", "astronaut"])
def test_a_perspective_takes_a_homography(name: str) -> None:
    first, second = shot(wide(name)), shot(wide(name), bend=0.25)
    found = measure(first, second)
    assert found[REGISTRATION] == HOMOGRAPHY
    assert found["registered_changed_area"] < 0.05 < 0.4 < plain(first, second)


@pytest.mark.parametrize("name", SCENES[:-1])
@pytest.mark.parametrize("gains", [(1.5, 1.5, 1.5), (0.6, 0.6, 0.6), (1.1, 1.0, 0.9)])
def test_exposure_and_white_balance_are_no_change(name: str, gains: tuple[float, ...]) -> None:
    first = shot(wide(name)) // 2 + 20
    second = np.clip(np.rint(with_ball(first, (200, 150)) * gains), 0, 255).astype(np.uint8)
    found = measure(first, second)
    assert found["light_gain"] == pytest.approx(np.prod(gains) ** (1 / 3), rel=0.05)
    assert found["light_tint"] == pytest.approx(max(gains) / min(gains), rel=0.06)
    assert 0.5 * BALL < found["registered_changed_area"] < 2.5 * BALL


def test_a_camera_that_pans_while_it_brightens() -> None:
    first = shot(wide("coffee")) // 2 + 10
    second = np.clip(shot(with_ball(wide("coffee")), (35, -20)) // 2 * 1.6, 0, 255).astype(np.uint8)
    found = measure(first, second)
    assert found["registered_changed_area"] < 3 * BALL
    assert plain(first, second) > 0.3


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("colour", ["blue", "purple", "brown"])
def test_another_colour_stays_a_change(name: str, colour: str) -> None:
    """The fit of white balance must not take it for light."""
    red, other, (_, mask) = painted(name, "red"), painted(name, colour), region(name)
    found = measure(red, other)
    assert 0.8 * mask.mean() < found["registered_changed_area"] < 2.3 * mask.mean()
    assert found["light_tint"] < 1.06


def test_a_solid_change_is_measured_and_edges_that_move_a_little_are_not() -> None:
    first = shot(wide("coffee"))
    ball = measure(first, with_ball(first, (200, 150)))
    assert 0.5 * BALL < (ball[SOLID] or 0) < 1.5 * BALL
    stripes = first.copy()
    stripes[20:-20, 20:-20:24] = stripes[20:-20, 21:-20:24] = (255, 0, 255)
    lines = measure(first, stripes)
    assert (lines["registered_changed_area"] or 0) > 0.1
    assert (lines[SOLID] or 0) < 0.02


def test_two_shapes_that_do_not_register_have_no_solid_change() -> None:
    first, second = np.zeros((HEIGHT, WIDTH, 3), np.uint8), np.zeros((WIDTH, HEIGHT, 3), np.uint8)
    assert measure(first, second) == {REGISTRATION: NONE, **dict.fromkeys((*MEASURES, SOLID))}


@pytest.mark.parametrize("shade", [0, 90, 255])
def test_flat_scenes_do_not_register(shade: int) -> None:
    first = np.full((HEIGHT, WIDTH, 3), shade, np.uint8)
    found = measure(first, with_ball(first, (200, 150)))
    assert found == {REGISTRATION: NONE, **dict.fromkeys(MEASURES), SOLID: found[SOLID]}
    assert 0.5 * BALL < (found[SOLID] or 0) < 1.5 * BALL


@pytest.mark.parametrize("pair", [("coffee", "astronaut"), ("rocket", "chelsea")])
def test_two_scenes_do_not_register(pair: tuple[str, str]) -> None:
    assert measure(*(shot(wide(name)) for name in pair))[REGISTRATION] == NONE


def faces(side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two frames of a still scene before which a face moves."""
    first, second = (shot(wide("coffee")).copy() for _ in range(2))
    face = cv2.resize(wide("astronaut")[20:220, 190:390], (side, side))
    first[60 : 60 + side, 20 : 20 + side] = face
    second[50 : 50 + side, 150 : 150 + side] = face
    return first, second


def test_a_face_that_moves_is_a_change_before_a_still_scene() -> None:
    found = measure(*faces(100))
    assert (found[REGISTRATION], found["camera_shift"]) == (SIMILARITY, 0)
    assert 0.1 < found["registered_changed_area"] < 0.3


def test_a_face_that_fills_the_frame_is_no_small_change_either_way() -> None:
    """Nine times as many keypoints lie on it as on the scene behind: it is what registers."""
    found = measure(*faces(200))
    assert found["registered_changed_area"] > 0.4


def test_repeated_texture_does_not_make_a_motion_up() -> None:
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    tiles = (((x // 20 + y // 20) % 2) * 180 + 30).astype(np.uint8)[:, :, None].repeat(3, axis=2)
    for moved in (tiles, np.roll(tiles, 40, axis=1)):
        found = measure(tiles, with_ball(moved, (200, 150)))
        assert found["camera_shift"] in (None, 0)
        assert found["registered_changed_area"] is None or found["registered_changed_area"] < 0.06


def test_a_fade_is_told_by_its_gain_and_a_dissolve_by_what_changed() -> None:
    first = shot(wide("coffee"))
    faded = measure(first, (first * 0.3).astype(np.uint8))
    assert faded["light_gain"] == pytest.approx(0.3, abs=0.02)
    other = shot(wide("astronaut"))
    mixed = measure(first, ((first.astype(int) + other) // 2).astype(np.uint8))
    assert mixed[REGISTRATION] == NONE or mixed["registered_changed_area"] > 0.3


@pytest.mark.parametrize("shape", [(1, 1), (1, 900), (900, 1), (30, 40)])
def test_frames_of_any_size_are_measured(shape: tuple[int, int]) -> None:
    image = np.full((*shape, 3), 90, np.uint8)
    assert measure(image, image)[REGISTRATION] == NONE
    assert measure(image, skimage.data.coffee())[REGISTRATION] == NONE


def test_a_frame_that_is_turned_or_of_another_size_is_registered() -> None:
    tall = np.ascontiguousarray(np.rot90(shot(wide("coffee"))))
    found = measure(shot(wide("coffee")), tall)
    assert abs(found["camera_rotation_deg"]) == pytest.approx(90, abs=1)
    small = cv2.resize(shot(wide("coffee")), (200, 150), interpolation=cv2.INTER_AREA)
    assert measure(shot(wide("coffee")), small)["registered_changed_area"] < 0.02


def test_own_videos_are_registered_in_corrected_mode_and_no_others(
    demo_workspace: Workspace, tmp_path: Path
) -> None:
    names = {}
    for mode in ("corrected", "paper"):
        own = ["--captions", demo_workspace.captions, "--output", tmp_path / mode, "--mode", mode]
        videos = ["--videos", demo_workspace.videos]
        assert eq_video.main([*map(str, [*own, *videos])]) == 0
        samples = rows(tmp_path / mode, "samples")
        names[mode] = {score["name"] for row in samples for score in row["scores"]}
    cuts = {"cut_histogram_change", "cut_registered_points"}
    assert names == {
        "corrected": {*cuts, REGISTRATION, *MEASURES, SOLID, "minimality"},
        "paper": cuts,
    }
    assert not eq_youcook2.EqYouCook2.registers


def test_a_players_move_is_the_change_where_the_camera_pans(
    data_folder: Path, tmp_path: Path
) -> None:
    """A basketball game from the hand: without registration 0.70 to 0.73 of the frame changes."""
    captions = tmp_path / "captions.jsonl"
    captions.write_text(
        "".join(
            json.dumps({"video": "basket.mp4", "timestamp_s": at, "caption": f"at {at}"}) + "\n"
            for at in (1, 4, 6)
        )
    )
    output = tmp_path / "out"
    inputs = ["--captions", captions, "--videos", data_folder / "videos/handheld"]
    limits = ["--min-minimality", "None", "--output", output]
    assert eq_video.main([*map(str, [*inputs, *limits])]) == 0
    found = rows(output, "samples")
    assert len(found) == 3
    for row in found:
        scores = {score["name"]: score["value"] for score in row["scores"]}
        assert scores["registered_changed_area"] < 0.4 < 0.65 < row["changed_area_fraction"]
        assert scores["registered_overlap"] > 0.8
