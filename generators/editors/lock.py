"""Locks a picture outside a mask: what may not change is the original's, bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eqforge.core.late import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def composite(
    original: NDArray[np.uint8],
    edited: NDArray[np.uint8],
    mask: NDArray[np.bool_],
    feather_px: int = 0,
) -> NDArray[np.uint8]:
    """Return the edited picture inside a mask and the original outside.

    Args:
      original: RGB, uint8 of shape (height, width, 3).
      edited: the same shape.
      mask: bool of shape (height, width), True where the picture may change.
      feather_px: inside the mask, over so many pixels from its rim, the one picture fades into the
        other; 0 changes at once. The picture's own rim is none. Outside nothing ever changes.

    Raises:
      ValueError: the shapes differ, or the number of pixels is negative.
    """
    if original.shape != edited.shape or original.shape[:2] != mask.shape or feather_px < 0:
        shapes = f"{original.shape}, {edited.shape}, {mask.shape}"
        raise ValueError(f"expected one size and 0 pixels or more: found {shapes}, {feather_px}")
    if feather_px == 0:
        return np.where(mask[..., None], edited, original)
    weight = _weights(mask, feather_px)[..., None]
    mixed = np.rint(original + weight * (edited.astype(np.float32) - original))
    return np.where(mask[..., None], mixed.astype(np.uint8), original)


def _weights(mask: NDArray[np.bool_], feather_px: int) -> NDArray[np.float32]:
    """Return the edited picture's share at each pixel, from 0 outside to 1 deep inside."""
    import scipy.ndimage  # type: ignore[import-untyped]

    if mask.all():  # there is no rim to measure from
        return np.ones(mask.shape, np.float32)
    distance = scipy.ndimage.distance_transform_edt(mask)
    return np.clip(distance / (feather_px + 1), 0, 1).astype(np.float32)


def grow(mask: NDArray[np.bool_], margin_px: int) -> NDArray[np.bool_]:
    """Return a mask with all pixels that lie within a distance of it."""
    import scipy.ndimage

    if margin_px == 0 or not mask.any():
        return mask
    grown: NDArray[np.bool_] = scipy.ndimage.distance_transform_edt(~mask) <= margin_px
    return grown
