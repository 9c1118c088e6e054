"""Measures how little two images differ, and gates pairs on the measures.

Prepare each image once (`view`), measure pairs of views (`measure_pair`), and apply thresholds,
all off by default (`gate_pair`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from PIL import Image

from eqforge.core.ranges import check_range
from eqforge.schemas.records.scores import Rejection
from eqforge.transforms.filters.image_filter import check_pixels, mean_luma, scale_to
from eqforge.transforms.filters.lab import colours, lightness

if TYPE_CHECKING:
    from numpy.typing import NDArray

REASONS = {
    "change_too_small": "The images differ less than --min-changed-area, --max-ssim or "
    "--min-phash-distance requires.",
    "change_too_large": "The images differ more than --max-changed-area, --min-ssim or "
    "--max-phash-distance allows.",
    "background_changed": "Outside the changed area, the images differ more than "
    "--min-background-ssim allows.",
    "luminance_shift": "The images differ more in mean luminance than "
    "--max-luminance-shift allows.",
}

VERSION = "2"
LONG_SIDE_PX = 256
COLOUR_SIDE_PX = LONG_SIDE_PX // 2
SMOOTHING_PX = 5
COLOUR_SMOOTHING_PX = 3
SSIM_WINDOW_PX = 11
HASH_BITS = 192
_HASH_SIDE_PX = 32

CHANGED_LIGHTNESS = 5.0
"""The smoothed difference of L*, of 100, above which a pixel counts as changed."""

CHANGED_COLOUR = 12.0
"""The smoothed distance in the plane of a* and b* above which a pixel counts as changed."""

Plane: TypeAlias = "NDArray[np.uint8]"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PairView:
    """The data of one image that the measures need, at most 98 kB.

    Attributes:
      planes: L*, a* and b* as in `lab`, uint8 [height, width]: the longer side is 256 for L* and
        128 for the others; no side is below 11 (SSIM's window).
      luma: mean luma, BT.601, in [0, 255].
    """

    planes: tuple[Plane, Plane, Plane]
    luma: float
    phash: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PairMeasures:
    """How much the second image of a pair differs from the first, to 6 decimals.

    Attributes:
      changed_area_fraction: share of the pixels that changed, in [0, 1]; see `is_changed`.
      ssim: the least mean SSIM of L*, a* and b*, in [-1, 1]; 1 for equal images.
      background_ssim: the same outside the changed area and the windows that touch it; None if
        nothing is outside.
      luminance_shift: mean luma of the second image minus that of the first, in [-255, 255].
      phash_distance: number of bits in which the perceptual hashes differ, 0 to 192.
    """

    changed_area_fraction: float
    ssim: float
    background_ssim: float | None
    luminance_shift: float
    phash_distance: int


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class GateSettings:
    """Limits on the difference between the two images of a pair (None turns a limit off)."""

    min_changed_area: float | None = None
    """Minimum fraction of the image area that must change, in [0, 1]."""

    max_changed_area: float | None = None
    """Maximum fraction of the image area that may change, in [0, 1]."""

    min_ssim: float | None = None
    """Minimum structural similarity (SSIM) of the two images, in [-1, 1]."""

    max_ssim: float | None = None
    """Maximum structural similarity (SSIM) of the two images, in [-1, 1]."""

    min_background_ssim: float | None = None
    """Minimum SSIM outside the changed area. Pairs without an unchanged area are rejected."""

    max_luminance_shift: float | None = None
    """Maximum difference between the mean luma values of the two images, in [0, 255]."""

    min_phash_distance: int | None = None
    """Minimum number of bits that differ between the perceptual hashes, 0 to 192."""

    max_phash_distance: int | None = None
    """Maximum number of bits that differ between the perceptual hashes, 0 to 192."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            limits = _RANGES[field.name.partition("_")[2]]
            check_range(field.name, getattr(self, field.name), *limits)

    def without_background(self) -> GateSettings:
        """Drop the limits that do not hold if most of the image changes, as with its scene."""
        return dataclasses.replace(
            self,
            max_changed_area=None,
            min_ssim=None,
            min_background_ssim=None,
            max_luminance_shift=None,
            max_phash_distance=None,
        )


_RANGES = {
    "changed_area": (0, 1),
    "ssim": (-1, 1),
    "background_ssim": (-1, 1),
    "luminance_shift": (0, 255),
    "phash_distance": (0, HASH_BITS),
}


def view(pixels: NDArray[np.uint8]) -> PairView:
    """Prepare an RGB image, uint8 [height, width, 3], for the measures, once per image."""
    phash = perceptual_hash(pixels)
    image = scale_to(Image.fromarray(pixels), LONG_SIDE_PX, min_side=SSIM_WINDOW_PX)
    small = scale_to(image, COLOUR_SIDE_PX, min_side=SSIM_WINDOW_PX)
    return PairView(
        planes=(lightness(np.asarray(image)), *colours(np.asarray(small))),
        luma=mean_luma(image),
        phash=phash,
    )


def perceptual_hash(pixels: NDArray[np.uint8]) -> str:
    """Return the perceptual hashes of red, green and blue: 192 bits, 48 hexadecimal digits.

    For a grey image the three are equal. A hash of luma alone would miss a change of colour.

    Args:
      pixels: RGB, uint8 [height, width, 3].

    Source: ImageHash's phash, applied to each channel.
    """
    import imagehash

    check_pixels(pixels)
    size = (_HASH_SIDE_PX, _HASH_SIDE_PX)  # phash would scale each channel to it separately
    image = Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS)
    return "".join(str(imagehash.phash(channel)) for channel in image.split())


