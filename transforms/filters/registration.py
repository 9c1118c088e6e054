"""Measures how two video frames differ apart from camera motion and light.

Matching keypoints give the motion of the camera. The second frame is warped onto the first, and its
exposure and white balance are fitted to the first's. The remaining differences are in the scene. If
keypoints give no motion, the scores are None.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from PIL import Image

from eqforge.schemas.records.scores import Score, compact_json
from eqforge.transforms.filters import minimality
from eqforge.transforms.filters.cuts import LONG_SIDE_PX, CutView, matched_points
from eqforge.transforms.filters.image_filter import import_cv2, scale_to
from eqforge.transforms.filters.lab import colours, lightness

if TYPE_CHECKING:
    from numpy.typing import NDArray

Pixels: TypeAlias = "NDArray[np.uint8]"
Matrix: TypeAlias = "NDArray[np.float64]"
Plane: TypeAlias = "NDArray[np.float32]"
Mask: TypeAlias = "NDArray[np.bool_]"

SCORER = "eqforge.registration"
VERSION = "2"
REGISTRATION = "registration"
NONE, SIMILARITY, HOMOGRAPHY = 0, 1, 2
MEASURES = (
    "registered_overlap",
    "camera_shift",
    "camera_zoom",
    "camera_rotation_deg",
    "light_gain",
    "light_tint",
    "registered_changed_area",
    "registered_ssim",
    "registered_background_ssim",
    "registered_lightness_ssim",
)
SOLID = "solid_changed_area"

MISFIT_PX = 3.0
MIN_POINTS = 10
"""In 778 pairs of unrelated photographs, at most 5 keypoints agree on a similarity by chance, and
at most 8 on a homography."""

MIN_SPREAD = 0.1
"""Share of the frame around the agreeing keypoints: fewer belong to one thing, not to the scene."""

MORE_POINTS = 1.25
"""A homography must explain this many times the keypoints of a similarity."""

MANY_MORE_POINTS = 3
"""The same, if a motion does not explain the static points: a thing moves, not the camera."""

MAX_ZOOM = 3.0
MIN_OVERLAP = 0.25
MIN_DEPTH = 0.2
"""Reject a motion that brings a corner of the frame this near, as a share of its depth."""

SOLID_PX = 15
"""A solid change holds a square of this side. Edges that move a little hold none."""

MOST_MISFIT = 30
CLIPPED = 250
MAX_GAIN = 4.0
MAX_TINT = 1.35
"""Maximum relative gain between channels, as white balance causes in one scene."""

_FIT_ROUNDS = 5
_SCALE = minimality.LONG_SIDE_PX / LONG_SIDE_PX
_TO_VIEW = np.array([[_SCALE, 0, (_SCALE - 1) / 2], [0, _SCALE, (_SCALE - 1) / 2], [0, 0, 1]])


_SETTINGS = compact_json(
    {
        "misfit_px": MISFIT_PX,
        "min_points": MIN_POINTS,
        "min_spread": MIN_SPREAD,
        "more_points": [MORE_POINTS, MANY_MORE_POINTS],
        "max_zoom": MAX_ZOOM,
        "min_overlap": MIN_OVERLAP,
        "max_gain": MAX_GAIN,
        "max_tint": MAX_TINT,
        "solid_px": SOLID_PX,
    }
)


@dataclasses.dataclass(frozen=True, slots=True)
class Motion:
    """The camera's motion: a model, and the 3 x 3 matrix from the first frame to the second."""

    model: int
    matrix: Matrix


@dataclasses.dataclass(frozen=True, slots=True)
class Light:
    """Factors and then offsets for the second frame's red, green and blue."""

    gains: NDArray[np.float64]
    offsets: NDArray[np.float64]


def view(pixels: Pixels) -> Pixels:
    """Scale an RGB frame, uint8 [height, width, 3], to a long side of 256 pixels."""
    image = Image.fromarray(pixels)
    least = minimality.SSIM_WINDOW_PX
    return np.asarray(scale_to(image, minimality.LONG_SIDE_PX, min_side=least))


