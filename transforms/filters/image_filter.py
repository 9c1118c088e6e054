"""The interface of image filters, and shared functions to check and scale pixels."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from PIL import Image

from eqforge.core.errors import importing
from eqforge.schemas.records.scores import Rejection, Score

if TYPE_CHECKING:
    from numpy.typing import NDArray

Settings = TypeVar("Settings")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ImageFilter(Generic[Settings]):
    """A filter of images: one function scores, another compares the scores with its settings.

    Attributes:
      settings: settings class; its defaults are those of corrected mode.
      off: settings that reject nothing.
      reasons: every possible reason, explained in one sentence.
      packages: the packages whose versions the scores depend on.
      basis: returns everything else they depend on besides the image; limits are not part of it.
      score: scores an image, RGB, uint8 [height, width, 3].
      refuse: returns the rejection of an image with these scores, if any.
      prepare: loads what `score` needs, so that a missing package shows before any work.
    """

    settings: type[Settings]
    off: Settings
    reasons: Mapping[str, str]
    packages: tuple[str, ...]
    basis: Callable[[Settings], object]
    score: Callable[[NDArray[np.uint8], Settings], list[Score]]
    refuse: Callable[[Sequence[Score], Settings], Rejection | None]
    prepare: Callable[[Settings], None] = lambda _: None


def check_pixels(pixels: NDArray[Any]) -> None:
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise ValueError(
            "expected a non-empty uint8 array of shape (height, width, 3); found "
            f"{pixels.dtype} of shape {pixels.shape}"
        )


def mean_luma(image: Image.Image) -> float:
    """Return the mean luma (ITU-R BT.601, 8 bits) of an RGB image, in [0, 255].

    Pillow's integer arithmetic and an exact sum give the same result on every processor.
    """
    return float(np.asarray(image.convert("L")).mean(dtype=np.float64))


def scale_to(image: Image.Image, long_side: int, min_side: int = 1) -> Image.Image:
    """Scale an image so that its longer side is `long_side` and no side is below `min_side`.

    Bilinear; when downscaling, the kernel is widened (antialiased), so every source pixel counts.
    """
    scale = long_side / max(image.size)
    width, height = (max(min_side, round(side * scale)) for side in image.size)
    return image.resize((width, height), Image.Resampling.BILINEAR)


def import_cv2() -> ModuleType:
    """Import OpenCV with its own threads off, because the runner already uses every core."""
    with importing("cv2", "video"):
        import cv2
    cv2.setNumThreads(1)
    return cv2