def hash_distance(phash_0: str, phash_1: str) -> int:
    return (int(phash_0, 16) ^ int(phash_1, 16)).bit_count()


def measure_pair(view_0: PairView, view_1: PairView) -> PairMeasures:
    """Measure how much the second image differs from the first.

    A second image of a different size is stretched to the first's; luma and hash do not need this.
    """
    planes = _on_common_size(view_0, view_1)
    changed = is_changed(*(second - first for first, second in planes))
    ssims, maps = zip(*(similarity(*plane) for plane in planes), strict=True)
    return PairMeasures(
        changed_area_fraction=round(float(changed.mean()), 6),
        ssim=round(min(ssims), 6),
        background_ssim=least_outside(maps, changed),
        luminance_shift=round(view_1.luma - view_0.luma, 6),
        phash_distance=hash_distance(view_0.phash, view_1.phash),
    )


def background_similarity(
    view_0: PairView, view_1: PairView, changed: NDArray[np.bool_]
) -> float | None:
    """Return the SSIM outside a region (bool [height, width], any size), if any."""
    planes = _on_common_size(view_0, view_1)
    return least_outside([similarity(*plane)[1] for plane in planes], changed)


def changed_in_and_out(
    view_0: PairView, view_1: PairView, region: NDArray[np.bool_]
) -> tuple[float | None, float | None]:
    """Return the shares of changed pixels, in [0, 1], inside and outside a region.

    Each has 6 decimals, and is None without pixels there; see `is_changed`.

    Args:
      region: bool [height, width], of any size.
    """
    planes = _on_common_size(view_0, view_1)
    changed = is_changed(*(second - first for first, second in planes))
    inside = _resized(region, changed.shape)
    parts = (changed[inside], changed[~inside])
    first, second = (round(float(part.mean()), 6) if part.size else None for part in parts)
    return first, second


def similarity(
    plane_0: NDArray[np.float32], plane_1: NDArray[np.float32]
) -> tuple[float, NDArray[np.float32]]:
    """Return the mean SSIM of two planes, and the SSIM map.

    Args:
      plane_0: float32 [height, width], in [0, 255]; no side below 11.

    Source: Wang et al. 2004, with its 11 x 11 Gaussian window of sigma 1.5 and population
      covariances; the mean is over complete windows only.
    """
    from skimage.metrics import structural_similarity

    ssim, ssim_map = structural_similarity(  # type: ignore[no-untyped-call]
        plane_0,
        plane_1,
        data_range=255,
        gaussian_weights=True,
        sigma=1.5,
        use_sample_covariance=False,
        full=True,
    )
    return float(ssim), ssim_map


