"""Scores luminance, contrast and sharpness; rejects black, constant and blurred images."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from eqforge.schemas.records.scores import Rejection, Score, compact_json, value_of
from eqforge.transforms.filters.image_filter import ImageFilter, check_pixels, mean_luma, scale_to

if TYPE_CHECKING:
    from numpy.typing import NDArray

LUMINANCE = "luminance_mean"
CONTRAST = "contrast"
SHARPNESS = "sharpness"

SCORER = "eqforge.quality"
VERSION = "2"
LONG_SIDE_PX = 256


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class QualitySettings:
    """Minimum image quality (None turns a check off).

    Among 86 photographs, the lowest values are 56 (luminance), 19.7 (contrast) and 40 (sharpness).
    Black video frames reach 4.2, 2.0 and 2.6. If the photographs are blurred by 1.6% of their
    longer side, their sharpness is 5.6.
    """

    min_luminance: float | None = 6.0
    """Minimum mean luma, in [0, 255]. Darker images are rejected."""

    min_contrast: float | None = 4.0
    """Minimum standard deviation of the colour channel that varies most, in [0, 127.5]."""

    min_sharpness: float | None = 6.0
    """Minimum variance of the Laplacian, with the image's longer side scaled down to 256 pixels.
    Blurred images have a lower variance."""


def score_quality(pixels: NDArray[np.uint8]) -> list[Score]:
    """Score the mean luma, and the contrast and sharpness of the strongest of three channels.

    Luma is that of BT.601: an image is black if it is dark, whatever its colour. Adjacent colours
    of equal luma have neither contrast nor edges in it, so red, green and blue are measured, and
    the greatest counts.

    Images are first downscaled to a long side of 256 pixels, so that scores hardly depend on the
    resolution; a smaller image is not enlarged, because that blurs.

    Args:
      pixels: RGB, uint8 [height, width, 3].

    Returns:
      Three scores: the mean luma in [0, 255], the standard deviation of a channel in [0, 127.5],
      and the variance of a channel's Laplacian, 0 or more.
    """
    import scipy.ndimage  # type: ignore[import-untyped]

    check_pixels(pixels)
    image = Image.fromarray(pixels)
    if max(image.size) > LONG_SIDE_PX:
        image = scale_to(image, LONG_SIDE_PX)
    channels = [np.asarray(channel, dtype=np.float64) for channel in image.split()]
    return [
        _score(LUMINANCE, mean_luma(image)),
        _score(CONTRAST, max(channel.std() for channel in channels)),
        _score(SHARPNESS, max(scipy.ndimage.laplace(channel).var() for channel in channels)),
    ]


def decide_quality(scores: Sequence[Score], settings: QualitySettings) -> Rejection | None:
    for reason, name, minimum in (
        ("black_image", LUMINANCE, settings.min_luminance),
        ("constant_image", CONTRAST, settings.min_contrast),
        ("blurred_image", SHARPNESS, settings.min_sharpness),
    ):
        if minimum is None:
            continue
        value = value_of(scores, name)
        if value is not None and value < minimum:
            return Rejection(reason=reason, value=value, threshold=minimum, detail=name)
    return None


QUALITY = ImageFilter(
    settings=QualitySettings,
    off=QualitySettings(min_luminance=None, min_contrast=None, min_sharpness=None),
    reasons={
        "black_image": "The mean luminance is below --min-luminance.",
        "constant_image": "The standard deviation of every colour channel is below --min-contrast.",
        "blurred_image": "The sharpness is below --min-sharpness.",
    },
    packages=("numpy", "scipy", "pillow"),
    basis=lambda _: VERSION,
    score=lambda pixels, _: score_quality(pixels),
    refuse=decide_quality,
)


def _score(name: str, value: float) -> Score:
    """Round a score, to keep floating-point noise out of the row."""
    return Score(
        name=name,
        value=round(float(value), 6),
        scorer=SCORER,
        version=VERSION,
        settings=compact_json({"long_side_px": LONG_SIDE_PX}),
    )
