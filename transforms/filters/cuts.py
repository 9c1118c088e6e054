"""Scores whether two frames of one video show different shots; rejects pairs across a camera cut.

Within a shot the camera moves things but keeps their looks: enough keypoints of one frame match the
other under one similarity transform. Between different scenes only chance matches remain. Keypoints
alone are not enough: a person in front of the camera, or blur, hides them, but colours mostly stay.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.ranges import check_range
from eqforge.schemas.records.scores import Rejection, Score, compact_json, value_of
from eqforge.transforms.filters.image_filter import check_pixels, import_cv2

if TYPE_CHECKING:
    from numpy.typing import NDArray

REASONS = {
    "camera_cut": "There seems to be a camera cut between the frames (--min-histogram-change, "
    "--max-registered-points).",
}

HISTOGRAM = "cut_histogram_change"
POINTS = "cut_registered_points"

SCORER = "eqforge.cuts"
VERSION = "2"
LONG_SIDE_PX = 400
HSV_BINS = (8, 4, 4)
POINTS_PER_CHANNEL = 600
CORNER_CONTRAST = 7
MATCH_RATIO = 0.8
MISFIT_PX = 8.0
MAX_ZOOM = 4.0

_BORDER_PX = 31
"""ORB detects no keypoints this close to the image's border."""

_SETTINGS = compact_json(
    {
        "long_side_px": LONG_SIDE_PX,
        "hsv_bins": HSV_BINS,
        "points_per_channel": POINTS_PER_CHANNEL,
        "corner_contrast": CORNER_CONTRAST,
        "match_ratio": MATCH_RATIO,
        "misfit_px": MISFIT_PX,
        "max_zoom": MAX_ZOOM,
    }
)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CutSettings:
    """Limits for the detection of a camera cut between two frames.

    Both limits are off by default, as in the published sets, because two images alone do not prove
    a cut.
    """

    min_histogram_change: float | None = None
    """Minimum change in the colour histogram, in [0, 1], at which a pair is rejected as a camera
    cut. With --max-registered-points, only pairs that meet both limits are rejected. Good values
    are 0.35 and 7. For their error rates, see docs/datasets/eqben-videos.md."""

    max_registered_points: int | None = None
    """Reject a pair as a camera cut if at most this many keypoints match. Up to 7 keypoints can
    match by chance."""

    def __post_init__(self) -> None:
        check_range("min_histogram_change", self.min_histogram_change, 0, 1)
        points = self.max_registered_points
        if points is not None and points < 0:
            raise InputError(f"--max-registered-points {points}: expected 0 or more")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class CutView:
    """The data of one frame that the scores need, at most 75 kB.

    Attributes:
      histogram: float32 [8, 4, 4]: the share of pixels per hue, saturation and value.
      keypoints: for L, a and b, float32 [points, 2]: x and y at a long side of 400 pixels.
      descriptors: for L, a and b, uint8 [points, 32]: the ORB descriptor of each keypoint.
    """

    histogram: NDArray[np.float32]
    keypoints: tuple[NDArray[np.float32], ...]
    descriptors: tuple[NDArray[np.uint8], ...]


def cut_view(pixels: NDArray[np.uint8]) -> CutView:
    """Prepare a frame for the cut scores, once per frame.

    Keypoints are detected in lightness and in both colour axes of CIE Lab, so that patterns of
    equal brightness have some.

    Args:
      pixels: RGB, uint8 [height, width, 3].
    """
    check_pixels(pixels)
    cv2 = import_cv2()
    scale = LONG_SIDE_PX / max(pixels.shape[:2])
    height, width = (max(1, round(side * scale)) for side in pixels.shape[:2])
    interpolation = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    small = cv2.resize(pixels, (width, height), interpolation=interpolation)
    hsv = cv2.cvtColor(small, cv2.COLOR_RGB2HSV)
    counts = cv2.calcHist([hsv], [0, 1, 2], None, HSV_BINS, [0, 180, 0, 256, 0, 256])
    points = [_points(channel) for channel in cv2.split(cv2.cvtColor(small, cv2.COLOR_RGB2LAB))]
    return CutView(
        histogram=counts / np.float32(height * width),
        keypoints=tuple(keypoints for keypoints, _ in points),
        descriptors=tuple(descriptors for _, descriptors in points),
    )


