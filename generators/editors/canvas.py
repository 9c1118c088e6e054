"""Fit images of any size to the size a model takes, and restore edited ones.

An image is scaled with its shape kept, then padded with its own border at the right and the bottom:
nothing is cropped or stretched. Outside the mask, an edited image keeps the original's pixels, bit
for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LONGEST = 2
"""Maximum side of a canvas, in resolutions: on longer ones, models repeat what they draw."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Canvas:
    """An image as a model takes it.

    Attributes:
      image: uint8 [height, width, 3], with padding.
      mask: bool [height, width], True where the image may change, never in the padding.
      inner: height and width of the image in it, at the upper left.
      size: height and width of the original.
    """

    image: NDArray[np.uint8]
    mask: NDArray[np.bool_] | None
    inner: tuple[int, int]
    size: tuple[int, int]

    @property
    def height(self) -> int:
        return self.image.shape[0]

    @property
    def width(self) -> int:
        return self.image.shape[1]

    def restore(self, edited: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return _resized(edited[: self.inner[0], : self.inner[1]], self.size)


def fit(
    image: NDArray[np.uint8], mask: NDArray[np.bool_] | None, resolution: int, multiple: int
) -> Canvas:
    """Scale an image to about `resolution` pixels squared, with no side over twice that.

    The sides of the canvas are multiples of `multiple`.
    """
    height, width = image.shape[:2]
    scale = min(_LONGEST * resolution / max(height, width), resolution / (height * width) ** 0.5)
    inner = (max(1, round(height * scale)), max(1, round(width * scale)))
    outer = [-(-side // multiple) * multiple for side in inner]
    padding = [(0, outer[axis] - inner[axis]) for axis in (0, 1)]
    return Canvas(
        image=np.pad(_resized(image, inner), [*padding, (0, 0)], mode="edge"),
        mask=None if mask is None else np.pad(_covered(mask, inner), padding),
        inner=inner,
        size=(height, width),
    )


def _resized(image: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    if image.shape[:2] == size:
        return image
    picture = Image.fromarray(np.ascontiguousarray(image), "RGB")
    return np.asarray(picture.resize(size[::-1], Image.Resampling.LANCZOS))


def _covered(mask: NDArray[np.bool_], size: tuple[int, int]) -> NDArray[np.bool_]:
    """Resize a mask; a pixel is True if it touches any True pixel of the original."""
    picture = Image.fromarray(mask.astype(np.float32), "F")
    return np.asarray(picture.resize(size[::-1], Image.Resampling.BOX)) > 0


def composite(
    original: NDArray[np.uint8], edited: NDArray[np.uint8], mask: NDArray[np.bool_], feather_px: int
) -> NDArray[np.uint8]:
    """Return the edited image inside a mask and the original outside, bit for bit.

    Inside the mask, the original fades into the edit over `feather_px` pixels from the mask's rim;
    0 switches at once. The image's own border counts as no rim.

    Args:
      original, edited: RGB, uint8 [height, width, 3].
      mask: bool [height, width], True where the image may change.
    """
    if original.shape != edited.shape or original.shape[:2] != mask.shape:
        shapes = f"{original.shape}, {edited.shape} and {mask.shape}"
        raise ValueError(f"the images and the mask have different sizes: {shapes}")
    if feather_px == 0 or mask.all():  # there is no rim to measure from
        return np.where(mask[..., None], edited, original)
    import scipy.ndimage  # type: ignore[import-untyped]

    distance = scipy.ndimage.distance_transform_edt(mask)
    weight = np.clip(distance / (feather_px + 1), 0, 1).astype(np.float32)[..., None]
    mixed = np.rint(original + weight * (edited.astype(np.float32) - original))
    return np.where(mask[..., None], mixed.astype(np.uint8), original)


def grow(mask: NDArray[np.bool_], margin_px: int) -> NDArray[np.bool_]:
    import scipy.ndimage

    if margin_px == 0 or not mask.any():
        return mask
    return np.asarray(scipy.ndimage.distance_transform_edt(~mask) <= margin_px)