def score_registered(first: Pixels, second: Pixels, cut_0: CutView, cut_1: CutView) -> list[Score]:
    """Score how the camera, the light and the scene changed between two frames.

    Args:
      first, second: frames prepared by `view`.
      cut_0, cut_1: their keypoints.

    Returns:
      `registration`: 0 if nothing registers, 1 for a similarity, 2 for a homography. With 0, the
      ten next are None. `registered_overlap`: share of the first frame that the second shows, in
      [0, 1]; measures of the scene are of it. `camera_shift`: motion of the centre, as share of
      the width. `camera_zoom`: above 1 if the second frame is nearer. `camera_rotation_deg`:
      clockwise rotation of the content in degrees. `light_gain`: brightness of the second frame
      relative to the first's. `light_tint`: greatest gain of a channel relative to the least.
      `registered_changed_area`, `registered_ssim`, `registered_background_ssim`: as in PairSample,
      after registration. `registered_lightness_ssim`: the SSIM of L* alone. `solid_changed_area`:
      share of the overlap in changed squares of 15 pixels' side. If nothing registers, it is of the
      whole frames, or None if their shapes differ.

    Source: Rublee et al. 2011 (ORB); Barath et al. 2020 (MAGSAC++); Rousseeuw 1984 (least trimmed
      squares).
    """
    motion = _find_motion(first, second, cut_0, cut_1)
    found: list[float | None]
    if motion is not None:
        found = [float(motion.model), *_measures(first, second, motion)]
    else:
        found = [float(NONE), *[None] * (len(MEASURES) + 1)]
        if first.shape == second.shape:
            _, is_shown, _, changed = _compare(first, second, np.eye(3))
            found[-1] = _solid_area(changed, is_shown)
    return [
        Score(name=name, value=value, scorer=SCORER, version=VERSION, settings=_SETTINGS)
        for name, value in zip((REGISTRATION, *MEASURES, SOLID), found, strict=True)
    ]


def _measures(first: Pixels, second: Pixels, motion: Motion) -> list[float | None]:
    light, is_shown, planes, changed = _compare(first, second, motion.matrix)
    gain = float(np.exp(np.log(light.gains).mean()))
    maps = [minimality.similarity(*plane)[1] for plane in planes]
    shift, zoom, turn = _motion_of_centre(motion.matrix, first.shape, second.shape)
    found = [
        float(is_shown.mean()),
        shift,
        zoom,
        turn,
        1 / gain,
        float(light.gains.max() / light.gains.min()),
        float(changed.sum() / is_shown.sum()),
        minimality.least_outside(maps, ~is_shown),
        minimality.least_outside(maps, changed | ~is_shown),
        minimality.least_outside(maps[:1], ~is_shown),
        _solid_area(changed, is_shown),
    ]
    return [None if value is None else round(value, 6) for value in found]


def _compare(
    first: Pixels, second: Pixels, matrix: Matrix
) -> tuple[Light, Mask, list[tuple[Plane, Plane]], Mask]:
    """Return the light, the mask of the overlap, both frames' planes, and the changed pixels."""
    moved, is_shown = _moved(second, matrix, first.shape)
    light = _fit_light(first, moved, is_shown)
    fitted = np.clip(np.rint(moved * light.gains + light.offsets), 0, 255).astype(np.uint8)
    # A clipped value was at least as bright, so it may have been the first frame's.
    unknown = ~is_shown[:, :, None] | ((moved >= CLIPPED) & (first > fitted))
    fitted = np.where(unknown, first, fitted)
    planes = [
        (one.astype(np.float32), other.astype(np.float32))
        for one, other in zip(_planes(first), _planes(fitted), strict=True)
    ]
    changed = minimality.is_changed(*(other - one for one, other in planes)) & is_shown
    return light, is_shown, planes, changed


def _solid_area(changed: Mask, is_shown: Mask) -> float:
    cv2 = import_cv2()
    square = np.ones((SOLID_PX, SOLID_PX), np.uint8)
    solid = cv2.morphologyEx(changed.astype(np.uint8), cv2.MORPH_OPEN, square)
    return round(float(solid.sum() / is_shown.sum()), 6)


def _planes(pixels: Pixels) -> tuple[Pixels, Pixels, Pixels]:
    small = scale_to(
        Image.fromarray(pixels), minimality.COLOUR_SIDE_PX, min_side=minimality.SSIM_WINDOW_PX
    )
    return lightness(pixels), *colours(np.asarray(small))


def _find_motion(first: Pixels, second: Pixels, cut_0: CutView, cut_1: CutView) -> Motion | None:
    """Return the simplest motion that explains the keypoints; None if they agree on none."""
    before, after = matched_points(cut_0, cut_1)
    if len(before) < MIN_POINTS:
        return None
    cv2 = import_cv2()
    similar, agree = cv2.estimateAffinePartial2D(
        before, after, method=cv2.RANSAC, ransacReprojThreshold=MISFIT_PX, maxIters=2000
    )
    bent, agree_bent = cv2.findHomography(
        before, after, cv2.USAC_MAGSAC, MISFIT_PX, maxIters=2000, confidence=0.999
    )
    still = np.hypot(*(after - before).T) < MISFIT_PX
    best, support = Motion(SIMILARITY, np.eye(3)), still
    for model, matrix, agreed in ((SIMILARITY, similar, agree), (HOMOGRAPHY, bent, agree_bent)):
        if matrix is None or np.count_nonzero(agreed) <= MORE_POINTS * support.sum():
            continue
        inside = agreed.ravel().astype(bool)
        is_rival = still.sum() >= MIN_POINTS and 2 * (inside & still).sum() < still.sum()
        if is_rival and inside.sum() < MANY_MORE_POINTS * still.sum():
            continue
        full = matrix if model == HOMOGRAPHY else np.vstack([matrix, [0, 0, 1]])
        motion = Motion(model, _TO_VIEW @ full @ np.linalg.inv(_TO_VIEW))
        if inside.sum() >= MIN_POINTS and _is_sound(motion, before[inside], first, second):
            best, support = motion, inside
    return best if support.sum() >= MIN_POINTS else None