def _points(channel: NDArray[np.uint8]) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    none = np.empty((0, 2), np.float32), np.empty((0, 32), np.uint8)
    if min(channel.shape) <= 2 * _BORDER_PX:
        return none
    detector = import_cv2().ORB_create(
        POINTS_PER_CHANNEL, edgeThreshold=_BORDER_PX, fastThreshold=CORNER_CONTRAST
    )
    corners, descriptors = detector.detectAndCompute(channel, None)
    if descriptors is None:
        return none
    return np.array([corner.pt for corner in corners], np.float32), descriptors


def score_cut(view_0: CutView, view_1: CutView) -> list[Score]:
    """Score how much the colours change between two frames, and how many keypoints stay.

    Returns:
      Two scores. Colours: 1 minus the intersection of the HSV histograms, in [0, 1]. Points: number
      of keypoints of the first frame matched in the second under one similarity transform; 0 to
      1,800, by chance up to 7.

    Source: Swain and Ballard 1991 (histogram intersection); Rublee et al. 2011 (ORB); Lowe 2004
      (ratio test); Fischler and Bolles 1981 (RANSAC).
    """
    intersection = np.minimum(view_0.histogram, view_1.histogram).sum(dtype=np.float64)
    change = round(min(max(1 - float(intersection), 0.0), 1.0), 6)
    return [_score(HISTOGRAM, change), _score(POINTS, float(_registered(view_0, view_1)))]


def decide_cut(scores: Sequence[Score], settings: CutSettings) -> Rejection | None:
    """Reject a pair if every score that has a limit reaches it."""
    change, points = value_of(scores, HISTOGRAM) or 0.0, value_of(scores, POINTS) or 0.0
    least, most = settings.min_histogram_change, settings.max_registered_points
    if least is None and most is None:
        return None
    if (least is not None and change < least) or (most is not None and points > most):
        return None
    value, threshold = (points, most) if least is None else (change, least)
    return Rejection(
        reason="camera_cut",
        value=value,
        threshold=threshold,
        detail=f"{HISTOGRAM} {change:g}, {POINTS} {points:g}",
    )


def matched_points(
    view_0: CutView, view_1: CutView
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the matching keypoints of both frames, in the same order [matches, 2]."""
    matched = [
        (points_0[match.queryIdx], points_1[match.trainIdx])
        for points_0, found_0, points_1, found_1 in zip(
            view_0.keypoints, view_0.descriptors, view_1.keypoints, view_1.descriptors, strict=True
        )
        for match in _matches(found_0, found_1)
    ]
    both = np.array(matched, np.float32).reshape(-1, 2, 2).transpose(1, 0, 2)
    before, after = np.ascontiguousarray(both)
    return before, after


def _registered(view_0: CutView, view_1: CutView) -> int:
    before, after = matched_points(view_0, view_1)
    if len(before) < 2:
        return 0
    cv2 = import_cv2()
    motion, agree = cv2.estimateAffinePartial2D(
        before, after, method=cv2.RANSAC, ransacReprojThreshold=MISFIT_PX, maxIters=500
    )
    if motion is None:
        return 0
    zoom = float(np.hypot(motion[0, 0], motion[0, 1]))
    return int(np.count_nonzero(agree)) if 1 / MAX_ZOOM < zoom < MAX_ZOOM else 0


def _matches(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> list[Any]:
    """Return the matches that pass the ratio test, at most one per keypoint of either frame."""
    cv2 = import_cv2()
    if min(len(first), len(second)) < 2:
        return []
    ranked = cv2.BFMatcher(cv2.NORM_HAMMING).knnMatch(first, second, k=2)
    clear = [best for best, second in ranked if best.distance < MATCH_RATIO * second.distance]
    clear.sort(key=lambda match: match.distance, reverse=True)
    return list({match.trainIdx: match for match in clear}.values())


def _score(name: str, value: float) -> Score:
    return Score(name=name, value=value, scorer=SCORER, version=VERSION, settings=_SETTINGS)
