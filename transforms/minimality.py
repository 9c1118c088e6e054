"""Measures how little two images differ, and gates pairs on the measures.

An image is viewed once (`view`), a pair is measured on two views (`measure_pair`) and judged by
thresholds that are all off until they are set (`gate_pair`).
"""

import dataclasses

import imagehash
import numpy as np
import scipy.ndimage  # type: ignore[import-untyped]
from numpy.typing import NDArray
from PIL import Image
from skimage.metrics import structural_similarity

from eqforge.schemas.errors import InputError
from eqforge.schemas.scores import Rejection
from eqforge.transforms.luma import luma_image, scale_to

VERSION = "1"
LONG_SIDE_PX = 256
SMOOTHING_PX = 5
SSIM_WINDOW_PX = 11

CHANGED_LUMA = 12.0
"""The smoothed luma difference, of 255, above which a pixel counts as changed.

On 40 photographs JPEG at quality 30 stays at or below 6.3, and on a static camera compressed
video noise stays at or below 10.3.
"""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PairView:
    """What the measures need of one image, 50 kB.

    Attributes:
      luma: uint8 of shape (height, width), BT.601, the longer side 256 and the shorter at least
        11 (the window of SSIM).
      phash: the 64-bit perceptual hash of the whole image, as 16 hexadecimal digits.
    """

    luma: NDArray[np.uint8]
    phash: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PairMeasures:
    """How much the second image of a pair differs from the first, to 6 decimals.

    Attributes:
      changed_area_fraction: share of the pixels that changed, in [0, 1]; see `is_changed`.
      ssim: mean structural similarity of the lumas, in [-1, 1]; 1 for equal images.
      background_ssim: the same outside the changed area and what it touches; None where nothing
        is outside.
      luminance_shift: mean luma of the second less that of the first, in [-255, 255].
      phash_distance: bits in which the perceptual hashes differ, in 0 to 64.
    """

    changed_area_fraction: float
    ssim: float
    background_ssim: float | None
    luminance_shift: float
    phash_distance: int


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class GateSettings:
    """Limits on the measures of a pair; None, the default and the published behaviour, is off."""

    min_changed_area: float | None = None
    """Least changed-area fraction, in [0, 1]."""

    max_changed_area: float | None = None
    """Greatest changed-area fraction, in [0, 1]."""

    min_ssim: float | None = None
    """Least structural similarity, in [-1, 1]."""

    max_ssim: float | None = None
    """Greatest structural similarity, in [-1, 1]."""

    min_background_ssim: float | None = None
    """Least structural similarity outside the changed area; a pair without background fails."""

    max_luminance_shift: float | None = None
    """Greatest difference of the mean lumas, up or down, in [0, 255]."""

    min_phash_distance: int | None = None
    """Least number of differing bits of the perceptual hashes, 0 to 64."""

    max_phash_distance: int | None = None
    """Greatest number of differing bits of the perceptual hashes, 0 to 64."""

    def __post_init__(self) -> None:
        """Refuses limits that no measure can reach.

        Raises:
          InputError: a limit is out of its measure's range, or not a number.
        """
        for name, (low, high) in _RANGES.items():
            for limit in (getattr(self, f"min_{name}", None), getattr(self, f"max_{name}", None)):
                if limit is not None and not low <= limit <= high:
                    raise InputError(f"a limit of {name} lies in [{low}, {high}]; found {limit}")


_RANGES = {
    "changed_area": (0, 1),
    "ssim": (-1, 1),
    "background_ssim": (-1, 1),
    "luminance_shift": (0, 255),
    "phash_distance": (0, 64),
}
"""What each measure can be, by the end of its settings' names."""


def view(pixels: NDArray[np.uint8]) -> PairView:
    """Returns what the measures need of an image; it is made once per image, not per pair.

    Args:
      pixels: uint8 of shape (height, width, 3), RGB.

    Raises:
      ValueError: the array is not an RGB image.
    """
    image = luma_image(pixels)
    return PairView(
        luma=np.asarray(scale_to(image, LONG_SIDE_PX, min_side=SSIM_WINDOW_PX)),
        phash=str(imagehash.phash(image)),
    )