def _is_sound(motion: Motion, points: NDArray[Any], first: Pixels, second: Pixels) -> bool:
    """Return True if a motion is the camera's: its keypoints spread out, and it beats none."""
    height, width = first.shape[:2]
    hull = import_cv2().convexHull(points * np.float32(_TO_VIEW[0, 0]))
    corners = np.array([[0, 0, 1], [width, 0, 1], [width, height, 1], [0, height, 1]], float)
    _, zoom, _ = _motion_of_centre(motion.matrix, first.shape, second.shape)
    if (
        import_cv2().contourArea(hull) < MIN_SPREAD * height * width
        or not 1 / MAX_ZOOM < zoom < MAX_ZOOM
        or (corners @ motion.matrix[2] <= MIN_DEPTH).any()
    ):
        return False
    moved, shown = _moved(second, motion.matrix, first.shape)
    if shown.mean() < MIN_OVERLAP:
        return False
    return first.shape != second.shape or _misfit(first, moved, shown) < _misfit(
        first, second, shown
    )


def _misfit(first: Pixels, moved: Pixels, shown: Mask) -> float:
    light = _fit_light(first, moved, shown)
    misfit = np.abs(moved * light.gains + light.offsets - first)[shown]
    return float(np.minimum(misfit, MOST_MISFIT).mean())


def _moved(second: Pixels, matrix: Matrix, shape: tuple[int, ...]) -> tuple[Pixels, Mask]:
    """Warp the second frame to the first camera; return it and the mask of its pixels."""
    cv2 = import_cv2()
    size = shape[1], shape[0]
    if np.array_equal(matrix, np.eye(3)):
        return second, np.ones(shape[:2], bool)
    inverse = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    moved = cv2.warpPerspective(second, matrix, size, flags=inverse)
    ones = np.ones(second.shape[:2], np.float32)
    return moved, cv2.warpPerspective(ones, matrix, size, flags=inverse) > 0.999


def _motion_of_centre(
    matrix: Matrix, shape_0: tuple[int, ...], shape_1: tuple[int, ...]
) -> tuple[float, float, float]:
    """Return shift in widths, zoom, and rotation in degrees at the first frame's centre."""
    centre = np.array([(shape_0[1] - 1) / 2, (shape_0[0] - 1) / 2, 1])
    x, y, w = matrix @ centre
    local = (matrix[:2, :2] - np.outer([x / w, y / w], matrix[2, :2])) / w
    offset = np.array([x / w - (shape_1[1] - 1) / 2, y / w - (shape_1[0] - 1) / 2])
    zoom = float(np.sqrt(abs(np.linalg.det(local))))
    turn = np.degrees(np.arctan2(local[1, 0] - local[0, 1], local[0, 0] + local[1, 1]))
    return float(np.hypot(*offset) / shape_1[1]), zoom, float(turn)


def _fit_light(first: Pixels, moved: Pixels, shown: Mask) -> Light:
    """Fit exposure and white balance of the second frame to the first, by the half that fits best.

    So a change of the scene in less than half of the overlap does not count.
    """
    blurred = [import_cv2().blur(each, (5, 5))[::2, ::2].astype(float) for each in (first, moved)]
    fair = shown[::2, ::2] & np.logical_and.reduce(
        [(each > 8).all(axis=2) & (each < CLIPPED).all(axis=2) for each in blurred]
    )
    none = Light(np.ones(3), np.zeros(3))
    if fair.sum() < 100:
        return none
    target, source = (each[fair] for each in blurred)
    gains, offsets = np.median(target / source, axis=0), np.zeros(3)
    for _ in range(_FIT_ROUNDS):
        misfit = np.abs(source * gains + offsets - target).sum(axis=1)
        near = misfit <= np.median(misfit)
        x, y = source[near], target[near]
        spread = x.var(axis=0)
        slopes = ((x - x.mean(axis=0)) * (y - y.mean(axis=0))).mean(axis=0)
        steep = spread > 64
        gains = np.where(steep, slopes / np.maximum(spread, 1), np.median(y / x, axis=0))
        offsets = np.where(steep, y.mean(axis=0) - gains * x.mean(axis=0), 0)
        gains = np.clip(gains, 1 / MAX_GAIN, MAX_GAIN)
    if gains.max() > MAX_TINT * gains.min():
        gains = np.full(3, np.median(gains))
        offsets = np.full(3, np.median(target - source * gains))
    return Light(gains, offsets)