def is_changed(
    lightness: NDArray[np.float32], green_red: NDArray[np.float32], blue_yellow: NDArray[np.float32]
) -> NDArray[np.bool_]:
    """Return a mask of the changed pixels, from the differences of two images' planes.

    A pixel changed if its L* differs by more than 5, or its a* and b* by a distance of more than
    12, after subtracting each difference's median and averaging over 5 x 5 pixels (3 x 3 for
    colour, which has half the size). The median removes a change of exposure and most of one of
    white balance; the mean would spread a local change over the rest. Averaging removes noise and
    widens or narrows a region by at most 3 pixels.

    Lightness and colour have separate limits, as JPEG and video store colour more coarsely. Between
    40 photographs and their JPEGs of quality 30, L* differs by at most 3.7 and the colours by 9.4;
    between two frames of 24 static shots, with noise and in H.264, by 2.4 and 8.4. On as many
    held-out photographs and shots it is 3.1 and 9.6, and 3.5 and 7.2.

    Args:
      lightness: float32 [height, width], second minus first, in steps of 100 / 255.
      green_red: the same for a*, of about half that shape, in steps of 1.
    """
    brighter = np.abs(_smoothed(lightness, SMOOTHING_PX)) * (100 / 255) > CHANGED_LIGHTNESS
    turned = np.hypot(
        *(_smoothed(plane, COLOUR_SMOOTHING_PX) for plane in (green_red, blue_yellow))
    )
    changed: NDArray[np.bool_] = brighter | _resized(turned > CHANGED_COLOUR, brighter.shape)
    return changed


def _smoothed(difference: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    import scipy.ndimage  # type: ignore[import-untyped]

    centred = difference - np.median(difference)
    return scipy.ndimage.uniform_filter(centred, size, mode="nearest")


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
"""Setting, measure and reason, in the order of the checks."""


def gate_pair(measures: PairMeasures, settings: GateSettings) -> Rejection | None:
    """Reject a pair with a measure beyond a limit that is set; the first in _GATES is reported."""
    for setting, measure, reason in _GATES:
        limit, value = getattr(settings, setting), getattr(measures, measure)
        if limit is None:
            continue
        if value is None:
            is_within = False
        elif setting.startswith("min_"):
            is_within = value >= limit
        else:  # only the luminance shift may be negative
            is_within = (abs(value) if measure == "luminance_shift" else value) <= limit
        if not is_within:
            return Rejection(reason=reason, value=value, threshold=limit, detail=measure)
    return None


def _on_common_size(
    view_0: PairView, view_1: PairView
) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    planes = []
    for first, second in zip(view_0.planes, view_1.planes, strict=True):
        if second.shape != first.shape:
            size = (first.shape[1], first.shape[0])
            second = np.asarray(Image.fromarray(second).resize(size, Image.Resampling.BILINEAR))
        planes.append((first.astype(np.float32), second.astype(np.float32)))
    return planes


def _resized(mask: NDArray[np.bool_], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    if mask.shape == shape:
        return mask
    rows, columns = (
        (2 * np.arange(new) + 1) * old // (2 * new)
        for new, old in zip(shape, mask.shape, strict=True)
    )
    return mask[np.ix_(rows, columns)]


def least_outside(maps: Sequence[NDArray[np.float32]], changed: NDArray[np.bool_]) -> float | None:
    """Return the least mean of SSIM maps outside a region; None if nothing is outside."""
    means = [_mean_outside(each, _resized(changed, each.shape)) for each in maps]
    return min((mean for mean in means if mean is not None), default=None)


def _mean_outside(ssim_map: NDArray[np.float32], changed: NDArray[np.bool_]) -> float | None:
    """Return the mean SSIM of complete windows without changed or smoothed pixels, if any."""
    import scipy.ndimage

    reach = SSIM_WINDOW_PX // 2 + SMOOTHING_PX // 2
    touched = scipy.ndimage.maximum_filter(changed, 2 * reach + 1, mode="constant")
    inner = np.s_[SSIM_WINDOW_PX // 2 : -(SSIM_WINDOW_PX // 2)]
    background = ssim_map[inner, inner][~touched[inner, inner]]
    return round(float(background.mean(dtype=np.float64)), 6) if background.size else None