def measure_pair(view_0: PairView, view_1: PairView) -> PairMeasures:
    """Measures how much the second image differs from the first.

    Where the sizes differ, the second luma is stretched to the first's size; the perceptual hash
    is of the whole image and needs no common size.

    Source: perceptual hash: ImageHash's phash.
    """
    luma_0 = view_0.luma.astype(np.float32)
    luma_1 = _stretched(view_1.luma, view_0.luma.shape).astype(np.float32)
    difference = luma_1 - luma_0
    changed = is_changed(difference)
    ssim, ssim_map = similarity(luma_0, luma_1)
    return PairMeasures(
        changed_area_fraction=round(float(changed.mean()), 6),
        ssim=round(ssim, 6),
        background_ssim=mean_outside(ssim_map, changed),
        luminance_shift=round(float(difference.mean(dtype=np.float64)), 6),
        phash_distance=(int(view_0.phash, 16) ^ int(view_1.phash, 16)).bit_count(),
    )


def similarity(
    luma_0: NDArray[np.float32], luma_1: NDArray[np.float32]
) -> tuple[float, NDArray[np.float32]]:
    """Returns the mean structural similarity of two lumas, and that of the window at each pixel.

    Args:
      luma_0: float32 [height, width] in [0, 255], no side below 11.
      luma_1: the same of the other image.

    Source: Wang et al. 2004, with its 11 x 11 Gaussian window of sigma 1.5 and population
      covariances; only whole windows count for the mean.
    """
    ssim, ssim_map = structural_similarity(  # type: ignore[no-untyped-call]
        luma_0,
        luma_1,
        data_range=255,
        gaussian_weights=True,
        sigma=1.5,
        use_sample_covariance=False,
        full=True,
    )
    return float(ssim), ssim_map


def is_changed(difference: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Tells which pixels of a luma difference changed.

    A pixel changed if the difference, less its median and averaged over 5 x 5 pixels, is above
    12 either way. The median takes out a change of exposure; the mean would spread a change of
    one part over the rest. Averaging takes out noise and widens or narrows a region by at most
    2 pixels.

    Args:
      difference: float32 of shape (height, width), second luma less the first.
    """
    centred = difference - np.median(difference)
    smoothed = scipy.ndimage.uniform_filter(centred, SMOOTHING_PX, mode="nearest")
    changed: NDArray[np.bool_] = np.abs(smoothed) > CHANGED_LUMA
    return changed


_GATES = (
    ("min_changed_area", "changed_area_fraction", "change_too_small"),
    ("max_changed_area", "changed_area_fraction", "change_too_large"),
    ("max_ssim", "ssim", "change_too_small"),
    ("min_ssim", "ssim", "change_too_large"),
    ("min_phash_distance", "phash_distance", "change_too_small"),
    ("max_phash_distance", "phash_distance", "change_too_large"),
    ("min_background_ssim", "background_ssim", "background_changed"),
    ("max_luminance_shift", "luminance_shift", "luminance_shift"),
)
"""Setting, measure and reason, in the order in which they are checked."""


def gate_pair(measures: PairMeasures, settings: GateSettings) -> Rejection | None:
    """Rejects a pair with a measure beyond a limit that is set; the first of _GATES counts."""
    for setting, measure, reason in _GATES:
        limit, value = getattr(settings, setting), getattr(measures, measure)
        if limit is not None and not _is_within(value, limit, setting):
            return Rejection(reason=reason, value=value, threshold=limit, detail=measure)
    return None


def _is_within(value: float | None, limit: float, setting: str) -> bool:
    """Tells whether a measure keeps a limit; one without value keeps none."""
    if value is None:
        return False
    if setting == "max_luminance_shift":
        return abs(value) <= limit
    return value >= limit if setting.startswith("min_") else value <= limit


def _stretched(luma: NDArray[np.uint8], shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Returns a luma at another size."""
    if luma.shape == shape:
        return luma
    size = (shape[1], shape[0])
    return np.asarray(Image.fromarray(luma).resize(size, Image.Resampling.BILINEAR))


def mean_outside(ssim_map: NDArray[np.float32], changed: NDArray[np.bool_]) -> float | None:
    """Returns the mean SSIM of the whole windows that hold no changed or smoothed-out pixel.

    None where there is no such window.
    """
    reach = SSIM_WINDOW_PX // 2 + SMOOTHING_PX // 2
    touched = scipy.ndimage.maximum_filter(changed, 2 * reach + 1, mode="constant")
    inner = np.s_[SSIM_WINDOW_PX // 2 : -(SSIM_WINDOW_PX // 2)]
    background = ssim_map[inner, inner][~touched[inner, inner]]
    return round(float(background.mean(dtype=np.float64)), 6) if background.size else None
